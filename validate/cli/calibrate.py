"""gemmsim-validate calibrate: fits parameters of the timing model to records, and writes a file for --gpu."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import click

from gemmsim.support.errors import GemmsimError

from .options import EXPRESSION, PATH


@click.command()
@click.option("--gpu", required=True, metavar="NAME", help="Preset or file to start from.")
@click.option("-o", "--output", type=PATH, required=True, metavar="FILE.toml", help="The GPU file.")
@click.option("--records", "folder", type=PATH, help="Folder of records; the repository's else.")
@click.option("--only", type=EXPRESSION, metavar="REGEX", help="Cases by id.")
@click.option("--max-size", type=int, default=1024, show_default=True, help="Largest of M, N and K.")
@click.option("--parameter", "wanted", multiple=True, metavar="KEY", help="Fit this; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="Fit all calibratable values, measured ones too.")
@click.option("--limit", type=click.FloatRange(1.01), default=2.0, show_default=True, help="Largest factor on a value.")
def command(
    gpu: str,
    output: Path,
    folder: Path | None,
    only: str | None,
    max_size: int,
    wanted: tuple[str, ...],
    everything: bool,
    limit: float,
) -> int:
    """Fit what is marked calibratable; without --parameter or --all, what nobody measured on this GPU.

    Errors are shown before the fit, on the cases that it saw, and on rungs and sizes that were left out of it.
    """
    from gemmsim.gpu import load_gpu

    from ..calibrate.fit import calibrate, moved_by, parameters, scaled
    from ..calibrate.sample import case_sample
    from ..calibrate.table import mean_error_pct, table
    from ..gpu_files.write import Entry, gpu_file
    from ..records.case import load_cases
    from ..records.files import FOLDER, write_bytes

    spec = load_gpu(gpu)
    keys = parameters(spec, wanted, everything)
    chosen = [
        case
        for case in load_cases(folder or FOLDER / spec.name)
        if case.calibrated_time
        and max(case.m, case.n, case.k) <= max_size
        and (only is None or re.search(only, case.id))
    ]
    if not chosen:
        raise GemmsimError(f"no timed records up to size {max_size} fit")
    samples = []
    for number, case in enumerate(chosen, 1):
        click.echo(f"[{number}/{len(chosen)}] executing {case.id}", err=True)
        samples.append(case_sample(case, spec))
    found = calibrate(samples, spec, gpu, keys, limit, lambda text: click.echo(text, err=True))
    source = f"fitted by gemmsim-validate calibrate on {len(samples)} cases, {datetime.date.today().isoformat()}"
    records = sorted(sample.id for sample in samples)
    entries = []
    fitted = scaled(spec, gpu, found.factors)
    for key in moved_by(found.factors):
        value = fitted.provenance[key].value
        before = spec.provenance[key]
        new = list(value) if isinstance(value, tuple) else value
        how = f"{source}; before: {before.value}"
        entries.append(Entry(key, new, how, "calibrated", before.calibratable))  # type: ignore[arg-type]
    rungs, sizes = (sorted({getattr(one, what) for one in samples}) for what in ("rung", "size"))
    comment = f"{source}: rungs {', '.join(rungs)}; sizes {', '.join(sizes)}.\nMean absolute error of time: "
    comment += f"{mean_error_pct(found.before):.1f} % before, {mean_error_pct(found.fitted):.1f} % on the cases seen"
    for what, errors in (("rung", found.without_rung), ("size", found.without_size)):
        comment += f", {mean_error_pct(errors):.1f} % where the {what} was left out" if errors else ""
    extends = gpu if not gpu.endswith(".toml") else str(Path(gpu).resolve())
    write_bytes(output, gpu_file(f"{spec.title} (calibrated)", extends, entries, comment, records).encode())
    load_gpu(str(output.resolve()))
    click.echo(table(found, spec))
    return 0
