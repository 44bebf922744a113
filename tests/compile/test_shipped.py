"""Programs that ship: stored and read again, found by key, used where nothing can be compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from cubins import zoo

from gemmsim.compile import CudaKernel, PythonKernel, compile_kernel, default_cache, kernel, shipped
from gemmsim.compile.key import shipped_key
from gemmsim.compile.toolchain import tool_versions
from gemmsim.gpu import load_gpu
from gemmsim.isa.program import Program
from gemmsim.isa.serialize import program_from_bytes, programs_to_bytes
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.support.errors import GemmsimError

pytest.importorskip("numba_cuda")

ROOT = Path(__file__).resolve().parents[2]
ARCHS = ("sm_75", "sm_90", "sm_120")


def tiled(folder: Path | None = None) -> PythonKernel:
    """The rung; in a folder of its own where one is given."""
    source = ladder_launch(LadderCase("tiled", 1, 1, 1), load_gpu("h200")).kernel
    assert isinstance(source, PythonKernel)
    if folder is None:
        return source
    for path in source.path.parent.glob("*.py"):
        (folder / path.name).write_text(path.read_text())
    return replace(source, path=folder / source.path.name)


def program() -> Program:
    return compile_kernel(tiled(), "sm_90", default_cache())


def ship(folder: Path, source: PythonKernel, toolchain: dict[str, str] | None = None, **index: dict) -> None:
    programs = folder / shipped.FOLDER
    programs.mkdir(exist_ok=True)
    (programs / "tiled.xz").write_bytes(programs_to_bytes([replace(program(), source={})]))
    document = {
        "toolchain": tool_versions() if toolchain is None else toolchain,
        "files": {shipped_key(source, "sm_90"): "tiled.xz"},
        "refused": {},
    }
    (programs / shipped.INDEX).write_text(json.dumps(document | index))


def test_several_architectures_in_one_file() -> None:
    """Operands, control bits, blocks, branch targets and constants come back, parsed from what is stored."""
    programs = [replace(zoo(arch).program, source={}) for arch in ARCHS]
    data = programs_to_bytes(programs, smallest=True)
    assert [program_from_bytes(data, arch) for arch in ARCHS] == programs
    assert program_from_bytes(data, "sm_80") is None
    assert len(data) < sum(len(one.instructions) for one in programs) * 24


@pytest.mark.parametrize("data", [b"", b"gemmsim-programs", b"gemmsim-programs\x01rubbish", b"gemmsim-programs\x09"])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(GemmsimError, match="stored programs"):
        program_from_bytes(data, "sm_90")


def test_damage_is_found() -> None:
    data = bytearray(programs_to_bytes([zoo("sm_90").program]))
    data[len(data) // 2] ^= 0xFF
    with pytest.raises(GemmsimError, match="damaged"):
        program_from_bytes(bytes(data), "sm_90")


def test_the_shipped_program_is_the_compiled_one(tmp_path: Path) -> None:
    """Source texts included, which are read from the kernels' folder."""
    source = tiled(tmp_path)
    ship(tmp_path, source)
    found = shipped.shipped_program(source, "sm_90", tool_versions())
    assert found == program() and "acc +=" in found.source["kernels/tiled.py"]
    assert shipped.shipped_program(source, "sm_80", tool_versions()) is None


@pytest.mark.parametrize("rung", ["tiled", "wgmma"])
def test_what_ships_is_found_through_a_symbolic_link(tmp_path: Path, rung: str) -> None:
    """A folder of packages may be one. The rungs in CUDA C++ include headers from their folder."""
    (tmp_path / "gemmsim_kernels").symlink_to(tiled().path.parent)
    source = ladder_launch(LadderCase(rung, 1, 1, 1), load_gpu("h200")).kernel
    assert isinstance(source, PythonKernel | CudaKernel)
    linked = replace(source, path=tmp_path / "gemmsim_kernels" / source.path.name)
    assert shipped_key(linked, "sm_90") == shipped_key(source, "sm_90")
    names = linked.shown_names([str(linked.path), str(source.path), "elsewhere.cu"])
    assert names == dict.fromkeys((str(linked.path), str(source.path)), f"kernels/{source.path.name}")


def test_a_changed_kernel_never_meets_its_former_program(tmp_path: Path) -> None:
    """Nor one of which only a file that it imports has changed."""
    source = tiled(tmp_path)
    ship(tmp_path, source)
    source.path.write_text(source.path.read_text() + "\n")
    assert shipped.shipped_program(source, "sm_90", tool_versions()) is None
    source = tiled(tmp_path)
    assert shipped.shipped_program(source, "sm_90", tool_versions()) is not None
    (tmp_path / "info.py").write_text((tmp_path / "info.py").read_text() + "\n")
    assert shipped.shipped_program(source, "sm_90", tool_versions()) is None


def test_other_tunables_and_types_are_not_confused(tmp_path: Path) -> None:
    source = tiled(tmp_path)
    ship(tmp_path, source)
    other = replace(source, tunables=(("tile", 8),))
    assert shipped.shipped_program(other, "sm_90", tool_versions()) is None


def test_other_tools_at_hand_are_asked_instead(tmp_path: Path) -> None:
    """Where there are none, what shipped counts, whatever made it."""
    source = tiled(tmp_path)
    ship(tmp_path, source, toolchain=tool_versions() | {"numba-cuda": "0.1"})
    assert shipped.shipped_program(source, "sm_90", tool_versions()) is None
    assert shipped.shipped_program(source, "sm_90", {"numba": "0.61"}) == program()


def test_what_the_compiler_refused_is_said_again(tmp_path: Path) -> None:
    source = tiled(tmp_path)
    ship(tmp_path, source, files={}, refused={shipped_key(source, "sm_90"): "no such instruction on sm_90"})
    with pytest.raises(GemmsimError, match="no such instruction"):
        shipped.shipped_program(source, "sm_90", {})


def test_a_kernel_of_the_users_own_is_not_looked_for(tmp_path: Path) -> None:
    source = tiled(tmp_path)
    ship(tmp_path, source)
    assert shipped.shipped_program(replace(source, module=None), "sm_90", tool_versions()) is None


def test_no_cache_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = program().instructions  # which may ask: the cache of this machine may be empty
    monkeypatch.setattr(kernel, "shipped_program", lambda *_: pytest.fail("asked"))
    assert compile_kernel(tiled(), "sm_90", None).instructions == expected


HIDDEN = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("cuda", "numba_cuda", "nvidia") or name.startswith("numba.cuda"):
            raise ImportError(f"{name} is hidden")

sys.meta_path.insert(0, Hidden())
from gemmsim.compile import toolchain
versions_of = toolchain.versions_of
def visible(packages):
    return versions_of([name for name in packages if not name.startswith(("nvidia", "cuda", "numba-cuda"))])
toolchain.versions_of = visible
import gemmsim.launch.ladder
path = gemmsim.launch.ladder.kernel_path
gemmsim.launch.ladder.kernel_infos()
import gemmsim.launch.cases
from pathlib import Path
gemmsim.launch.cases.kernel_path = lambda info: Path(sys.argv[1]) / path(info).name
from gemmsim.cli.main import main
sys.exit(main(["analyze", "--kernel", "tiled", "--size", "64", "--gpu", sys.argv[2], "--format", "json"]))
"""


def hidden(folder: Path, gpu: str) -> subprocess.CompletedProcess[str]:
    """gemmsim without a toolchain or a cache, its kernels in `folder`."""
    environment = os.environ | {"GEMMSIM_CACHE_DIR": str(folder / "cache"), "PATH": ""}
    command = [sys.executable, "-c", HIDDEN, str(folder), gpu]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_analyses_without_a_toolchain(tmp_path: Path) -> None:
    """With source lines; and the same for an architecture that did not ship says what is missing."""
    ship(tmp_path, tiled(tmp_path))
    run = hidden(tmp_path, "h200")
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["verified"]["ok"] is True
    assert "acc += tile_a[ty, k] * tile_b[k, tx]" in [line["text"] for line in report["lines"]]
    run = hidden(tmp_path, "a100")
    assert run.returncode == 2 and "numba-cuda is not installed" in run.stderr and run.stderr.count("\n") == 1
