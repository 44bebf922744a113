"""Pages of source code share their navigation, which Sphinx else makes anew for each of them.

The tree names all pages, and none of source code, so that it depends on such a page only by its depth: links in it are
relative. It takes longer than all else of these pages, of which there are more than of pages with text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_SOURCES = "_modules/"  # where sphinx.ext.viewcode puts them
_BEFORE_THE_THEME = 400  # which asks for the tree by a handler of the usual priority, 500


def setup(app: Any) -> dict[str, bool]:
    trees: dict[tuple[object, ...], str] = {}

    def share(app: Any, page: str, template: str, context: dict[str, Any], document: Any) -> None:
        if page.startswith(_SOURCES) and "toctree" in context:
            context["toctree"] = _kept(context["toctree"], page.count("/"), trees)

    app.connect("html-page-context", share, priority=_BEFORE_THE_THEME)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _kept(make: Callable[..., str], depth: int, trees: dict[tuple[object, ...], str]) -> Callable[..., str]:
    def tree(**options: object) -> str:
        key = (depth, *sorted(options.items()))
        if key not in trees:
            trees[key] = make(**options)
        return trees[key]

    return tree
