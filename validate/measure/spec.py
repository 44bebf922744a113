"""Reads what to measure from text: `kernel[:dtype][:tunable=value,...]@size[,size]`, where a size is N or MxNxK."""

from __future__ import annotations

from dataclasses import dataclass, field

from gemmsim.support.errors import GemmsimError

CUBLAS = "cublas"


@dataclass(frozen=True)
class Spec:
    """One case to measure; `counters` says whether Nsight Compute profiles it too."""

    kernel: str
    m: int
    n: int
    k: int
    dtype: str | None = None
    tunables: dict[str, int] = field(default_factory=dict)
    counters: bool = True


def parse_spec(text: str) -> list[Spec]:
    """Return the cases that a text names: `tiled:f64:tile=16@256,1000x500x77` names two.

    A case whose size ends in `t` is only timed. Raises GemmsimError for a text of another form.
    """
    what, at, sizes = text.partition("@")
    kernel, *options = what.split(":")
    if not at or not kernel or not sizes:
        raise GemmsimError(f"'{text}' is no case: write kernel[:dtype][:tunable=value,...]@size[,size], tiled@256,1024")
    dtype, tunables = None, {}
    for option in options:
        if "=" not in option:
            dtype = option
            continue
        for pair in option.split(","):
            name, _, value = pair.partition("=")
            if not value.isdigit():
                raise GemmsimError(f"'{text}': {pair} is no tunable=number")
            tunables[name] = int(value)
    return [Spec(kernel, *_size(text, size), dtype, tunables, not size.endswith("t")) for size in sizes.split(",")]


def _size(text: str, size: str) -> tuple[int, int, int]:
    numbers = size.removesuffix("t").split("x")
    if len(numbers) not in (1, 3) or not all(number.isdigit() and int(number) > 0 for number in numbers):
        raise GemmsimError(f"'{text}': '{size}' is no size: write N or MxNxK")
    m, n, k = (int(number) for number in (numbers if len(numbers) == 3 else numbers * 3))
    return m, n, k


def case_id(kernel: str, dtype: str, tunables: dict[str, int], m: int, n: int, k: int) -> str:
    """Return the id of a record, unique among its GPU's records, such as "tiled-f32-tile=16-256x256x256"."""
    chosen = ",".join(f"{name}={value}" for name, value in tunables.items())
    return "-".join(part for part in (kernel, dtype, chosen, f"{m}x{n}x{k}") if part)
