"""Runs a Python file as a program on the simulated machine."""

from __future__ import annotations

import importlib.util
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from gemmsim.support.errors import GemmsimError

_PACKAGE = Path(__file__).parents[1]
RAISED = 1  # exit status of a program that ends by an exception, as Python's own


def run_script(path: Path, args: Sequence[str]) -> int:
    """Run the file as `python path args` would in this process; return its exit status (`_run`)."""
    if not path.is_file():
        raise GemmsimError(f"there is no program {path}")
    if path.suffix == ".cu" or b"\0" in path.read_bytes()[:4096]:
        raise GemmsimError(f"{path} is no Python program: gemmsim run takes one, gemmsim analyze a file with kernels")
    folder = str(path.resolve().parent)
    return _run(lambda: runpy.run_path(str(path), run_name="__main__"), [str(path), *args], folder)


def run_module(name: str, args: Sequence[str]) -> int:
    """Run the module as `python -m name args` would in this process; return its exit status (`_run`)."""

    def program() -> object:
        try:
            found = importlib.util.find_spec(name)
        except ImportError:
            found = None
        if found is None:
            raise GemmsimError(f"there is no module {name}")
        return runpy.run_module(name, run_name="__main__", alter_sys=True)

    return _run(program, [name, *args], str(Path.cwd()))


def _run(program: Callable[[], object], arguments: list[str], folder: str) -> int:
    """Run a program, which sees `arguments` and imports from `folder`; return its exit status.

    An exception that ends the program is printed as Python prints it. Raises the exception again where the simulated
    machine may be its cause (`session.simulate` knows).
    """
    before = sys.argv, sys.path[:]
    sys.argv, sys.path[:0] = arguments, [folder]
    try:
        program()
    except SystemExit as ended:
        return _status(ended.code)
    finally:
        sys.argv, sys.path[:] = before
        sys.stdout.flush()
    return 0


def show_exception(error: BaseException) -> None:
    """Print an exception with its traceback, which begins in the program: without a frame where it never began."""
    frames = error.__traceback__
    while frames is not None and _runs_programs(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames)


def _runs_programs(file: str) -> bool:
    """Return whether a file's frames are those of what runs a program, and not of the program."""
    return file.startswith("<frozen ") or file == runpy.__file__ or Path(file).is_relative_to(_PACKAGE)


def _status(code: object) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)  # noqa: T201  as Python does with a text given to sys.exit
    return RAISED
