"""Runs each form of a matrix, atomic or memory instruction in a kernel of its own, on a GPU and in the simulator.

`matrix_forms.py` and `atomic_forms.py` list the forms. `simulate.py` compiles them and executes them in the simulator.
`python -m validate.forms prepare` writes a bundle; `run`, on a GPU's machine, what the kernels leave in memory; and
`compare` says, form by form, where the simulator differs.
"""
