"""Shows a `Calibration` as a table in plain text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gemmsim.gpu import GpuSpec

from .fit import Calibration, as_float


def mean_error_pct(errors: Mapping[str, float]) -> float:
    """Return the mean absolute error in percent; `errors` holds predicted / measured - 1 of each case by its id."""
    return 100 * float(np.mean([abs(error) for error in errors.values()]))


def table(found: Calibration, gpu: GpuSpec) -> str:
    """Return a text with the fitted values and the errors before the fit, after it, and on cases left out of it.

    `gpu` is the GPU before the fit.
    """
    lines = [f"{'parameter':34} {'before':>12} {'factor':>8}"]
    for key, factor in found.factors.items():
        value = gpu.provenance[key].value
        shown = ",".join(f"{v:.4g}" for v in value) if isinstance(value, tuple) else f"{as_float(value):.5g}"
        lines.append(f"{key:34} {shown:>12} {factor:8.3f}")
    lines += ["", f"{'mean absolute error of time':34} {'mean %':>8} {'worst %':>8}  worst case"]
    rows = {
        "before the fit": found.before,
        "fitted, on the cases it saw": found.fitted,
        "held out: its rung left out": found.without_rung,
        "held out: its size left out": found.without_size,
    }
    for name, errors in rows.items():
        if not errors:
            lines.append(f"{name:34} {'-':>8} {'-':>8}  only one group")
            continue
        worst = max(errors, key=lambda case: abs(errors[case]))
        lines.append(f"{name:34} {mean_error_pct(errors):8.1f} {100 * errors[worst]:+8.1f}  {worst}")
    return "\n".join(lines)
