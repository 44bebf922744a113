"""Machine code of our own functions, kept between runs, so that a run that finds it imports no numba.

`function.NativeFunction` is what the engines hold. Its first call looks for the machine code (`store.py`), has numba
compile it where there is none (`build.py`, which imports numba and the function's own module), and loads it (`load.py`,
which needs llvmlite only). Importing and starting numba takes longer than a small launch does.

What is kept is what numba compiled from this package's files, beside them, as numba's own cache does, in a file that is
only read where nobody else could have written it. Nothing in it is unpickled.
"""
