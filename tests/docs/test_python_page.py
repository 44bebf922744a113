"""The five tasks with which docs/reference/api.md begins, run one after the other as a reader would."""

from __future__ import annotations

import linecache
import re
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("native_engine")
PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "api.md").read_text(encoding="utf-8")


def test_the_five_tasks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"^\*\*(\d)\. .*?^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert [number for number, _ in blocks] == ["1", "2", "3", "4", "5"]
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, text in blocks:  # as cells of a notebook, whose texts linecache has
        file = f"/tmp/ipykernel_2/{number}.py"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), names)
    assert (tmp_path / "my_gemm.html").is_file() and (tmp_path / "tiles.csv").read_text().count("\n") == 7
    assert "32 x 8" in str(names["both"])
