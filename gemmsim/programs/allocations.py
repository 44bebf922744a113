"""The memory of the simulated GPU, as a program allocates it. It lives on from launch to launch."""

from __future__ import annotations

import ctypes
import mmap
import warnings
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gemmsim.programs.c_calls import INVALID_VALUE, OUT_OF_MEMORY, DriverError
from gemmsim.trace.launch_data.device_memory import FIRST_ADDRESS, reach_bytes
from gemmsim.trace.types import Argument

_UNSET = 0xFF  # each byte of new memory: NaN in every float type, so that a kernel that reads it gives itself away
# Memory that host and device reach by one address is mapped here or, where that is taken, a step further.
_SHARED_WITH_HOST, _STEP, _END = 0x7F40_0000_0000, 1 << 32, 0x7FF0_0000_0000
_MAP_FIXED_NOREPLACE = 0x100000


class IncompleteResults(UserWarning):
    """Warns that memory that the program reads lacks results, because a launch was sampled."""


@dataclass(eq=False)
class Allocation:
    """A piece of memory that kernels can reach.

    address        its device address
    content        uint8 [bytes]
    on_host        whether it is memory of the host, which a GPU would reach over its bus
    incomplete     what is missing in it, because a launch was sampled; "" where it holds what a GPU would have stored
    registered_at  where the host has it, if that is another address
    watched        whether the machine sees all that the program does with it
    hold           returns what keeps the content in memory, None where the program has dropped it; None: nothing does
                   but this object
    """

    address: int
    content: NDArray[np.uint8]
    on_host: bool = False
    incomplete: str = ""
    registered_at: int | None = None
    watched: bool = False
    hold: Callable[[], object] | None = None
    freed: bool = False

    @property
    def size(self) -> int:
        return len(self.content)

    @property
    def gone(self) -> bool:
        """Whether the program can read it no more."""
        return self.freed or (self.hold is not None and self.hold() is None)

    def warn(self, stacklevel: int = 3) -> None:
        """Warn a program that is about to read it, where results are missing in it."""
        if self.incomplete:
            text = f"results are not complete: {self.incomplete}"
            warnings.warn(text, IncompleteResults, stacklevel=stacklevel)


class Allocations:
    """All allocations of a program, by device address. limit_bytes: of the GPU's memory."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._by_address: dict[int, Allocation] = {}
        self._next, self._freed = FIRST_ADDRESS, dict[int, list[int]]()
        self.used_bytes = 0

    def allocate(self, size: int) -> Allocation:
        """Allocate memory of the device. Addresses of freed memory are used again, as a driver does."""
        if not size:
            raise DriverError(INVALID_VALUE)
        if self.used_bytes + size > self.limit_bytes:
            raise DriverError(OUT_OF_MEMORY)
        try:
            content = np.full(size, _UNSET, np.uint8)
        except MemoryError:
            raise DriverError(OUT_OF_MEMORY) from None
        self.used_bytes += size
        return self._add(Allocation(self._place(size), content, watched=True))

    def allocate_shared(self, size: int) -> Allocation:
        """Allocate memory that host and device reach by the same address: pinned or managed."""
        if not size:
            raise DriverError(INVALID_VALUE)
        address = _mapped(size)
        return self._add(Allocation(address, host_bytes(address, size), on_host=True))

    def register(
        self, host: int, size: int, on_host: bool = True, hold: Callable[[], object] | None = None
    ) -> Allocation:
        """Let the device reach memory of the host at an address of its own.

        on_host  False where it stands for memory of the device
        hold     as of an `Allocation` that the machine watches; None: of one that it does not
        """
        watched, content = hold is not None, host_bytes(host, size)
        new = Allocation(self._place(size), content, on_host, registered_at=host, watched=watched, hold=hold)
        return self._add(new)

    def free(self, address: int) -> None:
        freed = self._by_address.pop(address, None)
        if freed is None:
            raise DriverError(INVALID_VALUE)
        freed.freed = True
        if freed.on_host and freed.registered_at is None:
            ctypes.CDLL(None).munmap(ctypes.c_void_p(address), ctypes.c_size_t(freed.size))
            return
        self.used_bytes -= freed.size if freed.registered_at is None else 0
        self._freed.setdefault(reach_bytes(freed.size), []).append(address)

    @property
    def any_incomplete(self) -> bool:
        """Whether results are missing in any of them."""
        return any(one.incomplete for one in self._by_address.values())

    def registered(self, host: int) -> Allocation | None:
        """Return the allocation that stands for the memory of the host at this address."""
        return next((one for one in self._by_address.values() if one.registered_at == host), None)

    def find(self, address: int) -> Allocation | None:
        """Return the allocation that the address lies in."""
        fits = (one for one in self._by_address.values() if one.address <= address < one.address + one.size)
        return next(fits, None)

    def bytes_at(self, address: int, size: int) -> tuple[Allocation, NDArray[np.uint8]]:
        """Return the allocation of an address, and `size` bytes of it from there on."""
        found = self.find(address)
        if found is None or address + size > found.address + found.size:
            raise DriverError(INVALID_VALUE)
        start = address - found.address
        return found, found.content[start : start + size]

    def reachable(self, given: Iterable[bytes], in_code: Collection[int] = ()) -> list[Allocation]:
        """Return, by address, the allocations that a kernel can reach that is given these parameters and constants.

        An aligned word that is an address in an allocation counts as a pointer to it, in what is given and in memory
        that is reached.

        in_code  32-bit constants of the code: where one is the upper half of an allocation's address, the code may hold
                 all of it
        """
        known = sorted(self._by_address.values(), key=lambda one: one.address)
        starts = np.array([one.address for one in known], np.uint64)
        ends = starts + np.array([one.size for one in known], np.uint64)
        reached = np.array([one.address >> 32 in in_code for one in known], bool)
        waiting = [one.content[: one.size // 8 * 8].view(np.uint64) for one in known if one.address >> 32 in in_code]
        waiting += [np.frombuffer(one[: len(one) // 8 * 8], np.uint64) for one in given]
        while waiting and known:
            words = waiting.pop()
            words = words[(words >= starts[0]) & (words < ends[-1])]
            number = np.searchsorted(starts, words, side="right").astype(np.int64) - 1
            for new in np.unique(number[words < ends[number]]).tolist():
                if not reached[new]:
                    reached[new] = True
                    content = known[new].content
                    waiting.append(content[: len(content) // 8 * 8].view(np.uint64))
        return [one for one, is_reached in zip(known, reached, strict=True) if is_reached]

    def _place(self, size: int) -> int:
        if places := self._freed.get(reach_bytes(size)):
            return places.pop()
        address, self._next = self._next, self._next + reach_bytes(size)
        return address

    def _add(self, new: Allocation) -> Allocation:
        self._by_address[new.address] = new
        return new


def host_bytes(address: int, size: int) -> NDArray[np.uint8]:
    """Return the memory of this process at an address, uint8 [size]."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address)) if size else np.zeros(0, np.uint8)


def argument_of(one: Allocation) -> Argument:
    """Return an allocation as an array of a launch."""
    return Argument("u8", one.content.shape, one.content, at=one.address)


def _mapped(size: int) -> int:
    """Map memory of this process at an address that can be a device address, too."""
    c_mmap = ctypes.CDLL(None, use_errno=True).mmap
    c_mmap.restype = ctypes.c_void_p
    c_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_size_t]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED_NOREPLACE
    for address in range(_SHARED_WITH_HOST, _END, _STEP):
        if c_mmap(address, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) == address:
            return address
    raise DriverError(OUT_OF_MEMORY)
