"""Fixtures of the browser tests and of the benchmarks. Each imports what it needs only where it is used."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

# Files that take longest. `make test` gives a file to whichever of its two processes is free, so these come first:
# neither process then waits long for the other at the end. The replay, which starts processes of its own, comes when
# the files before it have compiled the engines: its processes compiled them once more each.
LONGEST = (
    "docs/test_site.py",
    "programs/test_run.py",
    "docs/test_examples.py",
    "compile/test_kernels_compute.py",
    "flow/test_steady_tiles.py",
    "compile/test_gemm.py",
    "records/test_replay.py",
    "records/test_everyday.py",
    "compile/test_tensorcore_kernels.py",
    "flow/test_steady_loops.py",
    "cli/test_sanitize.py",
    "records/test_tma_load.py",
    "records/test_tma_rows.py",
    "compile/test_planted.py",
    "compile/test_kernels_lessons.py",
    "browser/test_page.py",
    "compile/test_compile.py",
    "records/test_block_turns.py",
    "browser/test_accessibility.py",
    "cli/test_sweep.py",
    "property/test_semantics.py",
    "records/test_atomics.py",
    "flow/test_block_orders.py",
    "records/test_last_blocks.py",
    "records/test_code_loops.py",
    "property/test_drives.py",
    "cli/test_analyze.py",
    "compile/test_ship.py",
    "compile/test_host_code.py",
    "docs/test_ci.py",
    "flow/test_residents.py",
    "flow/test_sensitivity.py",
    "flow/test_sweep_run.py",
    "records/test_row_streams.py",
    "records/test_bursts.py",
    "compile/test_compile_decode.py",
    "compile/test_wgmma_kernels.py",
    "flow/test_block_classes.py",
    "plugin/test_plugin.py",
    "records/test_generations.py",
    "compile/test_validate_cuda.py",
    "records/test_copies.py",
    "compile/test_expressions.py",
)
# Standard error of a command is compared, however long it takes; processes that tests start inherit this.
os.environ.setdefault("GEMMSIM_PROGRESS", "0")
# Whoever runs the tests may have defaults of their own.
os.environ["GEMMSIM_CONFIG"] = os.devnull
os.environ.pop("GEMMSIM_GPU", None)
TO_RUN_THEM = "To run them: apt-get install chromium chromium-driver"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where processes share the files, the longest first. What is slow runs only if it is asked for."""
    if os.environ.get("GEMMSIM_SLOW") != "1":
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: set GEMMSIM_SLOW=1, or run make slow"))
    rank = {Path(__file__).parent / name: number for number, name in enumerate(LONGEST)}
    assert all(path.is_file() for path in rank), "tests/conftest.py names files that are not there"
    if "PYTEST_XDIST_WORKER" in os.environ:  # alone, a process has nobody to wait for
        items.sort(key=lambda item: rank.get(item.path, len(rank)))


def pytest_collection_finish() -> None:
    """What collection made stays until the end, so that the garbage collector need not look through it each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def native_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small launches are timed by the native loop, too, and not by SimPy, which says the same ten times as late:
    tests/property/test_drives.py, tests/cli/test_compare.py."""
    from gemmsim.sm import drive

    monkeypatch.setattr(drive, "SIMPY_INSTRUCTIONS", 0)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """A headless browser; whatever asks for it is skipped where there is none."""
    pytest.importorskip("selenium", reason="selenium is not installed")
    from chromium import Browser, missing

    if what := missing():
        pytest.skip(what)
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.driver.quit()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Reports of shipped programs: with bank conflicts, with scattered global accesses, without source lines; the
    second beside the first. Another report is made up and has local memory."""
    from report_factory import ROWS, evidence, report, traffic

    from gemmsim.api import analyze
    from gemmsim.gpu import load_gpu
    from gemmsim.launch.cases import LadderCase, ladder_launch
    from gemmsim.report.html.render import render
    from gemmsim.report.json import former_of
    from gemmsim.report.json import render as as_json

    folder = tmp_path_factory.mktemp("pages")
    cases = {
        "conflicts": (LadderCase("tiled_transposed", 64, 64, 64), "a100-80gb"),
        "scattered": (LadderCase("naive", 64, 64, 64), "a100-80gb"),
        "tma": (LadderCase("wgmma_cluster", 256, 256, 128), "h200"),
        "tensor": (LadderCase("tensorcore_warptiled", 128, 256, 64), "h200"),
    }
    reports = {name: analyze(ladder_launch(case, load_gpu(gpu))) for name, (case, gpu) in cases.items()}
    former = former_of(as_json(reports["conflicts"]), "")
    reports["beside"] = replace(reports["scattered"], former=former)
    found = {}
    for name, one in reports.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(render(one), encoding="utf-8")
    spills = (
        traffic(0, "local", "ld", 4, requests=5e6, sectors=2e7),
        traffic(5, "local", "st", 4, requests=7e6, sectors=3e7),
    )
    found["local"] = folder / "local.html"
    found["local"].write_text(render(report(evidence(rows=(*ROWS, *spills)))), encoding="utf-8")
    return found


@dataclass(frozen=True)
class Measured:
    """A benchmark did `amount` of `unit` in `seconds`, the median of its rounds."""

    name: str
    amount: float
    unit: str
    seconds: float


RATES = pytest.StashKey[list[Measured]]()


@pytest.fixture
def rate(request, benchmark) -> Callable[..., object]:  # type: ignore[no-untyped-def]
    """rate(function, amount, unit): times `function`, which does `amount` of `unit` a call, in CPU seconds of this
    process, so that others on the machine count less. It is called once before, to compile what it needs."""
    benchmark._timer = time.process_time

    def measure(function: Callable[[], object], amount: float, unit: str, rounds: int = 7) -> object:
        benchmark.extra_info |= {"amount": amount, "unit": unit}
        result = benchmark.pedantic(function, rounds=rounds, warmup_rounds=1)
        if benchmark.stats is not None:  # None with --benchmark-disable
            found = Measured(request.node.name, amount, unit, benchmark.stats["median"])
            request.config.stash.setdefault(RATES, []).append(found)
        return result

    return measure


def pytest_terminal_summary(terminalreporter, config) -> None:  # type: ignore[no-untyped-def]
    """Says where the browser tests were skipped, and prints the table of rates below pytest-benchmark's own."""
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if "tests/browser/" in report.nodeid]
    if skipped:
        reason = skipped[0].longrepr[2].removeprefix("Skipped: ")
        terminalreporter.write_line(f"{len(skipped)} browser tests were skipped: {reason}. {TO_RUN_THEM}")
    rows = config.stash.get(RATES, [])
    if not rows:
        return
    terminalreporter.section("rates: median of the rounds, CPU time")
    width = max(len(row.name) for row in rows)
    for row in rows:
        each_second = row.amount / row.seconds
        per_second = f"{each_second:14,.{0 if each_second > 100 else 2}f} {row.unit}/s"
        terminalreporter.write_line(f"{row.name:{width}}  {per_second:44}  {row.amount:,.0f} in {row.seconds:.4f} s")
