"""Structs, references, tables of addresses, layouts and files as written after --arg; bytes worked out by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from gemmsim.launch.argument_text import parse_arguments
from gemmsim.launch.arrays import with_arrays
from gemmsim.launch.items import Arguments
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.launch_data.device_memory import DeviceMemory
from gemmsim.trace.types import Address, Launch, Packed


def parsed(*texts: str, arrays: tuple[str, ...] = ()) -> Arguments:
    return parse_arguments(texts, arrays)


def by_value(text: str) -> Packed:
    """The single parameter that a text stands for."""
    (parameter,) = parsed(text).parameters or ()
    assert isinstance(parameter, Packed)
    return parameter


def memory(arguments: Arguments) -> DeviceMemory:
    launch = Launch((1, 1, 1), (1, 1, 1), arguments.args, 0, arguments.parameters)
    return DeviceMemory(with_arrays(launch, 1).args)


def test_plain_arguments_need_no_parameters_of_their_own() -> None:
    arguments = parsed("f32[4,4]", "i32=3", "C: f32[2]=0")
    assert arguments.parameters is None
    assert [(one.dtype, one.shape, one.name) for one in arguments.args] == [
        ("f32", (4, 4), ""),
        ("i32", (), ""),
        ("f32", (2,), "C"),
    ]


def test_members_lie_at_multiples_of_their_size() -> None:
    """i8 at 0, i16 at 2, i32 at 4, f64 at 8, i8 at 16; 24 bytes, a multiple of the largest alignment."""
    assert by_value("{i8=1, i16=2, i32=3, f64=4, i8=5}").content == struct.pack("<bxhidb7x", 1, 2, 3, 4.0, 5)


def test_vectors_are_aligned_to_their_size() -> None:
    """float2 at 8, float3 (aligned to 4) at 16, float4 at 32, int at 48; float4's alignment of 16 makes 64 bytes."""
    got = by_value("{i32=1, f32x2=(1,2), f32x3=(3,4,5), f32x4=(6,7,8,9), i32=7}").content
    assert got == struct.pack("<i4x2f3f4x4fi12x", 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 7)


def test_nested_structs_and_lists() -> None:
    """The inner struct of 16 bytes begins at 8; a list of numbers is an array inside the struct."""
    got = by_value("{u8=255, {i32=(1,2), f64=0.5}, bytes=3, bool=true}").content
    assert got == struct.pack("<B7x2id3x?4x", 255, 1, 2, 0.5, True)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("bf16=1.5", 0x3FC0),
        ("f16=1.5", 0x3E00),
        ("e4m3=1.5", 0x3C),  # exponent 7, fraction .100
        ("e5m2=-1.5", 0xBE),  # exponent 15, fraction .10
        ("u16=65535", 0xFFFF),
        ("bool=true", 1),
    ],
)
def test_scalars_of_short_types(text: str, bits: int) -> None:
    (scalar,) = parsed(text).args
    size = 1 if bits < 256 else 2
    content = by_value(f"{{{text}}}").content
    assert int.from_bytes(content, "little") == bits and len(content) == size
    assert scalar.value in (bits, float(text.partition("=")[2]) if text[0] == "f" else bits)


def test_arrays_in_a_struct_are_pointers() -> None:
    arguments = parsed("{i32=1, A: f32[8], &A, &A[2]+1, ptr=0}", "&A")
    packed, again = arguments.parameters or ()
    assert isinstance(packed, Packed) and len(packed.content) == 40
    assert packed.addresses == (Address(8, 0), Address(16, 0), Address(24, 0, 9))
    assert again == 0, "&A passes the array itself"
    assert [one.name for one in arguments.args] == ["A"]


def test_a_reference_may_come_first() -> None:
    assert parsed("&B", "f32[2]", arrays=("B: f32[3]",)).parameters == (1, 0)


def test_a_table_holds_the_address_of_each_matrix() -> None:
    """Three matrices of 4 x 2 floats lie 32 bytes apart."""
    arguments = parsed("A: ptr[3]=f32[4,2]")
    table, array = arguments.args
    assert (array.name, array.shape, table.name) == ("A", (3, 4, 2), "A.ptr")
    assert table.addresses == (Address(0, 1, 0), Address(8, 1, 32), Address(16, 1, 64))
    held = memory(arguments)
    words = held.arrays()[0]
    assert words is not None and held.pointers[1] is not None
    assert [int(word) - held.pointers[1] for word in words] == [0, 32, 64]


def test_tables_of_named_arrays() -> None:
    whole = parsed("ptr[2]=&A", arrays=("A: f16[3,5,7; ld=8]",))
    assert whole.args[0].addresses == (Address(0, 1, 0), Address(8, 1, 80))
    listed = parsed("ptr[3]=(&A, &A+4, f32[2])", arrays=("A: f32[2]",))
    assert [one.addresses for one in listed.args] == [(Address(0, 2), Address(8, 2, 4), Address(16, 1)), (), ()]
    assert by_value("ptr=(f32[2],ptr=0)").addresses == (Address(0, 0),)


def test_a_struct_in_device_memory() -> None:
    arguments = parsed("P: &{i32=7, A: f32[2]}")
    held = memory(arguments)
    content, array = held.arrays()
    assert arguments.args[0].name == "P" and content is not None and array is not None
    assert content.tobytes() == struct.pack("<i4xQ", 7, held.pointers[1])


def test_layouts() -> None:
    """Strides in bytes, and where the first element lies."""
    strides = {
        "f32[4,6; ld=8]": ((32, 4), 0),
        "f32[4,6; col]": ((4, 16), 0),
        "f32[4,6; col, ld=5, offset=3]": ((4, 20), 12),
        "f16[2,4,6; ld=8]": ((64, 16, 2), 0),
        "f16[3,2,4,6; col]": ((96, 48, 2, 8), 0),
        "i8[4,6; strides=1/9]": ((1, 9), 0),
        "s4[4,6; ld=8]": ((4, 1), 0),
        "u8[7; offset=1]": (None, 1),
    }
    for text, (wanted, offset) in strides.items():
        (one,) = parsed(text).args
        assert (one.strides_bytes, one.offset_bytes) == (wanted, offset), text


def test_a_pitched_array_in_memory() -> None:
    """Rows of 2 elements lie 3 apart, behind one element: bytes of no element are 0xff."""
    arguments = parsed("u8[2,2; ld=3, offset=1]=(1,2,3,4)")
    held = memory(arguments)
    assert held.sizes.tolist() == [1 + 3 + 2]
    assert held.pointers[0] == int(held.starts[0]) + 1
    assert held._content[0][:6].tolist() == [255, 1, 2, 255, 3, 4]
    held._content[0][4] = 9
    held.written[4] = held.touched[0] = True
    (array,), (stored,) = held.arrays(), held.stored()
    assert array is not None and stored is not None
    assert array.tolist() == [[1, 2], [9, 4]] and stored.tolist() == [[False, False], [True, False]]
    held.restore()
    assert array.tolist() == [[1, 2], [3, 4]] and not held.written.any()


def test_an_element_counts_as_stored_where_all_its_bytes_are() -> None:
    """Rows of two f16 lie 6 bytes apart; bytes 6 to 8 are the second row's first element and half of its second."""
    held = memory(parsed("f16[2,2; ld=3]=0"))
    held.written[6:9] = held.touched[0] = True
    (stored,) = held.stored()
    assert stored is not None and stored.tolist() == [[False, False], [True, False]]


def test_addresses_that_a_kernel_overwrites_come_back() -> None:
    held = memory(parsed("ptr[2]=(f32[2], f32[2])"))
    content = held.arrays()[0]
    assert content is not None
    addresses = struct.pack("<2Q", *(one or 0 for one in held.pointers[1:]))
    assert content.tobytes() == addresses
    content[:] = 0
    held.written[:16] = held.touched[0] = True
    held.restore()
    assert content.tobytes() == addresses


def test_packed_integers_have_two_a_byte() -> None:
    """The first element has the low bits: 1 and -2 (0xe) make 0xe1."""
    arguments = parsed("s4[2,2]=(1,-2,7,-8)", "u4[2]=3")
    first, second = memory(arguments).arrays()
    assert first is not None and second is not None
    assert first.tolist() == [[0xE1], [0x87]] and second.tolist() == [0x33]


def test_bytes_from_a_file_with_addresses(tmp_path: Path) -> None:
    path = tmp_path / "params.bin"
    path.write_bytes(bytes(range(24)))
    arguments = parsed(f"bytes=@{path}{{0x8: &A, 4: i16=-1}}", arrays=("A: f32[2]",))
    (packed,) = arguments.parameters or ()
    assert isinstance(packed, Packed)
    assert packed.content == bytes([0, 1, 2, 3, 255, 255, 6, 7, *[0] * 8, *range(16, 24)])
    assert packed.addresses == (Address(8, 0),)


def test_arrays_from_files(tmp_path: Path) -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "in.npz", A=values, B=values + 1)
    values.tofile(tmp_path / "a.bin")
    texts = (
        f"@{tmp_path}/a.npy",
        f"A: @{tmp_path}/in.npz",
        f"@{tmp_path}/in.npz:B",
        f"f32[3,2]=@{tmp_path}/a.bin",
        f"bf16[2,3]=@{tmp_path}/a.npy",
    )
    plain, member, other, raw, halves = memory(parsed(*texts)).arrays()
    assert plain is not None and member is not None and other is not None and raw is not None and halves is not None
    assert plain.tolist() == member.tolist() == values.tolist()
    assert other.tolist() == (values + 1).tolist() and raw.tolist() == values.reshape(3, 2).tolist()
    assert halves.tolist() == [[0, 0x3F80, 0x4000], [0x4040, 0x4080, 0x40A0]]


def test_a_pickle_is_never_read(tmp_path: Path) -> None:
    np.save(tmp_path / "bad.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(GemmsimError, match="Object arrays cannot be loaded"):
        parsed(f"@{tmp_path}/bad.npy")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "a struct needs a member"),
        ("{i32=1 i32=2}", "',' is missing between the members of a struct"),
        ("{i32=1", "',' is missing between"),
        ("{i32}", "a scalar needs a value"),
        ("&B", r"no array is called 'B': there are no arrays"),
        ("{Left: f32[2], &Lft}", r"no array is called 'Lft' \(did you mean 'Left'\?\): the arrays are Left"),
        ("{A: f32[2], A: f32[2]}", "two arrays are called 'A'"),
        ("{A: f32[2], &A[2]}", r"'A' is f32\[2\]: it has no element \[2\]"),
        ("{A: f32[2], &A+9}", "'A' has 8 bytes, 9 lies beyond them"),
        ("ptr[2]=(f32[1])", r"ptr\[2\] needs 2 addresses, 1 is given"),
        ("ptr[2]=i32=1", "takes an array, a reference"),
        ("f32[4,4; lda=8]", "layout 'lda=8' is not known"),
        ("f32[4,4; ld=3]", "ld=3 is less than the 4 elements of a line"),
        ("f32[4; ld=8]", "col and ld are for arrays of two or more dimensions"),
        ("f32[4,4; strides=1]", "strides need one number for each dimension"),
        ("s4[4,3]", "the last size of s4 must be even"),
        ("s4[4,4; col]", "s4 is packed along its last dimension"),
        ("s4[2]=(1,8)", "8 does not fit s4, which holds -8 to 7"),
        ("f32[3]=(1,2)", "the array has 3 elements, 2 numbers are given"),
        ("f32x2=1", r"f32x2 takes 2 numbers, as in f32x2=\(1,2\)"),
        ("bytes=0", "0 bytes: expected 1 to"),
        ("ptr[0]=&A", "0 addresses: expected 1 to"),
        ("{" * 500, "structs are nested more than 64 deep"),
        ("f16[4]=70000", "70000 does not fit f16, which holds up to 65504"),
        ("f32=1e39", r"1e\+39 does not fit f32, which holds up to 3\.40282e\+38"),
        ("bytes=8{4: ptr=0}", "0x4 to 0xc lies beyond the 8 bytes"),
        ("f32[2]=@absent.npy", "cannot read 'absent.npy': No such file"),
        ("f32[2] i32=1", "'i32=1' was not expected"),
        ("{f32[2], ?}", r"expected an array such as .* at '\?\}'"),
    ],
)
def test_bad_texts(text: str, message: str) -> None:
    with pytest.raises(GemmsimError, match=message) as caught:
        parsed(text)
    assert "\n" not in str(caught.value) and str(caught.value).startswith("--arg '")


def test_bad_files(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 3)))
    np.savez(tmp_path / "in.npz", A=np.zeros(2), B=np.zeros(2))
    (tmp_path / "raw.bin").write_bytes(bytes(5))
    for text, message in {
        f"f32[2,3]=@{tmp_path}/a.npy": r"the file holds float64, but f32\[2,3\] was asked for",
        f"f64[3,2]=@{tmp_path}/a.npy": r"the file's array is \[2, 3\], but f64\[3,2\]",
        f"C: f64[2]=@{tmp_path}/in.npz": "has no array 'C': it holds A, B",
        f"f32[2]=@{tmp_path}/raw.bin": "the file has 5 bytes, but f32.* needs 8",
        f"@{tmp_path}/raw.bin": "holds raw bytes: write TYPE",
    }.items():
        with pytest.raises(GemmsimError, match=message):
            memory(parsed(text))


def test_an_array_option_needs_a_name() -> None:
    for text in ("f32[2]", "i32=1", "{f32[2]}"):
        with pytest.raises(GemmsimError, match="expected a name and an array"):
            parsed(arrays=(text,))


def test_variables_of_the_module() -> None:
    texts = ("scale=f32=2", "table=f32[2]=(3,4)", "where=&C+4", "shape={i32=5, &C}", "half=bf16=1")
    arguments = parse_arguments(["f32[4]"], ["C: f32[8]"], texts)
    assert [one.name for one in arguments.args] == ["", "C"]
    assert arguments.parameters == (0,)
    launch = Launch((1, 1, 1), (1, 1, 1), arguments.args, 0, arguments.parameters, symbols=arguments.symbols)
    held = dict(with_arrays(launch, 1).symbols)
    assert list(held) == ["scale", "table", "where", "shape", "half"]
    assert np.asarray(held["scale"].value).tolist() == [2.0]
    assert np.asarray(held["table"].value).tolist() == [3.0, 4.0]
    assert held["where"].addresses == (Address(0, 1, 4),)
    assert bytes(np.asarray(held["shape"].value))[:4] == struct.pack("<i", 5)
    assert held["shape"].addresses == (Address(8, 1),)
    assert held["half"].shape == (1,)
    assert np.asarray(held["half"].value).tolist() == [0x3F80]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("scale", "--symbol 'scale' is malformed: expected NAME=VALUE"),
        ("=f32=1", "is malformed"),
        ("scale=2", "--symbol 'scale=2' is malformed"),
        ("scale=f32[2; pad 8]", "layout|malformed|row"),
    ],
)
def test_malformed_variables(text: str, said: str) -> None:
    with pytest.raises(GemmsimError, match=said):
        parse_arguments([], [], [text])


def test_a_variable_that_is_given_twice() -> None:
    with pytest.raises(GemmsimError, match="--symbol a is given twice"):
        parse_arguments([], [], ["a=i32=1", "a=i32=2"])
