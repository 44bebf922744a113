"""Describes an address in messages by the array argument and the element that lie there."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gemmsim.support.dtypes import DTYPES
from gemmsim.trace.launch_data.device_memory import FIRST_ADDRESS, PAGE_BYTES
from gemmsim.trace.types import Argument


def describe_address(args: Sequence[Argument], address: int) -> str:
    """Say what lies at an address, as in "argument 1 (f32[256,256]), element [256, 0]: right past its end".

    An element past the end of an array is named as if the array had more rows.
    """
    start = FIRST_ADDRESS
    for number, argument in enumerate(args):
        if not argument.shape:
            continue
        item = DTYPES[argument.dtype].item_bytes
        size = math.prod(argument.shape) * item
        reach = -(-size // PAGE_BYTES) * PAGE_BYTES + PAGE_BYTES
        name = f"argument {number} ({argument.dtype}[{','.join(map(str, argument.shape))}])"
        if start - PAGE_BYTES // 2 <= address < start + reach - PAGE_BYTES // 2:
            offset, place = address - start, []
            element, rest = divmod(offset, item)
            for length in reversed(argument.shape[1:]):
                element, index = divmod(element, length)
                place.append(index)
            text = f"{name}, element [{', '.join(map(str, (element, *reversed(place))))}]"
            if rest:
                text += f" + {rest} bytes"
            if offset >= size:
                text += f": {offset - size} bytes past its end" if offset > size else ": right past its end"
            elif offset < 0:
                text += f": {-offset} bytes before its start"
            return text
        start += reach
    return "far from every argument"
