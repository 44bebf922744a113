"""The manifest of foreign kernels, and the run of a made-up checkout: right, wrong, refused and not compiled."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from gemmsim_validate.cli.wild import command
from gemmsim_validate.documents import render
from gemmsim_validate.records.select import replayable_cases
from gemmsim_validate.wild.document import MADE_BY, TITLE, sections
from gemmsim_validate.wild.extract import extracted
from gemmsim_validate.wild.formula import evaluate, filled
from gemmsim_validate.wild.manifest import ARCHITECTURES, read_manifest
from gemmsim_validate.wild.measured import RECORDS, measured_section
from gemmsim_validate.wild.outcomes import Outcome, load, merged, save
from gemmsim_validate.wild.programs import load_runs, programs_section
from gemmsim_validate.wild.reference import Before, decoded
from gemmsim_validate.wild.references import REFERENCES, compare, expected

import gemmsim.gpu
from gemmsim.support.errors import GemmsimError
from gemmsim.trace.types import Argument

MANIFEST = """
repository = "someone/gemm"
commit = "0"
licence = "none"

[[kernel]]
name = "multiply"
file = "{FILE}.cu"
compile = ["nvrtc"]
entry = "multiply"
sizes = { M = 8, N = 16, K = 4 }
each = [{ FILE = "right" }, { FILE = "wrong" }, { FILE = "refused" }, { FILE = "absent" }]
architectures = ["sm_90"]
grid = [4]
block = [32]
args = ["f32[{M},{K}]", "f32[{K},{N}]", "f32[{M},{N}]", "i32={N}", "i32={K}"]
check = { kind = "gemm", m = "M", n = "N", k = "K", a = 0, b = 1, c = 2 }
"""
SOURCE = """
extern "C" __global__ void multiply(const float* a, const float* b, float* c, int n, int k) {
    int at = blockIdx.x * 32 + threadIdx.x;
    float total = 0;
    for (int i = FIRST; i < k; ++i) total += a[at / n * k + i] * b[i * n + at % n];
    c[at] = total;
}
"""


def checkout(folder: Path) -> tuple[Path, Path]:
    """Make a manifest and a checkout for it; return (manifest, root)."""
    manifest, root = folder / "manifest", folder / "root"
    files = root / "someone+gemm"
    files.mkdir(parents=True)
    manifest.mkdir()
    (manifest / "gemm.toml").write_text(MANIFEST)
    (files / "right.cu").write_text(SOURCE.replace("FIRST", "0"))
    (files / "wrong.cu").write_text(SOURCE.replace("FIRST", "1"))
    (files / "refused.cu").write_text(SOURCE.replace("FIRST", "0").replace("a[at / n * k", "a[1000000 + at / n * k"))
    return manifest, root


def test_a_checkout_is_run_and_compared_with_numpy(tmp_path):
    manifest, root = checkout(tmp_path)
    results, page = tmp_path / "results.json", tmp_path / "page.md"
    options = {"root": root, "manifest": manifest, "results": results, "jobs": 2, "format": "md", "output": page}
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert done.return_value == 1, done.output  # a result is wrong
    found = {one.case.split("FILE=")[1].split("]")[0]: one for one in load(results)}
    assert {name: one.status for name, one in found.items()} == {
        "right": "right",
        "wrong": "wrong",
        "refused": "refused",
        "absent": "not compiled",
    }
    assert found["right"].instructions > 0 and "elements of argument 2 differ" in found["wrong"].reason
    assert "out-of-bounds" in found["refused"].reason and "no checkout" in found["absent"].reason
    made = page.read_text()
    assert "| sm_90 | 3 | 1 | 1 | 1 | 33.3 % |" in made and "have not been tried" not in made
    assert "| someone/gemm | nvrtc | 4 | - | - | - | 1 of 3 | - |" in made


def test_the_page_says_what_has_not_been_tried(tmp_path):
    cases = read_manifest(checkout(tmp_path)[0])
    page = render.text(sections(cases, [Outcome(cases[0].id, "sm_90", "right")]))
    assert "make 1 pairs" in page and "3 of the manifest's 4 pairs have not been tried yet" in " ".join(page.split())


def test_the_page_that_ships_says_what_needs_no_checkouts_as_it_is_today():
    """Sections of what ran need the checkouts. Those of records, programs and the manifest can be made without them."""
    page = (Path(__file__).parents[2] / "docs" / "compatibility.md").read_text(encoding="utf-8")
    cases, found = read_manifest(), replayable_cases([RECORDS])
    *ran, sources = sections(cases, [])
    today = [measured_section(found), programs_section(load_runs()), sources]
    head = render.markdown([], MADE_BY, TITLE)
    assert page.startswith(head) and page.endswith(render.markdown(today, MADE_BY, TITLE).removeprefix(head))
    assert re.findall("^## (.+)$", page, re.MULTILINE) == [one.title for one in (*ran, *today)]
    assert "130 launches of 80 kernels" in page
    presets = Path(gemmsim.gpu.__file__).with_name("presets").rglob("*.toml")
    assert not any(RECORDS.name in path.read_text(encoding="utf-8") for path in presets), "the page says that none does"


def test_a_second_run_keeps_what_it_leaves_out(tmp_path):
    old, new = Outcome("x/y/k@nvcc", "sm_80", "right"), Outcome("x/y/k@nvcc", "sm_90", "wrong", "why")
    save([old, new], tmp_path / "r.json")
    assert load(tmp_path / "r.json") == [old, new]
    better = Outcome("x/y/k@nvcc", "sm_90", "right")
    assert merged([old, new], [better]) == [old, better]
    (tmp_path / "r.json").write_text(json.dumps({"no": "list"}))
    with pytest.raises(GemmsimError, match="cannot read outcomes"):
        load(tmp_path / "r.json")


def test_the_manifest_that_ships_is_whole():
    cases = read_manifest()
    assert len({case.id for case in cases}) == len(cases) > 100
    for case in cases:
        assert set(case.architectures) <= set(ARCHITECTURES) and case.check["kind"] in REFERENCES
        names = {**case.sizes, "ROOT": "/r", "OWN": "/o"}
        for text in (*case.args, *case.options, *case.before):
            filled(text, names)
        assert all(evaluate(formula, names) > 0 for formula in (*case.grid, *case.block))


@pytest.mark.parametrize(
    ("formula", "value"), [("M/64*N/64", 4 * 3), ("M*N+2", 200 * 130 + 2), ("7-2-1", 4), (5, 5), ("M/64/2", 2)]
)
def test_formulas(formula, value):
    assert evaluate(formula, {"M": 200, "N": 130}) == value


@pytest.mark.parametrize("formula", ["", "M*", "Q", "M N", "2.5"])
def test_what_is_no_formula_is_refused(formula):
    with pytest.raises(GemmsimError):
        evaluate(formula, {"M": 1, "N": 1})


def test_definitions_are_taken_out_of_a_file_that_cannot_run(tmp_path):
    file = tmp_path / "tutorial.py"
    file.write_text(
        "import torch\nimport math\nDEVICE = torch.device()\n\n\ndef test():\n    SIZE = 4\n\n"
        "    @tune(configs())\n    @cuda.jit(signature)\n    def kernel(x):\n        x[0] = SIZE\n"
    )
    taken = extracted(file, ["SIZE", "kernel"], ["more = 1"])
    assert taken == "import math\nmore = 1\n\nSIZE = 4\n\n@cuda.jit\ndef kernel(x):\n    x[0] = SIZE\n"
    with pytest.raises(GemmsimError, match="does not define other"):
        extracted(file, ["other"])


def test_values_of_types_that_numpy_lacks():
    assert decoded(np.array([0x00, 0x01, 0x38, 0x7E, 0xB8], np.uint8), "e4m3").tolist() == [0, 2**-9, 1, 448, -1]
    assert decoded(np.array([0x3F80, 0xC000], np.uint16), "bf16").tolist() == [1, -2]


def test_the_error_allowed_of_a_product():
    a, b = np.array([[1, 2]], np.float32), np.array([[3], [4]], np.float32)
    args = [Argument("f32", a.shape, a), Argument("f32", b.shape, b), Argument("f32", (1, 1), np.zeros((1, 1)))]
    check = {"kind": "gemm", "m": 1, "n": 1, "k": 2, "a": 0, "b": 1, "c": 2, "alpha": 2.0}
    (wanted,) = expected(Before(args, check, {}))
    assert wanted.values.tolist() == [22]
    allowed = float(np.asarray(wanted.allowed)[0])
    assert allowed == pytest.approx((2 * 5 + 1) * 2**-24 * 22)
    assert compare(wanted, np.array([22 + 0.9 * allowed])) == ""
    assert "1 of 1 elements" in compare(wanted, np.array([22 + 1.1 * allowed]))
    assert "nan" in compare(wanted, np.array([np.nan]))


def test_the_error_allowed_of_a_product_of_fp8():
    """Each of 32 products and the sum before them is cut 13 places below the largest of them, and so is their sum."""
    a = np.full((1, 64), 0x38, np.uint8)  # 1 in e4m3
    a[0, 32] = 0x48  # 4
    args = [Argument("e4m3", (1, 64), a), Argument("e4m3", (64, 1), np.full((64, 1), 0x38, np.uint8))]
    args.append(Argument("f32", (1, 1), np.zeros((1, 1))))
    check = {"kind": "gemm", "m": 1, "n": 1, "k": 64, "a": 0, "b": 1, "c": 2}
    (wanted,) = expected(Before(args, check, {}))
    assert wanted.values.tolist() == [67]
    lost = 33 * 2**-13 * 1  # of the first 32 products
    lost += 2**-13 * (32 + lost)  # of their sum
    lost += 33 * 2**-13 * (32 + lost)
    lost += 2**-13 * (67 + lost)
    rounding = (2 * 67 + 1) * 2**-24 * 67
    assert float(np.asarray(wanted.allowed)[0]) == pytest.approx(lost + rounding)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_nvcc_instantiates_a_template(tmp_path):
    from gemmsim_validate.wild.nvcc import compile_cubin, including

    from gemmsim.compile.decode import decode_cubin

    file = tmp_path / "kernel.cuh"
    file.write_text("template <int N> __global__ void fill(int* x) { x[threadIdx.x] = N; }\n")
    cubin = compile_cubin(including(file, "fill<7>", ()), tmp_path, "sm_90", ())
    assert decode_cubin(cubin, "fill").name == "fill"
    with pytest.raises(GemmsimError, match="error"):
        compile_cubin(including(file, "fall<7>", ()), tmp_path, "sm_90", ())


def test_addresses_in_a_parameter_that_a_program_printed():
    from gemmsim_validate.wild.host import packed

    from gemmsim.trace.types import Address

    words = [7, 0x7A00_0000_0000_0000, 0x7A00_0300_0000_0010]
    found = packed(b"".join(word.to_bytes(8, "little") for word in words) + b"\1\2")
    assert found.addresses == (Address(8, 0), Address(16, 3, 0x10))
    assert found.content == (7).to_bytes(8, "little") + bytes(16) + b"\1\2"


def test_tensor_maps_in_a_parameter_that_a_program_printed():
    """The program's word in place of a map: call 1, a map of bf16 [40, 64] that is 16 bytes into array 2."""
    from gemmsim_validate.wild.host import said

    from gemmsim.launch.tensor_maps import TYPES, Tile, encoded
    from gemmsim.trace.types import Address, Packed

    content = (9).to_bytes(8, "little") + (0x7B00_0000_0000_0001).to_bytes(8, "little") + bytes(120)
    found = said(
        "grid 2 3 1\nblock 384 1 1\nshared 100\ncluster 2 1 1\n"
        "map 0 type 0 address 0 swizzle 0 promotion 2 fill 0 sizes 16 strides box 16 steps 1\n"
        f"map 1 type 9 address {0x7A00_0200_0000_0010} swizzle 3 promotion 2 fill 0 "
        "sizes 64 40 strides 128 box 64 8 steps 1 1\n"
        f"parameter {content.hex()}\n",
        b"",
    )
    assert (found.grid, found.block, found.shared_bytes, found.cluster) == ((2, 3, 1), (384, 1, 1), 100, (2, 1, 1))
    assert found.maps == (8,) and TYPES["bf16"] == 10  # 9 for the driver, 10 in PTX
    made = encoded(Tile((8, 64), "128B"), Argument("bf16", (40, 64), None), 16, "map")
    assert found.parameter == Packed((9).to_bytes(8, "little") + made, (Address(8, 2, 16),))
    with pytest.raises(GemmsimError, match="does not say how its kernel is launched"):
        said(f"grid 1 1 1\nblock 1 1 1\nshared 0\nparameter {content.hex()}\n", b"")


def test_parameters_of_a_record_are_those_of_the_launch():
    from gemmsim_validate.wild.bundle import recorded_parameters
    from gemmsim_validate.wild.kernels import Prepared

    from gemmsim.compile.source import CubinKernel
    from gemmsim.launch.recorded import listed_parameters
    from gemmsim.trace.types import Address, Launch, Packed

    parameters = (1, Packed(b"\7\0\0\0" + bytes(140), (Address(8, 2, 16),)))
    launch = Launch((1, 1, 1), (32, 1, 1), (), parameters=parameters)
    made = Prepared(CubinKernel(b"", Path()), launch, (), (), ((1, 8),))
    names = ["A", "n", "C"]
    record = {"arguments": names, "parameters": recorded_parameters(made, names, 2)}
    assert record["parameters"] == [
        "n",
        {
            "bytes": "07" + "00" * 143,
            "addresses": [{"at_byte": 8, "argument": 2, "plus_bytes": 16}],
            "maps": [{"at_byte": 8, "l2_promotion": 2}],
        },
    ]
    assert listed_parameters(record) == parameters
    assert listed_parameters({}) is None


def test_a_bundle_of_no_kernel_is_refused(tmp_path):
    from gemmsim_validate.wild.bundle import make_bundle

    with pytest.raises(GemmsimError, match="has no kernel like nothing"):
        make_bundle(read_manifest(), tmp_path, tmp_path, ["nothing*"])


def test_the_measured_kernels_are_those_of_the_list():
    from gemmsim_validate.wild.bundle import MEASURED

    cases = replayable_cases([RECORDS])
    chosen = {kernel["name"] for kernel in tomllib.loads(MEASURED.read_text())["kernel"]}
    timed_wrongly = {"nicolaswilde_v2", "nicolaswilde_v3"}  # as V1, with which they share a cubin: to be measured again
    assert {case.name for case in cases} == chosen - timed_wrongly and len(chosen) == 82
    assert len(cases) == 130 and all(case.counters and case.times for case in cases)
    matmuls = [case for case in cases if case.name == "siboehm_shared"]  # at 1024 and at 2048
    assert measured_section(matmuls).text[0].startswith("2 launches of 1 kernels that others wrote")
