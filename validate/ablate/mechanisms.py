"""Lists the mechanisms of the timing model that can be switched off: those of `mechanisms.toml` and of SWITCHES."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from gemmsim.support.errors import GemmsimError, nearest

from .switch import (
    Switch,
    control_bits,
    costs,
    even_tag_banks,
    gpu_numbers,
    lines_apart,
    no_bank_conflicts,
    no_dram,
    no_l1_hits,
    none_in_flight,
    none_merged,
    one_tag_cycle,
    options,
)

FILE = Path(__file__).with_name("mechanisms.toml")
# The switches of those mechanisms that cannot be switched off by changing numbers of the GPU.
SWITCHES: dict[str, Switch] = {
    "stall-counts": control_bits(lambda control: replace(control, stall_cycles=1)),
    "yield-hints": control_bits(lambda control: replace(control, yield_hint=False)),
    "scoreboards": control_bits(lambda control: replace(control, wait_mask=0)),
    "register-ports": options(lambda given: replace(given, register_ports=False)),
    "oldest-block-first": options(lambda given: replace(given, oldest_block_first=False)),
    "math-behind-barriers": options(lambda given: replace(given, math_behind_barriers=False)),
    "tag-stage": costs(one_tag_cycle),
    "tag-banks": costs(even_tag_banks),
    "bank-conflicts": costs(no_bank_conflicts),
    "l1-hits": costs(no_l1_hits),
    "lines-under-way": lines_apart,
    "merged-requests": costs(none_merged),
    "dram": costs(no_dram),
    "dram-in-flight": costs(none_in_flight),
}


@dataclass(frozen=True)
class Mechanism:
    """One mechanism of the timing model.

    key      its name on the command line
    models   what the hardware does, in a line
    without  what holds when the mechanism is switched off
    switch   the function that switches it off
    """

    key: str
    models: str
    without: str
    switch: Switch


def _read() -> tuple[Mechanism, ...]:
    table = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return tuple(
        Mechanism(key, row["models"], row["without"], gpu_numbers(row["gpu"]) if "gpu" in row else SWITCHES[key])
        for key, row in table.items()
    )


MECHANISMS = _read()
BY_KEY = {mechanism.key: mechanism for mechanism in MECHANISMS}


def chosen(keys: tuple[str, ...]) -> tuple[Mechanism, ...]:
    """Return the mechanisms with these keys, or all mechanisms where no key is given, in the order of the TOML file.

    Raises GemmsimError for a key that is unknown.
    """
    for key in keys:
        if key not in BY_KEY:
            raise GemmsimError(f"unknown mechanism '{key}'{nearest(key, BY_KEY)}: known are {', '.join(BY_KEY)}")
    return tuple(mechanism for mechanism in MECHANISMS if not keys or mechanism.key in keys)
