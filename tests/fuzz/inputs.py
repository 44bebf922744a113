"""The inputs that are damaged: command lines, and files with the command that reads each."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gemmsim_validate.cli.main import main as validate

from gemmsim.cli.main import main
from gemmsim.compile.cuda_kernel import compile_cuda
from gemmsim.compile.source import CudaKernel

from .damage import damaged_bytes, damaged_words

_SOURCE = """
extern "C" __global__ void f(const float *a, float *c, int n) {
    __shared__ float tile[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x & 63] = i < n ? a[i] : 0.0f;
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < 64; ++k) sum += tile[k];
    if (i < n) c[i] = sum;
}
"""
_PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry g(.param .u64 p, .param .u32 n)
{
    .reg .pred %q; .reg .b32 %r<4>; .reg .b64 %d<4>;
    ld.param.u64 %d1, [p]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x; setp.ge.u32 %q, %r2, %r1; @%q bra DONE;
    mul.wide.u32 %d2, %r2, 4; add.s64 %d3, %d1, %d2; st.global.u32 [%d3], %r2;
DONE: ret;
}
"""
_GPU = """extends = "a100-80gb"
[sm]
count = { value = 40, unit = "1", source = "a guess", status = "estimated" }
[l2]
size = { value = 8, unit = "MiB", source = "a guess", status = "estimated" }
[clock]
sm = { value = 1200, unit = "MHz", source = "a guess", status = "estimated" }
"""
_PLAN = """[arrays]
A = "f32[256]"
C = "f32[256]=0"
[[launch]]
kernel = "k.cu"
entry = "f"
grid = 4
block = 64
args = ["&A", "&C", "i32=200"]
"""
_COUNTERS = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n' + "".join(
    f'"0","tiled","{name}","","{value}"\n'
    for name, value in (
        ("smsp__inst_executed.sum", "1,234"),
        ("dram__bytes_read.sum", "5.5"),
        ("gpu__time_duration.sum", "9"),
    )
)
_DEFAULTS = """gpu = "a100"
seed = 3
[analyze]
full = true
alpha = 1.5
"""
_OWN = ("--entry", "f", "--grid", "4", "--block", "64", "--arg", "f32[256]", "--arg", "f32[256]=0", "--arg", "i32=200")
_RUNG = ("--kernel", "tiled", "--size", "64")
# One process each, so that a process of ours is all that there is to watch.
_SWEEP = ("sweep", "--kernel", "tiled", "--size", "64", "--set-kernel", "tile=8,16", "--jobs", "1", "-o", "s.sqlite")
LINES: tuple[tuple[str, ...], ...] = (
    ("analyze", *_RUNG, "--gpu", "h200", "--set", "l2.size=8MiB", "--set-kernel", "tile=16", "--caches", "warm"),
    ("analyze", *_RUNG, "--alpha", "2", "--beta", "0.5", "--seed", "3", "--full", "--format", "json"),
    ("analyze", "k.cu", *_OWN, "--shared", "256", "--verify", "C = A", "--max-instructions", "100000"),
    ("analyze", "k.cu", *_OWN, "--symbol", "x=i32=3", "--array", "A:f32[64]", "--save", "out.npz"),
    ("analyze", "--kernel", "igemm", "--m", "32", "--n", "64", "--k", "32", "--dtype", "i8"),
    ("compare", "--kernel", "tiled:tile=16", "--kernel", "naive", "--size", "64", "--gpus", "a100,h200", "--jobs", "1"),
    ("check", *_RUNG, "--expect", "bank_conflicts == 0", "--expect", "sectors_per_request at 31 <= 4", "--sanitize"),
    ("check", *_RUNG, "--baseline", "base.json", "--format", "sarif", "-o", "out.sarif"),
    ("timeline", *_RUNG, "--cycles", "100:200", "--warps", "4", "--blocks", "1", "--format", "perfetto"),
    ("sensitivity", *_RUNG, "--by", "10", "--format", "csv"),
    (*_SWEEP, "--where", "tile > 4", "--top", "3", "--format", "json"),
    ("launches", "plan.toml", "--gpu", "h200", "--each"),
    ("decode", "k.cubin", "--entry", "f", "--gpu", "a100"),
    ("report", *_RUNG, "-o", "out.html"),
    ("explain", "sectors"),
    ("list", "gpus"),
)


@dataclass(frozen=True)
class Input:
    """One input: the folder's files are written before, and the command runs in that folder.

    kind   as the table names it
    words  the command line
    run    what takes it
    """

    kind: str
    words: Sequence[str]
    run: Callable[[Sequence[str]], int]


class Inputs:
    """Makes damaged inputs in a folder, in which undamaged files lie."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "k.cu").write_text(_SOURCE)
        written = {
            "k.ptx": _PTX,
            "gpu.toml": _GPU,
            "plan.toml": _PLAN,
            "counters.csv": _COUNTERS,
            "gemmsim.toml": _DEFAULTS,
        }
        for name, text in written.items():
            (folder / name).write_text(text)
        (folder / "k.cubin").write_bytes(compile_cuda(CudaKernel(_SOURCE, folder / "k.cu"), "sm_80")[0])
        main(["check", *_RUNG, "--baseline", "base.json", "--update"])
        main(["check", *_RUNG, "--expect", "time_us > 0", "--sanitize"])  # compiles what no input should wait for
        main(["analyze", *_RUNG, "-o", "before.json"])
        main(["analyze", "k.cu", *_OWN, "--save", "saved.npz", "-o", "k.json"])
        main(_SWEEP)
        with closing(sqlite3.connect(folder / "s.sqlite")) as store:
            store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        one = ("--grid", "1", "--block", "32", "--arg", "f32[64]=0", "--arg", "i32=32", "--max-instructions", "100000")
        rung = ("--kernel", "tiled", "--size", "64", "--gpu", "h200")
        own = (*_OWN, "--max-instructions", "100000")
        self._files: dict[str, tuple[str, Sequence[str], Callable[[Sequence[str]], int]]] = {
            "cubin": ("k.cubin", ("analyze", "k.cubin", *own), main),
            "PTX": ("k.ptx", ("analyze", "k.ptx", "--entry", "g", *one), main),
            "TOML of a GPU": ("gpu.toml", ("analyze", *_RUNG, "--gpu", "gpu.toml"), main),
            "TOML of launches": ("plan.toml", ("launches", "plan.toml"), main),
            "CSV of Nsight Compute": ("counters.csv", ("import-ncu", "counters.csv", *rung), validate),
            "baseline": ("base.json", ("check", *_RUNG, "--baseline", "base.json"), main),
            "report before": ("before.json", ("analyze", *_RUNG, "--baseline", "before.json"), main),
            "reference arrays": ("saved.npz", ("analyze", "k.cu", *_OWN, "--reference", "saved.npz"), main),
            "defaults": ("gemmsim.toml", ("analyze", *_RUNG), main),
            "sweep store": ("s.sqlite", _SWEEP, main),
        }
        self._whole = {name: (folder / name).read_bytes() for name, *_ in self._files.values()}
        self.cache = sorted(path for path in (folder / "cache").rglob("*") if path.is_file())
        self._cached = {path: path.read_bytes() for path in self.cache}
        self.kinds = ("command line", *self._files, *(("compile cache",) if self.cache else ()))

    def make(self, seed: int) -> Input:
        """Make the input of a seed, and write its files."""
        rng = random.Random(seed)
        for left in self.folder.glob("s.sqlite-*"):  # what SQLite keeps beside a file would be of another one
            left.unlink()
        for name, content in self._whole.items():
            (self.folder / name).write_bytes(content)
        for path, content in self._cached.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        kind = self.kinds[seed % len(self.kinds)]
        if kind == "command line":
            return Input(kind, damaged_words(rng.choice(LINES), rng), main)
        if kind == "compile cache":
            path = rng.choice(self.cache)
            path.write_bytes(damaged_bytes(self._cached[path], rng))
            return Input(kind, ("analyze", "k.cu", *_OWN), main)
        name, words, run = self._files[kind]
        (self.folder / name).write_bytes(damaged_bytes(self._whole[name], rng))
        return Input(kind, words, run)
