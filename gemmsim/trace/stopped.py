"""Defines the error with which the execution of a block ends before the block does."""

from __future__ import annotations

from gemmsim.support.errors import GemmsimError


class Stopped(GemmsimError):  # noqa: N818 - a block was stopped, at its limit or by a bad address
    """Says that a block cannot be finished.

    status   what `run_block` returned
    block    the block's linear id
    printed  what the kernel printed before
    """

    def __init__(self, message: str, status: int, block: int) -> None:
        super().__init__(message)
        self.status, self.block, self.printed = status, block, ""
