"""Defines what is known of a shared variable of a kernel."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharedArray:
    """A shared variable of a kernel. `begin` is counted in bytes from the start of its static shared memory."""

    name: str
    begin: int
    size_bytes: int

    @property
    def end(self) -> int:
        return self.begin + self.size_bytes
