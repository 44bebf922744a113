"""Says for each micro-operation on lanes what the differences of its results depend on.

In general they depend on the differences and on the values of all operands. For sums they do not depend on values,
which lets one computation serve all lanes and all iterations of a loop. Some results, such as carries, comparisons and
high words, are seldom different at all: they are monotonic in each operand, so they are equal in all blocks if they are
equal at the least and the largest values of the operands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gemmsim.isa.lanes import WIDTH_BITS
from gemmsim.isa.semantics.operations import load
from gemmsim.isa.semantics.registry import Op
from gemmsim.support.identity_cache import cached_by_identity
from gemmsim.support.warp import WARP_LANES
from gemmsim.trace import micro
from gemmsim.trace.engine.differences import words
from gemmsim.trace.lower.context import MicroProgram

_SINK_ROWS = 8  # rows that follow the row of all ones; what is written there is never read


@dataclass(frozen=True)
class _Rule:
    """What is known of one operation. Sources and results are named by row: 64-bit ones have two, the low one first.

    needs    for a source row, the source rows whose difference makes its value matter; none for others
    checked  result rows that are monotonic in each source row; the others are linear
    signed   source rows whose values are signed; as such they must not overflow where results are checked
    exact    source rows whose difference makes the values of all rows matter, where results are checked
    limits   for a source row, how many bits it may have where results are checked, if fewer than 32
    """

    needs: dict[int, tuple[int, ...]] = field(default_factory=dict)
    checked: tuple[int, ...] = ()
    signed: tuple[int, ...] = ()
    exact: tuple[int, ...] = ()
    limits: dict[int, int] = field(default_factory=dict)


_SUM, _PRODUCT = _Rule(), _Rule({0: (1,), 1: (0,)})


def _rule_of(name: str, immediates: list[int]) -> _Rule | None:
    """Return the rule of an operation; None where its results depend on the values of all operands."""
    if name in ("mov", "mov64", "iadd3", "address32"):
        return _SUM
    if name in ("sel", "sel64"):
        p = 2 if name == "sel" else 4
        return _Rule({p: tuple(range(p + 1)), **dict.fromkeys(range(p), (p,))})
    if name == "extend":
        return _Rule(checked=(1,), signed=(0,) if immediates[0] else ())
    if name == "imad":
        return _PRODUCT
    if name == "iadd3_carry":
        return _Rule(checked=(1, 2), exact=(3, 4))
    if name in ("iadd64", "address64"):
        return _Rule(checked=(1,), exact=(1, 3, 5))
    if name == "imad_carry":
        return _Rule(_PRODUCT.needs, checked=(1,), exact=(0, 1, 3))
    if name in ("imad_wide_u32", "imad_wide_s32"):
        return _Rule(_PRODUCT.needs, checked=(1,), signed=(0, 1) if name.endswith("s32") else (), exact=(3,))
    if name == "imad_wide_carry":
        return _Rule(_PRODUCT.needs, checked=(1, 2), signed=(0, 1) if immediates[0] else (), exact=(3, 4))
    if name == "imad_hi":
        return _Rule(checked=(0, 1), signed=(0, 1) if immediates[0] else (), exact=(3,))
    return _shift_rule(name, immediates)


def _shift_rule(name: str, immediates: list[int]) -> _Rule | None:
    if name in ("lea", "lea_x"):
        return _Rule(checked=(1,), exact=() if name == "lea" else (0, 2), limits={0: 32 - immediates[0]})
    if name == "lea_hi":
        return _Rule(checked=(0, 1), exact=(1, 2, 3))
    if name == "lea_hi_sx32":
        return _Rule(checked=(0, 1), signed=(0,), exact=(1, 2))
    if name == "shf_l" and immediates[2]:
        return _Rule(checked=(0,), exact=(1, 2))
    if name == "shf_l":
        return _Rule({0: (1,), 1: (0, 1, 2), 2: (1,)})
    if name in ("shf_r_u", "shf_r_s") and immediates[2]:
        return _Rule(checked=(0,), signed=(2,) if name == "shf_r_s" else (), exact=(1,))
    if name in ("shf_r_u", "shf_r_s"):  # the low word of the result comes round again where the high word grows
        return _Rule(checked=(0,), exact=(1, 2))
    if name in ("setp_lt_u32", "setp_lt_s32"):
        return _Rule(checked=(0, 1), signed=(0, 1) if name.endswith("s32") else (), exact=(2,))
    if name in ("setp_ex_lt_u32", "setp_ex_lt_s32"):
        return _Rule(checked=(0, 1), signed=(0, 1) if name.endswith("s32") else (), exact=(2, 3))
    return None


@cached_by_identity(8)
def rules_of(program: MicroProgram) -> NDArray[np.int64]:
    """Return the rule of each micro-operation as the compiled code reads it: int64 [micro-operations, RULE_WORDS]."""
    operations = list(load().values())
    sink = sink_of(program)
    table = np.zeros((len(program.code), words.RULE_WORDS), np.int64)
    for row, code in zip(table, program.code.tolist(), strict=True):
        if code[micro.OP] < len(operations):
            _fill(row, code, operations[code[micro.OP]], sink)
    return table


def sink_of(program: MicroProgram) -> range:
    """Return the rows to which results are written that nobody reads."""
    return range(program.ones + 1, program.ones + 1 + _SINK_ROWS)


def _fill(row: NDArray[np.int64], code: list[int], op: Op, sink: range) -> None:
    sources = [
        at
        for number, type_ in enumerate(op.sources)
        for at in _offsets(code[micro.SOURCE + micro.SOURCE_COLUMNS * number], type_)
    ]
    results = [at for number, type_ in enumerate(op.results) for at in _offsets(code[micro.RESULT + number], type_)]
    rule = _rule_of(op.name, code[micro.IMMEDIATE : micro.IMMEDIATE + op.immediates])
    everything = (1 << len(sources)) - 1
    used = [number for number, at in enumerate(results) if at // WARP_LANES not in sink]
    row[words.SOURCES], row[words.RESULTS_COUNT] = len(sources), len(used)
    row[words.SOURCE_AT : words.SOURCE_AT + len(sources)] = sources
    row[words.RESULT_AT : words.RESULT_AT + len(used)] = [results[number] for number in used]
    row[words.LIMIT_BITS : words.LIMIT_BITS + words.MAX_SOURCE_ROWS] = 32
    row[words.BITWISE] = op.name.startswith("lop3") and used == [0]
    if used == [0]:
        of_bits, of_low = op.name.startswith("lop3") or op.name == "prmt", op.name in ("mov", "iadd3", "imad")
        row[words.HALVES] = words.FROM_BITS if of_bits else words.FROM_LOW if of_low else 0
        row[words.FIXED] = _bits((1,)) if op.name == "prmt" else 0
    if rule is None:
        row[words.NEEDS : words.NEEDS + len(sources)] = everything
        return
    for source, needed_by in rule.needs.items():
        row[words.NEEDS + source] = _bits(needed_by)
    for source, bits in rule.limits.items():
        row[words.LIMIT_BITS + source] = bits
    row[words.CHECKED] = _bits(place for place, number in enumerate(used) if number in rule.checked)
    row[words.SIGNED], row[words.EXACT_IF] = _bits(rule.signed), _bits(rule.exact)


def _bits(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in numbers)


def _offsets(word_offset: int, type_: str) -> list[int]:
    """Return the word offsets of the rows of an operand."""
    wide = type_ != "pred" and WIDTH_BITS[type_] == 64
    return [word_offset, word_offset + WARP_LANES] if wide else [word_offset]
