"""The loops of this folder's parent in the Python that numba compiles; `engine.py` there runs them."""
