"""Finds the defaults of options that a user sets once: the variable GEMMSIM_GPU, and a file in TOML.

The file is what GEMMSIM_CONFIG names, else `gemmsim.toml` in the current folder, else `config.toml` in the user's
folder of settings. At its top stand options that hold for every command that has them; the table of a command, such
as `[sweep]`, has any of its options.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from gemmsim.support.errors import GemmsimError, nearest
from gemmsim.support.toml_file import read_toml

FILE, GPU = "GEMMSIM_CONFIG", "GEMMSIM_GPU"
USUAL_GPU = "a100-80gb"
FOR_ALL = ("gpu", "caches", "clock", "engine", "jobs", "seed")  # keys at the top of the file
GPU_SHOWN = f"${GPU}, else {USUAL_GPU}"  # the default in --help


def default_gpu() -> str:
    """Return the GPU where the command line names none."""
    return os.environ.get(GPU) or str(_top(_settings()).get("gpu", USUAL_GPU))


def defaults_of(name: str, command: click.Command, commands: tuple[str, ...]) -> dict[str, Any]:
    """Return {parameter: value} of what the user has set for a command. Raises GemmsimError for a file with mistakes.

    commands  the names of all commands, each of which may be a table
    """
    settings = _settings()
    options = _options(command)
    top = {options[key]: value for key, value in _top(settings).items() if key in options and key != "gpu"}
    for key, value in settings.items():
        if isinstance(value, dict) and key not in commands:
            raise GemmsimError(f"{_file()}: there is no command '{key}'{nearest(key, commands)}")
    own = {}
    for key, value in settings.get(name, {}).items():
        if key not in options:
            raise GemmsimError(f"{_file()}: gemmsim {name} has no option --{key}{nearest(key, options)}")
        own[options[key]] = value
    return top | own


def _top(settings: dict[str, Any]) -> dict[str, Any]:
    top = {key: value for key, value in settings.items() if not isinstance(value, dict)}
    for key in top:
        if key not in FOR_ALL:
            where = "options of one command stand in its table, such as [sweep]"
            raise GemmsimError(f"{_file()}: '{key}' is none of {', '.join(FOR_ALL)}{nearest(key, FOR_ALL)}; {where}")
    return top


def _options(command: click.Command) -> dict[str, str]:
    """Return {option without its dashes: parameter} of a command."""
    options = [param for param in command.params if isinstance(param, click.Option) and param.name]
    return {text.lstrip("-"): str(one.name) for one in options for text in one.opts if text.startswith("--")}


def _file() -> Path:
    if named := os.environ.get(FILE):
        return Path(named)
    here = Path("gemmsim.toml")
    if here.is_file():
        return here
    from platformdirs import user_config_path  # only now: `gemmsim --help` needs none of it

    return user_config_path("gemmsim", appauthor=False) / "config.toml"


def _settings() -> dict[str, Any]:
    path = _file()
    try:
        return read_toml(path)
    except FileNotFoundError:
        if os.environ.get(FILE):
            raise GemmsimError(f"there is no file {path}, which {FILE} names") from None
        return {}
    except OSError as error:
        raise GemmsimError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise GemmsimError(f"cannot read {path}: {error}") from None
