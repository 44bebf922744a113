"""Finds the declarations in C++ source text, so that those that are for the host can be left out.

This is no parser of C++: it sees brackets, keywords and semicolons, which is enough to find where a declaration begins
and ends. It does not expand macros and does not read headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|\\\n|//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))
    | (?P<text>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
        | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" | (?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
    | (?P<word>[A-Za-z_]\w*)
    | (?P<number>\.?\d(?:'?[\w.]|[eEpP][+-])*)
    | (?P<mark2>::|<<<|>>>|->|[^\w\s])
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|/\*.*?\*/|[^\n])*", re.MULTILINE | re.DOTALL)
_CONDITION = re.compile(r"\s*#\s*(if|elif|else|endif)")
_MACRO = re.compile(r"\s*#\s*define\s+(\w+)(?:\([^)]*\))?(.*)", re.DOTALL)
_DEVICE_WORDS = frozenset(("__global__", "__device__", "__constant__", "__shared__", "__managed__"))
# Words whose brackets hold no parameters. Names with ALIGN are macros for one of them.
_ATTRIBUTES = re.compile(
    r"__align__|alignas|__attribute__|__declspec|__launch_bounds__|__maxnreg__|__cluster_dims__|__block_size__|decltype"
    r"|noexcept|explicit|requires|\w*ALIGN\w*"
)
_DEVICE_NAME = re.compile(r"[A-Z_0-9]*(?:DEVICE|GLOBAL|KERNEL)[A-Z_0-9]*")  # macros of libraries are called so
_CLASSES, _CLOSING = ("class", "struct", "union"), {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    word: bool


@dataclass(frozen=True)
class Declaration:
    """One declaration: text[start:stop] of the source.

    kind    "function", "class", "namespace" or "other" (variables, types, ...); a function need have no body
    name    of a class, function or namespace; else empty
    constant  whether it is `constexpr` or `consteval`, so that code of the GPU may call it without a mark
    device  whether it or a part of it is marked as the GPU's (`__global__`, `__device__`, ...)
    parts   the declarations in a namespace or class
    """

    start: int
    stop: int
    kind: str
    name: str
    constant: bool
    device: bool
    parts: tuple[Declaration, ...] = ()


def declarations(text: str, device_words: frozenset[str]) -> tuple[Declaration, ...]:
    """Return the declarations at the top level of C++ source text, in their order.

    device_words  names that mark a declaration as the GPU's, see `device_macros`
    """
    return tuple(_Reader(_tokens(text), device_words).declarations(0, in_class=False)[0])


def device_macros(texts: Iterable[str]) -> frozenset[str]:
    """Return the words of CUDA that mark code of the GPU, and the macros of the source texts that stand for them."""
    bodies: dict[str, set[str]] = {}
    for text in texts:
        for line in _DIRECTIVE.findall(text):
            if found := _MACRO.match(line):
                bodies.setdefault(found[1], set()).update(re.findall(r"\w+", found[2]))
    known: set[str] = set(_DEVICE_WORDS)
    while more := {name for name, words in bodies.items() if name not in known and known & words}:
        known |= more
    return frozenset(known)


def removable_at(text: str, found: Sequence[Declaration], start: int, stop: int) -> Declaration | None:
    """Return the smallest declaration for the host that overlaps text[start:stop] and can be left out.

    Without it, everything else must mean what it meant. So a class never loses data, constructors, destructors or
    virtual functions, which decide how its objects lie in memory: it is left out as a whole. None where there is no
    such declaration.
    """
    for one in found:
        if not (one.start < stop and start < one.stop):
            continue
        if one.kind in ("namespace", "class"):
            inner = removable_at(text, one.parts, start, stop)
            if inner and (one.kind == "namespace" or _is_plain_method(text, inner, one.name)):
                return inner
        return None if one.device or one.kind == "namespace" else one
    return None


def _is_plain_method(text: str, member: Declaration, name: str) -> bool:
    if member.kind != "function":
        return False
    head, _, parameters = text[member.start : member.stop].partition("(")
    if head.count("<") != head.count(">") or parameters.startswith("*"):  # data: std::function<void()>, int (*f)()
        return False
    return not re.search(rf"~|\bvirtual\b|\boperator\s*=\s*$|\b{re.escape(name)}\s*$", head)


def kernels(text: str, found: Sequence[Declaration], scope: str = "") -> Iterator[tuple[str, bool]]:
    """Yield the name of each kernel in the text with its namespaces, and whether it is a template."""
    for one in found:
        if one.kind == "namespace":
            yield from kernels(text, one.parts, f"{scope}{one.name}::" if one.name else scope)
        elif one.kind == "function" and one.device:
            head = text[one.start : one.stop].partition("{")[0]
            if "__global__" in head:
                yield scope + one.name, head.startswith("template")


def parameters_of(text: str, found: Sequence[Declaration], name: str) -> Iterator[tuple[tuple[str, ...], ...]]:
    """Yield, for each declaration of the kernel `name` in any namespace, the tokens of each of its parameters."""
    for one in found:
        if one.kind == "namespace":
            yield from parameters_of(text, one.parts, name)
        elif one.kind == "function" and one.device and one.name == name:
            words = [token.text for token in _tokens(text[one.start : one.stop])]
            if "__global__" in words:
                at = next(at for at in range(len(words)) if words[at : at + 2] == [name, "("])
                yield tuple(_parameters(words, at + 2))


def _parameters(words: Sequence[str], at: int) -> Iterator[tuple[str, ...]]:
    """Yield the tokens of each parameter of a list that begins at `at`, up to the bracket that closes it."""
    depth, first = 0, at
    while at < len(words) and (depth or words[at] != ")"):
        depth += (words[at] in "([{<") - (words[at] in ")]}>")
        if words[at] == "," and not depth:
            yield tuple(words[first:at])
            first = at + 1
        at += 1
    if at > first:
        yield tuple(words[first:at])


def without(text: str, removed: Sequence[Declaration]) -> str:
    """Return the text without some declarations. Line breaks stay, and so do preprocessor directives."""
    for one in removed:
        text = text[: one.start] + _blank(text[one.start : one.stop]) + text[one.stop :]
    return text


def _blank(text: str) -> str:
    kept, at = [], 0
    for directive in _DIRECTIVE.finditer(text):
        kept += [re.sub(r"[^\n]", " ", text[at : directive.start()]), directive[0]]
        at = directive.end()
    return "".join([*kept, re.sub(r"[^\n]", " ", text[at:])])


def _tokens(text: str) -> list[_Token]:
    """Return the tokens of the text without directives. Where the branches of a condition have unequal brackets, those
    of the first branch alone are there."""
    out: list[_Token] = []
    conditions: list[list[tuple[int, int]]] = []  # of each open condition: the branches, as ranges of `out`
    starts: list[int] = []
    at = 0
    for directive in [*_code_directives(text), None]:
        out += _plain_tokens(text, at, directive.start() if directive else len(text))
        if directive is None:
            break
        at = directive.end()
        kind = _CONDITION.match(directive[0])
        if kind is None:
            continue
        if kind[1] == "if":
            conditions.append([])
            starts.append(len(out))
        elif conditions:
            conditions[-1].append((starts[-1], len(out)))
            starts[-1] = len(out)
            if kind[1] == "endif":
                branches = conditions.pop()
                starts.pop()
                if any(not _balanced(out[start:stop]) for start, stop in branches):
                    out = out[: branches[0][1]]
    return out


def _code_directives(text: str) -> Iterator[re.Match[str]]:
    """Find the directives that are not inside a comment or a text."""
    at = 0
    for directive in _DIRECTIVE.finditer(text):
        while at < directive.start():
            token = _TOKEN.match(text, at)
            at = token.end() if token else at + 1
        if at == directive.start() or (at > directive.start() and text[directive.start() : at].isspace()):
            at = directive.end()
            yield directive


def _plain_tokens(text: str, start: int, stop: int) -> Iterator[_Token]:
    at = start
    while at < stop:
        token = _TOKEN.match(text, at, stop)
        if token is None:
            at += 1
            continue
        if token["space"] is None:
            yield _Token(token[0], at, token["word"] is not None)
        at = token.end()


def _balanced(tokens: Sequence[_Token]) -> bool:
    depth = 0
    for token in tokens:
        depth += (token.text == "{") - (token.text == "}")
        if depth < 0:
            return False
    return depth == 0


class _Reader:
    """Reads declarations from tokens. Positions are numbers of tokens."""

    def __init__(self, tokens: Sequence[_Token], device_words: frozenset[str]) -> None:
        self.tokens, self.device_words = tokens, device_words

    def text(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) else ""

    def declarations(self, at: int, in_class: bool) -> tuple[list[Declaration], int]:
        """Read declarations up to the bracket that closes their namespace or class; return them and its position."""
        found: list[Declaration] = []
        while at < len(self.tokens) and self.text(at) != "}":
            if self.text(at) == ";":
                at += 1
            elif in_class and self.text(at) in ("public", "private", "protected") and self.text(at + 1) == ":":
                at += 2
            else:
                one, at = self.declaration(at)
                found.append(one)
        return found, at

    def declaration(self, first: int) -> tuple[Declaration, int]:
        """Read one declaration that begins at `first`; return it and the position behind it."""
        at, parameters, value, members = first, False, False, False
        device = constant = False
        kind, name, called = "", "", ""
        parts: tuple[Declaration, ...] = ()
        while at < len(self.tokens):
            word = self.text(at)
            if word in self.device_words or _DEVICE_NAME.fullmatch(word):
                device = True
            constant |= word in ("constexpr", "consteval")
            if word == "template" and self.text(at + 1) == "<":
                at = self.behind_angles(at + 1)
                continue
            if word in (*_CLASSES, "enum", "namespace") and not (kind or parameters or value):
                kind = word if self.text(first) != "using" else "using"
            elif word == "extern" and self.text(at + 1).startswith('"') and self.text(at + 2) == "{":
                kind = "namespace"
            elif word == "=" and not parameters:
                value = True
            elif word == ":" and parameters:
                members = True  # of a constructor
            elif word == ";":
                at += 1
                break
            elif word == "}":
                break
            elif word == "{":
                if kind in (*_CLASSES, "namespace") and not parameters and not value:
                    inner, end = self.declarations(at + 1, in_class=kind != "namespace")
                    parts, at = tuple(inner), end + 1
                    if kind == "namespace":
                        break
                    continue
                body = parameters and not value and kind != "enum" and not (members and self.is_member(at))
                at = self.behind(at)
                if body:
                    break
                continue
            elif kind == "namespace" and (self.tokens[at].word or word == "::"):
                name += word
            elif kind in _CLASSES and not name and self.tokens[at].word and not _ATTRIBUTES.fullmatch(word):
                name = word
            elif word in ("(", "["):
                before = self.text(at - 1) if at else ""
                if word == "(" and not value and not parameters and not _ATTRIBUTES.fullmatch(before):
                    parameters, called = True, before
                at = self.behind(at)
                continue
            at += 1
        last = self.tokens[at - 1]
        device |= any(one.device for one in parts)
        stop = last.start + len(last.text)
        kind = "class" if parts and kind in _CLASSES else kind
        if kind not in ("class", "namespace"):
            kind, name = ("function", called) if parameters else ("other", "")
        return Declaration(self.tokens[first].start, stop, kind, name, constant, device, parts), at

    def is_member(self, at: int) -> bool:
        """Whether the bracket at `at`, behind a constructor's colon, holds the value of a member: `: size{4}`."""
        return self.tokens[at - 1].word or self.text(at - 1) == ">"

    def behind(self, at: int) -> int:
        """Return the position behind the bracket that closes the one at `at`."""
        closing = [_CLOSING[self.text(at)]]
        at += 1
        while at < len(self.tokens) and closing:
            word = self.text(at)
            if word in _CLOSING:
                closing.append(_CLOSING[word])
            elif word == closing[-1]:
                closing.pop()
            at += 1
        return at

    def behind_angles(self, at: int) -> int:
        """Return the position behind the `>` that closes the `<` at `at`."""
        depth = 0
        while at < len(self.tokens):
            word = self.text(at)
            if word in _CLOSING:
                at = self.behind(at)
                continue
            depth += {"<": 1, "<<<": 3, ">": -1, ">>>": -3}.get(word, 0)
            at += 1
            if depth <= 0:
                break
        return at
