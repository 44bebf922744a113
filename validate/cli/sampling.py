"""gemmsim-validate sampling: holds samples of blocks against full executions, for blocks in many orders."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from gemmsim.support.errors import GemmsimError

from .options import emit, jobs_option, made_by, output_option

if TYPE_CHECKING:
    from ..sampling.compare import Comparison
    from ..sampling.corpus import Case
    from ..sampling.large import Prediction
    from ..sampling.others import Other

    Asked = TypeVar("Asked", Case, Other)
    Result = TypeVar("Result", Comparison, Prediction)

FORMATS = ("text", "json", "md")


@click.command()
@click.option("--gpu", default="a100", show_default=True)
@click.option("--set", "gpu_sets", multiple=True, metavar="KEY=VALUE", help="Change the GPU: l2.size=4MiB.")
@click.option("--kernel", multiple=True, metavar="TEXT", help="Only those with TEXT in 'Hilbert, 128'; repeatable.")
@click.option(
    "--full-size", type=click.IntRange(0), multiple=True, help="Compare at M = N = K = N and near it; 0: none.  [512]"
)
@click.option("--size", type=click.IntRange(0), multiple=True, help="Predict at M = N = K = N; 0: none.  [4096]")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@output_option
@jobs_option
def command(
    gpu: str,
    gpu_sets: tuple[str, ...],
    kernel: tuple[str, ...],
    full_size: tuple[int, ...],
    size: tuple[int, ...],
    form: str,
    output: Path | None,
    jobs: int | None,
) -> int:
    """Hold samples of blocks against full executions, for kernels that take their tiles in many orders.

    At --full-size each kernel is executed in full and from a sample. At --size it is predicted from a sample only, and
    held to counters worked out by hand; so are some large launches on other GPUs. Exit status 1 if any is out of them.
    """
    from gemmsim.gpu import load_gpu
    from gemmsim.support.processes import available_cpus

    from ..documents import render
    from ..sampling.compare import compare
    from ..sampling.corpus import KERNELS, cases
    from ..sampling.document import TITLE, as_data, sections
    from ..sampling.large import predict
    from ..sampling.others import OTHERS, predict_other

    if any(one % 128 for one in size):
        raise GemmsimError("--size must be a multiple of 128, the larger tile")
    spec = load_gpu(gpu, gpu_sets)
    small = [case for n in full_size or (512,) if n for case in cases(kernel, n, ragged=True)]
    large = [case for n in size or (4096,) if n for case in cases(kernel, n, ragged=False)]
    others = [
        one for one in OTHERS if size != (0,) and any(text.lower() in one.title.lower() for text in kernel or ("",))
    ]
    if not small and not large and not others:
        names = ", ".join(one.name for one in KERNELS)
        raise GemmsimError(f"nothing to do: a size above 0 is needed, and a kernel; there are {names}")
    workers = jobs or available_cpus()
    compared = _all(partial(compare, gpu=spec), small, workers)
    predicted = _all(partial(predict, gpu=spec), large, workers) + _all(predict_other, others, workers)
    if form == "json":
        text = json.dumps(as_data(compared, predicted), indent=1) + "\n"
    elif form == "md":
        filters = {"set": gpu_sets, "kernel": kernel, "full-size": full_size, "size": size}
        text = render.markdown(sections(compared, predicted), made_by("sampling", filters, form), TITLE)
    else:
        text = render.text(sections(compared, predicted))
    emit(text, output)
    failed = any(one.failures for one in compared) or any(one.failures for one in predicted)
    return 1 if failed else 0


def _all(call: Callable[[Asked], Result], cases: Sequence[Asked], jobs: int) -> list[Result]:
    """Return what `call` makes of each case, in the order of `cases`; each is reported as soon as it is done."""
    from gemmsim.support.processes import map_unordered

    found: dict[Asked, Result] = {}
    for case, result in map_unordered(call, cases, jobs):
        found[case] = result
        state = "; ".join(result.failures) or "fine"
        click.echo(f"[{len(found)}/{len(cases)}] {case.title}: {state}", err=True)
    return [found[case] for case in cases]
