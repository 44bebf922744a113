"""Defines the options with which the cases of a bundle are measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Options with which cases are measured.

    no_counters        whether the cases are only timed, without counters by Nsight Compute
    jit                whether the @cuda.jit functions are also launched through numba (see `dispatcher_check`)
    samples            the number of samples in each series of times
    profile_timeout_s  how long one run of ncu may take
    """

    no_counters: bool = False
    jit: bool = False
    samples: int = 25
    profile_timeout_s: float = 540.0
