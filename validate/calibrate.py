"""Fits parameters of the timing model to measured times, and says how well the fit does on what it has not seen.

Time is predicted by the SM model alone, on launches that were executed and counted once. The fit is by least squares in
the logarithm of time, robust (soft L1), and each parameter, as a factor on its value, stays within bounds. The model is
linearised in the logarithms of the parameters, so that leaving cases out costs no further simulation but that of the
cases left out. A weak pull towards the present values decides what the times do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.support.errors import GemmsimError

Factors = dict[str, float]
_STEP = 0.1  # of a parameter, for its influence: the model counts whole cycles, smaller steps would drown in that
_SCALE = 0.1  # errors beyond 10 % count less than their square
_PULL = 0.02  # a parameter off by a factor of e costs as much as a case off by 2 %
# The carve-out decides how much of L1 is cache: changing it would need everything counted again.
NOT_TIMING = ("shared.carveout_headroom",)
# What moves along: the far half of L2 is never nearer than the near one.
TIED = {"l2.hit_latency_cycles": "l2.far_latency_cycles"}
KNOWN = ("vendor", "measured", "set")  # what is not fitted unless it is asked for
_AT_MOST_ONE = ("dram.achievable_fraction",)


@dataclass(frozen=True)
class Sample:
    """A case: predict(gpu) is its time in microseconds."""

    id: str
    rung: str
    size: str
    measured_us: float
    predict: Callable[[GpuSpec], float]


@dataclass(frozen=True)
class Calibration:
    """What was fitted, and the error of each case, predicted / measured - 1.

    factors  on the present values
    before, fitted  errors by case
    without_rung, without_size  errors by fits that had not seen the case's rung, or its size; empty where there is one
    """

    factors: Factors
    before: dict[str, float]
    fitted: dict[str, float]
    without_rung: dict[str, float]
    without_size: dict[str, float]


def parameters(gpu: GpuSpec, wanted: Sequence[str] = (), everything: bool = False) -> list[str]:
    """Keys to fit: `wanted`, or all calibratable ones, or those of them that nobody measured.

    Raises GemmsimError for a key that is not marked calibratable.
    """
    excluded = {*NOT_TIMING, *TIED.values()}
    allowed = [key for key, value in gpu.provenance.items() if value.calibratable and key not in excluded]
    for key in wanted:
        if key not in allowed:
            raise GemmsimError(f"'{key}' is not calibratable on {gpu.name}: those are {', '.join(allowed)}")
    if wanted:
        return list(wanted)
    return allowed if everything else [key for key in allowed if gpu.provenance[key].status not in KNOWN]


def scaled(gpu: GpuSpec, base: str, factors: Mapping[str, float]) -> GpuSpec:
    """The GPU `base` names (and `gpu` is), with parameters, and those tied to them, multiplied; fractions end at 1."""
    overrides = []
    for key, factor in moved_by(factors).items():
        value = gpu.provenance[key].value
        numbers = value if isinstance(value, tuple) else (value,)
        most = 1.0 if key in _AT_MOST_ONE else math.inf
        overrides.append(f"{key}={','.join(f'{min(most, _number(number) * factor):.9g}' for number in numbers)}")
    return load_gpu(base, overrides)


def moved_by(factors: Mapping[str, float]) -> Factors:
    """The factors, those of tied parameters included."""
    return {**factors, **{TIED[key]: factor for key, factor in factors.items() if key in TIED}}


def _number(value: object) -> float:
    assert isinstance(value, (int, float))
    return float(value)


def calibrate(
    samples: Sequence[Sample],
    gpu: GpuSpec,
    base: str,
    keys: Sequence[str],
    limit: float = 2.0,
    say: Callable[[str], None] = lambda text: None,
) -> Calibration:
    """Fit `keys`, each within 1 / limit to limit of its value. Raises GemmsimError where there is too little to fit."""
    if len(samples) < 2 or not keys:
        raise GemmsimError(f"{len(samples)} cases and {len(keys)} parameters: nothing to fit")
    first = _log_errors(samples, gpu)
    influence = np.empty((len(samples), len(keys)))
    for i, key in enumerate(keys):
        say(f"influence of {key} ({i + 1} of {len(keys)})")
        moved = scaled(gpu, base, {key: 1 + _STEP})
        influence[:, i] = (_log_errors(samples, moved) - first) / math.log1p(_STEP)

    def fit(chosen: NDArray[np.bool_]) -> Factors:
        found = _least_squares(first[chosen], influence[chosen], math.log(limit))
        return {key: math.exp(x) for key, x in zip(keys, found, strict=True)}

    everything = np.ones(len(samples), bool)
    factors = fit(everything)
    say("predicting with the fitted values")
    fitted = _log_errors(samples, scaled(gpu, base, factors))
    return Calibration(
        factors=factors,
        before=_by_case(samples, first),
        fitted=_by_case(samples, fitted),
        without_rung=_left_out(samples, [one.rung for one in samples], fit, gpu, base, say),
        without_size=_left_out(samples, [one.size for one in samples], fit, gpu, base, say),
    )


def _least_squares(first: NDArray[np.float64], influence: NDArray[np.float64], bound: float) -> NDArray[np.float64]:
    """Logarithms of the factors that bring first + influence @ x closest to 0."""
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise GemmsimError("calibrate needs SciPy: pip install 'gemmsim[validate]'") from None
    pull = _PULL * np.eye(influence.shape[1])

    def residuals(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([first + influence @ x, pull @ x])

    start = np.zeros(influence.shape[1])
    found: NDArray[np.float64] = least_squares(
        residuals, start, bounds=(-bound, bound), loss="soft_l1", f_scale=_SCALE
    ).x
    return found


def _left_out(
    samples: Sequence[Sample],
    groups: Sequence[str],
    fit: Callable[[NDArray[np.bool_]], Factors],
    gpu: GpuSpec,
    base: str,
    say: Callable[[str], None],
) -> dict[str, float]:
    """The error of each case by the fit that saw none of its group; empty where there is one group only."""
    if len(set(groups)) < 2:
        return {}
    found: dict[str, float] = {}
    for group in dict.fromkeys(groups):
        out = np.array([name == group for name in groups])
        say(f"without {group}")
        held = [one for one, left in zip(samples, out, strict=True) if left]
        found |= _by_case(held, _log_errors(held, scaled(gpu, base, fit(~out))))
    return found


def _log_errors(samples: Sequence[Sample], gpu: GpuSpec) -> NDArray[np.float64]:
    return np.array([math.log(one.predict(gpu) / one.measured_us) for one in samples])


def _by_case(samples: Sequence[Sample], log_errors: NDArray[np.float64]) -> dict[str, float]:
    return {one.id: math.expm1(error) for one, error in zip(samples, log_errors, strict=True)}


def case_sample(case: Any, gpu: GpuSpec, max_instructions: int | None = None) -> Sample:
    """A record as a sample: executed and counted here, for `gpu`; timed whenever `predict` is called.

    max_instructions: simulated for a time, where not as many as `gemmsim analyze` does
    """
    from dataclasses import replace

    from gemmsim.api import count
    from gemmsim.sm.schedule import TimingOptions, schedule

    from .records import CALIBRATED_TO

    how = next((how for how in CALIBRATED_TO if how in case.times), "")
    request = replace(case.request(), gpu=gpu, warm_caches=case.warm(how))
    counted = count(request)
    trace, cost, resident = counted.execution.trace, counted.traffic.cost, counted.occupancy.blocks_per_sm

    options = TimingOptions() if max_instructions is None else TimingOptions(max_instructions=max_instructions)

    def predict(other: GpuSpec) -> float:
        timing = schedule(counted.program, request.launch, trace, cost, other, resident, options)
        return float(timing.duration_us)

    return Sample(case.id, case.name, f"{case.m}x{case.n}x{case.k}", case.time_us, predict)


def mean_error_pct(errors: Mapping[str, float]) -> float:
    """Mean absolute error, in percent."""
    return 100 * float(np.mean([abs(error) for error in errors.values()]))


def table(found: Calibration, gpu: GpuSpec) -> str:
    """What was fitted, and the errors before, after, and on what was held out."""
    lines = [f"{'parameter':34} {'before':>12} {'factor':>8}"]
    for key, factor in found.factors.items():
        value = gpu.provenance[key].value
        shown = ",".join(f"{v:.4g}" for v in value) if isinstance(value, tuple) else f"{_number(value):.5g}"
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
