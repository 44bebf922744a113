"""Forms of matrix, atomic and conversion instructions against an H200, word by word.

`tests/records/h200_forms.npz` holds what each form's kernel left in memory on an H200 (driver API, one warp, the words
that `gemmsim_validate.forms.inputs` draws; the cubins were made by NVRTC 13.5 for sm_90).
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matrix_twin import BITS, c_places, cut_sum, cut_to_single, matrix_a, matrix_b, sparse_a, to_half

pytest.importorskip("cuda.bindings")

from gemmsim_validate.forms.bundle import Compiled, read_outputs
from gemmsim_validate.forms.form import Form
from gemmsim_validate.forms.inputs import draw
from gemmsim_validate.forms.simulate import all_forms, executed, together

RECORD = Path(__file__).parents[1] / "records" / "h200_forms.npz"
MEASURED_BLOCKS = 16  # so many were measured; the record holds the first
_FLOAT_SUM = re.compile(r"m(\d+)n8k(\d+)\.row\.col\.(f32|f16)\.(\w+)\.(\w+)\.")


@cache
def results() -> dict[str, tuple[Form, np.ndarray, np.ndarray, np.ndarray]]:
    """{name: (form, words that the kernel read, what gemmsim and what the H200 left)}, of one warp each."""
    measured = read_outputs(RECORD)
    forms = [form for form in all_forms() if form.name in measured]
    assert len(forms) == len(measured) > 150
    found = {}
    for form, program in zip(forms, together(forms, "sm_90"), strict=True):
        given = draw(form, MEASURED_BLOCKS)[:1]
        found[form.name] = (form, given[0], executed(program, Compiled(form, b"", given))[0], measured[form.name][0])
    return found


def test_every_form_is_equal() -> None:
    assert [name for name, (*_, ours, theirs) in results().items() if (ours != theirs).any()] == []


@pytest.mark.parametrize("accumulator", ["f32", "f16"])
def test_the_twin_sums_as_the_h200_does(accumulator: str) -> None:
    tried = 0
    for name, (form, given, _, theirs) in results().items():
        found = _FLOAT_SUM.search(name)
        if not found or found[3] != accumulator or found[4] not in ("f16", "bf16", "tf32"):
            continue
        tried += 1
        rows, depth, kind = int(found[1]), int(found[2]), found[4]
        sparse = "sp::" in name
        registers_a = rows * depth * BITS[kind] // (2048 if sparse else 1024)
        registers_b = 8 * depth * BITS[kind] // 1024
        before_c, a = registers_a + registers_b, given[:, :registers_a]
        left = sparse_a(a, kind, depth, given[:, -1], int(name[-1])) if sparse else matrix_a(a, kind, rows, depth)
        right = matrix_b(given[:, registers_a:before_c], kind, depth)
        type_, bits = (np.float32, np.uint32) if accumulator == "f32" else (np.float16, np.uint16)
        own = np.ascontiguousarray(given[:, before_c : before_c + form.words]).view(type_)
        other = np.ascontiguousarray(theirs).view(bits)
        for lane, places in enumerate(c_places(rows)):
            for i, (row, column) in enumerate(places):
                pairs = [(x, right[k, column]) for k, x in enumerate(left[row]) if x is not None]
                total = cut_sum(pairs, float(own[lane, i]), (kind, kind, accumulator))
                expected = cut_to_single(total) if accumulator == "f32" else to_half(total)
                assert other[lane, i] == expected, (name, lane, i)
    assert tried >= (15 if accumulator == "f32" else 6)
