"""Variables of a module: where they lie, what they hold and how messages name them, worked out by hand."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from gemmsim.isa.program import ADDRESS_BANK, GLOBAL_DATA, Place, Program, Relocation, Symbol
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.launch_data.address_names import describe_address, owner_of
from gemmsim.trace.launch_data.device_memory import DeviceMemory
from gemmsim.trace.launch_data.module_data import constant_banks, device_globals, find_symbol, variables_after
from gemmsim.trace.types import Address, Argument

# The image: 8 bytes "first" (a pointer to "bias" + 4), 16 bytes "bias", 8 bytes of zeros "counter".
# Constant bank 3: "factor" (4 bytes), 4 bytes of padding, "table" (a pointer to "bias"). It is in the image too, at 24.
AT = 0x7F00_0040_0000  # the first allocation behind an array of one page


def program(**changes: object) -> Program:
    fields: dict[str, object] = {
        "name": "k", "symbol": "k", "arch": "sm_90", "abi": "c", "instructions": (), "blocks": (), "registers": 1,
        "static_shared_bytes": 0, "local_bytes": 0, "barriers": 0, "parameters": (), "parameter_base": 0x210,
        "constants": {3: struct.pack("<fiq", 2.0, 0, 0), ADDRESS_BANK: bytes(8)},
        "global_data": struct.pack("<q4f", 0, 1, 2, 3, 4) + struct.pack("<fiq", 2.0, 0, 0),
        "global_bytes": 48,
        "relocations": (
            Relocation(GLOBAL_DATA, 0, 8 + 4), Relocation(3, 8, 8), Relocation(GLOBAL_DATA, 24 + 8, 8),
            Relocation(ADDRESS_BANK, 0, 40),
        ),
        "symbols": (
            Symbol("_ZN2ns4biasE", "bias", 16, (Place(GLOBAL_DATA, 8),)),
            Symbol("counter", "counter", 8, (Place(GLOBAL_DATA, 40),)),
            Symbol("factor", "factor", 4, (Place(3, 0), Place(GLOBAL_DATA, 24))),
            Symbol("first", "first", 8, (Place(GLOBAL_DATA, 0),)),
            Symbol("table", "table", 8, (Place(3, 8), Place(GLOBAL_DATA, 32))),
        ),
    }  # fmt: skip
    return Program(**(fields | changes))  # type: ignore[arg-type]


def memory(values: dict[str, Argument] | None = None) -> DeviceMemory:
    args = (Argument("f32", (8,), np.zeros(8, np.float32)),)
    return DeviceMemory(args, globals_at=lambda at: device_globals(program(), values or {}, at))


def test_addresses_in_the_image_in_banks_and_in_code() -> None:
    image = memory().device_globals().tobytes()
    assert struct.unpack_from("<q4f", image) == (AT + 12, 1, 2, 3, 4)
    assert struct.unpack_from("<fiqq", image, 24) == (2.0, 0, AT + 8, 0)
    banks = constant_banks(program(), {}, AT, [None])
    assert struct.unpack("<fiq", banks[3]) == (2.0, 0, AT + 8)
    assert struct.unpack("<q", banks[ADDRESS_BANK]) == (AT + 40,)


def test_a_value_goes_to_every_place_of_its_variable() -> None:
    values = {"factor": Argument("f32", (1,), np.array([5], np.float32))}
    assert struct.unpack_from("<f", memory(values).device_globals().tobytes(), 24) == (5.0,)
    assert struct.unpack_from("<f", constant_banks(program(), values, AT, [None])[3]) == (5.0,)


def test_a_pointer_to_an_argument() -> None:
    values = {
        "first": Argument("u8", (8,), np.zeros(8, np.uint8), addresses=(Address(0, 0, 16),)),
        "table": Argument("u8", (8,), np.zeros(8, np.uint8), addresses=(Address(0, 0),)),
    }
    held = memory(values)
    (pointer,) = held.pointers
    assert pointer is not None
    assert struct.unpack_from("<q", held.device_globals().tobytes()) == (pointer + 16,)
    assert struct.unpack_from("<q", constant_banks(program(), values, AT, held.pointers)[3], 8) == (pointer,)


def test_contents_after_a_run_are_those_of_device_variables() -> None:
    held = memory()
    held.written[int(held.positions[1]) + 40 : int(held.positions[1]) + 44] = True
    after = variables_after(program(), held)
    assert {name: one.stored for name, one in after.items()} == {"bias": False, "counter": True, "first": False}
    assert after["bias"].content.view(np.float32).tolist() == [1, 2, 3, 4]


def test_names() -> None:
    assert find_symbol(program(), "bias") == find_symbol(program(), "_ZN2ns4biasE")
    known = r"no such variable \(did you mean 'bias'\?\); it has: bias \(16 bytes\), counter \(8 bytes\)"
    with pytest.raises(GemmsimError, match=known):
        find_symbol(program(), "bais")
    with pytest.raises(GemmsimError, match="has no __device__ or __constant__ variable"):
        find_symbol(program(symbols=()), "bias")
    twice = (Symbol("_Za", "a", 4, (Place(3, 0),)), Symbol("_Zb", "a", 4, (Place(3, 4),)))
    with pytest.raises(GemmsimError, match="--symbol a names 2 variables of kernel 'k': _Za, _Zb"):
        find_symbol(program(symbols=twice), "a")


def test_a_value_of_another_size() -> None:
    with pytest.raises(GemmsimError, match="--symbol bias: the value has 8 bytes, but 'bias' has 16"):
        memory({"bias": Argument("f32", (2,), np.zeros(2, np.float32))})


def test_addresses_are_named_by_their_variable() -> None:
    args = (Argument("f32", (8,), None),)
    assert describe_address(args, AT + 8 + 5, program()) == "device global 'bias' (16 bytes), byte 5"
    assert (
        owner_of(memory(), program(), AT + 48) == "device global 'counter' (8 bytes), byte 8: 1 byte past its last byte"
    )
    assert owner_of(memory(), program(), 0) == "far from every argument"
