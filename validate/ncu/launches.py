"""Reads the launches of a user's own Nsight Compute results: a report file or a raw page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gemmsim.support.errors import GemmsimError

from .raw_page import ProfiledLaunch, parse_raw_page, unit_factor

_DIMS = ("launch__grid_dim_{}", "launch__block_dim_{}")


def read_launches(path: Path) -> list[ProfiledLaunch]:
    """Return the launches in an .ncu-rep file or in a raw page as CSV, in order.

    An .ncu-rep file is read by the ncu-report wheel. Raises GemmsimError, one line, for another kind of file, for one
    without launches, or where the wheel is missing.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise GemmsimError(f"cannot read {path}: {error.strerror}") from None
    if path.suffix == ".ncu-rep":
        found = _from_report(path)
    else:
        try:
            found = parse_raw_page(data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise GemmsimError(
                f"{path} is no text: give an .ncu-rep file, or what ncu --csv --page raw prints"
            ) from None
    if not found:
        raise GemmsimError(f"{path} holds no launch")
    return found


def _from_report(path: Path) -> list[ProfiledLaunch]:
    try:
        import ncu_report
    except ImportError:
        raise GemmsimError(
            "reading .ncu-rep needs the ncu-report wheel: pip install 'gemmsim[ncu]'; "
            "or give what ncu --import FILE --csv --page raw --print-units base prints"
        ) from None
    try:
        context = ncu_report.load_report(str(path))
    except Exception as error:  # the library raises several kinds of its own
        raise GemmsimError(f"{path} is no report that ncu-report can read: {error}") from None
    text_kind = ncu_report.IMetric.ValueKind_STRING
    ranges = [context.range_by_idx(i) for i in range(context.num_ranges())]
    return [_action(one.action_by_idx(i), text_kind) for one in ranges for i in range(one.num_actions())]


def _action(action: Any, text_kind: int) -> ProfiledLaunch:
    """Read one launch of a report. Metrics of the kind `text_kind` are left out, as they would read as 0."""
    metrics, device = {}, ""
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        if name == "device__attribute_display_name":
            device = str(metric.as_string())
        if "__" in name and metric.has_value() and metric.kind() != text_kind:
            metrics[name] = float(metric.as_double()) * unit_factor(str(metric.unit()))
    grid, block = (tuple(int(metrics.get(dim.format(axis), 0)) for axis in "xyz") for dim in _DIMS)
    return ProfiledLaunch(action.name(), grid if all(grid) else (), block if all(block) else (), device, metrics)


def select(launches: Sequence[ProfiledLaunch], pattern: str | None, index: int | None) -> ProfiledLaunch:
    """Return the one launch that the user means.

    pattern  a regular expression that the kernel's name must match; None: every kernel fits
    index    index from 0 among the launches that fit; None: the last one is meant, as the first ones may be warm-ups
    """
    try:
        fitting = [one for one in launches if pattern is None or re.search(pattern, one.kernel)]
    except re.error as error:
        raise GemmsimError(f"--match '{pattern}' is no regular expression: {error}") from None
    if not fitting:
        names = ", ".join(dict.fromkeys(one.kernel for one in launches))
        raise GemmsimError(f"no launch fits --match '{pattern}': the file has {names[:300]}")
    if index is None:
        kernels = dict.fromkeys(one.kernel for one in fitting)
        if len(kernels) > 1:
            raise GemmsimError(f"{len(kernels)} kernels in the file: choose by --match: {', '.join(kernels)[:300]}")
        return fitting[-1]
    if not -len(fitting) <= index < len(fitting):
        raise GemmsimError(f"--launch {index}: {len(fitting)} launches fit, 0 to {len(fitting) - 1}")
    return fitting[index]
