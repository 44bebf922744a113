"""Says on standard error what a command is doing, where it takes longer than two seconds.

A thread looks a few times a second at which part of the package the main thread is in, so that the work itself pays
nothing. On a terminal it keeps one line up to date, which is gone when there is output; elsewhere it writes a line at
each change and every ten seconds. `GEMMSIM_PROGRESS=0` in the environment keeps it quiet.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

SILENT_S, AGAIN_S, LOOK_S = 1.5, 10.0, 0.25
# Where a frame's file is -> what is being done; the innermost frame that is named counts.
_PARTS = {
    ("native/translate.py", "native/build.py", "native/written.py"): "compiling the engine, once on this machine",
    ("compile/",): "compiling the kernel",
    ("trace/blocks/",): "comparing blocks",
    ("trace/",): "executing blocks",
    ("memory/",): "counting memory accesses",
    ("sm/",): "timing an SM",
    ("report/",): "drawing",
    ("programs/",): "",  # a user's program runs, which says itself what it does
}


class _Blocks:
    """How many blocks of an execution are done, and when it began."""

    done = total = 0
    began = 0.0


blocks = _Blocks()


def blocks_done(done: int, total: int) -> None:
    """Note how many of an execution's blocks are done."""
    if done == 0:
        blocks.began = time.monotonic()
    blocks.done, blocks.total = done, total


def doing(frame: FrameType | None) -> str:
    """Return what the code is doing whose innermost frame is given.

    That is "working" where no frame tells, and "" where nothing is to be said.
    """
    while frame is not None:
        place = frame.f_code.co_filename.replace("\\", "/").rpartition("/gemmsim/")[2]
        for parts, text in _PARTS.items():
            if place.startswith(parts):
                return text
        frame = frame.f_back
    return "working"


class Watch:
    """Writes what is being done to a stream."""

    def __init__(self, stream: TextIO, terminal: bool, now: float) -> None:
        self._stream, self._terminal = stream, terminal
        self._last, self._said, self._shown, self.quiet = now, "", False, False

    def look(self, now: float, what: str) -> None:
        """Write `what` if nothing was written for long enough."""
        if not what or self.quiet or (now - self._last < SILENT_S and not self._shown):
            return
        text = f"{what}{_share(now) if what == 'executing blocks' else ''}"
        if self._terminal:
            self._stream.write(f"\r\x1b[2K{text[:78]} ...")
            self._shown = True
        elif what == self._said and now - self._last < AGAIN_S:
            return
        else:
            self._stream.write(f"{text} ...\n")
        self._stream.flush()
        self._last, self._said = now, what

    def clear(self) -> None:
        """Remove the line from a terminal, as other text follows."""
        if self._shown:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
        self._shown, self._last = False, time.monotonic()


def _share(now: float) -> str:
    done, total, seconds = blocks.done, blocks.total, now - blocks.began
    if not 0 < done < total or total < 8:
        return ""
    return f": {done:,} of {total:,}, about {seconds * (total - done) / done:,.0f} s left"


_watches: list[Watch] = []


@contextmanager
def shown(stream: TextIO) -> Iterator[None]:
    """Say on a stream what the main thread is doing, while the context lasts."""
    main, ended = threading.main_thread().ident, threading.Event()
    watch = Watch(stream, stream.isatty(), time.monotonic())

    def keep_looking() -> None:
        while not ended.wait(LOOK_S):
            watch.look(time.monotonic(), doing(sys._current_frames().get(main or 0)))

    thread = threading.Thread(target=keep_looking, daemon=True)
    _watches.append(watch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(2 * LOOK_S)
        watch.clear()
        _watches.remove(watch)


def clear() -> None:
    """Remove what is shown, as other text follows."""
    for watch in _watches:
        watch.clear()


def leave_to_others() -> None:
    """Say nothing more: a command has a bar or lines of its own."""
    for watch in _watches:
        watch.clear()
        watch.quiet = True
