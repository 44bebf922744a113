"""Words of shared memory that nobody wrote are told where a thread uses the register, and not before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from opcode_harness import program

from gemmsim.trace.execute import Executor
from gemmsim.trace.sanitize import sanitize
from gemmsim.trace.sanitizer.findings import Defect, Finding
from gemmsim.trace.types import Launch

# Thread t loads the 16 bytes from 16 t on, of which it has written the first four; R1 is zero.
OWN = ["S2R R0, SR_TID.X", "IMAD.SHL.U32 R2, R0, 0x10, RZ", "STS [R2], R0", "LDS.128 R4, [R2]"]
FROM_FIVE = "ISETP.GE.AND P0, PT, R0, 0x5, PT"


def found(*texts: str, blocks: int = 1, threads: int = 32) -> tuple[Finding, ...]:
    launch = Launch((blocks, 1, 1), (threads, 1, 1), ())
    return sanitize(Executor(program([*texts], "sm_90"), launch, sanitizing=True), range(blocks)).findings


def test_words_that_nobody_uses_are_silent() -> None:
    assert found(*OWN, "IADD3 R8, R4, R4, RZ", "STS [R2], R8") == ()
    assert found("LDS RZ, [R1]") == ()


@pytest.mark.parametrize("register", ["R5", "R6", "R7"])
def test_a_word_that_is_used_is_told_once_with_its_load(register: str) -> None:
    (one,) = found(*OWN, f"MOV R8, {register}", f"IADD3 R9, {register}, R4, RZ")
    assert (one.defect, one.at.does, one.at.instruction.opcode) == (Defect.UNINITIALISED, "reads", "LDS")
    assert (one.address, one.width_bytes, one.at.thread, one.count) == (0, 16, (0, 0, 0), 32)


@pytest.mark.parametrize(
    "use",
    [
        "STS.64 [R2], R4",  # a pair, of which the other half is written
        "STS.128 [R2], R4",
        "DADD R8, R4, R8",
        "IMAD.WIDE R8, R0, 0x4, R4",
        "STS [R5], R0",  # an address
        "SHFL.IDX PT, R8, R5, 0x1, 0x1f",
        "ISETP.NE.AND P1, PT, R5, RZ, PT",  # before a vote
        "R2UR UR4, R5",
        "PRMT R8, R4, 0x5410, R6",
        "HMMA.16816.F32 R12, R4, R20, R12",
        "HMMA.16816.F32 R12, R20, R4, R12",
        "HMMA.16816.F32 R12, R20, R24, R4",
        "SEL R8, R4, R5, P1",
    ],
)
def test_what_counts_as_a_use(use: str) -> None:
    assert {one.defect for one in found(*OWN, use)} >= {Defect.UNINITIALISED}


def test_threads_that_do_not_use_the_word_do_not_count() -> None:
    """Under a guard, and on a path, those from the fifth on."""
    (one,) = found(*OWN, FROM_FIVE, "@P0 MOV R8, R5")
    assert (one.address, one.at.thread, one.count) == (16 * 5, (5, 0, 0), 27)
    (one,) = found(*OWN, FROM_FIVE, "@!P0 EXIT", "MOV R8, R5")
    assert (one.address, one.at.thread, one.count) == (16 * 5, (5, 0, 0), 27)
    assert found(*OWN, "@P0 MOV R8, R5") == ()


def test_a_register_that_is_overwritten_has_been_written() -> None:
    assert found(*OWN, "MOV R5, R0", "MOV R8, R5") == ()
    assert found(*OWN, "LDS R5, [R2]", "MOV R8, R5") == ()
    # For the threads that overwrite it
    (one,) = found(*OWN, FROM_FIVE, "@P0 MOV R5, R0", "MOV R8, R5")
    assert (one.at.thread, one.count) == ((0, 0, 0), 5)
    # By another word that nobody wrote
    (one,) = found(*OWN, "LDS.64 R4, [R2+0x8]", "MOV R8, R4")
    assert (one.address, one.width_bytes) == (8, 8)


def test_threads_that_load_from_one_address_count_as_one_and_any_of_them_may_use_it() -> None:
    together = ["S2R R0, SR_TID.X", "LDS.64 R4, [R1]", FROM_FIVE]
    for register in ("R4", "R5"):
        (one,) = found(*together, f"@P0 MOV R8, {register}")
        assert (one.at.thread, one.count) == ((5, 0, 0), 1)


def test_a_block_begins_without_what_the_block_before_loaded() -> None:
    """The branch leads block 0 to the load and block 1 to the use."""
    texts = ["S2R R3, SR_CTAID.X", "ISETP.NE.AND P0, PT, R3, RZ, PT", "@P0 BRA `(0x50)", "LDS R5, [R1]", "EXIT"]
    assert found(*texts, "MOV R8, R5", blocks=2) == ()


def test_a_function_without_code_reads_its_arguments() -> None:
    """The return address is the EXIT behind the call; the format is a null pointer, so that nothing is printed."""
    texts = ["LDS.128 R4, [R1]", "MOV R20, 0x40", "MOV R21, RZ", "CALL.ABS.NOINC `(0x50)"]
    code = replace(program(texts, "sm_90"), externals=("vprintf",))
    outcome = sanitize(Executor(code, Launch((1, 1, 1), (32, 1, 1), ()), sanitizing=True), [0])
    assert {one.defect for one in outcome.findings} == {Defect.UNINITIALISED}


def test_a_race_on_a_word_that_nobody_uses_is_one() -> None:
    """The other warp stores to all that is loaded, in turn with no barrier between."""
    texts = ["S2R R0, SR_TID.X", "ISETP.GE.AND P0, PT, R0, 0x20, PT", "@!P0 STS.128 [R1], R8", "@P0 LDS.128 R4, [R1]"]
    assert {one.defect for one in found(*texts, threads=64)} == {Defect.RACE}


def test_what_no_thread_can_hold_in_a_register_is_told_at_once() -> None:
    """LDSM's words go to other lanes than those that give the addresses; an atomic operation changes the word."""
    assert {one.defect for one in found("LDSM.16.M88 R4, [R1]")} == {Defect.UNINITIALISED}
    assert {one.defect for one in found("ATOMS.ADD RZ, [R1], R2")} == {Defect.UNINITIALISED}


@pytest.mark.parametrize("text", ["BAR.SYNC 0x0", "WARPSYNC.ALL", "BSSY B0, `(0x20)", "VOTE.ALL R8, PT, PT"])
def test_instructions_that_read_no_register_use_none(text: str) -> None:
    assert found("LDS R0, [R1]", text) == ()
