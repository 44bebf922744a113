"""Reads what stands in for headers that NVRTC lacks, from `host_headers.toml`, which says why."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

PRELUDE = "gemmsim_prelude.h"  # the name of what every file is given, to be included before it


def stand_ins(large: bool, included: Iterable[str] = ()) -> dict[str, str]:
    """Return {name in an include: text} of the headers that stand in for those that NVRTC lacks.

    large     whether those of the C++ library that NVIDIA has for the GPU are whole; otherwise they are empty
    included  names in includes; headers that are known by their folder alone are there if they are among these
    """
    folders = tuple(_table()["folders"])
    return dict.fromkeys((name for name in included if name.startswith(folders)), "") | dict(_texts(large))


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=2)
def _texts(large: bool) -> tuple[tuple[str, str], ...]:
    table = _table()
    names = table["large"].split()
    found = dict.fromkeys([*table["empty"].split(), *names], "")
    found |= {name: _once(name, text) for name, text in table["text"].items()}
    if large:
        found |= {name: _of_cccl(name) for name in names}
    found |= {alias: found[name] for alias, name in table["alias"].items()}
    return (*found.items(), (PRELUDE, table["prelude"]))


def _of_cccl(name: str) -> str:
    """Make a header of the C++ library of one that NVIDIA has for the GPU, in its namespace cuda::std."""
    return f"#include <cuda/std/{name}>\nnamespace std {{ using namespace cuda::std; }}\n"


def _once(name: str, text: str) -> str:
    guard = "GEMMSIM_HOST_" + re.sub(r"\W", "_", name).upper()
    return f"#ifndef {guard}\n#define {guard}\n{text}\n#endif\n"
