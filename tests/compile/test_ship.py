"""What ships is what the kernels of now compile to."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from gemmsim.compile import Cache, compile_kernel, kernel
from gemmsim.compile.shipped import read_index
from gemmsim.compile.toolchain import tool_versions
from gemmsim.isa.program import Program
from gemmsim.isa.serialize import program_from_bytes
from gemmsim.launch.ladder import kernel_info
from gemmsim.support.errors import GemmsimError

pytest.importorskip("numba_cuda")
kernel_info("tiled")  # puts gemmsim_kernels where it can be imported
from gemmsim_kernels import ship  # noqa: E402

SAMPLE, SHORT_BYTES = (
    4,
    16_000,
)  # a file of more bytes, for all architectures, holds code that takes 3 to 9 s to compile
MADE = (ship.PROGRAMS / ship.INDEX).is_file()
shipped = pytest.mark.skipif(not MADE, reason=f"nothing ships yet: {ship.COMMAND} makes the programs")
_READ_LATER = ("source",)  # the texts are not stored: they are read from the kernels' folder
QUICK = ("naive-f32.xz", "coalesced-f32.xz", "tiled-f32.xz", "tensorcore_naive-f16.xz")


@cache
def by_hash() -> list[tuple[ship.Shipment, str]]:
    """All shipments and architectures, in an order that has nothing to do with the ladder's: those of short
    files first, CUDA C++ and numba among them."""
    every = [(one, arch) for one in ship.shipments() for arch in one.archs]

    def key(item: tuple[ship.Shipment, str]) -> tuple[bool, bytes]:
        path = ship.PROGRAMS / item[0].file
        long = path.is_file() and path.stat().st_size > SHORT_BYTES
        return long, hashlib.sha256(f"{item[0].file} {item[1]}".encode()).digest()

    return sorted(every, key=key)


def differences(shipment: ship.Shipment, arch: str) -> list[str]:
    """Names of the fields in which the stored program is not what compiling gives now."""
    path = ship.PROGRAMS / shipment.file
    stored = program_from_bytes(path.read_bytes(), arch) if path.is_file() else None
    try:
        built: Program | None = compile_kernel(shipment.source, arch, None)
    except GemmsimError:
        built = None
    if stored is None or built is None:
        return [] if stored is built else ["existence"]
    names = [field.name for field in fields(Program) if field.name not in _READ_LATER]
    return [name for name in names if getattr(stored, name) != getattr(built, name)]


@shipped
def test_nothing_is_stale() -> None:
    """By the hashes of the kernels' files; and no file is left over."""
    index = read_index(ship.PROGRAMS)
    if index.toolchain != tool_versions():
        pytest.skip("made with other versions of the tools than those installed")
    stale = ship.check()
    assert not stale, f"run {ship.COMMAND}: {', '.join(stale)} changed since"
    assert {path.name for path in ship.PROGRAMS.glob("*.xz")} == set(index.files.values())


@shipped
@pytest.mark.parametrize("number", range(SAMPLE))
def test_a_sample_compiles_to_what_ships(number: int) -> None:
    shipment, arch = by_hash()[number]
    assert differences(shipment, arch) == [], f"run {ship.COMMAND}: {shipment.file} differs for {arch}"


@shipped
@pytest.mark.parametrize("file", QUICK)
def test_a_shipped_program_has_the_name_and_hash_of_a_compiled_one(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an empty cache `compile_kernel` takes what ships; without one, as for --no-cache, it compiles."""
    if read_index(ship.PROGRAMS).toolchain != tool_versions():
        pytest.skip("made with other versions of the tools than those installed")
    (source,) = (one.source for one in ship.shipments() if one.file == file)
    compiled = compile_kernel(source, "sm_90", None)
    monkeypatch.setattr(kernel, "build_kernel", lambda *_: pytest.fail("compiled, though it ships"))
    found = compile_kernel(source, "sm_90", Cache(tmp_path))
    assert (found.symbol, found.cubin_sha256) == (compiled.symbol, compiled.cubin_sha256)
    assert found == compiled


@shipped
@pytest.mark.parametrize("file", [*QUICK, "blocktile_2d-f32.xz", "dgemm_tensorcore-f64.xz"])
def test_the_code_for_sm_86_is_that_for_sm_89(file: str) -> None:
    """Instructions and control bits: that is why other tests leave sm_86 to `make slow`."""
    data = (ship.PROGRAMS / file).read_bytes()
    programs = [program_from_bytes(data, arch) for arch in ("sm_86", "sm_89")]
    one, other = ([(i.text, i.control) for i in program.instructions] for program in programs if program)
    assert one == other


@shipped
@pytest.mark.slow
def test_everything_compiles_to_what_ships() -> None:
    found = {f"{one.file} {arch}": differences(one, arch) for one, arch in by_hash()}
    assert {name: fields for name, fields in found.items() if fields} == {}, f"run {ship.COMMAND}"


@shipped
def test_small_enough() -> None:
    assert sum(path.stat().st_size for path in ship.PROGRAMS.iterdir()) < 3_000_000


class InThisProcess:
    """Has the methods of a pool of processes that `ship` calls, and starts none, each of which would import numba."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> InThisProcess:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, make: Callable[[ship.Shipment], ship.Made], items: Iterable[ship.Shipment]) -> Iterator[ship.Made]:
        return map(make, items)


def test_ships_changes_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One rung for two architectures is made by a process of its own, then kept; an edit makes it stale; what no
    longer belongs goes."""
    # What is compiled here has the paths of this folder, so it must not get into the user's cache.
    monkeypatch.setenv("GEMMSIM_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "kernels"
    folder.mkdir()
    (one,) = [one for one in ship.shipments() if one.file == "naive-f32.xz"]
    for path in one.source.path.parent.glob("*.py"):
        (folder / path.name).write_text(path.read_text())
    source = type(one.source)(**{**{f.name: getattr(one.source, f.name) for f in fields(one.source)},
                                 "path": folder / one.source.path.name})  # fmt: skip
    shipment = ship.Shipment(one.file, source, ("sm_80", "sm_90"))
    monkeypatch.setattr(ship, "PROGRAMS", folder / "programs")
    monkeypatch.setattr(ship, "shipments", lambda: [shipment])
    said: list[str] = []
    assert ship.check() == ["naive-f32.xz"]
    assert ship.ship(1, said.append) == 1 and ship.check() == []
    monkeypatch.setattr(ship, "ProcessPoolExecutor", InThisProcess)
    assert ship.ship(1, said.append) == 0 and len(said) == 1
    stored = (folder / "programs" / one.file).read_bytes()
    (folder / "programs" / one.file).write_bytes(b"made by another gemmsim")
    assert ship.ship(1, said.append, everything=True) == 1 and len(said) == 2
    assert (folder / "programs" / one.file).read_bytes() == stored
    (folder / "programs" / "old.xz").write_bytes(b"")
    source.path.write_text(source.path.read_text() + "\n")
    assert ship.main(["--check"]) == 1
    assert ship.ship(1, said.append) == 1
    assert sorted(path.name for path in (folder / "programs").iterdir()) == ["index.json", "naive-f32.xz"]
