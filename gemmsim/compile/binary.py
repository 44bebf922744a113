"""Chooses what a GPU runs of a file with device code for several architectures, as the CUDA driver does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gemmsim.compile.entries import find_entry
from gemmsim.compile.fatbin import Image, device_images
from gemmsim.compile.link import link
from gemmsim.compile.magic import holds_device_code
from gemmsim.compile.sections import kernel_symbols
from gemmsim.support.errors import GemmsimError

_PTX_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
# The SM versions of one family, on all of which code with the suffix "f" runs (CUDA programming guide, "Family-specific
# features").
_FAMILIES = ((100, 103), (110,), (120, 121))


@dataclass(frozen=True)
class Chosen:
    """What the GPU runs of a file.

    cubin      the machine code
    symbol     of the kernel in the cubin
    origin     which part of the file this is, in words: "the sm_80 cubin in prog"
    made_here  whether the installed linker made the cubin, of PTX or of relocatable cubins
    """

    cubin: bytes
    symbol: str
    origin: str
    made_here: bool


@dataclass(frozen=True)
class Candidate:
    """Device code of a file, one image or several that are to be linked, with the symbols of its kernels."""

    images: tuple[Image, ...]
    contents: tuple[bytes, ...]
    symbols: tuple[str, ...]

    def made(self, arch: str, file: str) -> tuple[bytes, str, bool]:
        """Return a cubin that `arch` runs, and the fields `origin` and `made_here` of `Chosen`."""
        first = self.images[0]
        if first.kind == "ptx":
            parts = [content.decode(errors="replace") for content in self.contents]
            target = f"{arch.rstrip('af')}{first.suffix}"
            return link(parts, target), f"made here of PTX for {first.arch} in {file}", True
        if first.relocatable:
            return link(self.contents, first.arch), f"linked here of {first.arch} cubins in {file}", True
        return self.contents[0], f"the {first.arch} cubin in {file}", False


def choose(data: bytes, entry: str | None, arch: str, file: str) -> Chosen:
    """Choose the kernel `entry` of the file with the content `data` for a GPU of architecture `arch` ("sm_86").

    As the driver does, it takes the cubin for exactly this architecture, else that for the nearest earlier version of
    the same generation (sm_80 runs on sm_86), else the newest PTX that can be compiled for it.

    entry  see `entries.find_entry`
    file   the file's name, for messages

    Raises GemmsimError, with a message of one line, where the file has no code for this GPU or no such kernel.
    """
    sm = int(arch.removeprefix("sm_").rstrip("af"))
    images = device_images(data)
    usable = [image for image in images if runs_on(image, sm)]
    if not usable:
        kinds = ", ".join(dict.fromkeys(f"{image.kind} for {image.arch}" for image in images))
        raise GemmsimError(
            f"'{file}' holds no code for {arch}, only {kinds}: compile it for {arch}, or choose a GPU that runs this"
        )
    ranked = tiers(usable)
    known = list(dict.fromkeys(symbol for tier in ranked for one in tier for symbol in one.symbols))
    if not known:
        raise GemmsimError(f"'{file}' holds no kernel (no __global__ function) for {arch}")
    symbol = find_entry(entry, known, f"'{file}'")
    found = next(tier for tier in ranked if any(symbol in one.symbols for one in tier))
    holding = [one for one in found if symbol in one.symbols]
    if len({one.contents for one in holding}) > 1:
        code = holding[0].images[0].arch
        raise GemmsimError(
            f"'{file}' holds the kernel {symbol} in {len(holding)} different images for {code}: "
            "give the object file or the cubin of the one that is meant"
        )
    cubin, origin, made_here = holding[0].made(arch, file)
    return Chosen(cubin, symbol, origin, made_here)


def runs_on(image: Image, sm: int) -> bool:
    """Whether a GPU of this SM version (90) runs the image, compiled from PTX where that is in it."""
    if image.suffix == "a":
        return image.sm == sm
    if image.suffix == "f":
        return image.sm <= sm and any(image.sm in family and sm in family for family in _FAMILIES)
    return image.sm <= sm and (image.kind == "ptx" or image.sm // 10 == sm // 10)


def tiers(images: Sequence[Image]) -> list[list[Candidate]]:
    """Unpack the images and find their kernels; the code that a GPU prefers comes first, what is alike stands together.

    Raises GemmsimError for a damaged image.
    """
    ranks = sorted({_rank(image) for image in images}, reverse=True)
    return [_candidates([image for image in images if _rank(image) == rank]) for rank in ranks]


def symbols_in(data: bytes) -> list[str]:
    """Return the symbols of all kernels in a file with device code, or in PTX, whatever the GPU; sorted."""
    if not holds_device_code(data):
        return sorted(set(_PTX_ENTRY.findall(data.decode(errors="replace"))))
    return sorted({symbol for tier in tiers(device_images(data)) for one in tier for symbol in one.symbols})


def _rank(image: Image) -> tuple[bool, int, str]:
    """A cubin before PTX, then the newest architecture, then code for this architecture alone before code for all."""
    return image.kind == "cubin", image.sm, {"a": "2", "f": "1", "": "0"}[image.suffix]


def _candidates(images: Sequence[Image]) -> list[Candidate]:
    """Make candidates of images of one architecture; those that must be linked become one candidate."""
    contents = [(image, _content(image)) for image in images]
    alone = [((image,), (content,)) for image, content in contents if not image.relocatable]
    parts = [(image, content) for image, content in contents if image.relocatable]
    groups = alone + ([tuple(zip(*parts, strict=True))] if parts else [])
    return [Candidate(group, data, tuple(_symbols(group, data))) for group, data in groups]


def _content(image: Image) -> bytes:
    return image.content().rstrip(b"\0") if image.kind == "ptx" else image.content()


def _symbols(images: Sequence[Image], contents: Sequence[bytes]) -> Iterator[str]:
    for image, content in zip(images, contents, strict=True):
        ptx = image.kind == "ptx"
        yield from _PTX_ENTRY.findall(content.decode(errors="replace")) if ptx else kernel_symbols(content)
