"""Sets the launches of a baseline, such as cuBLAS, beside a comparison: predicted, and as they were measured.

The launches come from a bundle, see `gemmsim.launch.recorded`. Bundles that ship are in `baselines/`, named after the
GPU on which they were captured and the baseline: `h200_cublas`. A record names the problem that its launch solves, by
itself or with those beside it. A bundle of the user's own names none, so that its launches are given by number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gemmsim.analysis.studies.comparison import Baseline, Comparison, Group, Skipped
from gemmsim.analysis.studies.launch_summary import LaunchSummary
from gemmsim.gpu import GpuSpec, load_gpu
from gemmsim.launch.recorded import MANIFEST, bundle_records, recorded_launch
from gemmsim.launch.spec import Labels, LaunchSpec
from gemmsim.studies.compare import Outcome, Task, run_tasks, task_of
from gemmsim.support.errors import GemmsimError

BUNDLES = Path(__file__).with_name("baselines")
_TF32 = "tf32"  # how this module calls f32 that the tensor cores round to tf32
_NAMED = re.compile(r"(?P<folder>.*)#(?P<numbers>[0-9]+(,[0-9]+)*)")
Size = tuple[int, int, int]
_Key = tuple[str, str]  # a GPU, and the element type of A and B: "tf32" where f32 is rounded to it


@dataclass(frozen=True)
class Bundle:
    """The launches of a baseline.

    name     what the comparison calls it
    folder   of the bundle
    records  of its launches, the first is number 1
    numbers  the launches that solve the problem, where the user named them; () where the records say which
    """

    name: str
    folder: Path
    records: tuple[Mapping[str, Any], ...]
    numbers: tuple[int, ...] = ()

    def solving(self, size: Size, kind: str) -> tuple[int, ...]:
        """Return the numbers of the launches that together solve a problem; () where there are none."""
        if self.numbers:
            return self.numbers
        return tuple(number for number, *there in self._problems() if there == [size, kind])

    def check_size(self, size: Size) -> None:
        """Raises GemmsimError, which names the sizes there are, where no launch solves a problem of this size."""
        sizes = dict.fromkeys(there for _, there, _ in self._problems())
        if self.numbers or size in sizes:
            return
        if not sizes:
            raise GemmsimError(
                f"--baseline {self.name}: its records name no problem; say which launches: {self.name}#1,2"
            )
        raise GemmsimError(
            f"--baseline {self.name} has no launch of {_text(size)}: it has {', '.join(map(_text, sizes))}"
        )

    def kinds(self, size: Size) -> str:
        """Return the element types of the problems of one size: "f32, tf32, f16"."""
        return ", ".join(dict.fromkeys(kind for _, there, kind in self._problems() if there == size))

    def _problems(self) -> Iterator[tuple[int, Size, str]]:
        for number, record in enumerate(self.records, 1):
            if of := record.get("problem"):
                yield number, (of["m"], of["n"], of["k"]), _TF32 if of.get("operand_roundoff") else of["dtype"]


def find_bundle(text: str) -> Bundle:
    """Return what --baseline names: "cublas", the folder of a bundle, or launches of one, FOLDER#3 or FOLDER#3,4.

    Raises GemmsimError where it names none.
    """
    named = _NAMED.fullmatch(text)
    folder = Path(named["folder"] if named else text)
    if not (folder / MANIFEST).is_file():
        known = {path.name.partition("_")[2]: path for path in sorted(BUNDLES.glob("*_*"))}
        if str(folder) not in known:
            raise GemmsimError(
                f"--baseline {text}: that is no bundle of `gemmsim-validate capture`; known by name: {', '.join(known)}"
            )
        folder = known[str(folder)]
    records = tuple(bundle_records(folder))
    numbers = tuple(int(one) for one in named["numbers"].split(",")) if named else ()
    if wrong := [one for one in numbers if not 1 <= one <= len(records)]:
        raise GemmsimError(f"--baseline {text}: the bundle has launches 1 to {len(records)}, not {wrong[0]}")
    return Bundle(Path(text).name, folder, records, numbers)


def with_baseline(
    comparison: Comparison,
    bundle: Bundle,
    tasks: Sequence[Task],
    jobs: int | None = None,
    progress: Callable[[Outcome], None] = lambda outcome: None,
) -> Comparison:
    """Add to each group of a comparison what the baseline takes for its problem, on each of its GPUs.

    tasks           those that were compared: the baseline is predicted as they are, with cold or warm caches
    jobs, progress  as for `studies.compare.compare`

    Of several launches that solve a problem together, those after the first find L2 warm. Where the launches cannot be
    predicted, or there are none, the comparison says why among what it skipped.
    """
    specs = {task.spec.gpu.name: task.spec for task in reversed(tasks) if isinstance(task.spec, LaunchSpec)}
    size = (comparison.m, comparison.n, comparison.k)
    keys = dict.fromkeys(_key(row.launch, bundle) for group in comparison.groups for row in group.rows)
    wanted = [(key, number) for key in keys for number in bundle.solving(size, key[1])]
    outcomes = run_tasks([_task(bundle, number, size, specs[key[0]]) for key, number in wanted], jobs, progress)
    found: dict[_Key, Baseline] = {}
    skipped = list(comparison.skipped)
    for key in keys:
        results = [outcome.result for (of, _), outcome in zip(wanted, outcomes, strict=True) if of == key]
        why = [f"{key[1]}: {one.reason}".removeprefix(": ") for one in results if isinstance(one, Skipped)]
        if not results:
            why = [f"it has no launch of {key[1]} at this size, but of {bundle.kinds(size)}"]
        skipped += [Skipped(bundle.name, key[0], reason) for reason in why[:1]]
        launches = () if why else tuple(one for one in results if isinstance(one, LaunchSummary))
        found[key] = _baseline(bundle, bundle.solving(size, key[1]), specs[key[0]], launches)
    groups = tuple(replace(group, baselines=tuple(_of_group(group, bundle, found))) for group in comparison.groups)
    if bundle.numbers and not any(group.baselines for group in groups) and len(skipped) == len(comparison.skipped):
        precisions = {one.precision for of in found.values() for one in of.launches}
        reason = f"nothing compared computes in {' and '.join(sorted(precisions))} arithmetic as it does"
        skipped.append(Skipped(bundle.name, next(iter(specs)), reason))
    return replace(comparison, groups=groups, skipped=tuple(skipped))


def _key(launch: LaunchSummary, bundle: Bundle) -> _Key:
    kind = _TF32 if launch.precision == f"tensor_{_TF32}" else launch.dtype
    return launch.gpu, "" if bundle.numbers else kind


def _of_group(group: Group, bundle: Bundle, found: Mapping[_Key, Baseline]) -> Iterator[Baseline]:
    """Yield the baselines of a group. Launches that the user named belong where arithmetic is what they do most."""
    for key in dict.fromkeys(_key(row.launch, bundle) for row in group.rows):
        baseline, own = found[key], group.rows[0].launch
        if bundle.numbers and own.precision not in {one.precision for one in baseline.launches}:
            continue
        if baseline.launches or baseline.measured_us is not None:
            launches = tuple(replace(one, dtype=own.dtype) for one in baseline.launches)
            yield replace(baseline, launches=launches)


def _task(bundle: Bundle, number: int, size: Size, like: LaunchSpec) -> Task:
    def make() -> LaunchSpec:
        spec = recorded_launch(f"{bundle.folder}#{number}", like.gpu)
        first = bundle.solving(size, _kind(bundle, number))[0]
        labels = Labels(bundle.name, spec.labels.kernel, *size)
        warm = like.warm_caches or number != first
        return replace(spec, labels=labels, settings=like.settings, warm_caches=warm)

    return task_of(bundle.name, like.gpu.name, make)


def _kind(bundle: Bundle, number: int) -> str:
    of = bundle.records[number - 1].get("problem", {})
    return _TF32 if of.get("operand_roundoff") else of.get("dtype", "")


def _baseline(
    bundle: Bundle, numbers: Sequence[int], like: LaunchSpec, launches: tuple[LaunchSummary, ...]
) -> Baseline:
    records = [bundle.records[number - 1] for number in numbers]
    times = [one["time"]["activity"] for one in records if "time" in one]
    there = {one.get("gpu", "") for one in records}
    measured = len(times) == len(records) > 0 and len(there) == 1 and like.gpu == _gpu(there.pop())
    how = f"on an {records[0]['machine']['device']}, median of {times[0]['samples']}" if measured else ""
    return Baseline(
        name=bundle.name,
        gpu=like.gpu.name,
        kernels=tuple(one["subject"]["name"] for one in records),
        launches=launches,
        measured_us=sum(one["median_us"] for one in times) if measured else None,
        how=how,
    )


def _gpu(name: str) -> GpuSpec | None:
    try:
        return load_gpu(name)
    except GemmsimError:  # captured on a GPU that has no preset
        return None


def _text(size: Size) -> str:
    return f"{size[0]}" if len(set(size)) == 1 else "x".join(map(str, size))
