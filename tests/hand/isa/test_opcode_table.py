"""The table of opcodes is complete: what executes can be timed and is counted, and what a row names exists."""

from __future__ import annotations

import pytest

from gemmsim.gpu.load import load_gpu, preset_names
from gemmsim.isa.opcodes import OPCODES, TABLE_FILE, Kind, MemoryAccess, MixClass, _read, opcode_row
from gemmsim.memory.counters import _ARITHMETIC
from gemmsim.sm.pipes import memory_opcode, pipe_slots, port_of, port_pipes
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.lower.lowering import LOWERING

EXECUTED = sorted(name for name, row in OPCODES.items() if row.lowering)
# Copies that no thread waits for in order, and which are in no memory counter yet; LDGDEPBAR makes a group of some.
ASYNCHRONOUS = {"LDGDEPBAR", "UBLKCP", "UBLKPF", "UBLKRED", "UTMALDG", "UTMAPF", "UTMAREDG", "UTMASTG"}
# Moves, constants, exchange between lanes, and cache control: the only opcodes that are no work of another class.
_MOVES = "CCTL CREDUX CS2R CS2UR LDC LDCU MATCH MOV MOVM P2R QSPC R2P R2UR REDUX RPCMOV S2R S2UR SHFL ULDC UMOV"
OTHER = sorted(f"{_MOVES} UP2UR UR2UP VOTE VOTEU".split())
# "Throughput of native arithmetic instructions" and the roofline's operations: a multiply-add counts two, packed halves
# double that.
OPERATIONS = {
    "fp32": {"FFMA": 2, "FADD": 1, "FMUL": 1},
    "fp64": {"DFMA": 2, "DADD": 1, "DMUL": 1},
    "fp16": {"HFMA2": 4, "HADD2": 2, "HMUL2": 2},
}


def test_what_executes_is_lowered_by_a_function_that_exists() -> None:
    assert sorted(LOWERING) == EXECUTED
    assert all(callable(function) for function in LOWERING.values())


@pytest.mark.parametrize("gpu", [load_gpu(name) for name in preset_names()], ids=lambda gpu: gpu.name)
def test_what_executes_can_be_timed_on_every_gpu(gpu) -> None:  # type: ignore[no-untyped-def]
    for name, row in OPCODES.items():
        port = port_of(name, gpu.arch)
        assert port_pipes(port, gpu.pipes) or port == "", name
        for modifiers in ((), *((m,) for m in row.variants), *((m,) for m in row.shapes)):
            assert pipe_slots(name, modifiers, gpu) > 0, (name, modifiers)


def test_every_opcode_has_a_class_and_few_are_other() -> None:
    assert [name for name in sorted(OPCODES) if OPCODES[name].mix is MixClass.OTHER] == OTHER


@pytest.mark.parametrize("opcode", ["FENCE", "ENDCOLLECTIVE", "UI2F", "UIADD", "UVIADDMNMX"])
def test_executed_once_without_a_pipe(opcode: str) -> None:
    assert opcode in LOWERING
    assert port_of(opcode, "sm_120") == ("uniform" if opcode.startswith("U") else "cbu")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("FFMA UFFMA HFMA2 DFMA IDP HMMA QMMA IMMA BMMA DMMA", MixClass.FMA),
        ("UFADD UFMUL UFSETP HSETP2 HMNMX2 UI2F UI2FP", MixClass.FLOAT),
        ("IMAD VIADDMNMX UVIADDMNMX UVIMNMX UIADD UIABS BREV UBREV UFLO UPOPC VABSDIFF", MixClass.INTEGER),
        ("FENCE ERRBAR CGAERRBAR ENDCOLLECTIVE NANOSLEEP BPT B2R", MixClass.CONTROL),
    ],
)
def test_classes(names: str, expected: MixClass) -> None:
    assert {name: OPCODES[name].mix for name in names.split()} == dict.fromkeys(names.split(), expected)


def test_a_modifier_changes_its_opcodes_row() -> None:
    assert opcode_row("IMAD", ("MOV", "U32")).mix is MixClass.OTHER
    assert opcode_row("IMAD", ("WIDE", "U32")).slots == 2
    assert opcode_row("IMAD", ("U32",)) is OPCODES["IMAD"]
    assert opcode_row("HMMA", ("1688", "F32", "TF32")).precision == "tensor_tf32"
    assert (port_of("IMAD", "sm_90"), port_of("IMAD", "sm_120a")) == ("fmaheavy", "fma")


def test_operations_are_those_that_nsight_compute_counts() -> None:
    counted = {name: (row.precision, row.operations) for name, row in OPCODES.items() if row.operations}
    assert counted == {name: (kind, n) for kind, each in OPERATIONS.items() for name, n in each.items()}
    assert sorted(_ARITHMETIC) == sorted(counted)
    warpgroup = (Kind.WARPGROUP_MULTIPLY,)
    matrices = {name: row.precision for name, row in OPCODES.items() if row.shapes or row.kind in warpgroup}
    narrow = {"QMMA": "tensor_fp8", "IMMA": "tensor_int8", "BMMA": "tensor_b1"}
    hopper = {"HGMMA": "tensor_fp16", "QGMMA": "tensor_fp8", "IGMMA": "tensor_int8"}
    assert matrices == {"HMMA": "tensor_fp16", "DMMA": "tensor_fp64", **narrow, **hopper}
    products = {name for name, row in OPCODES.items() if row.mix is MixClass.FMA and row.lowering}
    assert products - set(counted) - set(matrices) == {"IDP", "UFFMA"}  # integers, and one result a warp


def test_memory_is_accessed_by_lowerings_for_memory_only() -> None:
    for name, row in OPCODES.items():
        to_memory = (
            row.lowering.startswith(("memory.", "atomics.a", "mbarrier.a", "mbarrier.store", "mbarrier.reduce"))
            or row.kind is Kind.MATRIX_ROWS
        )
        in_bulk = row.kind is Kind.BULK_COPY
        assert (to_memory or in_bulk) == (row.memory is not None), name
        assert row.memory is None or row.port == ("tma" if in_bulk else "lsu"), name
        assert row.memory is None or row.memory.bulk == in_bulk, name
        assert (row.mix in (MixClass.GLOBAL, MixClass.SHARED)) == (to_memory or name in ASYNCHRONOUS), name
    copy = memory_opcode("LDGSTS")
    assert copy == MemoryAccess("global", "ldgsts") and copy.copy and not copy.load
    loads = {name for name, row in OPCODES.items() if row.memory and row.memory.load}
    assert loads == {"LDG", "LD", "LDL", "LDS", "LDSM", "ATOM", "ATOMG", "ATOMS"}


def test_unknown_opcodes_are_named_with_a_suggestion() -> None:
    with pytest.raises(GemmsimError, match=r"opcode FFMMA is not in gemmsim's table of opcodes.*FFMA"):
        opcode_row("FFMMA")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('mix = "fma"', 'mix = "products"', "FFMA: 'PRODUCTS'"),
        ('lowering = "floating.float32",', "", "FFMA: does not belong to"),
        ('port = "fma"', 'pipe = "fma"', "FFMA: .*pipe"),
        ('kind = "exit"', 'kind = "quit"', "EXIT: 'quit'"),
        ('memory = "global ld"', 'memory = "global"', "LDG: .*unpack"),
    ],
)
def test_a_row_that_cannot_be_read_is_named(old: str, new: str, message: str) -> None:
    text = TABLE_FILE.read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(GemmsimError, match=message):
        _read(text.replace(old, new, 1))
