"""The numbers of a GPU, from the preset that is the default."""

from __future__ import annotations

from itertools import groupby

from words import escaped

from gemmsim.gpu.load import DEFAULT_GPU, load_gpu


def markdown() -> str:
    gpu = load_gpu(DEFAULT_GPU)
    lines = [f"As an example, `{gpu.name}` ({gpu.title}, {gpu.arch}).", ""]
    for section, keys in groupby(gpu.provenance, key=lambda key: key.rpartition(".")[0]):
        lines += [f"## {section}", "", "| key | value | status | source |", "| --- | --- | --- | --- |"]
        for key in keys:
            value = gpu.provenance[key]
            numbers = value.value if isinstance(value.value, tuple) else (value.value,)
            shown = ", ".join(f"{number:g}" for number in numbers)
            fitted = ", calibratable" if value.calibratable else ""
            records = f" (fitted to {', '.join(value.records)})" if value.records else ""
            lines.append(f"| `{key}` | {shown} | {value.status}{fitted} | {escaped(value.source)}{records} |")
        lines.append("")
    return "\n".join(lines)
