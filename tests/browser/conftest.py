"""A report in a browser, in which nothing may go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def page(browser: Any, pages: dict[str, Path]) -> Iterator[Callable[..., Any]]:
    """Opens a report; at the end nothing may have gone wrong in it or left it."""

    def opened(name: str = "conflicts", **how: Any) -> Any:
        browser.open(pages[name], **how)
        return browser

    yield opened
    assert browser.errors() == []
    assert [url for url in browser.requests() if not url.startswith(("file:", "data:"))] == []
