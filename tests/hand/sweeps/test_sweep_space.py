"""Combinations, expressions, and what no launch allows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.launch.cases import LadderCase, ladder_launch
from gemmsim.launch.spec import Settings
from gemmsim.support.errors import GemmsimError
from gemmsim.sweeps.expressions import evaluate, fill
from gemmsim.sweeps.job import Job, key_of, keys_of
from gemmsim.sweeps.space import ladder_jobs, unlaunchable

A100, T4, H200 = load_gpu("a100"), load_gpu("t4"), load_gpu("h200")
SIZES = [(256, 256, 256), (512, 256, 128)]


def case(kernel: str = "tiled", dtype: str | None = None) -> LadderCase:
    return LadderCase(kernel, 1, 1, 1, dtype)


def the_job(of: LadderCase, gpu: GpuSpec = A100) -> Job:
    """The only combination of a case's own tunables and size."""
    axes = {name: (value,) for name, value in of.tunables.items()}
    (job,), _ = ladder_jobs(of, axes, [(of.m, of.n, of.k)], [gpu])
    return job


def test_products_of_tunables_sizes_and_gpus() -> None:
    jobs, pruned = ladder_jobs(case(), {"tile": (8, 16, 32)}, SIZES, [A100, H200])
    assert len(jobs) == 3 * 2 * 2 and not pruned
    assert {one.point.tunables["tile"] for one in jobs} == {8, 16, 32}
    assert {(one.point.m, one.point.n, one.point.k) for one in jobs} == set(SIZES)
    assert [one.point.gpu for one in jobs] == ["a100-80gb"] * 6 + ["h200"] * 6


def test_what_a_rung_or_a_gpu_refuses_is_left_out_with_its_reason() -> None:
    """tensorcore_pipelined: 128 x 256 of warps 64 x 64 are 256 threads; of 32 x 32, 1024, too many to stage 128 rows.

    4 stages of (128 x 64 + 64 x 256) half words, unpadded: 4 * 49152 = 196608 bytes; an A100 has at most 166912.
    """
    axes = {"bm": (128,), "bn": (256,), "bk": (32, 64), "wm": (32, 64), "wn": (32, 64), "stages": (4,)}
    jobs, pruned = ladder_jobs(case("tensorcore_pipelined"), axes, SIZES[:1], [A100, H200])
    assert len(jobs) + len(pruned) == 2 * 8
    shared = [one for one in pruned if one.kind == "shared memory"]
    assert {one.point.gpu for one in shared} == {"a100-80gb"} and {one.point.tunables["bk"] for one in shared} == {64}
    assert "196608 bytes of shared memory a block; a100-80gb has 166912" in shared[0].reason
    rules = [one for one in pruned if one.kind == "rules of the kernel"]
    assert rules and all(len(one.reason.splitlines()) == 1 for one in rules)


def test_nothing_that_launches_is_left_out() -> None:
    """Each combination that was pruned is refused by the launch itself too."""
    axes = {"bm": (64, 256), "bn": (64, 256), "bk": (16,), "wm": (32, 64), "wn": (32,)}
    jobs, pruned = ladder_jobs(case("tensorcore_warptiled"), axes, SIZES[:1], [A100])
    assert len(jobs) + len(pruned) == 8 and pruned
    for one in pruned:
        with pytest.raises(GemmsimError):
            ladder_launch(LadderCase("tensorcore_warptiled", *SIZES[0], tunables=one.point.tunables), A100)


@pytest.mark.parametrize(
    ("grid", "block", "shared", "gpu", "kind"),
    [
        ((1, 1, 1), (1024, 1, 1), 0, A100, None),
        ((1, 1, 1), (32, 32, 2), 0, A100, "threads"),
        ((1, 0, 1), (32, 1, 1), 0, A100, "grid"),
        ((1, 65536, 1), (32, 1, 1), 0, A100, "grid"),
        ((2**31, 1, 1), (32, 1, 1), 0, A100, "grid"),
        ((2**31 - 1, 65535, 65535), (32, 1, 1), 0, A100, None),
        ((65536, 1, 1), (32, 1, 1), 0, A100, None),
        ((1, 1, 1), (32, 1, 1), T4.shared.max_bytes_per_block, T4, None),
        ((1, 1, 1), (32, 1, 1), T4.shared.max_bytes_per_block + 1, T4, "shared memory"),
    ],
)
def test_limits_of_a_launch(grid: tuple, block: tuple, shared: int, gpu, kind: str | None) -> None:
    found = unlaunchable(grid, block, shared, gpu)
    assert (found[0] if found else None) == kind


def test_conditions() -> None:
    axes = {"bm": (64, 128), "bn": (64, 128)}
    jobs, pruned = ladder_jobs(case("blocktile_2d"), axes, SIZES[:1], [A100], ["bm >= bn", "m // bm > 2"])
    assert [(one.point.tunables["bm"], one.point.tunables["bn"]) for one in jobs] == [(64, 64)]
    assert [one.kind for one in pruned] == ["--where 'bm >= bn'", "--where 'm // bm > 2'", "--where 'm // bm > 2'"]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"tyle": (8,)}, "no tunable 'tyle' (did you mean 'tile'?)"),
        ({"tile": (8, 9)}, "tile=9: tiled takes tile of 8, 16, 32"),
        ({"tile": tuple(range(2_000_000))}, "4,000,000 combinations are more than 1,000,000"),
    ],
)
def test_axes_that_cannot_be(axes: dict, message: str) -> None:
    with pytest.raises(GemmsimError) as error:
        ladder_jobs(case(), axes, SIZES, [A100])
    assert message in str(error.value)


NAMES = {"bm": 64, "n": 256, "zero": 0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n // bm", 4),
        ("-(-n // 100)", 3),
        ("2 + 3 * (bm - 60) % 5", 4),
        ("bm % 32 == 0", 1),
        ("64 <= bm < n", 1),
        ("64 <= bm < 64", 0),
        ("zero and n // zero", 0),
        ("not zero or n // zero", 1),
    ],
)
def test_expressions(text: str, value: int) -> None:
    assert evaluate(text, NAMES) == value


@given(st.integers(-99, 99), st.integers(-99, 99), st.integers(1, 99), st.sampled_from(["+", "-", "*", "//", "%"]))
def test_expressions_are_pythons_arithmetic(a: int, b: int, c: int, op: str) -> None:
    text = f"(a {op} c) * b - (b {op} c)"
    assert evaluate(text, {"a": a, "b": b, "c": c}) == eval(text, {"a": a, "b": b, "c": c})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zeros", "unknown name 'zeros' (did you mean 'zero'?): known are bm, n, zero"),
        ("n / bm", "is no expression"),
        ("n ** 9", "is no expression"),
        ("__import__('os')", "is no expression"),
        ("n.real", "is no expression"),
        ("'a'", "is no expression"),
        ("1.5", "is no expression"),
        ("True", "is no expression"),
        ("n //", "is no expression"),
        ("", "is no expression"),
        ("n % zero", "divides by 0"),
        ("9999999999 * 9999999999", "is too large"),
        ("(" * 400 + ")", "is no expression"),
        ("1" * 501, "501 characters"),
    ],
)
def test_expressions_refused(text: str, message: str) -> None:
    with pytest.raises(GemmsimError) as error:
        evaluate(text, NAMES)
    assert message in str(error.value)


def test_templates() -> None:
    assert fill("sgemm<{bm},{n // bm}>", NAMES) == "sgemm<64,4>"
    assert fill("{{i32={bm}, {{f32[{n // bm},{bm}]}}}}", NAMES) == "{i32=64, {f32[4,64]}}"


def test_keys_hold_the_request_the_gpu_and_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    of = LadderCase("tiled", 64, 64, 64, "f32", {"tile": 8})
    one = the_job(of)
    others = [
        the_job(replace(of, k=65)),
        the_job(replace(of, tunables={"tile": 16})),
        the_job(of, load_gpu("a100", ["l2.size=1MiB"])),
        the_job(replace(of, kernel="tiled_padded", tunables={"tile": 16})),
        the_job(replace(of, warm_caches=True)),
        the_job(replace(of, seed=1)),
    ]
    (native,), _ = ladder_jobs(of, {"tile": (8,)}, [(64, 64, 64)], [A100], settings=Settings(engine="native"))
    keys = {key_of(each) for each in (one, native, *others)}
    assert len(keys) == 8 and keys_of([one, *others])[0] == key_of(one)
    assert key_of(the_job(replace(of, dtype=None))) == key_of(one)  # f32 is the default
    monkeypatch.setattr("gemmsim.sweeps.job.MODEL_VERSION", 10**6)
    assert key_of(one) not in keys


def test_keys_hold_the_kernels_source(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gemmsim.launch.ladder import kernel_info, kernel_path

    folder = kernel_path(kernel_info("tiled")).parent
    copy = tmp_path / "tiled.py"
    text = (folder / "tiled.py").read_text()
    copy.write_text(text)
    monkeypatch.setattr("gemmsim.launch.cases.kernel_path", lambda info: copy)
    one = the_job(LadderCase("tiled", 64, 64, 64, "f32", {"tile": 8}))
    before = key_of(one)
    copy.write_text(text + "# changed\n")
    assert key_of(one) != before
