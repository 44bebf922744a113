"""Reports to look at, and the browser to look at them with; everything here is skipped where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from report_factory import ROWS, evidence, report, traffic

from gemmsim.api import analyze
from gemmsim.gpu import load_gpu
from gemmsim.launch.cases import LadderCase, ladder_request
from gemmsim.report.html.render import render


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    pytest.importorskip("selenium", reason="selenium is not installed: the page is tested without a browser only")
    from browser.chromium import Browser, missing

    if what := missing():
        pytest.skip(f"{what}: the page is tested without a browser only")
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.driver.quit()


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Shipped programs: with bank conflicts, with scattered global accesses, without source lines; one made up, with
    local memory."""
    folder = tmp_path_factory.mktemp("pages")
    cases = {
        "conflicts": (LadderCase("tiled_transposed", 64, 64, 64), "a100-80gb"),
        "scattered": (LadderCase("naive", 64, 64, 64), "a100-80gb"),
        "tensor": (LadderCase("tensorcore_warptiled", 128, 256, 64), "h200"),
    }
    found = {}
    for name, (case, gpu) in cases.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(render(analyze(ladder_request(case, load_gpu(gpu)))), encoding="utf-8")
    spills = (
        traffic(0, "local", "ld", 4, requests=5e6, sectors=2e7),
        traffic(5, "local", "st", 4, requests=7e6, sectors=3e7),
    )
    found["local"] = folder / "local.html"
    found["local"].write_text(render(report(evidence(rows=(*ROWS, *spills)))), encoding="utf-8")
    return found
