"""The commands, from click."""

from __future__ import annotations

import inspect

import click


def gemmsim() -> str:
    from gemmsim.cli.main import COMMANDS, cli

    return _group(cli, "gemmsim", COMMANDS)


def gemmsim_validate() -> str:
    from gemmsim_validate.cli.main import COMMANDS, cli

    return _group(cli, "gemmsim-validate", COMMANDS)


def _group(group: click.Group, program: str, texts: dict[str, str]) -> str:
    parent = click.Context(group, info_name=program)
    parts = []
    for name, text in texts.items():
        command = group.get_command(parent, name)
        assert command is not None
        parts += _command(command, name, text, parent)
    return "\n".join(parts)


def _command(command: click.Command, name: str, text: str, parent: click.Context, level: int = 3) -> list[str]:
    context = click.Context(command, info_name=name, parent=parent)
    lines = [f"{'#' * level} {context.command_path}", "", text, "", "```text", command.get_usage(context), "```", ""]
    lines += _paragraphs(command.help or "", text)
    records = [record for param in command.get_params(context) if (record := param.get_help_record(context))]
    for option, help_text in records:
        lines += [f"`{option}`", f": {_escaped(help_text)}", ""] if help_text else []
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            inner = command.get_command(context, sub)
            assert inner is not None
            lines += _command(inner, sub, inner.get_short_help_str(), context, level + 1)
    return lines


def _paragraphs(text: str, first: str) -> list[str]:
    r"""Those of a command's help; click sets what follows \b as it stands."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            lines += ["```text", paragraph.removeprefix("\b\n"), "```", ""]
        elif _flat(paragraph) != _flat(first):
            lines += [_escaped(paragraph), ""]
    return lines


def _flat(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\*_`[]<>|" else c for c in text)
