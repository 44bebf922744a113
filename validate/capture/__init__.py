"""Captures the kernel launches of a program on a real GPU, so that they can be predicted anywhere.

`inject.cpp` is loaded into the program by the driver and writes a log; `log.py` reads it, `bundle.py` makes a bundle of
it, which `gemmsim analyze BUNDLE#3` takes. All this needs a C++ compiler, CUPTI, pyelftools and NumPy on the GPU's
machine, and of gemmsim only the checkout: `python -m validate.capture`.
"""
