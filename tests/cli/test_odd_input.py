"""Command lines and files that once ended in a traceback: one line that says what is wrong, and exit code 2."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from gemmsim_validate.cli.main import main as validate

from gemmsim.cli.main import main

DIGITS = "9" * 5000  # more than Python's int() reads
KERNEL = 'extern "C" __global__ void f(float *a) { a[threadIdx.x] = 1; }'
OWN = ("--entry", "f", "--block", "32")


@pytest.mark.parametrize(
    "arguments",
    [
        ("analyze", "--kernel", "tiled", "--size", DIGITS),
        ("analyze", "--kernel", "tiled", "--size", "64", "--set-kernel", f"tile={DIGITS}"),
        ("analyze", "--kernel", "k" * 300, "--size", "64"),
        ("analyze", "k.cu", *OWN, "--grid", DIGITS, "--arg", "f32[32]"),
        ("analyze", "k.cu", *OWN, "--grid", "1", "--arg", f"f32[{DIGITS}]"),
        ("analyze", "k.cu", *OWN, "--grid", "1", "--arg", f"i32={DIGITS}"),
        ("analyze", "k.cu", *OWN, "--grid", "1", "--arg", f"f32[32, ld={DIGITS}]"),
        ("compare", "--kernel", f"tiled@{DIGITS}", "--size", "64"),
        ("sweep", "--kernel", "tiled", "--size", DIGITS),
        ("sweep", "--kernel", "tiled", "--size", "64", "--set-kernel", f"tile={DIGITS}"),
        ("timeline", "--kernel", "tiled", "--size", "64", "--cycles", f"0:{DIGITS}"),
        ("check", "--kernel", "tiled", "--size", "64", "--expect", f"time_us < {DIGITS}"),
        ("check", "--kernel", "tiled", "--size", "64", "--baseline", "deep.json"),
        ("explain", DIGITS),
        ("analyze", "--kernel", "tiled", "--size", "64", "--gpu", "deep.toml"),
        ("analyze", "--kernel", "tiled", "--size", "64", "--gpu", "digits.toml"),
        ("launches", "deep.toml"),
        ("launches", "digits.toml"),
    ],
    ids=lambda arguments: " ".join(word[:16] for word in arguments),
)
def test_one_line(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.cu").write_text(KERNEL)
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "deep.toml").write_text("a = " + "[" * 100_000)
    (tmp_path / "digits.toml").write_text(f"a = {DIGITS}")
    monkeypatch.chdir(tmp_path)
    assert main(list(arguments)) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("error: ") and said.err.count("\n") == 1
    assert len(said.err) < 1500


@pytest.mark.parametrize("command", ["calibrate --gpu h200 -o new.toml --only", "opcodes --only"])
def test_an_odd_expression(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for text in ("(", "a{99999999999999}"):
        assert validate([*command.split(), text]) == 2
        assert f"'{text}' is no regular expression: " in capsys.readouterr().err


TILED = ("--kernel", "tiled", "--size", "32")
LAUNCHED = (*OWN, "--grid", "1", "--arg", "f32[32]")
PLAN = """[arrays]
A = "f32[32]"
[[launch]]
kernel = "k.cu"
grid = 1
block = 32
args = ["&A"]
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("analyze", *TILED, "--gpu", "k" * 300 + ".toml"), "no GPU file 'kkk"),
        (("analyze", *TILED, "--alpha", "nan"), "--alpha nan must be a finite number of 32 bits"),
        (("analyze", *TILED, "--beta", "1e39"), "--beta 1e+39 must be a finite number of 32 bits"),
        (("analyze", *TILED, "--tolerance", "1"), "--tolerance 1 is for --verify FORMULA and --reference"),
        (("analyze", *TILED, "-o", ""), "-o: the file's name is empty"),
        (("analyze", *TILED, "-o", "-"), "'-' is no name of a file here: what is to go to stdout needs no -o"),
        (("timeline", *TILED, "--blocks", "0"), "--blocks 0 must be at least 1"),
        (("check", *TILED, "--baseline", "."), "cannot read the baseline .: Is a directory"),
        (("report", *TILED, "-o", "a.json"), "-o a.json: this is a page of HTML: give it a name that ends in .html"),
        (("analyze", "k.cu", *LAUNCHED, "--accumulate", "f16"), "--accumulate f16 is for --verify FORMULA"),
        (
            ("analyze", "k.cu", *LAUNCHED, "--symbol", "x=f32=1"),
            "--symbol x: the module of kernel 'f' has no",
        ),
        (("analyze", "k.cu:f", *LAUNCHED[2:]), "only a function of a Python file is named so; here k.cu --entry f"),
        (("analyze", "", *LAUNCHED), "TARGET is empty"),
        (("analyze", "two.cu", *LAUNCHED[2:]), "'two.cu' holds 2 kernels, choose one as the entry (--entry): "),
        (("analyze", "empty.ptx", *LAUNCHED[2:]), "'empty.ptx' holds no kernel (no .entry)"),
        (("analyze", "exit.py:f", *LAUNCHED[2:]), "'exit.py' ends the process (exit status 3) where it is imported"),
        (
            ("analyze", "exit.py:f", *OWN[2:], "--grid", "1", "--arg", "f32=1e39"),
            "1e+39 does not fit f32, which",
        ),
        (("sweep", "k.cu", *OWN, "--grid", "{n}"), "unknown name 'n': --size gives m, n and k"),
        (("launches", "text.toml"), "launch 1: args = '&A' must be a list of texts in brackets"),
        (("launches", "number.toml"), "launch 1: args = 3 must be a list of texts in brackets"),
        (("launches", "entry.toml"), "launch 1: entry: expected a text in quotes, not 3"),
        (("launches", "list.toml"), "launch 1: expected a table [[launch]], not 1"),
        (("launches", "grid.toml"), "launch 1: grid = 8.5 must be a whole number, a list of them or a text"),
        (("launches", "alpha.toml"), "launch 1: verify: alpha = 'x' must be a number"),
        (("launches", "m.toml"), "launch 1: verify: m = 'x' must be a number"),
        (("launches", "cooperative.toml"), "launch 1: cooperative = 1 must be true or false"),
    ],
    ids=lambda one: " ".join(word[:16] for word in one) if isinstance(one, tuple) else "",
)
def test_what_is_wrong_and_what_would_be_right(
    arguments: tuple[str, ...],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {
        "k.cu": KERNEL,
        "two.cu": KERNEL + KERNEL.replace(" f(", " g("),
        "empty.ptx": "",
        "exit.py": "import sys; sys.exit(3)",
        "text.toml": PLAN.replace('["&A"]', '"&A"'),
        "number.toml": PLAN.replace('["&A"]', "3"),
        "entry.toml": PLAN + "entry = 3",
        "list.toml": "launch = [1]\n" + PLAN.partition("[[")[0],
        "grid.toml": PLAN.replace("grid = 1", "grid = 8.5"),
        "alpha.toml": PLAN + 'verify = { a = "A", b = "A", c = "A", alpha = "x" }',
        "m.toml": PLAN + 'verify = { a = "A", b = "A", c = "A", m = "x" }',
        "cooperative.toml": PLAN + "cooperative = 1",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert main(list(arguments)) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("error: ") and printed.err.count("\n") == 1
    assert said in printed.err


def test_a_folder_that_is_no_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert validate(["captured", str(tmp_path)]) == 2
    assert "manifest.json is no manifest of a bundle" in capsys.readouterr().err


def test_defaults_that_are_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GEMMSIM_CONFIG", str(tmp_path))
    assert main(["list", "gpus"]) == 2
    assert capsys.readouterr().err == f"error: cannot read {tmp_path}: Is a directory\n"


def test_a_byte_order_mark_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("k.cu", KERNEL), ("g.toml", 'extends = "h200"'), ("plan.toml", PLAN)):
        (tmp_path / name).write_text(f"\ufeff{text}", encoding="utf-8")
    assert main(["analyze", "k.cu", *OWN, "--grid", "1", "--arg", "f32[32]", "--gpu", "g.toml"]) == 0
    assert main(["launches", "plan.toml"]) == 0


def test_too_little_memory_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A MemoryError, as NumPy and mmap raise it, wherever it comes from."""

    def none_left(*_: object) -> None:
        raise MemoryError("cannot map 5 bytes")

    monkeypatch.setattr("gemmsim.api.count", none_left)
    assert main(["analyze", "--kernel", "tiled", "--size", "64"]) == 2
    assert capsys.readouterr().err == "error: this machine has too little memory for it: cannot map 5 bytes\n"


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE result SET data = '{'",
        "UPDATE result SET data = '{}'",
        "UPDATE result SET data = '[1]'",
        "DROP TABLE result",
        "",
        "bytes",
    ],
)
def test_a_damaged_store_of_a_sweep(damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row that cannot be read is predicted again. What cannot be read as a whole is named."""
    store = tmp_path / "results.sqlite"
    command = ["sweep", "--kernel", "tiled", "--size", "32", "--gpus", "a100", "-o", str(store), "--jobs", "1"]
    assert main(command) == 0
    first = capsys.readouterr().out
    if damage == "bytes":  # which SQLite quotes where it says that it cannot read the table's definition
        store.write_bytes(store.read_bytes().replace(b"CREATE TABLE result", b"CREATE \xd0\xff\xfeBLE result"))
    elif damage:
        with sqlite3.connect(store) as file:
            file.execute(damage)
        file.close()
    else:
        data = bytearray(store.read_bytes())
        data[4096:] = b"\xa5" * (len(data) - 4096)
        store.write_bytes(data)
    status = main(command)
    said = capsys.readouterr()
    if damage.startswith("UPDATE"):
        assert (status, said.out) == (0, first)
    else:
        assert status == 2 and str(store) in said.err and said.err.count("error: ") == 1


WORKERS = """
import os, sys, time
from gemmsim.support.processes import workers
def wait(seconds):
    time.sleep(seconds)
if __name__ == "__main__":
    with workers(2) as pool:
        for _ in range(2):
            pool.submit(wait, 600)
        while len(pool._processes) < 2:
            time.sleep(0.05)
        time.sleep(1.0)
        print(*pool._processes, flush=True)
        time.sleep(600)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(WORKERS)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        children = [int(word) for word in parent.stdout.readline().split()]
        parent.send_signal(signal.SIGKILL)
    assert len(children) == 2
    until = time.monotonic() + 20
    while any(map(_lives, children)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(_lives, children))


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
