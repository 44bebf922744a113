"""What each opcode computes, lane by lane: one small function a micro-operation.

A function's annotations are its operand types, in the order in which `gemmsim.trace.lower` supplies them:

    u32, s32, f32      one register          u64, s64, f64      a register pair
    pred               a predicate           imm                a number fixed by the instruction (a u32 in every lane)

and its return annotation lists what it writes (up to three). `-x`, `|x|`, `~x` and `!p` have been applied to the
operand before the function sees it, except for the integer `-x`: it arrives as ~x, and `negations` counts how many ones
are still to be added, because the carry of a + ~b + 1 is part of the result.

Sources: the PTX ISA manual for the operations that SASS opcodes implement, the CUDA binary utilities manual for the
opcode names, and comparison with an H200 (tests/records) where neither says enough.
"""
