"""Writes the arrays of a launch as an .npz file, as they are after the run."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from gemmsim.launch.checks import WRITTEN
from gemmsim.trace.types import Execution


def npz_bytes(names: Mapping[str, int], run: Execution) -> bytes:
    """Return the content of an .npz file with every array by name; types that NumPy lacks as their bit patterns.

    names  {name: position among the launch's arguments}

    Where only a part of the grid was executed, each array that was stored to has another one beside it, "C.written":
    bool, True where the element was stored. Elements elsewhere are as they were before the launch. The module's
    `__device__` variables follow by name, as their bytes; one that is called as an array is, "C.symbol".
    """
    arrays: dict[str, NDArray] = {}
    for name, position in names.items():
        array, written = run.outputs[position], run.written[position]
        assert array is not None and written is not None
        arrays[name] = array
        if run.sampled and written.any():
            arrays[name + WRITTEN] = written
    for name, variable in run.variables.items():
        arrays[name if name not in arrays else f"{name}.symbol"] = variable.content
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:  # numpy.savez takes no array that is called "file"
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
    return content.getvalue()
