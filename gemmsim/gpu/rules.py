"""Works out what a data sheet does not say from a GPU that is alike. RULES has a rule for each number, and its words.

A GPU file with `like = "rtx4090"` gives what its data sheet says. What the preset `rtx4090` gives itself, and this file
does not, follows by the rule for its key, with the status "scaled"; where there is no rule it is the same, "copied".
What the architecture's file gives holds for all its GPUs. Numbers of the rules are in `presets/rules.toml`.

Sources: the numbers' own, and what two measured GPUs of an architecture say of a rule (docs/model/gpu-rules.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from gemmsim.gpu.spec import Value
from gemmsim.gpu.units import shown
from gemmsim.support.errors import GemmsimError

TPC_SMS = 2


@dataclass(frozen=True)
class Constants:
    """The numbers of the rules for one architecture (`presets/rules.toml`); 0 where none is known."""

    l2_latency_per_sm_cycles: float = 0.0
    l2_by_size: float = 0.0


@dataclass(frozen=True)
class Pair:
    """The GPU that is described, as far as it is, and the one that it is like.

    now   {key: value} of the first, in which a rule finds what rules before it gave
    then  {key: value} of the second
    """

    now: Mapping[str, Value]
    then: Mapping[str, Value]
    constants: Constants

    def new(self, key: str) -> float:
        return _number(self.now[key] if key in self.now else self.then[key])

    def old(self, key: str) -> float:
        return _number(self.then[key])

    def ratio(self, *keys: str) -> float:
        """Return the product of new over old numbers; a key that the second GPU lacks or has as 0 counts as 1."""
        return math.prod(self.new(key) / self.old(key) for key in keys if key in self.then and self.old(key))


@dataclass(frozen=True)
class Rule:
    """How one number follows. `words` go into the value's source."""

    key: str
    words: str
    value: Callable[[Pair], object]


def _number(value: Value) -> float:
    assert isinstance(value.value, (int, float))
    return float(value.value)


def _scaled(key: str, words: str, *by: str) -> Rule:
    return Rule(key, words, lambda pair: pair.old(key) * pair.ratio(*by))


def _gpcs(pair: Pair) -> tuple[int, ...]:
    sizes = pair.then["sm.gpc_sms"].value
    assert isinstance(sizes, tuple)
    sms = int(pair.new("sm.count"))
    if len(sizes) < 2:
        return sizes
    tpcs, left = divmod(sms // TPC_SMS, len(sizes))
    return tuple(TPC_SMS * (tpcs + (place >= len(sizes) - left)) for place in range(len(sizes)))


def _load_clock(pair: Pair) -> float:
    held, rated, boost = pair.old("clock.sm_load_hz"), pair.old("clock.sm_boost_hz"), pair.new("clock.sm_boost_hz")
    return max(boost, min(boost * held / rated, held))


def _l2_latency(pair: Pair) -> float:
    more = pair.constants.l2_latency_per_sm_cycles * (pair.new("sm.count") - pair.old("sm.count"))
    return float(round(pair.old("l2.hit_latency_cycles") + more))


def _l2_read(pair: Pair) -> float:
    by = "l2.size_bytes" if pair.constants.l2_by_size else SMS
    return pair.old("l2.read_bytes_per_s") * pair.ratio(by, LOAD)


def _above_l2(key: str) -> Callable[[Pair], float]:
    """Make the rule for a latency that is as much above L2's as it was."""
    near = "l2.hit_latency_cycles"
    return lambda pair: pair.new(near) + pair.old(key) - pair.old(near)


def _slower(pair: Pair) -> float:
    """Return how many times slower the tensor cores of an SM are: a power of two, as peaks are stated rounded."""
    if "peak.tensor_fp16_flops" not in pair.now:
        return 1.0
    alike = pair.old("peak.tensor_fp16_flops") * pair.ratio("sm.count", "clock.sm_boost_hz")
    return 2.0 ** round(math.log2(alike / pair.new("peak.tensor_fp16_flops")))


def _share(pair: Pair) -> float:
    return min(1.0, pair.old("mma.half_accumulator_share") / _slower(pair))


def _tensor_peak(key: str) -> Rule:
    words = "with SMs and rated boost, and as peak.tensor_fp16 says"
    return Rule(key, words, lambda pair: pair.old(key) * pair.ratio("sm.count", "clock.sm_boost_hz") / _slower(pair))


SMS, BOOST, LOAD = "sm.count", "clock.sm_boost_hz", "clock.sm_load_hz"
_PEAK = "with SMs and rated boost"

# In this order: a rule may use what those before it gave.
RULES: tuple[Rule, ...] = (
    Rule("sm.gpc_sms", "as many GPCs, TPCs dealt out evenly", _gpcs),
    _scaled("clock.sm_base_hz", "with rated boost", BOOST),
    Rule(LOAD, "as far above rated boost, but no faster", _load_clock),
    _scaled("clock.sm_tensor_load_hz", "with sm_load", LOAD),
    _scaled("power.burst_limit_watts", "with power.limit", "power.limit_watts"),
    _scaled("power.busy_watts", "with SMs", SMS),
    Rule("l2.read_bytes_per_s", "with sm_load and SMs, or L2's size where rules.toml says l2_by_size", _l2_read),
    Rule("l2.hit_latency_cycles", "rules.toml's cycles for each SM more or less", _l2_latency),
    Rule("l2.far_latency_cycles", "as much above hit_latency", _above_l2("l2.far_latency_cycles")),
    Rule("dram.latency_cycles", "as much above l2.hit_latency", _above_l2("dram.latency_cycles")),
    Rule(
        "pipes.tensor.issue_interval_cycles",
        "by the tensor peak a SM and cycle, to a power of two",
        lambda pair: pair.old("pipes.tensor.issue_interval_cycles") * _slower(pair),
    ),
    Rule("mma.half_accumulator_share", "FP16 accumulators keep their rate", _share),
    _scaled("peak.fp32_flops", _PEAK, SMS, BOOST),
    _scaled("peak.fp64_flops", _PEAK, SMS, BOOST),
    _scaled("peak.fp16_flops", _PEAK, SMS, BOOST),
    _tensor_peak("peak.tensor_fp16_flops"),
    _tensor_peak("peak.tensor_bf16_flops"),
    _tensor_peak("peak.tensor_tf32_flops"),
    _scaled("peak.tensor_fp64_flops", _PEAK, SMS, BOOST),
    _scaled("peak.tensor_int8_ops", _PEAK, SMS, BOOST),
)


# Rules divide by these numbers of a data sheet, or by their ratio to the other GPU's.
_DIVIDED_BY = ("sm.count", "clock.sm_boost_hz", "peak.tensor_fp16_flops")


def derive(
    like: str, given: Mapping[str, Value], then: Mapping[str, Value], shared: Mapping[str, Value], constants: Constants
) -> dict[str, Value]:
    """Return the values of a GPU that is like another: those `given`, and those that follow by RULES.

    like       name of the other GPU
    given      what the GPU's own file says
    then       all values of the other GPU that it does not share with its architecture
    shared     what the architecture says, for rules that need it

    Raises GemmsimError for a number of the data sheet from which nothing can follow.
    """
    for key in _DIVIDED_BY:
        if key in given and not 0 < _number(given[key]) < math.inf:
            raise GemmsimError(f"{key} must be above 0, not {_number(given[key]):g}")
    now = dict(given)
    rules = {rule.key: rule for rule in RULES}
    for rule in RULES:
        old = then.get(rule.key, shared.get(rule.key))
        if rule.key in given or old is None:
            continue
        value = rule.value(Pair(now, {**shared, **then}, constants))
        if rule.key in then or value != old.value:
            now[rule.key] = _follows(like, old, value, rule.words)
    for key, old in then.items():
        if key not in now and key not in rules:
            source = f"that of {like}, where it is {old.status}: {old.source}"
            now[key] = replace(old, source=source, status="copied", found_on=())
    return now


def _follows(like: str, old: Value, value: object, words: str) -> Value:
    if value == old.value:
        source = f"that of {like} by the rule '{words}', there {old.status}: {old.source}"
        return replace(old, source=source, status="copied", found_on=())
    source = f"{words}; {like} has {shown(old.key, old.value)}, {old.status}"
    return replace(old, value=value, source=source, status="scaled", found_on=(), records=())
