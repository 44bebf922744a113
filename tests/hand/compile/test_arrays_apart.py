"""Shared arrays in PTX that are placed apart: where each begins, what names it, and what is left alone."""

from __future__ import annotations

import pytest

from gemmsim.compile.arrays_apart import arrays_apart
from gemmsim.isa.shared_arrays import SharedArray
from gemmsim.support.errors import GemmsimError

PTX = """.version 8.0
.target sm_90
.address_size 64

.extern .shared .align 16 .b8 dynamic[];
.shared .align 8 .b8 both[64];
.shared .align 4 .b8 unused[64];

.visible .entry other(
	.param .u64 p
)
{
	.shared .align 4 .b8 x[4096];
	mov.u32 	%r1, both;
	ret;
}

.visible .entry mine(
	.param .u64 p
)
.maxntid 64
{
	.reg .b32 %r<9>;
	// } in a remark
	.shared .align 4 .b8 x[32];
	.shared .align 16 .b8 _ZZ4mineE3row[20];
	.shared .u16 one;
	mov.u32 	%r1, x;
	add.s32 	%r2, %r1, 4;
	ld.shared.u32 	%r3, [_ZZ4mineE3row+8];
	st.shared.u32 	[x+-4], %r3;
	{ .reg .pred x1; mov.u32 %r4, both; }
	mov.u32 	%r5, dynamic;
	ld.shared.u16 	%r6, [one];
	call.uni 	helper, ();
	ret;
}

.func helper()
{
	.shared .align 4 .b8 x[8];
	st.shared.u32 	[x], %r1;
	ret;
}
"""


def test_each_array_has_gaps_on_both_sides() -> None:
    """A gap is as long as the longer array beside it, and 16 bytes at least.

    both: behind 64 bytes, 64 to 128. x of the kernel: a gap of 64, 192 to 224. row: a gap of 32, 256 to 276. one: a gap
    of 20, 296 to 298. x of the function: a gap of 16, from 314 on, which is no multiple of 4: 316 to 324. Then 16.
    """
    apart = arrays_apart(PTX, "mine")
    assert apart.arrays == (
        SharedArray("both", 64, 64),
        SharedArray("x", 192, 32),
        SharedArray("row", 256, 20),
        SharedArray("one", 296, 2),
        SharedArray("x", 316, 8),
    )
    assert apart.total_bytes == 340
    lines = [line.strip().replace("\t", " ") for line in apart.text.splitlines() if line.strip()]
    assert [line for line in lines if "gemmsim" in line] == [
        ".shared .align 16 .b8 gemmsim_arrays_apart[340];",
        "mov.u32  %r1, gemmsim_arrays_apart+192;",
        "ld.shared.u32  %r3, [gemmsim_arrays_apart+264];",
        "st.shared.u32  [gemmsim_arrays_apart+188], %r3;",
        "{ .reg .pred x1; mov.u32 %r4, gemmsim_arrays_apart+64; }",
        "ld.shared.u16  %r6, [gemmsim_arrays_apart+296];",
        "st.shared.u32  [gemmsim_arrays_apart+316], %r1;",
    ]
    assert "mov.u32  %r5, dynamic;" in lines and ".extern .shared .align 16 .b8 dynamic[];" in lines
    assert "other" not in apart.text and "// } in a remark" in lines


def test_gaps_shrink_until_all_fits() -> None:
    """Three arrays of 15,000 bytes leave 4,152 of 49,152, in which four gaps of 1,024 fit. Three of 16,300 bytes leave
    252, in which four of 32 fit; of 16,380 they leave 12, too few for four of 16."""
    for size, gap in ((15_000, 1024), (16_300, 32)):
        apart = arrays_apart(_three(size), "mine")
        assert apart.arrays[0].begin == gap
        assert apart.total_bytes <= 48 << 10
    with pytest.raises(GemmsimError, match=r"^arrays of 49,140 bytes leave no room for gaps in 48 KiB$"):
        arrays_apart(_three(16_380), "mine")


def test_nothing_is_moved_that_is_not_understood() -> None:
    with pytest.raises(GemmsimError, match="not understood"):
        arrays_apart(_three(64).replace(".b8 b[64]", ".v4 .b8 b[64]"), "mine")
    with pytest.raises(GemmsimError, match="no kernel of that name"):
        arrays_apart(PTX, "neither")
    with pytest.raises(GemmsimError, match="no shared array"):
        arrays_apart(".entry mine() { ret; }", "mine")


def test_the_only_kernel_is_found_by_any_name() -> None:
    """The name of a shipped numba program has another number than that of the kernel as it is compiled now."""
    assert arrays_apart(_three(64), "mineB3v15") == arrays_apart(_three(64), "mine")


def _three(size: int) -> str:
    arrays = "".join(f".shared .align 4 .b8 {name}[{size}];\n" for name in "abc")
    return f"{arrays}.entry mine() {{\nmov.u32 %r1, a;\nmov.u32 %r1, b;\nmov.u32 %r1, c;\n}}\n"
