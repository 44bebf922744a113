"""Fits parameters of the timing model to measured times, and says how well the fit predicts cases left out of it.

Each launch is executed and counted once; then the SM model alone predicts its time. The fit minimises the squares of
the errors in the logarithm of time, with a robust loss (soft L1). Each parameter is fitted as a factor on its value,
and the factor stays within bounds. The model is linearised in the logarithms of the parameters. A fit that leaves some
cases out therefore needs no further simulation, except to predict these cases with the fitted values. Where the times
do not decide a parameter, a weak pull keeps it near its present value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.support.errors import GemmsimError

from .sample import Sample

Factors = dict[str, float]
# To see a parameter's influence on the times, its value is raised by this share. The model counts whole cycles, which
# would hide the influence of a smaller step.
_STEP = 0.1
_SCALE = 0.1  # in the soft L1 loss, errors beyond 10 % count less than their square
_PULL = 0.02  # a parameter that is off by a factor of e costs as much as a case that is off by 2 %
# A parameter that is not fitted. The carve-out decides how much of L1 is cache: if it changed, the memory traffic of
# every launch would have to be counted again.
NOT_TIMING = ("shared.carveout_headroom",)
# fitted parameter -> the parameter tied to it, which gets the same factor: the far half of L2 is never nearer than the
# near half.
TIED = {"l2.hit_latency_cycles": "l2.far_latency_cycles"}
KNOWN = ("vendor", "measured", "set")  # parameters whose value has such a status are fitted only on request
_AT_MOST_ONE = ("dram.achievable_fraction",)


@dataclass(frozen=True)
class Calibration:
    """The fitted factors, and the error of each case by its id: predicted / measured - 1.

    factors       parameter -> factor by which its present value is multiplied
    before        errors with the present values
    fitted        errors with the fitted values
    without_rung  errors with values that were fitted without the cases of the same kernel of the ladder; empty where
                  all cases are of one kernel
    without_size  errors with values that were fitted without the cases of the same size; empty where all cases are of
                  one size
    """

    factors: Factors
    before: dict[str, float]
    fitted: dict[str, float]
    without_rung: dict[str, float]
    without_size: dict[str, float]


def parameters(gpu: GpuSpec, wanted: Sequence[str] = (), everything: bool = False) -> list[str]:
    """Return the keys of the parameters to fit.

    Where `wanted` is not empty, its keys are returned. Otherwise the result has the parameters that the GPU's file
    marks calibratable: all of them where `everything` is true, else those whose status is not in KNOWN. Raises
    GemmsimError for a key in `wanted` that is not marked calibratable.
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
    """Return the GPU with the parameters in `factors`, and the parameters tied to them, multiplied by their factors.

    A parameter that is a fraction is limited to 1. `gpu` is the GPU that the preset or file `base` describes.
    """
    overrides = []
    for key, factor in moved_by(factors).items():
        value = gpu.provenance[key].value
        numbers = value if isinstance(value, tuple) else (value,)
        most = 1.0 if key in _AT_MOST_ONE else math.inf
        overrides.append(f"{key}={','.join(f'{min(most, as_float(one) * factor):.9g}' for one in numbers)}")
    return load_gpu(base, overrides)


def moved_by(factors: Mapping[str, float]) -> Factors:
    """Return `factors` with the factors of the tied parameters (see TIED) added."""
    return {**factors, **{TIED[key]: factor for key, factor in factors.items() if key in TIED}}


def as_float(value: object) -> float:
    """Return a value of a GPU file, which is known to be a number, as a float."""
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
    """Fit the parameters `keys` of `gpu`, each by a factor from 1 / limit to limit on its value.

    `gpu` is the GPU that the preset or file `base` describes. `say` is called with a line of text before each step.
    Raises GemmsimError where there are fewer than two samples, or no keys.
    """
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
    """Return the logarithms x of the factors that bring first + influence @ x closest to 0.

    first      [case], the logarithm of predicted / measured with the present values
    influence  [case, parameter], the derivative of `first` by the logarithm of the parameter
    bound      the largest absolute value that an element of x may have
    """
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
    """Return the error of each case, by its id, with values that were fitted without the cases of its group.

    `groups` names the group of each sample, such as its size. The result is empty where there is only one group.
    """
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
