"""The cache on disk: hits, keys, damage, two processes at once, a folder that cannot be written."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from cubins import SOURCES, zoo

from gemmsim.compile import Cache, CacheWarning, CubinKernel, CudaKernel, PythonKernel, compile_kernel, default_cache
from gemmsim.compile import kernel as kernel_module
from gemmsim.compile.kernel import Built
from gemmsim.compile.key import cache_key
from gemmsim.compile.source import ArgType

TOOLS = {"numba": "1"}


@pytest.fixture
def cubin_source() -> CubinKernel:
    return CubinKernel(zoo("sm_80").cubin, Path("zoo.cubin"))


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The architectures that compile_kernel had to build for; building takes the zoo from memory, for speed."""
    calls: list[str] = []

    def build(source: CubinKernel, arch: str) -> Built:
        calls.append(arch)
        return zoo(arch)

    monkeypatch.setattr(kernel_module, "build_kernel", build)
    return calls


def test_second_time_comes_from_the_cache(tmp_path: Path, cubin_source: CubinKernel, built: list[str]) -> None:
    cache = Cache(tmp_path / "cache")
    first = compile_kernel(cubin_source, "sm_80", cache)
    assert compile_kernel(cubin_source, "sm_80", cache) == first == zoo("sm_80").program
    assert built == ["sm_80"]
    assert compile_kernel(cubin_source, "sm_80", None) == first
    assert built == ["sm_80", "sm_80"]
    assert not [file for file in cache.folder.rglob("*") if file.suffix == ".tmp"]


def test_a_hit_imports_no_compiler(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    script = f"""
import sys
from pathlib import Path
from gemmsim.compile import ArgType, Cache, PythonKernel, compile_kernel
signature = (ArgType("f32", 1), ArgType("f32", 1), ArgType("f32"))
source = PythonKernel(Path({str(SOURCES / "python_kernels.py")!r}), "scale", signature)
program = compile_kernel(source, "sm_80", Cache(Path({str(cache)!r})))
print(program.name, sorted({{"numba", "cuda", "elftools", "_gemmsim_user_python_kernels"}} & set(sys.modules)))
"""
    command = [sys.executable, "-c", script]
    said = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert said == ["scale ['_gemmsim_user_python_kernels', 'cuda', 'elftools', 'numba']\n", "scale []\n"]


@pytest.mark.parametrize("damage", ["truncated", "flipped", "emptied", "foreign"])
def test_a_damaged_entry_is_rebuilt(tmp_path: Path, cubin_source: CubinKernel, damage: str, built: list[str]) -> None:
    cache = Cache(tmp_path)
    good = compile_kernel(cubin_source, "sm_80", cache)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    data = file.read_bytes()
    flipped = data[:500] + bytes([data[500] ^ 1]) + data[501:]
    file.write_bytes({"truncated": data[:-1], "flipped": flipped, "emptied": b"", "foreign": b"x"}[damage])
    assert cache.load(file.parent.name + file.name) is None
    assert compile_kernel(cubin_source, "sm_80", cache) == good
    assert file.read_bytes() == data
    assert len(built) == 2


@pytest.mark.usefixtures("built")
def test_a_folder_that_cannot_be_written_warns_in_one_line(tmp_path: Path, cubin_source: CubinKernel) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")  # permissions would not stop a root user; a file where the folder should be does
    with pytest.warns(CacheWarning, match="cannot write the cache folder .* set GEMMSIM_CACHE_DIR") as caught:
        program = compile_kernel(cubin_source, "sm_80", Cache(blocked / "cache"))
    assert program.name == "zoo"
    assert "\n" not in str(caught[0].message)


def test_folder_is_chosen_by_the_environment(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GEMMSIM_CACHE_DIR", str(tmp_path / "here"))
    assert default_cache().folder == tmp_path / "here"
    monkeypatch.delenv("GEMMSIM_CACHE_DIR")
    assert default_cache().folder.name == "gemmsim"


def _hammer(folder: str, number: int, ready, failures) -> None:
    cache, program = Cache(Path(folder)), zoo("sm_80").program
    mine = dataclasses.replace(program, name=f"writer {number}", instructions=program.instructions[:20])
    ready.wait()
    for _ in range(60):
        cache.store("ab" + "0" * 62, mine)
        found = cache.load("ab" + "0" * 62)
        if found is None or not found.name.startswith("writer") or found.instructions != mine.instructions:
            failures.put(number)


def test_two_processes_write_and_read_the_same_key(tmp_path: Path) -> None:
    zoo("sm_80")  # compiled before the fork
    context = multiprocessing.get_context("fork")
    ready, failures = context.Barrier(2), context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads around: the children touch none of them
        writers = [context.Process(target=_hammer, args=(str(tmp_path), n, ready, failures)) for n in range(2)]
        for writer in writers:
            writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert failures.empty()
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["0" * 62]


def python_source(folder: Path) -> PythonKernel:
    return PythonKernel(folder / "mine.py", "f", (ArgType("f32", 2), ArgType("i32")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text("import math\nfrom helper import g\nfrom package.inner import h\n")
    (tmp_path / "helper.py").write_text("import deeper\n")
    (tmp_path / "deeper.py").write_text("x = 1\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "inner.py").write_text("y = 1\n")
    (tmp_path / "unrelated.py").write_text("z = 1\n")
    return tmp_path


def test_key_changes_with_all_that_matters(folder: Path) -> None:
    source = python_source(folder)
    key = cache_key(source, "sm_80", TOOLS)
    assert len(key) == 64
    others = [
        cache_key(source, "sm_90", TOOLS),
        cache_key(source, "sm_80", {"numba": "2"}),
        cache_key(dataclasses.replace(source, function="g"), "sm_80", TOOLS),
        cache_key(dataclasses.replace(source, signature=(ArgType("f64", 2), ArgType("i32"))), "sm_80", TOOLS),
        cache_key(dataclasses.replace(source, signature=(ArgType("f32", 1), ArgType("i32"))), "sm_80", TOOLS),
        cache_key(dataclasses.replace(source, tunables=()), "sm_80", TOOLS),
        cache_key(dataclasses.replace(source, tunables=(("tile", 16),)), "sm_80", TOOLS),
    ]
    assert len({key, *others}) == 1 + len(others)


@pytest.mark.parametrize(("file", "matters"), [
    ("mine.py", True), ("helper.py", True), ("deeper.py", True), ("package/inner.py", True), ("unrelated.py", False),
])  # fmt: skip
def test_key_follows_local_imports(folder: Path, file: str, matters: bool) -> None:
    before = cache_key(python_source(folder), "sm_80", TOOLS)
    with (folder / file).open("a") as text:
        text.write("# changed\n")
    assert (cache_key(python_source(folder), "sm_80", TOOLS) != before) is matters


def test_key_of_cuda_follows_quoted_includes_and_options(tmp_path: Path) -> None:
    (tmp_path / "a.cuh").write_text('#include "b.cuh"\n')
    (tmp_path / "b.cuh").write_text("#define N 1\n")
    source = CudaKernel('#include "a.cuh"\n', tmp_path / "k.cu", "k")
    before = cache_key(source, "sm_80", TOOLS)
    assert cache_key(dataclasses.replace(source, options=("-DX",)), "sm_80", TOOLS) != before
    assert cache_key(dataclasses.replace(source, entry="k<1>"), "sm_80", TOOLS) != before
    (tmp_path / "b.cuh").write_text("#define N 2\n")
    assert cache_key(source, "sm_80", TOOLS) != before


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="users have no numbers")
@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_what_others_can_have_written_is_not_taken(
    mode: int, tmp_path: Path, cubin_source: CubinKernel, built: list[str]
) -> None:
    cache = Cache(tmp_path / "cache")
    compile_kernel(cubin_source, "sm_80", cache)
    (file,) = (path for path in cache.folder.rglob("*") if path.is_file())
    file.chmod(mode)
    compile_kernel(cubin_source, "sm_80", cache)
    assert built == ["sm_80", "sm_80"]


def test_files_that_change_places_count_as_absent(tmp_path: Path) -> None:
    """Who may write the folder can rename its files, whose owner and mode stay as they are."""
    cache = Cache(tmp_path)
    keys = ("ab" * 32, "cd" * 32)
    for key, arch in zip(keys, ("sm_80", "sm_90"), strict=True):
        cache.store(key, zoo(arch).program)
    assert [cache.load(key) for key in keys] == [zoo("sm_80").program, zoo("sm_90").program]
    first, second = (tmp_path / key[:2] / key[2:] for key in keys)
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)
    assert [cache.load(key) for key in keys] == [None, None]
