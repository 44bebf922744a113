"""Code that the commands `gemmsim` and `gemmsim-validate` share.

A subcommand's module is imported only when the subcommand is used, options are handed over as one record (a dataclass),
and an error is printed as one line.
"""

from __future__ import annotations

import dataclasses
import errno
import functools
import importlib
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, cast

import click

from gemmsim.report.layout.text import use_columns
from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.support.progress import clear, shown

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
# Metadata of a field with a default_factory that makes another dataclass of this kind, whose fields options fill.
NESTED = {"nested": True}

USAGE_OR_ENVIRONMENT = 2
_LONGEST_ERROR = 1200  # characters
INTERRUPTED = 130  # the value in gemmsim.support.processes, which takes long to import


Defaults = Callable[[str, click.Command, tuple[str, ...]], dict[str, Any]]


def lazy_group(package: str, commands: Mapping[str, str], defaults: Defaults | None = None) -> type[click.Group]:
    """Make the class of a click group that imports a subcommand's module when the subcommand is used.

    For example, the subcommand `import-ncu` is the object `command` in the module `package`.import_ncu.

    commands  {name of a subcommand: one line that says what it does}; --help shows these lines, so that it need not
              import the modules
    defaults  returns {parameter: value} of what the user has set for a command, given its name, itself and all names
    """

    class LazyGroup(click.Group):
        def list_commands(self, ctx: click.Context) -> list[str]:
            return list(commands)

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
            if cmd_name not in commands:
                hint = nearest(cmd_name, commands)
                raise GemmsimError(f"unknown command '{cmd_name}'{hint}: known are {', '.join(commands)}")
            module = importlib.import_module(f"{package}.{cmd_name.replace('-', '_')}")
            command: click.Command = module.command
            if defaults is not None:
                ctx.default_map = {cmd_name: defaults(cmd_name, command, tuple(commands))}
            return command

        def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            with formatter.section("Commands"):
                formatter.write_dl(list(commands.items()))

    return LazyGroup


def filled_by(option: Decorator, default: Any = None) -> Any:
    """Make a field of a dataclass that the value of a click option fills (see `gathered`).

    default  the field's value where the dataclass is made without a command line
    """
    return dataclasses.field(default=default, metadata={"option": option})


def gathered(name: str, record: type[Any]) -> Decorator:
    """Make a decorator for a click command, which then gets several options as one dataclass, its argument `name`.

    Each option fills the field of the dataclass `record` that has the option's name. The options of fields made by
    `filled_by` are also added to the command, in the order of the fields; those of a `NESTED` dataclass in its place.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_record(**values: Any) -> Any:
            values[name] = _filled(record, values)
            return command(**values)

        found: Callable[..., Any] = with_record
        for option in reversed(_options(record)):
            found = option(found)
        return found

    return decorate


def _filled(record: type[Any], values: dict[str, Any]) -> Any:
    """Make a `record` of those of `values` that belong to its fields, and take them out of `values`."""
    given = {}
    for field in dataclasses.fields(record):
        if "nested" in field.metadata:
            given[field.name] = _filled(cast(type[Any], field.default_factory), values)
        elif field.name in values:
            given[field.name] = values.pop(field.name)
    return record(**given)


def _options(record: type[Any]) -> list[Decorator]:
    options = []
    for field in dataclasses.fields(record):
        if "nested" in field.metadata:
            options += _options(cast(type[Any], field.default_factory))
        elif "option" in field.metadata:
            options.append(field.metadata["option"])
    return options


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # the disk, the user's part of it, or the largest file is full


def exit_status(cli: click.Command, program: str, args: Sequence[str]) -> int:
    """Run one command line; return its exit status. Data goes to stdout, everything else to stderr."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            status = cli.main(args=list(args), prog_name=program, standalone_mode=False)
    except GemmsimError as error:
        click.echo(getattr(error, "printed", ""), nl=False, err=True)  # what the kernel printed before it was stopped
        return _fail(str(error))
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        asked = context.command_path if context else program
        return _fail(f"{error.format_message()} ({asked} --help shows what is known)")
    except MemoryError as error:
        return _fail(f"this machine has too little memory for it: {error or 'none is left'}")
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:  # the program that reads stdout has ended, as in `gemmsim ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno in _FULL:
            return _fail(f"cannot write {error.filename or 'a file'}: {error.strerror}")
        if "temporary directory" in str(error.strerror):  # what tempfile says where it can write to none
            return _fail(f"{error.strerror}: TMPDIR names another one")
        raise
    return status if isinstance(status, int) else 0


def run_and_exit(main: Callable[[Sequence[str]], int]) -> None:
    """Run the process's own command line with `main`, and end the process with its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a terminal that is not UTF-8 still gets every line
    if sys.stdout.isatty():
        use_columns(shutil.get_terminal_size().columns)
    with nullcontext() if os.environ.get("GEMMSIM_PROGRESS") == "0" else shown(sys.stderr):
        status = main(sys.argv[1:])
    if status == INTERRUPTED:
        from gemmsim.support.processes import leave_soon  # only now, as importing multiprocessing takes time

        leave_soon()
    sys.exit(status)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    clear()
    click.echo(f"warning: {' '.join(str(message).split())}", err=True)


def _fail(message: str) -> int:
    line = " ".join(message.split())
    if len(line) > _LONGEST_ERROR:  # what was given is quoted in it; both ends say most
        line = f"{line[: _LONGEST_ERROR // 2]} [...] {line[-_LONGEST_ERROR // 2 :]}"
    from gemmsim.cli.colour import wanted  # a module that this one does not need but here

    head = click.style("error:", fg="red", bold=True) if wanted(sys.stderr) else "error:"
    click.echo(f"{head} {line}", err=True)
    return USAGE_OR_ENVIRONMENT
