"""Makes a GPU file for `--gpu` from raw samples; each value says how it was measured."""

from __future__ import annotations

from typing import Any

from gemmsim.gpu import load_gpu
from gemmsim.gpu.load import preset_names
from gemmsim.support.errors import GemmsimError

from ..gpu_files.device import preset_of
from ..gpu_files.write import Entry, gpu_file
from .bench import Found
from .groups import GROUPS


def found_in(raw: dict[str, Any]) -> list[Found]:
    """Return the values that the samples of all groups give, including values for which no preset has a field."""
    return [found for name, samples in raw["samples"].items() for found in GROUPS[name].values(samples)]


def base_preset(raw: dict[str, Any]) -> str:
    """Return the preset to extend: the GPU's own, else that of the same architecture with the nearest number of SMs.

    Raises GemmsimError where no preset is of this architecture.
    """
    own = preset_of(raw["machine"]["device"])
    if own in preset_names():
        return own
    alike = [name for name in preset_names() if load_gpu(name).arch == raw["arch"]]
    if not alike:
        raise GemmsimError(f"no preset of {raw['arch']} to extend: give --extends a GPU file that has every value")
    return min(alike, key=lambda name: abs(load_gpu(name).sm.count - raw["machine"].get("sms", 0)))


def preset(raw: dict[str, Any], extends: str) -> str:
    """Return the text of the GPU file that extends the preset or file `extends` by the measured values.

    Where the number of SMs or the bytes of L2 that the driver states differ from those of `extends`, the file has them.
    """
    base = load_gpu(extends)
    machine = raw["machine"]
    how = f"measured by gemmsim-validate microbench on {machine['device']}, {raw['date']}"
    entries = []
    for key, value in (("sm.count", machine.get("sms")), ("l2.size_bytes", machine.get("l2_bytes"))):
        if value and base.provenance[key].value != value:
            entries.append(Entry(key, value, f"the CUDA driver of {machine['device']}, {raw['date']}", "vendor"))
    seen = set()
    for found in found_in(raw):
        if found.key in base.provenance and found.key not in seen:
            seen.add(found.key)
            known = base.provenance[found.key]
            entries.append(Entry(found.key, found.value, f"{how}: {found.what}", "measured", known.calibratable))
    comment = (
        f"Measured by gemmsim-validate microbench, {raw['date']}, driver {machine['driver']}; the rest is {extends}'s."
    )
    return gpu_file(f"{machine['device']} (microbenchmarks)", extends, entries, comment)


def summary(raw: dict[str, Any], extends: str) -> str:
    """Return a text with the measured values beside those of the preset or file `extends`.

    It also lists the shared-memory accesses that the bank model gets wrong.
    """
    base = load_gpu(extends)
    rows = []
    for found in found_in(raw):
        known = base.provenance.get(found.key)
        rows.append((found.key or "-", _shown(found.value), _shown(known.value) if known else "-", found.what))
    lines = [f"{'key':34} {'measured':>22} {'preset':>22}  how"]
    lines += [f"{key:34} {measured:>22} {preset:>22}  {what}" for key, measured, preset, what in rows]
    if "wavefronts" in raw["samples"]:
        from .wavefronts import against_model

        table = against_model(raw["samples"]["wavefronts"])
        wrong = [row for row in table if abs(row[2] - row[3]) > 0.1 * row[3] + 0.2]
        lines.append(
            f"wavefronts of shared accesses: {len(table) - len(wrong)} of {len(table)} as the bank model has them"
        )
        lines += [f"  {kind} {name}: {measured:.2f}, model {model}" for kind, name, measured, model in wrong]
    lines += [f"{name} failed: {error}" for name, error in raw["errors"].items()]
    return "\n".join(lines)


def _shown(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(f"{number:.4g}" for number in value)
    return f"{value:.5g}" if isinstance(value, (int, float)) else str(value)
