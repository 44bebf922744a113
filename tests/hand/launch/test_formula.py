"""What --verify FORMULA is read as, and which texts are refused."""

from __future__ import annotations

import pytest

from gemmsim.launch.argument_text import parse_arguments
from gemmsim.launch.checks import array_names
from gemmsim.launch.formula import Call, Formula, Leaf, Number, Product, Transposed, leaves, parse_formula
from gemmsim.support.errors import GemmsimError

ARGS = parse_arguments(
    (
        "A: f16[4,6]",
        "B: f16[5,6]",
        "bias: f32[5]",
        "D: f32[4,5]",
        "X: f32[3,4,6]",
        "Y: f32[3,4,5]",
        "W: s4[4,6]",
        "i32=1",
    )
).args


def parsed(text: str) -> Formula:
    return parse_formula(text, ARGS, array_names(ARGS), {"alpha": 0.5})


def test_a_formula_of_a_fused_gemm() -> None:
    formula = parsed("D = relu(alpha * (A @ B.T) + bias)")
    product = Product(Leaf(0, (4, 6)), Transposed(Leaf(1, (5, 6)), (6, 5)), (4, 5))
    scaled = Call("*", (Number(0.5), product), (4, 5))
    assert formula.output == 3
    assert formula.value == Call("relu", (Call("+", (scaled, Leaf(2, (5,))), (4, 5)),), (4, 5))
    assert [leaf.position for leaf in leaves(formula.value)] == [0, 1, 2]


def test_shapes() -> None:
    """A batch against one matrix; a packed array counts elements; a column vector; what is stretched to the output."""
    assert parsed("Y = X @ B.T").value.shape == (3, 4, 5)
    assert parsed("D = W @ B.T").value.shape == (4, 5)
    assert parsed("D = bias").value.shape == (5,)
    assert parsed("D = 2").value.shape == ()
    assert parsed("X = X + A").value.shape == (3, 4, 6)
    with pytest.raises(GemmsimError, match=r"\[4, 5\] \+ \[5, 1\]: the shapes do not agree"):
        parsed("D = D + column(bias)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gem", "is not known: expected gemm, or a formula"),
        ("D = ", "'' is no expression"),
        ("D = A @", "is no expression"),
        ("Q = A", "nothing is called 'Q': known are A, B, bias, D, X, Y, W, alpha"),
        ("D = A @ Bb.T", r"nothing is called 'Bb' \(did you mean 'B'\?\)"),
        ("D = A @ B", r"\[4, 6\] @ \[5, 6\]: the shapes do not agree"),
        ("D = A @ bias", "the shapes do not agree"),
        ("D = X @ B.T", r"\[3, 4, 5\], but D is \[4, 5\]"),
        ("A = A @ B.T", r"the shapes do not agree|but A is"),
        ("D = relo(D)", r"no function 'relo' \(did you mean 'relu'\?\)"),
        ("D = max(D)", "max takes 2 arguments, not 1"),
        ("D = bias.T", ".T needs two dimensions"),
        ("D = column(D)", "takes a vector"),
        ("D = __import__('os')", "is not known"),
        ("D = D if 1 else D", "is not known: use"),
        ("D = D[0]", "is not known: use"),
        ("D = " + "-" * 600 + "D", "is not known: expected gemm"),
        ("D = arg7 + D", "nothing is called 'arg7'"),
    ],
)
def test_bad_formulas(text: str, message: str) -> None:
    with pytest.raises(GemmsimError, match=message) as caught:
        parsed(text)
    assert "\n" not in str(caught.value)
