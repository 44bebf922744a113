"""Lets code of numba with line information be linked to code of NVRTC: f16's and bf16's arithmetic, CUDA C++ of users.

Both compilers write the version of their debug information as a flag of the module. numba says that a linker may warn
where versions differ (behaviour 2), NVRTC that it must fail (1). nvJitLink refuses two behaviours of one flag, although
both versions are 3 ("linking module flags 'Debug Info Version': IDs have conflicting behaviors").
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_MUST_FAIL = 1  # LLVM's "error" behaviour of a module flag


def flag_as_nvrtc() -> Any:
    """Make numba write the flags as NVRTC does, from now on. Returns what numba did before."""
    from numba.cuda import debuginfo

    before = debuginfo.DIBuilder._set_module_flags
    debuginfo.DIBuilder._set_module_flags = _set_module_flags
    return before


@contextmanager
def flagged_as_nvrtc() -> Iterator[None]:
    """Within this context manager, numba writes the flags as NVRTC does."""
    from numba.cuda import debuginfo

    before = flag_as_nvrtc()
    try:
        yield
    finally:
        debuginfo.DIBuilder._set_module_flags = before


def _set_module_flags(self: Any) -> None:
    """Write the flags of a module: in place of the method of numba's DIBuilder."""
    from numba.cuda import cgutils

    flags = cgutils.get_or_insert_named_metadata(self.module, "llvm.module.flags")
    for name, version in (("Dwarf Version", self.DWARF_VERSION), ("Debug Info Version", self.DEBUG_INFO_VERSION)):
        if version is None:
            continue
        flag = self.module.add_metadata([self._const_int(_MUST_FAIL), name, self._const_int(version)])
        if flag not in flags.operands:
            flags.add(flag)
