"""Defines the pytest plugin (entry point pytest11), which imports nothing of gemmsim until a fixture is used."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gemmsim.gpu.spec import GpuSpec
    from gemmsim.programs.session import Simulation
    from gemmsim.testing.baselines import BaselineChecker
    from gemmsim.testing.launches import Analyzer

DEFAULT_GPU = "a100-80gb"
_DRAWINGS = pytest.StashKey[list[str]]()  # the drawing of the comparison that failed last, line by line


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("gemmsim", "predicted CUDA kernels")
    group.addoption(
        "--gemmsim-gpu",
        default=None,
        metavar="NAME|FILE.toml",
        help=f"GPU of the fixture gpu (default: {DEFAULT_GPU}).",
    )
    group.addoption(
        "--gemmsim-update", action="store_true", help="Write the baselines of the tests that run instead of comparing."
    )
    parser.addini("gemmsim_gpu", "GPU of the fixture gpu where --gemmsim-gpu is not given.", default=DEFAULT_GPU)


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> GpuSpec:
    """The GPU to predict for: the parameter of an indirect parametrization, else --gemmsim-gpu or ini `gemmsim_gpu`.

    @pytest.mark.parametrize("gpu", ["a100", "h200"], indirect=True)
    """
    from gemmsim.gpu import load_gpu

    chosen = request.config.getoption("--gemmsim-gpu") or request.config.getini("gemmsim_gpu")
    return load_gpu(str(getattr(request, "param", chosen)))


@pytest.fixture(scope="session")
def _gemmsim_known() -> dict[Any, Any]:
    """The predictions of this session, so that no launch is predicted twice; see `Analyzer.known`."""
    return {}


@pytest.fixture
def analyze(request: pytest.FixtureRequest, gpu: Any, _gemmsim_known: dict[Any, Any]) -> Analyzer:
    """A function that predicts a launch: analyze("tiled", size=256), analyze("my.py:my_gemm", grid=..., ...)."""
    from gemmsim.testing.launches import Analyzer

    return Analyzer(gpu, request.path.parent, _gemmsim_known)


@pytest.fixture
def simulated_gpu(gpu: Any) -> Generator[Simulation, None, None]:
    """The GPU of the fixture gpu, for host code that launches kernels; `simulated_gpu.launches` are those of the test.

    All tests of one process simulate one GPU, as packages keep what they compiled for it.
    """
    from gemmsim.programs.session import simulate

    with simulate(gpu) as simulation:
        yield simulation


@pytest.fixture
def gemmsim_baseline(request: pytest.FixtureRequest) -> BaselineChecker:
    """A function that compares a prediction with the values stored next to the test: gemmsim_baseline(trace)."""
    from gemmsim.testing.baselines import BaselineChecker

    return BaselineChecker(request.path, request.node.name, bool(request.config.getoption("--gemmsim-update")))


def pytest_assertrepr_compare(config: pytest.Config, op: str, left: object, right: object) -> list[str] | None:
    """Explain a failure of `assert trace.at(...).bank_conflicts == 0`: say at which line, and keep the drawing."""
    for side in (left, right):
        if type(side).__module__ == "gemmsim.calls.trace":
            failure = getattr(side, "failure", None)
            if failure:
                lines, drawing = failure(f"{left} {op} {right}")
                config.stash[_DRAWINGS] = drawing
                return list(lines)
    return None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Show the drawing in its own section of the test's report, because pytest shortens the message of an assertion."""
    outcome = yield
    drawing = item.config.stash.get(_DRAWINGS, None)
    if drawing:
        del item.config.stash[_DRAWINGS]
        report = outcome.get_result()
        if report.failed:
            report.sections.append(("gemmsim", "\n".join(drawing)))
