"""Finds the kernel that a user means among the kernels of a file, by its symbol, its name in C++ or a part of that."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gemmsim.compile.names import cpp_name, readable_name
from gemmsim.support.errors import GemmsimError, nearest

_LISTED = 12  # kernels that a message names
_LITERAL_SUFFIX = re.compile(r"(?<=\d)(?:ull|ul|u|ll|l)\b")  # a demangled name has `3u` where the source has `3`
_CONST_FIRST = re.compile(r"\bconst ((?:(?:unsigned|signed|long|short) )*[\w:]+)")
_SPACE_BY_MARK = re.compile(r" ?([<>,*&():\[\]]) ?")


def find_entry(entry: str | None, symbols: Sequence[str], where: str) -> str:
    """Return the one symbol among `symbols` that `entry` names.

    entry  a symbol; a name as in C++, such as `sgemm<128, 128, 8>` or `ns::kernel(float*, int)`, with or without its
           namespaces, template arguments and parameters; or a part of such a name. Spaces do not matter. None where
           there is only one kernel.
    where  what holds the kernels, for messages ("the cubin")

    Raises GemmsimError, which lists the kernels that could be meant, where no kernel or several fit.
    """
    if entry is None:
        if len(symbols) == 1:
            return symbols[0]
        raise GemmsimError(
            f"{where} holds {len(symbols)} kernels, choose one as the entry (--entry): {_listed(symbols)}"
        )
    if found := matching(entry, symbols):
        if len(found) == 1:
            return found[0]
        raise GemmsimError(f"'{entry}' names {len(found)} kernels of {where}, say more of the name: {_listed(found)}")
    hint = nearest(entry, [readable_name(symbol) for symbol in symbols])
    raise GemmsimError(f"{where} has no kernel '{entry}'{hint}; it holds: {_listed(symbols)}")


def matching(entry: str, symbols: Sequence[str]) -> list[str]:
    """Return those of `symbols` that `entry` may mean, which is as in `find_entry`: by its whole name where any has
    that, else by a part of it."""
    if entry in symbols:
        return [entry]
    names = {symbol: _plain(cpp_name(symbol)) for symbol in symbols}
    wanted = _plain(entry)
    for forms in (_with_parameters, _without_parameters, _without_template):
        if found := [symbol for symbol, name in names.items() if wanted in _tails(forms(name))]:
            return found
    return [symbol for symbol, name in names.items() if wanted and (wanted in name or entry in symbol)]


def _listed(symbols: Sequence[str]) -> str:
    names = [cpp_name(symbol) for symbol in symbols]
    shown = [name if names.count(name) == 1 else symbol for name, symbol in zip(names, symbols, strict=True)]
    more = f" and {len(shown) - _LISTED} more (gemmsim decode lists them)" if len(shown) > _LISTED else ""
    return "; ".join(shown[:_LISTED]) + more


def _plain(name: str) -> str:
    """Write a C++ name as all other ways to write it are written here, too: `f<3u>(const float *)` as
    `f<3>(float const*)`."""
    name = " ".join(name.replace("(anonymous namespace)", "{anonymous}").split()).removeprefix("void ")
    name = _CONST_FIRST.sub(r"\1 const", _LITERAL_SUFFIX.sub("", name))
    return _SPACE_BY_MARK.sub(r"\1", name)


def _with_parameters(name: str) -> str:
    return name


def _without_parameters(name: str) -> str:
    return name[: _first_outside(name, "(")]


def _without_template(name: str) -> str:
    """Leave out the parameters and the template arguments of the function; those of a class around it stay."""
    *classes, function = _at_scopes(_without_parameters(name))
    return "::".join([*classes, function.partition("<")[0]])


def _tails(name: str) -> list[str]:
    """Return the name with all of its namespaces, and with ever fewer of them."""
    scopes = _at_scopes(name)
    return ["::".join(scopes[start:]) for start in range(len(scopes))]


def _at_scopes(name: str) -> list[str]:
    at = _first_outside(name, "::")
    return [name] if at == len(name) else [name[:at], *_at_scopes(name[at + 2 :])]


def _first_outside(name: str, mark: str) -> int:
    """Return where `mark` first stands outside brackets; the length of `name` where it does not."""
    depth = 0
    for at, char in enumerate(name):
        if depth == 0 and name.startswith(mark, at):
            return at
        depth += (char in "<([") - (char in ">)]")
    return len(name)
