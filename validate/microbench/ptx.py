"""Makes the PTX of microbenchmarks from `frame.ptx`, the timed loop that all share, by replacing each `<name>`.

A kernel takes (out, data, count, other). Each warp writes four 64-bit words to out[warp]: the clock before, the clock
after, the SM and the sink. A step is repeated `n` times in a loop of `count` rounds. Two kernels with different `n` are
timed: the difference of their times, divided by the difference of their steps, is the time of a step without the loop's
own instructions. The compiler does not unroll the loop any further.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

WORDS_PER_WARP = 4
UNROLLS = (32, 96)  # how often a step is repeated in the two kernels


def module(arch: str, kernels: dict[str, str]) -> str:
    """Return one PTX module of all `kernels` for the architecture `arch` ("sm_90")."""
    return "\n".join([".version 8.7", f".target {arch}", ".address_size 64", *kernels.values()])


def unrolled(
    entry: str, before: str, step: Callable[[int], str], after: str, shared_bytes: int = 0, timed: bool = True
) -> dict[str, str]:
    """Return the kernels `entry`_32 and `entry`_96 (see UNROLLS), whose i-th step is step(i), as PTX by name."""
    return {
        f"{entry}_{n}": kernel(f"{entry}_{n}", before, "\n".join(map(step, range(n))), after, shared_bytes, timed)
        for n in UNROLLS
    }


def kernel(entry: str, before: str, body: str, after: str, shared_bytes: int = 0, timed: bool = True) -> str:
    """Return the PTX of a kernel whose timed part is `body` in a loop of %count rounds.

    `before`, `body` and `after` may use the registers %r (b32), %d (b64), %f (f32), %g (f64) and %p (predicates), but
    neither %p0 nor %i. They may read %data, %count, %other, %thread, %lane, %block and the shared array `area`. `after`
    leaves what it computed in %sink (b32), for which the last clock waits. Without `timed`, the kernel writes 0 as both
    clocks and the SM.
    """
    values = {
        "entry": entry,
        "before": before,
        "body": body,
        "after": after,
        "shared_bytes": str(max(16, shared_bytes)),
        "bytes_per_warp": str(8 * WORDS_PER_WARP),
        "clock": "%clock64" if timed else "0",
        "sm": "%smid" if timed else "0",
    }
    return re.sub(r"<([a-z_]+)>", lambda match: values[match[1]], _frame())


@cache
def _frame() -> str:
    return Path(__file__).with_name("frame.ptx").read_text(encoding="utf-8")


def fold(registers: list[str]) -> str:
    """Return PTX that makes %sink depend on the b32 registers named in `registers`."""
    return "\n".join(f"xor.b32 %sink, %sink, {register};" for register in registers)
