"""Packed and saturating integers, exchanges, special registers and control against results worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from opcode_harness import ALL, f32, one, run

from gemmsim.support.errors import GemmsimError

T, F = True, False
M = 0x80000000

CASES = [
    ("VIADD.16x2 R0, R1, R2", {"R1": 0x0001FFFF, "R2": 0x00020001}, {"R0": 0x00030000}),  # no carry between halves
    ("VIADD.16x2 R0, R1, -R2", {"R1": 0x00050001, "R2": 0x00020002}, {"R0": 0x0003FFFF}),
    ("VIADD.U8x4 R0, R1, -R2", {"R1": 0x05040302, "R2": 0x01010103}, {"R0": 0x040302FF}),
    ("VIADD.S32.ISAT R0, R1, R2", {"R1": 0x7FFFFFFF, "R2": 1}, {"R0": 0x7FFFFFFF}),
    ("VIADD.S32.ISAT R0, R1, -R2", {"R1": 0, "R2": M}, {"R0": 0x7FFFFFFF}),
    ("VIADD.S32.ISAT R0, R1, R2", {"R1": M, "R2": ALL}, {"R0": M}),
    ("VIADD.S32.ISAT R0, R1, R2", {"R1": 3, "R2": 4}, {"R0": 7}),
    ("VIMNMX.S16x2 R0, R1, R2, PT", {"R1": 0xFFFF0001, "R2": 0x00017FFF}, {"R0": 0xFFFF0001}),
    ("VIMNMX.U16x2 R0, R1, R2, PT", {"R1": 0xFFFF0001, "R2": 0x00017FFF}, {"R0": 0x00010001}),
    ("VIMNMX.S16x2.RELU R0, R1, R2, !PT", {"R1": 0xFFFF0001, "R2": 0x80000007}, {"R0": 7}),
    ("VIMNMX.U8x4 R0, R1, R2, !PT", {"R1": 0x01FF0380, "R2": 0x0201047F}, {"R0": 0x02FF0480}),
    ("VIMNMX.U32 R0, PT, PT, R1, R2, !PT", {"R1": 5, "R2": ALL}, {"R0": ALL}),  # as sm_100 prints it
    ("VIMNMX R0, PT, PT, R1, R2, PT", {"R1": 5, "R2": ALL}, {"R0": ALL}),
    ("VIMNMX.RELU R0, R1, R2, PT", {"R1": ALL, "R2": 5}, {"R0": 0}),
    ("VIMNMX3 R0, R1, R2, R3, PT", {"R1": 5, "R2": ALL, "R3": 7}, {"R0": ALL}),
    ("VIMNMX3.U32 R0, R1, R2, R3, !PT", {"R1": 5, "R2": ALL, "R3": 7}, {"R0": ALL}),
    ("IADD.64 R0, P0, R2, R4", {"R2": ALL, "R3": ALL, "R4": 1, "R5": 0}, {"R0": 0, "R1": 0, "P0": T}),
    ("IADD.64.X R0, R2, R4, P0", {"R2": ALL, "R3": 0, "R4": 0, "P0": T}, {"R0": 0, "R1": 1}),
    ("IADD.64 RZ, P0, R2, -R4", {"R2": 5, "R4": 6}, {"P0": F}),  # a borrow
    ("IDP.2A.LO.S16.S8 R0, R1, R2, R3", {"R1": 0x0002FFFF, "R2": 0x0000FE03, "R3": 1}, {"R0": ALL - 5}),  # -3 - 4 + 1
    ("IDP.2A.HI.U16.U8 R0, R1, R2, R3", {"R1": 0x0002FFFF, "R2": 0x02010000, "R3": 0}, {"R0": 0x10003}),
    ("VABSDIFF4.U8.ACC R0, R1, R2, R3", {"R1": 0x01020304, "R2": 0x04030201, "R3": 10}, {"R0": 18}),
    ("VABSDIFF4.U8 R0, R1, R2, R3", {"R1": 0x01FF0304, "R2": 0x04000201, "R3": 10}, {"R0": 0x03FF0103}),
    ("FLO R0, R1", {"R1": 0xFFFFFF7F}, {"R0": 7}),  # the highest bit unlike the sign
    ("FLO.SH R0, R1", {"R1": ALL}, {"R0": ALL}),
    ("SGXT.W R0, R1, R2", {"R1": 0x1FF, "R2": 40}, {"R0": ALL}),  # 40 modulo 32 is 8
    ("PRMT.F4E R0, R1, R2, R3", {"R1": 0x33221100, "R2": 1, "R3": 0x77665544}, {"R0": 0x44332211}),
    ("PRMT.B4E R0, R1, R2, R3", {"R1": 0x33221100, "R2": 0, "R3": 0x77665544}, {"R0": 0x55667700}),
    ("PRMT.RC8 R0, R1, R2, R3", {"R1": 0x33221100, "R2": 2, "R3": 0}, {"R0": 0x22222222}),
    ("PRMT.ECL R0, R1, R2, R3", {"R1": 0x33221100, "R2": 2, "R3": 0}, {"R0": 0x33222222}),
    ("PRMT.ECR R0, R1, R2, R3", {"R1": 0x33221100, "R2": 2, "R3": 0}, {"R0": 0x22221100}),
    ("PRMT.RC16 R0, R1, R2, R3", {"R1": 0x33221100, "R2": 5, "R3": 0}, {"R0": 0x33223322}),
    ("LOP3.LUT.PAND P0, R0, R1, R2, RZ, 0xc0, P1", {"R1": 3, "R2": 1, "P1": F}, {"R0": 1, "P0": F}),
    ("LOP3.LUT.PAND P0, R0, R1, R2, RZ, 0xc0, P1", {"R1": 3, "R2": 1, "P1": T}, {"R0": 1, "P0": T}),
    # the sign bits of three registers: negative, positive, positive is row 4 of the table
    ("PLOP3.LUT P0, PT, R1.SIGN, R2.SIGN, R3.SIGN, 0x10, 0x0", {"R1": M, "R2": 1, "R3": 1}, {"P0": T}),
    ("PLOP3.LUT P0, PT, R1.SIGN, R2.SIGN, R3.SIGN, 0x10, 0x0", {"R1": 1, "R2": 1, "R3": 1}, {"P0": F}),
    ("P2R.B1 R0, PR, R1, 0x7f", {"R1": 0x12345678, "P0": T, "P3": T}, {"R0": 0x12340978}),
    ("R2P PR, R1.B2, 0x7", {"R1": 0x00050000, "P1": T}, {"P0": T, "P1": F, "P2": T}),
    ("UVIADD UR0, UR1, 0x5", {"UR1": 4}, {"UR0": 9}),
    ("S2R R0, SR_GEMASK", {}, {"lane 3": ALL << 3 & ALL}),
    ("S2R R0, SR_GTMASK", {}, {"lane 3": ALL << 4 & ALL}),
    ("S2R R0, SR_LEMASK", {}, {"lane 3": 15}),
    ("S2R R0, SR_VIRTCFG", {}, {"R0": 64 << 8}),
    ("S2R R0, SR_VIRTUALSMID", {}, {"R0": 0}),
    ("S2R R0, SR_SMEMSZ", {}, {"R0": 1024}),
    ("CS2R.32 R0, SR_CLOCKLO", {}, {"R0": 32}),
    ("CS2R R0, SR_GLOBALTIMERLO", {}, {"R0": 32, "R1": 0}),
    ("CS2R.32 R0, SR_CLOCKHI", {}, {"R0": 0}),
    ("CS2UR UR4, SR_GLOBALTIMERLO", {"UR5": 7}, {"UR4": 32, "UR5": 0}),
    *((text, {"R0": 7}, {"R0": 7}) for text in ("PREEXIT", "ACQBULK", "PMTRIG 0x8", "USETMAXREG.DEALLOC 0x28")),
]


@pytest.mark.parametrize(("text", "given", "expected"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_by_hand(text: str, given: dict[str, int], expected: dict[str, object]) -> None:
    after = run(text, **given)
    for name, value in expected.items():
        row = after["R0" if name == "lane 3" else name]
        if name == "lane 3":
            assert int(row[3]) == value
            continue
        assert (row == row[0]).all()
        got = bool(row[0]) if isinstance(value, bool) else int(row[0])
        assert got == value, (name, hex(got))


def test_match_of_pairs_compares_both_words() -> None:
    lane = np.arange(32)
    after = run("MATCH.ANY.U64 R0, R2", R2=lane % 2, R3=lane // 16)["R0"]
    same = [sum(1 << j for j in lane if j % 2 == i % 2 and j // 16 == i // 16) for i in lane]
    assert after.tolist() == same
    assert one("MATCH.ALL.U64 P0, R0, R2", "P0", R2=5, R3=lane // 16) is False
    assert one("MATCH.ALL.U64 P0, R0, R2", "R0", R2=5, R3=lane // 16) == 0
    assert one("MATCH.ALL.U64 P0, R0, R2", "R0", R2=5, R3=9) == ALL


def test_elect_chooses_the_lowest_lane() -> None:
    after = run("ELECT P0, UR4, PT")
    assert int(after["UR4"][0]) == 0
    assert (after["P0"] != 0).tolist() == [True] + [False] * 31
    late = np.arange(32) >= 9
    after = run("@P1 ELECT P0, UR4, PT", P1=late)
    assert int(after["UR4"][0]) == 9
    assert np.flatnonzero(after["P0"]).tolist() == [9]


def test_r2ur_says_which_lanes_differ() -> None:
    lane = np.arange(32)
    after = run("R2UR P0, UR4, R1", R1=lane // 30 + 5, P0=lane < 4)
    assert int(after["UR4"][0]) == 5
    np.testing.assert_array_equal(after["P0"] != 0, lane >= 30)
    after = run("R2UR.OR P0, UR4, R1", R1=lane // 30 + 5, P0=lane < 4)  # P0 stays set
    np.testing.assert_array_equal(after["P0"] != 0, (lane >= 30) | (lane < 4))
    after = run("@P1 R2UR P0, URZ, R1", R1=lane // 30 + 5, P0=lane < 4, P1=lane >= 30)  # both active ones agree
    np.testing.assert_array_equal(after["P0"] != 0, lane < 4)
    assert one("R2UR.FILL UR4, R1", "UR4", R1=lane + 3) == one("R2UR.BROADCAST UR4, R1", "UR4", R1=lane + 3) == 3


def test_a_loop_with_one_pass_for_each_pair_of_values() -> None:
    """A warp copies pairs that differ from lane to lane through uniform registers, as compilers write it."""
    lane = np.arange(32)
    low, high = lane % 3, lane % 2
    loop = [
        "PLOP3.LUT P0, PT, PT, PT, PT, 0x80, 0x8",
        "@P0 R2UR P1, UR4, R1",
        "@P0 R2UR.OR P1, UR5, R2",
        "IADD3 R5, R5, 0x1, RZ",
        "@P0 MOV R3, UR4",
        "@P0 MOV R4, UR5",
        "@P0 PLOP3.LUT P0, PT, P1, PT, PT, 0x80, 0x8",
        "@P0 BRA.U.ANY `(0x10)",
    ]
    after = run(loop, R1=low, R2=high)
    np.testing.assert_array_equal(after["R3"], low)
    np.testing.assert_array_equal(after["R4"], high)
    assert (after["R5"] == 6).all()  # all lanes go round as often as there are pairs


@pytest.mark.parametrize("first", [0, 1, 31, 32])
def test_a_branch_of_all_lanes_where_any_holds(first: int) -> None:
    lane = np.arange(32)
    after = run(["@P0 BRA.U.ANY `(0x20)", "MOV R0, 0x1", "MOV R1, 0x2"], P0=lane >= first)
    assert (after["R0"] == (first == 32)).all() and (after["R1"] == 2).all()
    assert (run(["@!P0 BRA.U.ANY `(0x20)", "MOV R0, 0x1", "NOP"], P0=lane >= first)["R0"] == (first == 0)).all()


def test_uniform_predicates_and_registers() -> None:
    given = {"UP0": True, "UP3": True, "UP6": True, "P1": True}
    assert one("UP2UR UR4, UPR, UR5, 0x7f", "UR4", UR5=0xFFFFFF80, **given) == 0xFFFFFFC9
    assert one("UP2UR UR4, UPR, URZ, 0x9", "UR4", **given) == 0b1001
    assert one("UP2UR.B1 UR4, UPR, URZ, 0x48", "UR4", **given) == 0b1001000 << 8
    assert one("UP2UR UR4, UPR", "UR4", **given) == 0b1001001
    after = run("UR2UP UPR, UR4, 0x6", UR4=0b1000, **given, UP1=True)
    assert [bool(after[f"UP{i}"].any()) for i in range(7)] == [True, False, False, True, False, False, True]
    with pytest.raises(GemmsimError, match="mask in a register"):
        run("UP2UR UR4, UPR, UR6, UR8")
    assert one("MOV.SPILL R5, UR7", "R5", UR7=0xDEADBEEF) == 0xDEADBEEF


F32_REDUCTIONS = [  # of 1, -3, 0 and what else is given
    ("MAX.F32", np.nan, 1.0), ("MIN.F32", np.nan, -3.0), ("MINABS.F32", np.nan, 0.0), ("MAXABS.F32", np.nan, 3.0),
    ("MAX.F32.NAN", np.nan, np.nan), ("MIN.F32.NAN", np.nan, np.nan), ("MAX.F32.NAN", 2.0, 2.0),
    ("MIN.F32", -np.inf, -np.inf), ("MAX.F32", np.inf, np.inf), ("MAXABS.F32", -np.inf, np.inf),
    ("MIN.F32", 1e-45, -3.0),
]  # fmt: skip


@pytest.mark.parametrize(("how", "more", "expected"), F32_REDUCTIONS)
def test_reductions_of_floats(how: str, more: float, expected: float) -> None:
    values = np.resize(np.array([1.0, -3.0, 0.0, more], np.float32), 32)
    found = one(f"CREDUX.{how} UR4, R1", "UR4", R1=values.view(np.uint32))
    assert found == (0x7FFFFFFF if np.isnan(expected) else f32(expected))


def test_reductions_of_few_lanes() -> None:
    lane = np.arange(32)
    assert one("CREDUX.MAX UR4, R1", "UR4", R1=lane - 4) == ALL
    assert one("CREDUX.MAX.S32 UR4, R1", "UR4", R1=lane - 4) == 27
    signed = np.where(lane % 2, f32(-0.0), 0)
    assert one("CREDUX.MIN.F32 UR4, R1", "UR4", R1=signed) == f32(-0.0)
    assert one("CREDUX.MAX.F32 UR4, R1", "UR4", R1=signed) == 0
    assert one("CREDUX.MAX.F32 UR4, R1", "UR4", R1=0xFFC00001) == 0x7FFFFFFF
    active = run("@P0 CREDUX.MAX.F32 UR4, R1", R1=(lane.astype(np.float32)).view(np.uint32), P0=lane < 7)["UR4"]
    assert (active == f32(6.0)).all()


def test_the_register_of_the_return_address_keeps_values() -> None:
    lane = np.arange(32)
    moves = ["RPCMOV.32 Rpc.LO, R1", "@P0 RPCMOV.32 Rpc.HI, R2", "RPCMOV.32 R3, Rpc.LO", "RPCMOV.32 R4, Rpc.HI"]
    after = run(moves, R1=lane + 7, R2=lane + 9, R4=1, P0=lane < 4)
    np.testing.assert_array_equal(after["R3"], lane + 7)
    np.testing.assert_array_equal(after["R4"], np.where(lane < 4, lane + 9, 0))
    for text, said in (("RPCMOV.64 R2, Rpc", "modifier .64"), ("RPCMOV.32 R2, R3", "operand form")):
        with pytest.raises(GemmsimError, match=said):
            run(text)


def test_exit_with_a_condition_ends_the_threads_of_both() -> None:
    lane = np.arange(32)
    after = run(["@P0 EXIT P3", "MOV R0, 0x1"], P0=lane % 2 == 0, P3=lane < 8)["R0"]
    np.testing.assert_array_equal(after, np.where((lane % 2 == 0) & (lane < 8), 0, 1))


def test_clocks_advance_with_each_reading() -> None:
    after = run(["CS2R R2, SR_CLOCKLO", "S2UR UR4, SR_CLOCKLO", "CS2R.32 R5, SR_GLOBALTIMERLO"])
    assert (int(after["R2"][0]), int(after["UR4"][0]), int(after["R5"][0])) == (32, 64, 32)


def test_exclusive_groups_go_on_one_after_the_other() -> None:
    """Lanes that name themselves and their neighbours run in groups; each group sees only its own lanes."""
    lane = np.arange(32)
    groups = np.where(lane < 8, 0xFF, 0xFFFFFF00)
    after = run(["WARPSYNC.EXCLUSIVE R1", "REDUX.SUM UR4, R2", "MOV R0, UR4"], R1=groups, R2=1)["R0"]
    np.testing.assert_array_equal(after, np.where(lane < 8, 8, 24))


def test_narrow_constants_with_an_index() -> None:
    """The grid's width, which is 1, is at 0xc of constant bank 0, behind a zero."""
    assert one("LDC.U8 R0, c[0x0][R1]", "R0", R1=0xC) == 1
    assert one("LDC.U8 R0, c[0x0][R1]", "R0", R1=0xA) == 0
    assert one("LDC.S16 R0, c[0x0][R1+0x4]", "R0", R1=0x7) == 256


def test_a_load_with_a_predicate_gives_zeros_where_it_is_false() -> None:
    lane = np.arange(32)
    code = ["STS.64 [R4], R2", "@P1 LDS.64 R0, [R4], P0"]
    given = {"R0": 5, "R1": 6, "R2": 100 + lane, "R3": 200 + lane, "R4": 8 * lane}
    after = run(code, P0=lane < 8, P1=lane < 16, **given)
    np.testing.assert_array_equal(after["R0"], np.where(lane < 8, 100 + lane, np.where(lane < 16, 0, 5)))
    np.testing.assert_array_equal(after["R1"], np.where(lane < 8, 200 + lane, np.where(lane < 16, 0, 6)))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("S2R R0, SR_PM0", "SR_PM0"),
        ("CS2R R0, SR_PM0", "both words of special register SR_PM0"),
        ("MOV R0, c[0x0][0x10c]", "number of SMs"),
        ("VIMNMX.S64.RELU R0, R2, R4, PT", "modifier .RELU"),
        ("VIMNMX R0, P0, PT, R1, R2, PT", "predicate operand"),
    ],
)
def test_refused(text: str, what: str) -> None:
    with pytest.raises(GemmsimError, match=what):
        run(text)


def test_a_barrier_in_a_register_holds_number_and_threads() -> None:
    """Barrier 1 lets each warp of 32 threads pass; barrier 2 is for all 64. Compilers make 1 | 32 << 16."""
    second = [
        "ISETP.GE.AND P0, PT, R0, 0x20, PT",
        "@P0 BAR.SYNC 0x2, 0x40",
        "@!P0 BAR.SYNC R2, R2",
        "@!P0 BAR.ARV 0x2, 0x40",
    ]
    after = run(["S2R R0, SR_TID.X", *second, "MOV R3, 0x5"], warps=2, R2=32 << 16 | 1)
    assert (after["R3"] == 5).all()
