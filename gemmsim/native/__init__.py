"""Machine code of our own functions. It is stored between runs, so that a run that finds it imports no numba.

The engines hold `function.NativeFunction`. Its first call looks for the machine code (`code_store.py`), has numba
compile it where there is none (`build.py`, which imports numba and the function's own module), and loads it
(`loader.py`, which needs llvmlite only). Importing and starting numba takes longer than a small launch does.

The stored files lie beside this package's own, as those of numba's cache do. They are read only where nobody else could
have written them, and nothing in them is unpickled.
"""
