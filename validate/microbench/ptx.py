"""PTX of a timed loop: what all microbenchmarks share.

A kernel takes (out, data, count, other). Each warp writes four 64-bit words to out[warp]: clock before, clock after,
SM, sink. `step` is repeated `unroll` times in a loop of `count` rounds; timing two unrolls and dividing the difference
by the difference of steps leaves nothing of the loop itself. The compiler unrolls no further.
"""

from __future__ import annotations

from collections.abc import Callable

WORDS_A_WARP = 4
UNROLLS = (32, 96)  # of which the difference is taken


def module(arch: str, kernels: dict[str, str]) -> str:
    """One PTX module for "sm_90"."""
    return "\n".join([".version 8.7", f".target {arch}", ".address_size 64", *kernels.values()])


def unrolled(
    entry: str, before: str, step: Callable[[int], str], after: str, shared_bytes: int = 0, timed: bool = True
) -> dict[str, str]:
    """`entry`_32 and `entry`_96 (see UNROLLS)."""
    return {
        f"{entry}_{n}": kernel(f"{entry}_{n}", before, "\n".join(map(step, range(n))), after, shared_bytes, timed)
        for n in UNROLLS
    }


def kernel(entry: str, before: str, body: str, after: str, shared_bytes: int = 0, timed: bool = True) -> str:
    """A kernel whose timed part is `body` in a loop of %count rounds.

    before, body, after use %r, %d, %f, %g, %p (b32, b64, f32, f64, predicates; %p0, %i and the named ones below are
    taken): %data, %count, %other, %thread, %lane, %block, and the shared array `area`. `after` leaves what it computed
    in %sink (b32), which the last clock waits for. timed: False leaves clocks and SM out.
    """
    clock = "mov.u64 %{}, %clock64;" if timed else "mov.u64 %{}, 0;"
    return f"""
.visible .entry {entry}(.param .u64 p_out, .param .u64 p_data, .param .u32 p_count, .param .u32 p_other)
.pragma "nounroll";
{{
    .reg .pred %p<8>;
    .reg .b32 %r<128>;
    .reg .b64 %d<64>;
    .reg .f32 %f<128>;
    .reg .f64 %g<32>;
    .reg .b64 %out, %data, %start, %stop, %slot, %sm64, %sink64;
    .reg .b32 %count, %other, %thread, %lane, %block, %threads, %warp, %sm, %sink, %i;
    .shared .align 16 .b8 area[{max(16, shared_bytes)}];
    .shared .align 4 .b32 sinks[32];
    ld.param.u64 %out, [p_out];
    ld.param.u64 %data, [p_data];
    ld.param.u32 %count, [p_count];
    ld.param.u32 %other, [p_other];
    mov.u32 %thread, %tid.x;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    and.b32 %lane, %thread, 31;
    mad.lo.u32 %warp, %block, %threads, %thread;
    shr.u32 %warp, %warp, 5;
    mad.wide.u32 %slot, %warp, {8 * WORDS_A_WARP}, %out;
    mov.u32 %sink, 0;
    {before}
    bar.sync 0;
    {clock.format("start")}
    mov.u32 %i, 0;
LOOP:
    {body}
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, %count;
    @%p0 bra LOOP;
    {after}
    st.volatile.shared.u32 [sinks], %sink;
    {clock.format("stop")}
    {"mov.u32 %sm, %smid;" if timed else "mov.u32 %sm, 0;"}
    cvt.u64.u32 %sm64, %sm;
    cvt.u64.u32 %sink64, %sink;
    setp.eq.u32 %p0, %lane, 0;
    @%p0 st.global.v2.u64 [%slot], {{%start, %stop}};
    @%p0 st.global.v2.u64 [%slot+16], {{%sm64, %sink64}};
    ret;
}}"""


def fold(registers: list[str]) -> str:
    """PTX that makes %sink depend on b32 registers."""
    return "\n".join(f"xor.b32 %sink, %sink, {register};" for register in registers)
