"""Says what each opcode computes, lane by lane. Each micro-operation is one small function.

The annotations of a function are the types of its operands, in the order in which `gemmsim.trace.lower` gives them:

    u32, s32, f32      one register          u64, s64, f64      a register pair
    pred               a predicate           imm                a number fixed by the instruction (a u32 in every lane)

The return annotation lists up to three results. The signs `-x`, `|x|`, `~x` and `!p` have been applied to an operand
before the function gets it. Only the integer `-x` arrives as ~x, because the carry of a + ~b + 1 is part of the result:
the operand `negations` says how often 1 must still be added.

Sources: the PTX ISA manual for the operations that SASS opcodes implement, the CUDA binary utilities manual for the
opcode names, and comparison with an H200 (tests/records) where neither says enough.
"""
