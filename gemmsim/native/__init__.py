"""Machine code of our own functions. It is made when it is first needed, and stored for later runs.

The engines hold `function.NativeFunction`. Its first call looks for the machine code (`code_store.py`), compiles it
where there is none (`build.py`, which imports the function's own module), and loads it (`loader.py`). Compiling is two
steps: `translate.py` writes the function, which is in a small part of Python, in LLVM; LLVM makes machine code of it.

The stored files lie beside this package's own. They are read only where nobody else could have written them, and
nothing in them is unpickled.
"""
