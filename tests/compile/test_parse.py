"""Operands, control bits and basic blocks. The examples were printed by nvdisasm 13.5."""

from __future__ import annotations

import json
import re
import struct
import subprocess

import pytest
from cubins import EACH, zoo
from hypothesis import given
from hypothesis import strategies as st
from operand_text import render

from gemmsim.compile.toolchain import find_nvdisasm
from gemmsim.isa.blocks import basic_blocks
from gemmsim.isa.parse import _merge_halves, decode_control, parse_instruction, parse_operand, split_operands
from gemmsim.isa.program import ZERO, Operand, OperandKind
from gemmsim.support.errors import GemmsimError

K = OperandKind


@pytest.mark.parametrize(
    ("text", "operand"),
    [
        ("R5", Operand(K.REGISTER, 5)),
        ("RZ", Operand(K.REGISTER, ZERO)),
        ("-R5.reuse", Operand(K.REGISTER, 5, negate=True)),
        ("|R10|.reuse", Operand(K.REGISTER, 10, absolute=True)),
        ("-|R3|", Operand(K.REGISTER, 3, negate=True, absolute=True)),
        ("~R3", Operand(K.REGISTER, 3, invert=True)),
        ("-R4.H0_H0", Operand(K.REGISTER, 4, negate=True, suffix="H0_H0")),
        ("R8.ROW", Operand(K.REGISTER, 8, suffix="ROW")),
        ("UR63", Operand(K.UNIFORM_REGISTER, 63)),
        ("URZ", Operand(K.UNIFORM_REGISTER, ZERO)),
        ("!P2", Operand(K.PREDICATE, 2, invert=True)),
        ("!UPT", Operand(K.UNIFORM_PREDICATE, ZERO, invert=True)),
        ("B1", Operand(K.BARRIER, 1)),
        ("0x1f", Operand(K.IMMEDIATE, value=31)),
        ("-0x14", Operand(K.IMMEDIATE, value=-20)),
        ("{2,0}", Operand(K.IMMEDIATE, value=0b101, name="set")),
        ("c[0x0][0x160]", Operand(K.CONSTANT, value=0x160)),
        ("-c[0x2][0x4]", Operand(K.CONSTANT, value=4, bank=2, negate=True)),
        ("|c[0x2][0x4]|", Operand(K.CONSTANT, value=4, bank=2, absolute=True)),
        ("c[0x2][0x0].F32", Operand(K.CONSTANT, bank=2, suffix="F32")),
        ("c[0x3][R9+0x10]", Operand(K.CONSTANT, 9, 0x10, 3)),
        ("c[0x0][UR4+0x10]", Operand(K.CONSTANT, value=0x10, uniform=4)),
        ("cx[UR4][0x10]", Operand(K.CONSTANT, value=0x10, bank=4, name="cx")),
        ("[R5]", Operand(K.ADDRESS, 5)),
        ("[R1+0x10]", Operand(K.ADDRESS, 1, 16)),
        ("[R22+UR7+-0x40]", Operand(K.ADDRESS, 22, -0x40, uniform=7)),
        ("[R3.X4+UR5]", Operand(K.ADDRESS, 3, uniform=5, scale=4)),
        ("[UR4]", Operand(K.ADDRESS, uniform=4)),
        ("[R2.U32+UR4]", Operand(K.ADDRESS, 2, uniform=4, suffix="U32")),
        ("desc[UR18][R14.64+0x20]", Operand(K.ADDRESS, 14, 0x20, 18, wide=True, name="desc")),
        ("gdesc[UR4]", Operand(K.ADDRESS, bank=4, name="gdesc")),
        ("SR_TID.X", Operand(K.SPECIAL, name="SR_TID.X")),
        ("SR_CgaCtaId", Operand(K.SPECIAL, name="SR_CgaCtaId")),
        ("PR", Operand(K.SPECIAL, name="PR")),
        ("SB0", Operand(K.SPECIAL, name="SB0")),
        ("`(0x1d0)", Operand(K.TARGET, value=0x1D0)),
    ],
)
def test_operand_forms(text: str, operand: Operand) -> None:
    assert parse_operand(text) == operand
    assert render(operand) == text.replace(".reuse", "")


@pytest.mark.parametrize("text", ["", "R", "Q3", "[R1+R2*4]", "c[0x0]", "|R3", "SR", "R3..X", "[", "0xzz"])
def test_unknown_operand_is_an_error(text: str) -> None:
    with pytest.raises(GemmsimError, match="cannot read operand"):
        parse_operand(text)


def test_float_literals_take_their_bits_from_the_encoding() -> None:
    half = 0x3F000000  # 0.5f
    one = parse_instruction(0, "FMUL.FTZ R2, R4, 0.5", half << 32)
    assert one.operands[2] == Operand(K.IMMEDIATE, value=half, name="0.5")
    packed = 0x3C00_C000  # halves -2 (low) and 1 (high)
    one = parse_instruction(0, "HFMA2.MMA R1, -RZ, RZ, 1, -2", packed << 32)
    assert one.operands[3:] == (Operand(K.IMMEDIATE, value=packed, name="1,-2"),)
    infinite = parse_instruction(0, "FSETP.NEU.AND P0, PT, |R0|, +INF , PT", 0x7F800000 << 32)
    assert infinite.operands[3].value == 0x7F800000
    assert len(infinite.operands) == 5


def test_instruction_parts() -> None:
    one = parse_instruction(0x20, "@!P0 BRA P1, `(.L_x_4)", 0, labels={".L_x_4": 0x690})
    assert (one.opcode, one.modifiers, one.index) == ("BRA", (), 2)
    assert one.predicate == Operand(K.PREDICATE, 0, invert=True)
    assert one.operands == (Operand(K.PREDICATE, 1), Operand(K.TARGET, value=0x690))
    ret = parse_instruction(0, "RET.REL.NODEC R2 `(kernel)", 0, labels={"kernel": 0})
    assert [operand.kind for operand in ret.operands] == [K.REGISTER, K.TARGET]
    assert ret.mnemonic == "RET.REL.NODEC"
    table = {".L_x_1": 16, ".L_x_2": 32}
    brx = parse_instruction(0, 'BRX R6 -0x110   (*"BRANCH_TARGETS .L_x_1,.L_x_2"*)', 0, labels=table)
    assert [operand.value for operand in brx.operands] == [0, -0x110, 16, 32]
    spill = parse_instruction(0, 'STL [R1+0x4], R15                       (*"SpillRefill"*)', 0)
    assert [operand.kind for operand in spill.operands] == [K.ADDRESS, K.REGISTER]
    with pytest.raises(GemmsimError, match=r"'BRA `\(.L_x_9\)' at 0x40: branch target '.L_x_9' is not in the kernel"):
        parse_instruction(0x40, "BRA `(.L_x_9)", 0)


def test_control_bits_by_hand() -> None:
    # stall 4 | yield bit 0 | write barrier 1 | read barrier none | wait on 0 and 5 | reuse slot 2
    encoding = 4 << 105 | 0 << 109 | 1 << 110 | 7 << 113 | 0b100001 << 116 | 0b0100 << 122 | 0xFFFF
    control = decode_control(encoding)
    assert (control.stall_cycles, control.yield_hint, control.write_barrier, control.read_barrier) == (4, True, 1, None)
    assert (control.wait_mask, control.reuse_mask) == (0b100001, 0b0100)
    assert not decode_control(1 << 109).yield_hint


registers = st.one_of(st.just(ZERO), st.integers(0, 254))
uniforms = st.one_of(st.just(ZERO), st.integers(0, 254))
flags = {"negate": st.booleans(), "absolute": st.booleans()}
operands = st.one_of(
    st.builds(Operand, st.just(K.REGISTER), registers, **flags, suffix=st.sampled_from(["", "H0_H0", "B1", "64"])),
    st.builds(Operand, st.just(K.UNIFORM_REGISTER), uniforms, negate=st.booleans()),
    st.builds(Operand, st.sampled_from([K.PREDICATE, K.UNIFORM_PREDICATE]), st.integers(ZERO, 6), invert=st.booleans()),
    st.builds(Operand, st.just(K.IMMEDIATE), value=st.integers(-(2**63), 2**64 - 1)),
    st.builds(Operand, st.just(K.IMMEDIATE), value=st.integers(0, 63), name=st.just("set")),
    st.builds(Operand, st.just(K.TARGET), value=st.integers(0, 2**20)),
    st.builds(
        Operand, st.just(K.CONSTANT), registers, st.integers(0, 2**16), st.integers(0, 31), uniforms, **flags,
        suffix=st.sampled_from(["", "H0_H0"]),
    ),
    st.builds(
        Operand, st.just(K.ADDRESS), registers, st.integers(-(2**23), 2**23), st.integers(0, 62), uniforms,
        scale=st.sampled_from([1, 4, 8]), wide=st.booleans(), suffix=st.sampled_from(["", "U32"]), name=st.just("desc"),
    ),
)  # fmt: skip


@given(operands)
def test_render_then_parse_is_the_identity(operand: Operand) -> None:
    assert parse_operand(render(operand)) == operand


@pytest.mark.parametrize("arch", EACH)
def test_no_operand_of_a_real_kernel_loses_anything(arch: str) -> None:
    program = zoo(arch).program
    seen = set()
    for one in program.instructions:
        body = re.sub(r"^@!?U?P\w+\s+|\(\*.*\*\)", "", one.text).replace("] [", "][")
        words = _merge_halves(one.opcode, split_operands(body.partition(" ")[2]))
        assert len(words) == len(one.operands) or one.opcode == "BRX", one.text  # BRX: the listed targets follow
        for word, operand in zip(words, one.operands, strict=False):
            seen.add(operand.kind)
            if operand.kind is not K.TARGET:
                # a zero register as the only base or index is not told from none
                assert render(operand) == re.sub(r"\[U?RZ\]", "[0x0]", word.replace(".reuse", "")), one.text
            if operand.kind is K.IMMEDIATE and operand.name and "," not in operand.name and one.opcode != "HADD2":
                assert operand.value == _bits(operand.name, one.opcode), one.text
    assert seen >= set(K) - {K.SPECIAL, K.BARRIER}, "the zoo lacks a kind"


def _bits(literal: str, opcode: str) -> int:
    """The bits that a literal's decimal digits stand for: an independent reading of the immediate field."""
    number = float(literal.replace("INF", "inf").replace("QNAN", "nan"))
    if opcode.startswith("D"):
        return int(struct.unpack("<Q", struct.pack("<d", number))[0] >> 32)
    return int(struct.unpack("<I", struct.pack("<f", number))[0])


@pytest.mark.parametrize("arch", ["sm_75", "sm_120"])
def test_agrees_with_the_json_listing(arch: str, tmp_path) -> None:
    """nvdisasm's JSON form is another listing: branch targets there are numbers, here they come from labels."""
    entry = zoo(arch)
    path = tmp_path / "zoo.cubin"
    path.write_bytes(entry.cubin)
    said = subprocess.run([find_nvdisasm(), "-json", path], capture_output=True, check=True, text=True).stdout
    (listed,) = (one for one in json.loads(said)[1] if one["function-name"] == "zoo")
    rows = listed["sass-instructions"]
    assert len(rows) == len(entry.program.instructions)
    for row, one in zip(rows, entry.program.instructions, strict=True):
        assert row["opcode"] == one.mnemonic
        assert row.get("predicate", "") == ("" if one.predicate is None else "@" + render(one.predicate))
        words = _merge_halves(one.opcode, split_operands(row.get("operands", "").replace("] [", "][")))
        for word, operand in zip(words, one.operands, strict=False):
            if operand.kind is K.TARGET:
                assert not word.startswith("0x") or operand.value == int(word, 16), one.text
            else:
                assert parse_operand(word, one.encoding) == operand, one.text


def blocks_of(*texts: str) -> list[tuple[int, int, tuple[int, ...]]]:
    program = tuple(parse_instruction(16 * number, text, 0) for number, text in enumerate(texts))
    return [(block.start, block.stop, block.successors) for block in basic_blocks(program)]


def test_blocks_of_a_loop_with_an_early_exit() -> None:
    assert blocks_of("MOV R1, R2", "@P0 EXIT", "IADD R1, R1, R1", "@!P0 BRA `(0x20)", "EXIT") == [
        (0, 2, (1,)), (2, 4, (1, 2)), (4, 5, ()),
    ]  # fmt: skip


def test_blocks_of_conditions_that_are_operands() -> None:
    assert blocks_of("BRA.U !UP0, `(0x20)", "NOP", "BRA `(0x0)") == [(0, 1, (1, 2)), (1, 2, (2,)), (2, 3, (0,))]


def test_blocks_of_a_call() -> None:
    texts = ("CALL.REL.NOINC `(0x30)", "NOP", "EXIT", "NOP", "RET.REL.NODEC R2 `(0x0)")
    assert blocks_of(*texts) == [(0, 1, (1, 2)), (1, 3, ()), (3, 5, (1,))]


def test_blocks_of_a_jump_table() -> None:
    program = (
        parse_instruction(0, 'BRX R6 -0x10 (*"BRANCH_TARGETS a,b"*)', 0, labels={"a": 16, "b": 48}),
        *(parse_instruction(16 * number, "EXIT", 0) for number in (1, 2, 3)),
    )
    assert [block.successors for block in basic_blocks(program)] == [(1, 3), (), (), ()]
    unlisted = (parse_instruction(0, "BRX R6 -0x10", 0), *program[1:])
    assert basic_blocks(unlisted)[0].successors == (0, 1, 2, 3)


def test_reconvergence_target_starts_a_block_and_ends_none() -> None:
    assert blocks_of("BSSY B0, `(0x30)", "NOP", "BSYNC B0", "EXIT") == [(0, 3, (1,)), (3, 4, ())]


@pytest.mark.parametrize("arch", EACH)
def test_blocks_of_a_real_kernel_partition_it(arch: str) -> None:
    program = zoo(arch).program
    assert [block.start for block in program.blocks[1:]] == [block.stop for block in program.blocks[:-1]]
    assert (program.blocks[0].start, program.blocks[-1].stop) == (0, len(program.instructions))
    starts = {block.start for block in program.blocks}
    for one in program.instructions:
        for operand in one.operands:
            assert operand.kind is not K.TARGET or operand.value // 16 in starts
