"""Says why one launch takes less time than another. Each rule is a function that returns None where it finds nothing.

A rule looks at the pair from the slower side: what limited that launch, and how much of it the faster launch is spared.
Less work for a unit can be a cause where the unit was about as busy as the busiest unit of the slower launch. Waiting
has a weight in proportion to the part of the time in which the busiest unit did not work. The weights only rank the
causes; they do not predict how much time each cause is worth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from gemmsim.analysis.hardware.utilisation import DATA_STAGE, DRAM, ISSUE, L2
from gemmsim.analysis.studies.launch_summary import SPACES, LaunchSummary, SpaceTraffic

SAME_TIME = 0.02  # relative difference below which there is nothing to explain
SAME_QUANTITY = 0.01  # relative; a quantity that changed less is no cause
NEAR_BUSIEST = 0.8  # of the busiest unit's share; a unit with less is no cause
LEAST_WEIGHT = 0.05  # of the difference of the times; a cause with less is left out
LEAST_OF_FIRST = 0.25  # of the first cause's weight; a cause with less is left out
CAUSES = 2  # that are named at most
PER_US = "/us"
SECTOR_BYTES = 32
LSU = "lsu pipe"
_NO_CAUSE = ("selected", "not_selected")  # stall reasons of a warp that issues, or that could issue
# What a quantity is called, how to read it from a launch, and its unit.
Part = tuple[str, Callable[[LaunchSummary], float], str]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number that was read from both launches of a pair.

    what           name of the number
    unit           "" for a count, else "byte", "%", "us", "/us" or "ratio"
    before, after  its value for the pair's `below` and for its `above`
    """

    what: str
    unit: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason why two launches differ in time.

    rule       name of the function that found it
    quantity   the number that changed
    detail     the part or factor of `quantity` that changed most, None where there is none
    weight_us  microseconds by which causes are ranked: see the module's docstring
    """

    rule: str
    quantity: Quantity
    detail: Quantity | None
    weight_us: float


@dataclass(frozen=True)
class Pair:
    """Two launches that stand next to each other in a comparison, `below` first and `above` in the next row."""

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
        """The share of the slower kernel's time in which its busiest unit does not work."""
        return 1 - self.busiest_share

    @property
    def busiest_share(self) -> float:
        return min(1.0, self.slow.busiest.share_pct / 100)

    def quantity(self, what: str, read: Callable[[LaunchSummary], float], unit: str = "") -> Quantity:
        return Quantity(what, unit, read(self.below), read(self.above))

    def drop(self, read: Callable[[LaunchSummary], float]) -> float:
        """Return ln(slow / fast), where slow and fast are what `read` returns for the slower and for the faster launch.

        So the drops of factors add up to the drop of their product. The drop is infinite where `read` returns 0 for the
        faster launch alone, and 0 where it returns 0 for the slower launch.
        """
        slow, fast = read(self.slow), read(self.fast)
        return math.log(slow / fast) if slow > 0 and fast > 0 else math.inf if slow > 0 else 0.0

    def spared_us(self, unit: str) -> float:
        """Return how many microseconds less the faster launch needs a unit; 0 where it did not limit the slower one."""
        slow, fast = self.slow.use(unit), self.fast.use(unit)
        if slow is None or slow.share_pct < NEAR_BUSIEST * self.slow.busiest.share_pct:
            return 0.0
        return max(0.0, slow.busy_us - (fast.busy_us if fast else 0.0)) * self.busiest_share


def l1_data(pair: Pair) -> Cause | None:
    """Tell whether the data stage of L1 and shared memory has fewer wavefronts; name the space that lost most."""
    # The lsu pipe is the same stage, of a busy SM instead of the mean of all SMs.
    unit, works = max(((DATA_STAGE, "wavefronts"), (LSU, "instructions")), key=lambda one: pair.spared_us(one[0]))
    space = max(SPACES, key=lambda name: pair.slow.spaces[name].wavefronts - pair.fast.spaces[name].wavefronts)

    def of(launch: LaunchSummary) -> SpaceTraffic:
        return launch.spaces[space]

    if space == "shared":
        each: Part = ("wavefronts a request", lambda r: _ratio(of(r).wavefronts, of(r).requests), "ratio")
    else:
        each = ("sectors a request", lambda r: _ratio(of(r).sectors, of(r).requests), "ratio")
    whole: Part = (f"{space} wavefronts", lambda r: of(r).wavefronts, "")
    return _less_work(pair, "l1_data", (unit, works), whole, ("requests", lambda r: of(r).requests, ""), each)


def l2(pair: Pair) -> Cause | None:
    """Tell whether fewer sectors move between L1 and L2: because fewer are asked for, or more are found in L1."""
    asked: Part = ("sectors asked of L1", _l1_sectors, "")
    sent: Part = ("of those sent on", lambda r: 100 * _ratio(_l2_sectors(r), _l1_sectors(r)), "%")
    return _less_work(pair, "l2", (L2, "sectors"), ("L2 sectors", _l2_sectors, ""), asked, sent)


def dram(pair: Pair) -> Cause | None:
    """Tell whether fewer bytes move from and to DRAM: because fewer are asked of L2, or more are found in L2."""
    asked: Part = ("sectors asked of L2", _l2_sectors, "")
    sent: Part = ("of those sent on", lambda r: 100 * _ratio(r.dram_sectors, _l2_sectors(r)), "%")
    whole: Part = ("DRAM bytes", lambda r: r.dram_sectors * SECTOR_BYTES, "byte")
    return _less_work(pair, "dram", (DRAM, "sectors"), whole, asked, sent)


def issue(pair: Pair) -> Cause | None:
    """Tell whether fewer warp instructions issue. The detail is the kind of instruction of which most went away."""
    kinds = pair.slow.kinds
    kind = max(kinds, key=lambda name: kinds[name] - pair.fast.kinds.get(name, 0.0))
    cause = _less_work(pair, "issue", (ISSUE, "instructions"), ("warp instructions", lambda r: r.warp_instructions, ""))
    if cause is None or cause.quantity.unit == PER_US:
        return cause
    return replace(cause, detail=pair.quantity(kind, lambda r: r.kinds.get(kind, 0.0)))


def pipe(pair: Pair) -> Cause | None:
    """Tell whether the execution pipe that is spared most time executes fewer instructions."""
    units = [use.unit for use in pair.slow.uses if use.unit.endswith(" pipe") and use.unit != LSU]
    unit = max(units, key=pair.spared_us, default=None)
    if unit is None:
        return None
    return _less_work(pair, "pipe", (unit, "instructions"), (f"{unit} instructions", lambda r: r.work(unit), ""))


def waiting(pair: Pair) -> Cause | None:
    """Tell in which stall reason the warps of the faster launch are spared most time.

    The weight is the spared time multiplied by the share of the time in which the busiest unit did not work.
    """
    reasons = [reason for reason in pair.slow.waits_us if reason not in _NO_CAUSE]

    def spared(reason: str) -> float:
        return pair.slow.waits_us[reason] - pair.fast.waits_us.get(reason, 0.0)

    reason = max(reasons, key=spared, default=None)
    if reason is None or spared(reason) <= 0:
        return None
    quantity = pair.quantity(f"time in {reason} stalls", lambda r: r.waits_us.get(reason, 0.0), "us")
    return Cause("waiting", quantity, None, spared(reason) * pair.idle)


def resident_warps(pair: Pair) -> Cause | None:
    """Tell whether the faster kernel has more warps on an SM, so that others can issue while some wait."""
    if pair.fast.warps <= pair.slow.warps:
        return None
    weight = pair.slow.kernel_us * (1 - pair.slow.warps / pair.fast.warps) * pair.idle
    return Cause("resident_warps", pair.quantity("active warps an SM", lambda r: r.warps, "ratio"), None, weight)


def idle_sms(pair: Pair) -> Cause | None:
    """Tell whether fewer SMs stand without a block, be it throughout or in the last wave.

    Where the slower launch has a block for each SM and either launch is a single wave, there is no such cause: the
    launch of a single wave may be a persistent kernel, which shares out its work itself.
    """
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
    """Tell whether the launch overhead is smaller: the part of the time in which the kernel does not run."""

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
    """Say why two launches differ in time: at most CAUSES causes, the largest weight first.

    There are none where both launches take the same time, or no rule finds a cause.
    """
    pair = Pair(below, above)
    difference = pair.slow.time_us - pair.fast.time_us
    if difference < SAME_TIME * pair.slow.time_us:
        return ()
    found = [cause for rule in RULES if (cause := rule(pair)) is not None and _changed(cause.quantity)]
    found = sorted((c for c in found if c.weight_us >= LEAST_WEIGHT * difference), key=lambda c: -c.weight_us)
    return tuple(cause for cause in found[:CAUSES] if cause.weight_us >= LEAST_OF_FIRST * found[0].weight_us)


def _changed(quantity: Quantity) -> bool:
    return abs(quantity.after - quantity.before) > SAME_QUANTITY * max(quantity.after, quantity.before)


def _less_work(pair: Pair, rule: str, unit: tuple[str, str], whole: Part, *parts: Part) -> Cause | None:
    """Return the cause that a unit has less to do in the faster launch.

    None where the unit did not limit the slower launch, or had no less to do. Where the launches are of two GPUs, the
    cause may be a faster unit instead.

    unit   (name of the unit, what it works on)
    whole  how to read the unit's work from a launch
    parts  how to read each factor of that work; the factor that fell most becomes the cause's detail
    """
    name, works = unit
    weight = pair.spared_us(name)
    if not weight:
        return None
    if faster := _rate(pair, name, works):
        return Cause(rule, faster, None, weight)
    if pair.drop(whole[1]) <= 0:
        return None  # as much work or more: the unit was busy for longer since fewer SMs shared the work
    detail = None
    if parts:
        most = max(parts, key=lambda part: pair.drop(part[1]))
        detail = pair.quantity(*most) if pair.drop(most[1]) > 0 else None
    return Cause(rule, pair.quantity(*whole), detail, weight)


def _rate(pair: Pair, unit: str, works: str) -> Quantity | None:
    """Return how much work a unit does in a microsecond, where that gains the faster launch more than less work does.

    Otherwise, and where both launches are of one GPU, the result is None.
    """
    if pair.below.gpu == pair.above.gpu:
        return None

    def rate(launch: LaunchSummary) -> float:
        use = launch.use(unit)
        return use.rate_per_us if use else 0.0

    if -pair.drop(rate) <= max(0.0, pair.drop(lambda launch: launch.work(unit))):
        return None
    return pair.quantity(f"{unit}, {works} a us", rate, PER_US)


def _filled(launch: LaunchSummary) -> float:
    """Return the share of SMs with work, 0 to 1: the mean over all rounds if each SM took one block a round.

    64 blocks on 108 SMs fill 59 %; 109 blocks take two rounds and fill 50 %.
    """
    return launch.blocks / (launch.sm_count * math.ceil(launch.blocks / launch.sm_count))


def _ratio(a: float, b: float) -> float:
    return a / b if b else 0.0


def _l1_sectors(launch: LaunchSummary) -> float:
    return sum(space.sectors for space in launch.spaces.values())


def _l2_sectors(launch: LaunchSummary) -> float:
    return sum(space.l2_sectors for space in launch.spaces.values())
