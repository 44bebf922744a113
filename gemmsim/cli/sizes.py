"""--size, --m, --n and --k, which several commands have."""

from __future__ import annotations

from gemmsim.support.errors import GemmsimError


def problem_size(size: int | None, m: int | None, n: int | None, k: int | None) -> tuple[int, int, int] | None:
    """(m, n, k), None where no size was given."""
    given = {"--m": m, "--n": n, "--k": k}
    for name, value in {"--size": size, **given}.items():
        if value is not None and value < 1:
            raise GemmsimError(f"{name} {value} is not a size: it must be at least 1")
    missing = [name for name, value in given.items() if value is None]
    if size is not None:
        if len(missing) < 3:
            raise GemmsimError("--size stands for --m, --n and --k together: give one or the others")
        return size, size, size
    if len(missing) == 3:
        return None
    if m is None or n is None or k is None:
        raise GemmsimError(f"{' and '.join(missing)} missing: give --size N, or all of --m, --n and --k")
    return m, n, k
