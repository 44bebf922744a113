"""Says how much memory of this machine is free."""

from __future__ import annotations

from pathlib import Path

_FACTS = Path("/proc/meminfo")  # Linux


def free_memory_bytes() -> int | None:
    """Return how many bytes of memory programs can still get without swapping; None where the system does not say."""
    try:
        lines = _FACTS.read_text().splitlines()
    except OSError:
        return None
    kibibytes = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return None if kibibytes is None else int(kibibytes) * 1024
