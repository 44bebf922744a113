"""Writes numbers, times and launches in words, as all reports have them."""

from __future__ import annotations

import math

from gemmsim.launch.spec import Labels

ENGINE_NAMES = {"simpy": "SimPy", "native": "the native engine"}


def number(value: float | None) -> str:
    """Write whole numbers with separators, others with four significant digits, unknown and infinite ones in words."""
    if value is None or math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "inf"
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def duration(us: float) -> str:
    """Write a time given in microseconds, with three or four significant digits: 12.3 us, 1.234 ms."""
    for limit, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= limit:
            return f"{us / limit:.4g} {unit}"
    return f"{us:.4g} us" if us >= 1 or not us else f"{1e3 * us:.3g} ns"


def moved(before: float, now: float) -> str:
    """Write by how much a value moved, of what it was: "+2.0%", "-0.004%"; "new" where it was 0."""
    if not before:
        return "new" if now else "+0.0%"
    percent = 100 * (now / before - 1)
    return f"{percent:+,.1f}%" if abs(percent) >= 0.1 or not percent else f"{percent:+.1g}%"


def problem_size(m: int | None, n: int | None, k: int | None) -> str:
    """Write the size as it follows a kernel's name, ", M=256 N=256 K=256"; "" where it is not known to be a GEMM."""
    return f", M={m} N={n} K={k}" if m else ""


def launch_name(labels: Labels) -> str:
    """Return the name of a launch: "tiled, M=256 N=256 K=256, tile=32"."""
    tunables = "".join(f", {key}={value}" for key, value in labels.tunables.items())
    return f"{labels.kernel}{problem_size(labels.m, labels.n, labels.k)}{tunables}"
