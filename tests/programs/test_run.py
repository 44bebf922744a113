"""`gemmsim run` runs programs that know nothing of gemmsim, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytest.importorskip("numba_cuda", reason="the compiler wheels are not installed")


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return python("-m", "gemmsim", "run", "--gpu", "h200", *args)


def python(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], capture_output=True, text=True)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], list[dict]]:
    """One run of the numba program, which checks its own results, and the rows of its launches."""
    table = tmp_path_factory.mktemp("run") / "launches.json"
    done = run("--format", "json", "-o", str(table), str(HERE / "numba_program.py"), "a", "--b")
    assert done.returncode == 0, done.stderr
    return done, json.loads(table.read_text())["launches"]


def test_the_program_sees_the_gpu_and_its_arguments(ran: tuple) -> None:
    assert ran[0].stdout.splitlines()[-1] == "NVIDIA H200 SXM 141GB: 132 SMs, (9, 0), ['a', '--b']"


def test_launches_are_listed_in_order(ran: tuple) -> None:
    kernels = [row["kernel"] for row in ran[1]]
    assert kernels[:5] == ["tiled"] * 4 + ["reversed_in_block"]
    assert kernels[5:9] == ["increment"] * 4
    assert kernels[9] == "grid_sums"
    assert [row["grid"] for row in ran[1]][:5] == ["4x4x1"] * 4 + ["2x1x1"]
    source = (HERE / "numba_program.py").read_text().splitlines()
    file, _, line = ran[1][4]["from"].partition(":")
    assert file == "numba_program.py" and "reversed_in_block[" in source[int(line) - 1]


def test_a_repeated_launch_is_timed_once_it_finds_l2_as_an_identical_one_did(ran: tuple) -> None:
    first, *again = ran[1][:4]
    assert [row["l2_begins"] for row in (first, *again)] == ["cold", "continued", "continued", "continued"]
    assert [row["timed_as"] for row in again] == [None, None, 3]
    assert first["time_us"] > again[1]["time_us"] == again[2]["time_us"]


def test_events_tell_the_predicted_time(ran: tuple) -> None:
    elapsed = float(ran[0].stdout.split("elapsed ")[1].split()[0])
    assert elapsed == pytest.approx(ran[1][3]["time_us"], abs=1e-4)


def test_a_race_is_reported_at_its_line_with_the_line_of_the_launch(tmp_path: Path) -> None:
    program = tmp_path / "race.py"
    program.write_text(
        "import numpy as np\n"
        "from numba import cuda, float32\n"
        "@cuda.jit\n"
        "def shift(a):\n"
        "    s = cuda.shared.array(64, float32)\n"
        "    i = cuda.threadIdx.x\n"
        "    s[i] = a[i]\n"
        "    a[i] = s[63 - i]\n"
        "shift[1, 64](np.ones(64, np.float32))\n"
    )
    table = tmp_path / "table.json"
    done = run("--sanitize", "--format", "json", "-o", str(table), str(program))
    assert done.returncode == 1, done.stderr
    (row,) = json.loads(table.read_text())["launches"]
    assert row["from"] == "race.py:9"
    first = row["report"]["findings"][0]
    assert first.startswith("race at byte ") and "race.py:8 (thread" in first and "race.py:7 (thread" in first
    said = " ".join(run("--sanitize", str(program)).stdout.split())
    assert "launch 1 (from race.py:9): race at byte " in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("from cuda.bindings import driver\nerror, graph = driver.cuGraphCreate(0)\nraise SystemExit(int(error))", 801),
        ("import sys; sys.exit(3)", 3),
        ("raise ValueError('of its own')", 1),
    ],
)
def test_the_exit_status_is_that_of_the_program(tmp_path: Path, text: str, said: int) -> None:
    program = tmp_path / "ends.py"
    program.write_text(text)
    done = run(str(program))
    assert done.returncode == said % 256
    assert ("ValueError: of its own" in done.stderr) == (said == 1)
    assert "gemmsim" not in done.stderr


def test_what_is_not_simulated_is_named_in_one_line(tmp_path: Path) -> None:
    program = tmp_path / "graphs.py"
    program.write_text(
        "from cuda.bindings import driver\n"
        "error, _ = driver.cuGraphCreate(0)\n"
        "if error != 0: raise RuntimeError(str(error))\n"
    )
    done = run(str(program))
    assert done.returncode == 2
    assert done.stderr == "error: the program uses CUDA graphs (cuGraphCreate), which gemmsim does not simulate\n"


def test_a_wrong_address_is_named_with_the_line_of_the_launch(tmp_path: Path) -> None:
    program = tmp_path / "outside.py"
    program.write_text(
        "import numpy as np\n"
        "from numba import cuda\n"
        "@cuda.jit\n"
        "def write(a):\n"
        "    a[cuda.grid(1) + 10_000_000] = 1\n"
        "write[1, 32](np.ones(32, np.float32))\n"
    )
    done = run(str(program))
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: launch 1, from outside.py:6: ") and "line 5 of" in last


def test_a_missing_program_is_one_line() -> None:
    done = run("no_such.py")
    assert (done.returncode, done.stderr) == (2, "error: there is no program no_such.py\n")


def test_what_is_no_python_program_is_one_line(tmp_path: Path) -> None:
    for name, content in (("a.cu", b"__global__ void k() {}"), ("a.out", b"\x7fELF\0\0")):
        (tmp_path / name).write_bytes(content)
        done = run(str(tmp_path / name))
        assert done.returncode == 2 and "is no Python program" in done.stderr and done.stderr.count("\n") == 1


def test_exceptions_begin_in_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A syntax error has no frame, and one of a module none of what ran it."""
    program = tmp_path / "wrong.py"
    program.write_text("def f(:\n")
    assert "Traceback" not in run(str(program)).stderr
    program.write_text("raise ValueError('x')\n")
    monkeypatch.chdir(tmp_path)
    done = run("-m", "wrong")
    assert done.returncode == 1 and done.stderr.splitlines()[1].endswith('wrong.py", line 1, in <module>')
    assert len(done.stderr.splitlines()) == 4


COPY = """
import numpy as np
from numba import cuda
@cuda.jit
def copy(out, values):
    out[cuda.grid(1)] = values[cuda.grid(1)]
def copied(values):
    out = np.zeros_like(values)
    copy[values.size // 32, 32](out, values)
    return out
"""


def test_the_fixture_runs_host_code_of_a_test(tmp_path: Path) -> None:
    test = tmp_path / "test_copy.py"
    test.write_text(
        COPY + "def test_one(simulated_gpu):\n"
        "    assert copied(np.arange(64)).tolist() == list(range(64))\n"
        "    (launch,) = simulated_gpu.launches\n"
        "    assert launch.report.evidence.grid == (2, 1, 1) and simulated_gpu.gpu.name == 'h200'\n"
        "def test_other(simulated_gpu):\n"
        "    assert simulated_gpu.launches == ()\n"
        "    copied(np.arange(32))\n"
        "    assert len(simulated_gpu.launches) == 1\n"
        ""
    )
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "--gemmsim-gpu", "h200", str(test))
    assert "2 passed" in done.stdout, done.stdout


def test_a_notebook_has_a_magic(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    shell = tmp_path / "cells.py"
    shell.write_text(
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_line_magic('load_ext', 'gemmsim')\n"
        f"shell.run_cell_magic('gemmsim', '-g h200', {COPY + 'print(copied(np.arange(32))[5:7])'!r})\n"
        "try: shell.run_cell_magic('gemmsim', 'h200', '1')\n"
        "except Exception as error: print(error)\n"
    )
    done = python(str(shell))
    assert "[5 6]" in done.stdout and "1 launch on NVIDIA H200" in done.stdout, done.stdout + done.stderr
    assert "'%%gemmsim h200' is not known: write %%gemmsim -g GPU [--sanitize]" in done.stdout


def test_triton_runs_and_tunes_by_predicted_time(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    table = tmp_path / "table.json"
    done = run("--format", "json", "-o", str(table), str(HERE / "triton_program.py"))
    assert done.returncode == 0, done.stderr
    rows = json.loads(table.read_text())["launches"]
    small, large, called, measured = rows
    assert [row["grid"] for row in rows] == ["1538x1x1", "97x1x1", "1538x1x1", "1538x1x1"]
    assert small["time_us"] < large["time_us"]
    assert (called["l2_begins"], measured["l2_begins"]) == ("continued", "cold")
    assert measured["timed_as"] == 1
    assert done.stdout == f"best {{'BLOCK': 64}}, {small['time_us']:.3f} us\n"
    assert all(row["from"].startswith("triton_program.py:") for row in rows)


def test_cuda_core_compiles_and_launches() -> None:
    done = run("--format", "csv", str(HERE / "core_program.py"))
    assert done.returncode == 0, done.stderr
    first, head, row = done.stdout.splitlines()
    assert first == "132 SMs"
    found = dict(zip(head.split(","), row.split(","), strict=True))
    assert (found["kernel"], found["grid"], found["block"]) == ("saxpy", "8x1x1", "128x1x1")


def test_variables_of_a_module_live_from_launch_to_launch() -> None:
    done = run(str(HERE / "module_program.py"))
    assert done.returncode == 0, done.stdout + done.stderr
