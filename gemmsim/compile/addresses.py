"""Works out the addresses that the linker or the loader would write into immediates of the code.

nvdisasm prints half an address as `32@lo(table)`, `32@hi(table+0x10)` or `32@lo((kernel + .L_x_0@srel))`. An address of
code is known when the kernel is decoded. That of a device global is known only at launch, so the immediate refers to a
word of `ADDRESS_BANK`, for which there is a relocation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from gemmsim.isa.parse import IN_ADDRESS_BANK
from gemmsim.isa.program import ADDRESS_BANK, GLOBAL_DATA, Relocation, Symbol
from gemmsim.support.errors import GemmsimError

_HALF = re.compile(r"32@(lo|hi)\(((?:[^()]|\([^()]*\))*)\)")
_WORD_BYTES = 8


class Addresses:
    """Collects the half addresses of a kernel's code.

    labels       `labels` of `parse_instruction`: byte offsets of labels, and the half addresses noted so far
    relocations  one for each address of a device global
    """

    def __init__(self, labels: Mapping[str, int], variables: Sequence[Symbol]) -> None:
        self.labels = dict(labels)
        self._variables = {variable.name: variable for variable in variables}
        self._words: dict[int, int] = {}  # offset in the image of device globals -> offset in ADDRESS_BANK

    @property
    def relocations(self) -> tuple[Relocation, ...]:
        return tuple(Relocation(ADDRESS_BANK, at, addend) for addend, at in self._words.items())

    @property
    def bank(self) -> dict[int, bytes]:
        """Return {ADDRESS_BANK: room for the addresses}; {} where the code holds none."""
        return {ADDRESS_BANK: bytes(_WORD_BYTES * len(self._words))} if self._words else {}

    def note(self, text: str) -> None:
        """Work out the half addresses in an instruction's text. Raises GemmsimError for one of an unknown symbol."""
        for match in _HALF.finditer(text):
            high = match[1] == "hi"
            terms = [term.strip() for term in match[2].strip().strip("()").split("+")]
            variable = next((self._variables[term] for term in terms if term in self._variables), None)
            if variable is None:
                value = self._code(terms, text)
                self.labels[match[0]] = value >> 32 if high else value & 0xFFFFFFFF
                continue
            at = next((place.offset_bytes for place in variable.places if place.bank == GLOBAL_DATA), None)
            if at is None:
                raise GemmsimError(f"cannot place '{match[0]}' in '{text}': the constant bank has no address")
            at += sum(int(term, 16) for term in terms if term not in self._variables)
            word = self._words.setdefault(at, _WORD_BYTES * len(self._words))
            self.labels[IN_ADDRESS_BANK + match[0]] = word + 4 * high

    def _code(self, terms: list[str], text: str) -> int:
        # A term `.L_x_0@srel` is the label's offset in the section of the function that the other term names; the
        # offset in the whole code, which `labels` holds, includes both.
        relative = [term.removesuffix("@srel") for term in terms if term.endswith("@srel")]
        try:
            return sum(self.labels[t] if t in self.labels else int(t, 16) for t in relative or terms)
        except ValueError:
            raise GemmsimError(f"cannot place an address in '{text}': the cubin has no symbol of that name") from None
