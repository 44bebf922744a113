"""Why one launch takes less time than another: one rule, one function. A rule names what fell, or says nothing.

A rule looks at the pair from the slower side: what limited that one, and how much of it the faster one is spared. A
unit counts where it was about as busy as the busiest of the slower launch, waiting for the part of the time in which
no unit was. The weights only rank the causes; they are no prediction of what each is worth alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from gemmsim.analysis.hardware.utilisation import DATA_STAGE, DRAM, ISSUE, L2
from gemmsim.analysis.studies.launch_summary import SPACES, LaunchSummary, SpaceTraffic

SAME_TIME = 0.02  # relative: below it there is nothing to explain
SAME_QUANTITY = 0.01  # relative: what changed less is no cause
NEAR_BUSIEST = 0.8  # of the busiest unit's share
LEAST_WEIGHT = 0.05  # of the difference of the times
LEAST_OF_FIRST = 0.25  # of the first cause's weight
CAUSES = 2
SECTOR_BYTES = 32
LSU = "lsu pipe"
_NO_CAUSE = ("selected", "not_selected")  # a warp that issues, or could


@dataclass(frozen=True, slots=True)
class Quantity:
    """unit: "" for a count, else "byte", "%", "us", "/us" or "ratio"; before, after: of the launch below, above."""

    what: str
    unit: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Cause:
    """rule: its name; quantity: what changed; detail: its part that changed most, if any; weight_us: see above."""

    rule: str
    quantity: Quantity
    detail: Quantity | None
    weight_us: float


@dataclass(frozen=True)
class Pair:
    below: LaunchSummary
    above: LaunchSummary

    @property
    def slow(self) -> LaunchSummary:
        return self.below if self.below.time_us >= self.above.time_us else self.above

    @property
    def fast(self) -> LaunchSummary:
        return self.above if self.slow is self.below else self.below

    @property
    def idle(self) -> float:
        """The part of the slower kernel's time in which its busiest unit does not work."""
        return 1 - self.busiest_share

    @property
    def busiest_share(self) -> float:
        return min(1.0, self.slow.busiest.share_pct / 100)

    def quantity(self, what: str, read: Callable[[LaunchSummary], float], unit: str = "") -> Quantity:
        return Quantity(what, unit, read(self.below), read(self.above))

    def drop(self, read: Callable[[LaunchSummary], float]) -> float:
        """ln(slow / fast): drops of factors add up to that of their product. 0 where either is 0."""
        slow, fast = read(self.slow), read(self.fast)
        return math.log(slow / fast) if slow > 0 and fast > 0 else math.inf if slow > 0 else 0.0

    def spared_us(self, unit: str) -> float:
        """Time for which the faster launch needs a unit less, 0 where that unit did not limit the slower one."""
        slow, fast = self.slow.use(unit), self.fast.use(unit)
        if slow is None or slow.share_pct < NEAR_BUSIEST * self.slow.busiest.share_pct:
            return 0.0
        return max(0.0, slow.busy_us - (fast.busy_us if fast else 0.0)) * self.busiest_share


def l1_data(pair: Pair) -> Cause | None:
    """Wavefronts of the stage that L1 and shared memory use together: of the memory space in which most went away."""
    # "lsu" is the same stage, on a busy SM instead of the mean of all
    unit, works = max(((DATA_STAGE, "wavefronts"), (LSU, "instructions")), key=lambda one: pair.spared_us(one[0]))
    if not (weight := pair.spared_us(unit)):
        return None
    if faster := _rate(pair, unit, works):
        return Cause("l1_data", faster, None, weight)
    space = max(SPACES, key=lambda name: pair.slow.spaces[name].wavefronts - pair.fast.spaces[name].wavefronts)

    def of(launch: LaunchSummary) -> SpaceTraffic:
        return launch.spaces[space]

    parts: list[tuple[str, Callable[[LaunchSummary], float], str]] = [("requests", lambda r: of(r).requests, "")]
    if space == "shared":
        parts.append(("wavefronts a request", lambda r: _ratio(of(r).wavefronts, of(r).requests), "ratio"))
    else:
        parts.append(("sectors a request", lambda r: _ratio(of(r).sectors, of(r).requests), "ratio"))
    whole = pair.quantity(f"{space} wavefronts", lambda r: of(r).wavefronts)
    return Cause("l1_data", whole, _largest(pair, parts), weight)


def l2(pair: Pair) -> Cause | None:
    """Sectors between L1 and L2: fewer asked for, or more of them found in L1."""
    if not (weight := pair.spared_us(L2)):
        return None
    if faster := _rate(pair, L2, "sectors"):
        return Cause("l2", faster, None, weight)
    parts: list[tuple[str, Callable[[LaunchSummary], float], str]] = [
        ("sectors asked of L1", _l1_sectors, ""),
        ("of those sent on", lambda r: 100 * _ratio(_l2_sectors(r), _l1_sectors(r)), "%"),
    ]
    return Cause("l2", pair.quantity("L2 sectors", _l2_sectors), _largest(pair, parts), weight)


def dram(pair: Pair) -> Cause | None:
    """Bytes from and to DRAM: fewer asked of L2, or more of them found there."""
    if not (weight := pair.spared_us(DRAM)):
        return None
    if faster := _rate(pair, DRAM, "sectors"):
        return Cause("dram", faster, None, weight)
    parts: list[tuple[str, Callable[[LaunchSummary], float], str]] = [
        ("sectors asked of L2", _l2_sectors, ""),
        ("of those sent on", lambda r: 100 * _ratio(r.dram_sectors, _l2_sectors(r)), "%"),
    ]
    whole = pair.quantity("DRAM bytes", lambda r: r.dram_sectors * SECTOR_BYTES, "byte")
    return Cause("dram", whole, _largest(pair, parts), weight)


def issue(pair: Pair) -> Cause | None:
    """Warp instructions, and the kind of which most went away."""
    if not (weight := pair.spared_us(ISSUE)):
        return None
    if faster := _rate(pair, ISSUE, "instructions"):
        return Cause("issue", faster, None, weight)
    kinds = list(pair.slow.kinds)
    kind = max(kinds, key=lambda name: pair.slow.kinds[name] - pair.fast.kinds.get(name, 0.0))
    detail = pair.quantity(kind, lambda r: r.kinds.get(kind, 0.0))
    return Cause("issue", pair.quantity("warp instructions", lambda r: r.warp_instructions), detail, weight)


def pipe(pair: Pair) -> Cause | None:
    """The execution pipe that is spared most."""
    units = [use.unit for use in pair.slow.uses if use.unit.endswith(" pipe") and use.unit != LSU]
    unit = max(units, key=pair.spared_us, default=None)
    if unit is None or not (weight := pair.spared_us(unit)):
        return None
    if faster := _rate(pair, unit, "instructions"):
        return Cause("pipe", faster, None, weight)

    def work(launch: LaunchSummary) -> float:
        use = launch.use(unit)
        return use.work if use else 0.0

    return Cause("pipe", pair.quantity(f"{unit} instructions", work), None, weight)


def waiting(pair: Pair) -> Cause | None:
    """The stall reason that takes less of the time, as far as no unit was busy meanwhile."""
    reasons = [reason for reason in pair.slow.waits_us if reason not in _NO_CAUSE]

    def spared(reason: str) -> float:
        return pair.slow.waits_us[reason] - pair.fast.waits_us.get(reason, 0.0)

    reason = max(reasons, key=spared, default=None)
    if reason is None or spared(reason) <= 0:
        return None
    quantity = pair.quantity(f"time in {reason} stalls", lambda r: r.waits_us.get(reason, 0.0), "us")
    return Cause("waiting", quantity, None, spared(reason) * pair.idle)


def resident_warps(pair: Pair) -> Cause | None:
    """More warps to issue from, where waiting was the matter."""
    if pair.fast.warps <= pair.slow.warps:
        return None
    weight = pair.slow.kernel_us * (1 - pair.slow.warps / pair.fast.warps) * pair.idle
    return Cause("resident_warps", pair.quantity("active warps an SM", lambda r: r.warps, "ratio"), None, weight)


def idle_sms(pair: Pair) -> Cause | None:
    """SMs without a block, or without one in the last wave; a launch of one wave may share work out by itself."""
    slow, fast = pair.slow, pair.fast
    small = slow.blocks < slow.sm_count
    if not small and (slow.waves <= 1 or fast.waves <= 1):
        return None
    gained = 1 - _filled(slow) / _filled(fast)
    if gained <= 0:
        return None
    quantity = pair.quantity("SM time with a block to run", lambda r: 100 * _filled(r), "%")
    return Cause("idle_sms", quantity, None, slow.kernel_us * gained)


def launch_overhead(pair: Pair) -> Cause | None:
    def overhead(launch: LaunchSummary) -> float:
        return launch.time_us - launch.kernel_us

    spared = overhead(pair.slow) - overhead(pair.fast)
    if spared <= 0:
        return None
    return Cause("launch_overhead", pair.quantity("launch overhead", overhead, "us"), None, spared)


RULES: tuple[Callable[[Pair], Cause | None], ...] = (
    l1_data,
    l2,
    dram,
    issue,
    pipe,
    waiting,
    resident_warps,
    idle_sms,
    launch_overhead,
)


def causes(below: LaunchSummary, above: LaunchSummary) -> tuple[Cause, ...]:
    """At most CAUSES, the weightiest first; none where both take the same time, or no rule finds anything."""
    pair = Pair(below, above)
    difference = pair.slow.time_us - pair.fast.time_us
    if difference < SAME_TIME * pair.slow.time_us:
        return ()
    found = [cause for rule in RULES if (cause := rule(pair)) is not None and _changed(cause.quantity)]
    found = sorted((c for c in found if c.weight_us >= LEAST_WEIGHT * difference), key=lambda c: -c.weight_us)
    return tuple(cause for cause in found[:CAUSES] if cause.weight_us >= LEAST_OF_FIRST * found[0].weight_us)


def _changed(quantity: Quantity) -> bool:
    return abs(quantity.after - quantity.before) >= SAME_QUANTITY * max(quantity.after, quantity.before)


def _rate(pair: Pair, unit: str, works: str) -> Quantity | None:
    """What the unit of another GPU can do a microsecond, where that differs more than what it had to do."""
    if pair.below.gpu == pair.above.gpu:
        return None

    def rate(launch: LaunchSummary) -> float:
        use = launch.use(unit)
        return use.rate_per_us if use else 0.0

    def work(launch: LaunchSummary) -> float:
        use = launch.use(unit)
        return use.work if use else 0.0

    if -pair.drop(rate) <= max(0.0, pair.drop(work)):
        return None
    return pair.quantity(f"{unit}, {works} a us", rate, "/us")


def _largest(pair: Pair, parts: list[tuple[str, Callable[[LaunchSummary], float], str]]) -> Quantity | None:
    what, read, unit = max(parts, key=lambda part: pair.drop(part[1]))
    return pair.quantity(what, read, unit) if pair.drop(read) > 0 else None


def _filled(launch: LaunchSummary) -> float:
    """Blocks over those that fit in the rounds in which the SMs take one each."""
    return launch.blocks / (launch.sm_count * math.ceil(launch.blocks / launch.sm_count))


def _ratio(a: float, b: float) -> float:
    return a / b if b else 0.0


def _l1_sectors(launch: LaunchSummary) -> float:
    return sum(space.sectors for space in launch.spaces.values())


def _l2_sectors(launch: LaunchSummary) -> float:
    return sum(space.l2_sectors for space in launch.spaces.values())
