"""Makes figures and image files for all pictures, without global state, in a style for grey print and the colour-blind.

The colours are those of M. Okabe and K. Ito (Color Universal Design, 2008). No fact is shown by colour alone: each line
has its own dashes and marker, each bar and cell its number. matplotlib is an optional dependency, so it is imported
where a figure is made.
"""

from __future__ import annotations

import io
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gemmsim.support.errors import GemmsimError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00", "#8A7F00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)), (0, (3, 2, 1, 2)))
GREY = "#555555"
PAPER = "white"
FONT_SIZE = 9
DOTS_PER_INCH = 150
CHARACTERS_PER_INCH = 12.5  # at most, in a heading
FORMATS = ("png", "svg", "pdf")


def new_figure(width_inches: float, height_inches: float) -> Figure:
    """Make an empty figure. Raises GemmsimError where matplotlib is not installed."""
    require_matplotlib()
    from matplotlib.figure import Figure

    return Figure((width_inches, height_inches), layout="constrained", facecolor=PAPER)


def require_matplotlib() -> None:
    """Raise GemmsimError where matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise GemmsimError("pictures need matplotlib: pip install 'gemmsim[plot]'") from None


def figure_format(path: str) -> str:
    """Return the format that a file's name ends with: "png" for "a.PNG". Raises GemmsimError for one not in FORMATS."""
    suffix = Path(path).suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        known = ", ".join(f".{name}" for name in FORMATS)
        raise GemmsimError(f"a picture is written as {known}: '{path}' ends with none of them")
    return suffix


def figure_bytes(figure: Figure, file_format: str) -> bytes:
    """Render a figure as a file's content. The same figure gives the same bytes.

    The metadata have the title, for screen readers.
    """
    import matplotlib

    title = figure.get_label() or "gemmsim"
    metadata: dict[str, Any] = {"Title": title}
    metadata["CreationDate" if file_format == "pdf" else "Date"] = None
    if file_format == "png":
        metadata = {"Title": title, "Software": "gemmsim"}
    out = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "gemmsim", "hatch.linewidth": 0.6}):
        figure.savefig(out, format=file_format, dpi=DOTS_PER_INCH, metadata=metadata)
    return out.getvalue()


def plain(axes: Any) -> None:
    """Remove the frame's upper and right side, which nobody reads."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=FONT_SIZE - 1)


def heading(figure: Figure, title: str, subtitle: str) -> None:
    """Put title and subtitle at the top of a figure; its label becomes the title in the metadata of its file."""
    fits = int(figure.get_figwidth() * CHARACTERS_PER_INCH)
    lines = [line for text in (title, subtitle) for line in textwrap.wrap(text, fits)]
    figure.suptitle("\n".join(lines), fontsize=FONT_SIZE + 1, x=0.01, ha="left")
    figure.set_label(title)


def amount(size_bytes: float) -> str:
    """Write a size in bytes with its unit: 4.19 MB."""
    for limit, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if size_bytes >= limit:
            return f"{size_bytes / limit:.3g} {unit}"
    return f"{size_bytes:.0f} B"
