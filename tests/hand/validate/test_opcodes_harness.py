"""The cases of generated kernels, their inputs, and the comparison of their outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gemmsim_validate.opcodes.bundle import Bundle, read_bundle, write_bundle
from gemmsim_validate.opcodes.cases import read_cases, source_text
from gemmsim_validate.opcodes.compare import compare
from gemmsim_validate.opcodes.inputs import inputs
from gemmsim_validate.opcodes.outputs import Outputs, read_outputs


def test_choices_make_a_case_each_and_repeated_lines_none() -> None:
    cases = read_cases("# note\n{add,sub}{,.sat}.s32 : b32 = b32 b32\nadd.s32 : b32 = b32 b32\nsm_90+ a.x : f32 = f32")
    assert [case.symbol for case in cases] == ["add_s32", "add_sat_s32", "sub_s32", "sub_sat_s32", "a_x"]
    assert [case.architecture for case in cases] == [80] * 4 + [90]
    assert cases[0].body == "add.s32 d, a, b;"


def test_cases_of_one_name_get_symbols_of_their_own() -> None:
    cases = read_cases("a / b : f32 = f32 f32 : C++\na % b : s64 = s64 s64 : C++\nx : b32 = b32 : @ d, a, 3;")
    assert [case.symbol for case in cases] == ["cuda_a_b", "cuda_a_b_2", "x"]
    assert cases[2].body == "x d, a, 3;"


def test_source_loads_each_operand_from_its_own_row() -> None:
    text = source_text(read_cases("setp.lt.s32 : pred = b32 b32"), 64)
    assert "ld.global.b32 a, [%0+0];" in text and "ld.global.b32 b, [%0+512];" in text
    assert "selp.b32 bit, 1, 0, d;" in text


def test_inputs_start_with_edges_and_are_the_same_each_time() -> None:
    values = inputs(("f32", "f32"), 4096)
    assert values.shape == (2, 4096)
    assert (values == inputs(("f32", "f32"), 4096)).all()
    assert ((values[0] == 0) & (values[1] == 0x80000000)).any()
    assert (values >> np.uint64(32) == 0).all()


def _bundle(folder: Path) -> Bundle:
    cases = read_cases("f : f32 = f32\ng : b32 = b32\nh : b32 = b32")
    bundle = Bundle("sm_90", 2, {}, (("k.cubin", cases),), folder)
    write_bundle(bundle, {"f32": np.array([[1, 2]], np.uint64), "b32": np.array([[3, 4]], np.uint64)})
    return read_bundle(folder)


def test_compare_counts_values_and_ulps(tmp_path: Path) -> None:
    bundle = _bundle(tmp_path)
    one = np.array([[0x3F800000, 0x80000001]], np.uint64)
    ours = Outputs({}, {"f": one, "g": np.array([[7, 8]], np.uint64)}, {"h": "not known"})
    # 1 and the float after the next; the least subnormal number below 0, and that above 0
    theirs = Outputs({}, {"f": np.array([[0x3F800002, 0x00000001]], np.uint64), "g": np.array([[7, 8]], np.uint64)})
    document = compare(bundle, ours, theirs)
    f, g, h = document["cases"]
    assert (f["status"], f["wrong"], f["ulps"]) == ("differs", 2, 2)
    assert f["examples"][0] == [["0x1"], ["0x3f800000"], ["0x3f800002"]]
    assert (g["status"], h["status"], h["why"]) == ("equal", "refused", "not known")
    assert document["count"] == {"differs": 1, "equal": 1, "refused": 1}


def test_nan_against_a_number_has_no_distance(tmp_path: Path) -> None:
    bundle = _bundle(tmp_path)
    theirs = Outputs({}, {"f": np.array([[0x7FFFFFFF, 0]], np.uint64)})
    document = compare(bundle, Outputs({}, {"f": np.array([[0x3F800000, 0]], np.uint64)}), theirs)
    assert (document["cases"][0]["wrong"], document["cases"][0]["ulps"]) == (1, None)


def test_outputs_survive_a_file(tmp_path: Path) -> None:
    values = np.array([[1, 1 << 63]], np.uint64)
    Outputs({"arch": "sm_90"}, {"f": values}, {"g": "why"}).write(tmp_path / "o.npz")
    again = read_outputs(tmp_path / "o.npz")
    assert (again.values["f"] == values).all() and again.failed == {"g": "why"} and again.facts["arch"] == "sm_90"
