"""Operations on mbarriers (SYNCS, ARRIVES) from text, against a twin that follows the PTX ISA."""

from __future__ import annotations

import numpy as np
import pytest
from mbarrier_twin import Mbarrier
from opcode_harness import run

from gemmsim.support.errors import GemmsimError

LANES = np.arange(32)


def after(text: str | list[str], barrier: Mbarrier, **given: object) -> tuple[tuple[int, int], dict[str, np.ndarray]]:
    """The mbarrier's words after instructions of all lanes at once, and all registers; its address is in R2."""
    low, high = barrier.words
    lines = [text] if isinstance(text, str) else text
    held = {"R20": low, "R21": high}
    found = run(["STS.64 [R2], R20", *lines, "LDS.64 R24, [R2]"], R2=64, **held, **given)
    return (int(found["R24"][0]), int(found["R25"][0])), found


def test_init_is_what_the_compiler_writes() -> None:
    """mbarrier.init with n arrivals stores (2**20 - n) << 1 and, in the high word, (2**20 - n) << 11."""
    n = 7
    found = run(
        ["SYNCS.EXCH.64 URZ, [UR4], UR6", "LDS.64 R24, [UR4]"],
        UR4=64, UR6=((1 << 20) - n) << 1, UR7=((1 << 20) - n) << 11,
    )  # fmt: skip
    assert (int(found["R24"][0]), int(found["R25"][0])) == Mbarrier(n).words


@pytest.mark.parametrize(
    ("text", "register", "step"),
    [
        ("SYNCS.ARRIVE.TRANS64.A1T0 R4, [R2+URZ], RZ", 0, lambda b: b.arrive()),
        ("SYNCS.ARRIVE.TRANS64.ART0 R4, [R2+URZ], R8", 3, lambda b: b.arrive(3)),
        ("SYNCS.ARRIVE.TRANS64 R4, [R2+URZ], R8", 512, lambda b: b.arrive(1, 512)),
        ("SYNCS.ARRIVE.TRANS64.RED.A0TR RZ, [R2+URZ], R8", 512, lambda b: b.arrive(0, 512)),
        ("SYNCS.ARRIVE.TRANS64.RED.A0T1 RZ, [R2+URZ], RZ", 0, lambda b: b.arrive(0, 1)),
        ("SYNCS.ARRIVE.TRANS64.RED.A0TX RZ, [R2+URZ], R8", 48, lambda b: b.complete(48)),
        ("SYNCS.ARRIVE.TRANS64.OPTOUT.A1T0 RZ, [R2+URZ], RZ", 0, lambda b: b.arrive(1, drop=True)),
        ("ARRIVES.LDGSTSBAR.64.ARVCNT [R2]", 0, lambda b: b.arrive()),
        ("ARRIVES.LDGSTSBAR.64.TRANSCNT [R2]", 0, lambda b: b.complete(1)),
    ],
)
@pytest.mark.parametrize("barrier", [(200, 200, 0), (50, 20, 0), (40, 32, 0), (33, 96, 0), (64, 5, 1536), (32, 32, 32)])
def test_each_lane_arrives(text: str, register: int, step, barrier: tuple[int, int, int]) -> None:  # type: ignore[no-untyped-def]
    twin, states = Mbarrier(*barrier), []
    words, registers = after(text, Mbarrier(*barrier), R8=register)
    for _ in LANES:
        states.append(twin.words)
        step(twin)
    assert words == twin.words
    if " R4," in text:  # the token of each lane is the state before its arrival
        assert list(zip(registers["R4"].tolist(), registers["R5"].tolist(), strict=True)) == states


@pytest.mark.parametrize(("form", "words", "plus"), [("", 1, 0), (".64", 2, 0), (".128", 4, 0), ("", 1, 0x100)])
def test_an_asynchronous_store_tells_its_mbarrier_how_many_bytes_have_come(form: str, words: int, plus: int) -> None:
    twin = Mbarrier(1, 1, 32 * 16)
    given = {f"R{8 + word}": 1000 * word + LANES for word in range(words)}
    loads = [f"LDS R{40 + word}, [R30+{4 * word + plus:#x}]" for word in range(words)]
    text = f"STAS{form} [R30.64{f'+{plus:#x}' if plus else ''}], R8"
    state, registers = after([text, *loads], Mbarrier(1, 1, 32 * 16), R30=256 + 16 * LANES, R31=64, **given)
    for _ in LANES:
        twin.complete(4 * words)
    assert state == twin.words
    for word in range(words):
        assert registers[f"R{40 + word}"].tolist() == (1000 * word + LANES).tolist()


@pytest.mark.parametrize(
    ("form", "words", "expected"),
    [
        (".ADD", 1, 100 + LANES),
        (".MIN.S32", 1, np.minimum(100, LANES)),
        (".MAX", 1, np.maximum(100, LANES)),
        (".XOR", 1, 100 ^ LANES),
        (".INC", 1, np.zeros(32, int)),  # 100 is more than any lane's bound
        (".ADD.64", 2, 100 + LANES),
    ],
)
def test_an_asynchronous_reduction_does_so_too(form: str, words: int, expected: np.ndarray) -> None:
    twin = Mbarrier(1, 1, 32 * 8)
    lines = ["STS.64 [R30], R10", f"REDAS{form} [R30.64], R8", "LDS.64 R40, [R30]"]
    state, registers = after(lines, Mbarrier(1, 1, 32 * 8), R30=256 + 8 * LANES, R31=64, R8=LANES, R10=100)
    for _ in LANES:
        twin.complete(4 * words)
    assert state == twin.words
    assert registers["R40"].tolist() == expected.tolist() and not registers["R41"].any()


@pytest.mark.parametrize("form", ["", ".TRYWAIT"])
@pytest.mark.parametrize(("phase", "parity"), [(0, 1), (1, 0), (6, 1), (7, 0)])
def test_a_phase_is_complete_when_the_parity_has_changed(form: str, phase: int, parity: int) -> None:
    text = f"SYNCS.PHASECHK.TRANS64{form} P1, [R2+URZ], R8"
    _, registers = after(text, Mbarrier(4, 4, 0, phase), R8=parity << 31)
    assert (registers["P1"] != 0).all()


def test_a_test_of_a_phase_goes_on_and_a_wait_gives_up_in_the_end() -> None:
    """Both find the phase under way; the only warp cannot get further by waiting, so that try_wait's limit ends."""
    for form in ("", ".TRYWAIT"):
        lines = [f"SYNCS.PHASECHK.TRANS64{form} P1, [R2+URZ], R8", "SEL R10, R11, R12, P1"]
        _, registers = after(lines, Mbarrier(4), R8=0, R11=1, R12=2, P1=True)
        assert (registers["R10"] == 2).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SYNCS.ARRIVE.TRANS64.TMASK.ART0 R4, [R2+URZ], R8", "modifier .TMASK"),
        ("SYNCS.PHASECHK.TRANS64.NEW P1, [R2+URZ], R8", "modifier .NEW"),
        ("SYNCS.EXCH.64 R4, [R2], R8", "old state"),
        ("SYNCS.LD R4, [R2]", "operation on an mbarrier"),
        ("STAS [R2.64+UR4], R8", "address form"),
        ("REDAS.ADD.F32 [R2.64+0x10], R8", "address form"),
        ("ARRIVES.LDGSTSBAR.32 [R2]", "modifier .32"),
    ],
)
def test_what_has_no_semantics_is_refused(text: str, message: str) -> None:
    with pytest.raises(GemmsimError, match=message):
        run(text)


@pytest.mark.parametrize(("place", "message"), [(4, "misaligned"), (1 << 20, "leaves the")])
def test_an_mbarrier_lies_in_shared_memory(place: int, message: str) -> None:
    with pytest.raises(GemmsimError, match=message):
        run("SYNCS.ARRIVE.TRANS64.A1T0 R4, [R2+URZ], RZ", R2=place)
