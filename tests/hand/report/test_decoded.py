"""What gemmsim decode prints of kernels that are given here."""

from __future__ import annotations

import json

from gemmsim.report.decoded import DecodedKernel, MissingRow, ParameterRow, VariableRow, render_json, render_text

WHOLE = DecodedKernel(
    name="void f<8>(float*, Params)",
    symbol="_Z1fILi8EEvPf6Params",
    arch="sm_80",
    origin="the sm_80 cubin in prog",
    toolchain={"ptxas": "13.0.88"},
    instructions=1200,
    registers=40,
    static_shared_bytes=4096,
    maximal_dynamic_shared_bytes=162816,
    local_bytes=16,
    barriers=1,
    max_threads=256,
    parameters=(ParameterRow("float*", 0, 8), ParameterRow("Params", 8, 232)),
    constant_bytes={3: 16},
    variables=(VariableRow("counter", "global", 4), VariableRow("table", "constant", 1024)),
    calls=("vprintf",),
    missing=(MissingRow("opcode LEPC", 2, "LEPC R20"), MissingRow("modifier .COS of MUFU.COS", 1, "MUFU.COS R1, R2")),
)
PLAIN = DecodedKernel("g", "g", "sm_80", "", {}, instructions=3, registers=8)
UNREADABLE = DecodedKernel("h", "h", "sm_70", "the sm_70 cubin in prog", {}, "gemmsim reads sm_75 and later")


def test_text() -> None:
    assert render_text("prog", [WHOLE, PLAIN, UNREADABLE]) == (
        "prog: 3 kernels, of which gemmsim executes 1\n"
        "\n"
        "void f<8>(float*, Params)\n"
        "  symbol      _Z1fILi8EEvPf6Params\n"
        "  code        the sm_80 cubin in prog; ptxas 13.0.88\n"
        "  resources   1,200 instructions, 40 registers, 16 bytes of stack, 1 barrier, at\n"
        "                most 256 threads a block\n"
        "  shared      4,096 bytes of static, and at most 162,816 bytes of dynamic\n"
        "  parameters  0x0000      8 bytes  float*\n"
        "              0x0008    232 bytes  Params\n"
        "  constants   bank 3: 16 bytes\n"
        "  variables               4 bytes  global counter\n"
        "                      1,024 bytes  constant table\n"
        "  calls       vprintf\n"
        "  missing     opcode LEPC (2), as in 'LEPC R20'\n"
        "              modifier .COS of MUFU.COS (1), as in 'MUFU.COS R1, R2'\n"
        "\n"
        "g\n"
        "  code        compiled here for sm_80\n"
        "  resources   3 instructions, 8 registers, 0 bytes of stack, 0 barriers\n"
        "  shared      0 bytes of static\n"
        "  parameters  none\n"
        "  missing     nothing: gemmsim executes it\n"
        "\n"
        "h\n"
        "  code        the sm_70 cubin in prog\n"
        "  problem     gemmsim reads sm_75 and later\n"
    )


def test_json_holds_the_same() -> None:
    document = json.loads(render_json("prog", [WHOLE, UNREADABLE]))
    assert document["file"] == "prog" and document["schema"] == 1
    first, second = document["kernels"]
    assert first["missing"][0] == {"what": "opcode LEPC", "instructions": 2, "example": "LEPC R20"}
    assert first["parameters"][1] == {"type": "Params", "offset_bytes": 8, "size_bytes": 232}
    assert first["constant_bytes"] == {"3": 16}
    assert second["problem"] == "gemmsim reads sm_75 and later"
