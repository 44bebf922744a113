"""Generated kernels give what an H200 gave, by the digests that are kept of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from gemmsim_validate.opcodes.digests import compare_digests, read_digests
from gemmsim_validate.opcodes.prepare import prepare
from gemmsim_validate.opcodes.simulate import run_in_gemmsim

pytest.importorskip("cuda.bindings")

# A few instructions of each family, those with rounding modes, flushing and NaN first.
SAMPLE = (
    r"^(add\.rz\.ftz\.f32|mul\.rn\.ftz\.f32|fma\.rp\.ftz\.sat\.f32|fma\.rm\.f64|mul\.rz\.f64|sub\.rn\.f64|div\.rn\.f64"
    r"|sqrt\.rp\.f64|fma\.rn\.ftz\.relu\.f16x2|max\.NaN\.xorsign\.abs\.bf16x2|set\.gtu\.xor\.f16x2\.f16x2|min\.f64"
    r"|cvt\.rp\.f16\.f64|cvt\.rm\.f64\.s64|cvt\.rzi\.u64\.f32|cvt\.rn\.relu\.bf16x2\.f32|cvt\.rna\.tf32\.f32"
    r"|cvt\.pack\.sat\.s8\.s32\.b32|dp2a\.hi\.s32\.u32|prmt\.b32\.f4e|bfe\.s64|rem\.s64|mad\.hi\.sat\.s32|fns\.b32"
    r"|match\.any\.sync\.b64|vabsdiff4\.u32\.u32\.u32\.add|pow\(a, b\)|sin\(a\)|lop3\.and\.b32|shf\.r\.clamp\.b32)$"
)


def test_results_equal_those_of_an_h200(tmp_path: Path) -> None:
    bundle = prepare(tmp_path, "sm_90", SAMPLE)
    document = compare_digests(bundle, run_in_gemmsim(bundle), read_digests())
    if document["count"].get("not measured") == len(bundle.cases):
        pytest.skip("NumPy's random numbers are not those of the record")
    assert len(bundle.cases) >= 30
    assert document["count"] == {"equal": len(bundle.cases)}, [c for c in document["cases"] if c["status"] != "equal"]
