"""The compiled loop of `gemmsim.trace.steady.tapes`, which asks of other words what a walk asked of its words."""

from __future__ import annotations

import numpy as np

from gemmsim.trace.llvm.primitives import lane_operation, moved
from gemmsim.trace.steady.tape_words import (
    AT,
    FIRST,
    HOLDS,
    KIND,
    LINEAR,
    MASK,
    MOVES,
    OPERATE,
    PRODUCT,
    RANGE,
    SECOND,
    STRIDE,
    THIRD,
)

# mypy: disable-error-code="no-untyped-def"

MOST = 1 << 40  # `lengths.MOST_PERIODS`
ALL = 0xFFFFFFFF


def replay(tape, words, address, last, least):
    """Do what a tape says; return the row of the first question that has another answer, or the number of rows.

    tape     int64 [rows, COLUMNS]
    words    uint32 [3, warps, words]: those of period 0, of period 1 and of period `last`
    address  where they are
    least    int64 [1] becomes the number of periods for which all holds that was asked, where that is less
    """
    for number in range(len(tape)):
        kind, at, mask = tape[number, KIND], tape[number, AT], tape[number, MASK]
        first, second, third = tape[number, FIRST], tape[number, SECOND], tape[number, THIRD]
        same, room = True, MOST
        if kind == OPERATE:
            for warp in range(3 * words.shape[1]):
                lane_operation(np.uint64(at), moved(address, 4 * words.shape[2] * warp), np.uint32(mask))
        elif kind == MOVES:
            same = _moves(words, at, mask) == (first != 0)
        elif kind == HOLDS:
            same = _holds(words, at, mask, first, second)
        elif kind == STRIDE:
            same = _strides(words, at, mask, first, last)
        elif kind == RANGE:
            room = _room(words, at, mask, first, second != 0, 32 - third)
        elif kind == PRODUCT:
            same = third == 0 or _is_zero(words, second, mask)
            room = _room_of_product(words, at, mask, first, second)
        elif kind == LINEAR:
            same = _is_linear(words, at, mask, last)
        else:
            same = not _moves(words, at, mask)
        if not same or room < last:
            return number
        least[0] = min(least[0], room)
    return len(tape)


def _moves(words, at, mask):
    for warp in range(words.shape[1]):
        for lane in range(32):
            if mask >> lane & 1 != 0:
                zero = words[0, warp, at + lane]
                if zero != words[1, warp, at + lane] or zero != words[2, warp, at + lane]:
                    return True
    return False


def _holds(words, at, mask, flip, wanted):
    for state in range(3):
        for warp in range(words.shape[1]):
            for lane in range(32):
                if mask >> lane & 1 != 0 and (words[state, warp, at + lane] ^ flip) >> 31 & 1 != wanted >> lane & 1:
                    return False
    return True


def _strides(words, at, mask, stride, last):
    """Whether the address in two rows moves by `stride`. High words are those of numbers of 64 bits, which wrap."""
    for warp in range(words.shape[1]):
        for lane in range(32):
            if mask >> lane & 1 != 0:
                zero = np.int64(words[0, warp, at + lane]) + (np.int64(words[0, warp, at + 32 + lane]) << 32)
                one = np.int64(words[1, warp, at + lane]) + (np.int64(words[1, warp, at + 32 + lane]) << 32)
                end = np.int64(words[2, warp, at + lane]) + (np.int64(words[2, warp, at + 32 + lane]) << 32)
                if one - zero != stride or end - zero != stride * last:
                    return False
    return True


def _signed(word):
    """Return 32 bits as a number with a sign."""
    low = np.int64(word) & ALL
    return low - ((low >> 31) << 32)


def _room(words, at, mask, flip, signed, left):
    """Return for how many periods no word of a row leaves its range, when shifted to the left by `left` bits."""
    room = MOST
    for warp in range(words.shape[1]):
        for lane in range(32):
            if mask >> lane & 1 != 0:
                zero = ((words[0, warp, at + lane] ^ flip) << left) & ALL
                one = ((words[1, warp, at + lane] ^ flip) << left) & ALL
                step = _signed(one - zero)
                value = _signed(zero) if signed else np.int64(zero)
                high = np.int64(0x7FFFFFFF if signed else ALL)
                if step > 0:
                    room = min(room, (high - value) // step)
                elif step < 0:
                    room = min(room, (value - (high - ALL)) // -step)
    return room


def _room_of_product(words, at, mask, by, low):
    """Return for how many periods the low word of a product of 64 bits does not wrap around, see
    `operands._multiplies_steps`. It is the same with and without signs."""
    room = MOST
    for warp in range(words.shape[1]):
        for lane in range(32):
            if mask >> lane & 1 != 0:
                factor, zero = np.int64(words[0, warp, by + lane]), np.int64(words[0, warp, at + lane])
                step = _signed((np.int64(words[1, warp, at + lane]) - zero) * factor)
                begin = (zero * factor + np.int64(words[0, warp, low + lane])) & ALL
                if step > 0:
                    room = min(room, (ALL - begin) // step)
                elif step < 0:
                    room = min(room, begin // -step)
    return room


def _is_zero(words, low, mask):
    """Whether two rows, of the low and of the high words, are 0 in period 0."""
    for warp in range(words.shape[1]):
        for lane in range(32):
            if mask >> lane & 1 != 0 and (words[0, warp, low + lane] | words[0, warp, low + 32 + lane]) != 0:
                return False
    return True


def _is_linear(words, at, mask, last):
    for warp in range(words.shape[1]):
        for lane in range(32):
            if mask >> lane & 1 != 0:
                zero, one = np.int64(words[0, warp, at + lane]), np.int64(words[1, warp, at + lane])
                if (zero + (one - zero) * last - np.int64(words[2, warp, at + lane])) & ALL != 0:
                    return False
    return True
