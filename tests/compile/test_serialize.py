"""Program <-> bytes."""

from __future__ import annotations

import dataclasses
import lzma
import time
from functools import cache

import pytest
from cubins import zoo
from hypothesis import given
from hypothesis import strategies as st

from gemmsim.isa.program import Program
from gemmsim.isa.serialize import MAGIC, program_from_bytes, programs_to_bytes
from gemmsim.support.errors import GemmsimError


@pytest.mark.parametrize("arch", ["sm_75", "sm_120"])
def test_round_trip_is_exact(arch: str) -> None:
    program = zoo(arch).program
    again = program_from_bytes(programs_to_bytes([program]))
    assert again == program
    assert programs_to_bytes([again]) == programs_to_bytes([program])
    # equal under == is not enough: types must survive too
    assert type(again.instructions[0].operands[0].kind) is type(program.instructions[0].operands[0].kind)
    assert all(isinstance(bank, int) for bank in again.constants)


def test_every_field_is_stored() -> None:
    """A field added to Program and forgotten here would come back as its default."""
    program = zoo("sm_80").program
    marked = dataclasses.replace(
        program, name="n", toolchain={"t": "1"}, constants={4: b"\0\1"}, max_threads=7, global_data=b"\xff"
    )
    again = program_from_bytes(programs_to_bytes([marked]))
    for field in dataclasses.fields(Program):
        assert getattr(again, field.name) == getattr(marked, field.name), field.name


def test_loading_is_fast() -> None:
    data = programs_to_bytes([zoo("sm_90").program])
    count = len(zoo("sm_90").program.instructions)
    assert count > 500
    best = min(_seconds(data) for _ in range(5))
    assert best < 0.030 * count / 500


def _seconds(data: bytes) -> float:
    start = time.process_time()
    program_from_bytes(data)
    return time.process_time() - start


def test_other_versions_and_other_files_are_refused() -> None:
    data = stored()
    newer = MAGIC + bytes([data[len(MAGIC)] + 1]) + data[len(MAGIC) + 1 :]
    for other in (newer, b"PK\3\4"):
        with pytest.raises(GemmsimError, match="not stored programs of this version"):
            program_from_bytes(other)
    body = b'[{"name": 1}]'
    with pytest.raises(GemmsimError, match="damaged"):
        program_from_bytes(data[: len(MAGIC) + 1] + lzma.compress(len(body).to_bytes(8, "little") + body))


@cache
def stored() -> bytes:
    return programs_to_bytes([zoo("sm_80").program])


@given(st.floats(0, 1, exclude_max=True))
def test_truncation_is_one_clear_line(part: float) -> None:
    with pytest.raises(GemmsimError) as caught:
        program_from_bytes(stored()[: int(part * len(stored()))])
    assert "\n" not in str(caught.value)
