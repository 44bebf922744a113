"""Finding a rung: by its file where there is one of that name, else among all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gemmsim.launch.ladder import kernel_info, kernel_infos, kernel_path
from gemmsim.support.errors import GemmsimError

KERNELS = Path(__file__).resolve().parents[3] / "kernels"


def test_a_rung_is_what_the_registry_has() -> None:
    for name, info in kernel_infos().items():
        assert kernel_info(name) is info
        assert kernel_path(info) == KERNELS / f"{name}.py"  # so that it is found by its name


def test_no_file_has_a_rung_that_the_registry_lacks() -> None:
    found = {path.stem for path in KERNELS.glob("*.py") if "\nINFO = " in path.read_text(encoding="utf-8")}
    assert found == set(kernel_infos())


@pytest.mark.parametrize("name", ["registry", "info", "warptile", "../kernels/tiled", "tiled.py", "", "tile"])
def test_other_files_are_no_rungs(name: str) -> None:
    with pytest.raises(GemmsimError, match=r"unknown kernel|is a file, no built-in kernel"):
        kernel_info(name)


def test_one_rung_is_read_alone() -> None:
    code = (
        "import sys; from gemmsim.launch.ladder import kernel_info; kernel_info('tiled'); print(*sorted(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    kernels = {name for name in run.stdout.split() if name.startswith("gemmsim_kernels.")}
    assert "gemmsim_kernels.tiled" in kernels
    assert "gemmsim_kernels.naive" not in kernels
