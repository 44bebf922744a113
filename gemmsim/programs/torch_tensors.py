"""Lets programs keep PyTorch tensors on the simulated GPU: they lie in the memory of the host, where PyTorch computes.

PyTorch has an interface for what comes before each of its functions (`torch.overrides.TorchFunctionMode`). The mode
here lets a function that is to make a tensor on "cuda" make it on the CPU, and remembers its storage. A tensor of such
a storage says that it is on "cuda:0", its `data_ptr` is a device address, and what PyTorch makes of it is on the GPU,
too. So a tensor of the host stays one, and a copy between the two is a copy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from gemmsim.programs.allocations import Allocation
from gemmsim.programs.machine import Machine
from gemmsim.programs.torch_accesses import DIRECT, accesses_of
from gemmsim.support.errors import GemmsimError

_GPU = "cuda"
_DLPACK_CUDA = 2  # kDLCUDA
_VERSIONED_AT = 32  # in a DLManagedTensorVersioned, the tensor lies behind version, context, deleter and flags


class Storages:
    """The storages of tensors that are on the GPU, and the device address of each that a program has asked for."""

    def __init__(self, machine: Callable[[], Machine]) -> None:
        self._machine = machine
        self._known: dict[
            int, tuple[Any, int]
        ] = {}  # by the storage's number: what tells whether it lives, and address
        self._looked_at = 0

    def add(self, tensor: Any) -> None:
        """Remember that the tensor's storage is on the GPU."""
        from torch.multiprocessing.reductions import StorageWeakRef

        storage = _storage(tensor)
        if storage is not None and storage._cdata not in self._known:
            self._known[storage._cdata] = StorageWeakRef(storage), 0
            if len(self._known) > 2 * self._looked_at + 64:
                self._forget()

    def __contains__(self, tensor: Any) -> bool:
        storage = _storage(tensor)
        return storage is not None and storage._cdata in self._known

    def address(self, tensor: Any) -> int:
        """Return the device address of the tensor's first element, 0 where it has none."""
        memory, storage = self._machine().memory, tensor.untyped_storage()
        alive, address = self._known[storage._cdata]
        found = memory.find(address)
        if found is None or found.registered_at != storage.data_ptr() or found.size != storage.nbytes():
            if not storage.nbytes():
                return 0
            self._forget()  # so that the addresses of freed tensors are used again
            if found is not None:
                memory.free(address)
            hold = partial(type(storage)._new_with_weak_ptr, alive.cdata)
            address = memory.register(storage.data_ptr(), storage.nbytes(), on_host=False, hold=hold).address
            self._known[storage._cdata] = alive, address
        return address + tensor.storage_offset() * tensor.element_size()

    def memory_of(self, tensor: Any) -> Allocation | None:
        """Return the memory of the GPU that a tensor lies in; None where no kernel was given its address."""
        storage = _storage(tensor)
        _, address = self._known.get(storage._cdata, (None, 0)) if storage is not None else (None, 0)
        return self._machine().memory.find(address) if address else None

    def before(self, tensor: Any, stores: bool) -> None:
        """Let the tensor hold what launches have stored to it, because PyTorch is about to read it or to change it."""
        machine, memory = self._machine(), self.memory_of(tensor)
        if memory is not None:
            (machine.postponed.before_write if stores else machine.postponed.before_read)((memory,))
            memory.warn(stacklevel=5)

    def _forget(self) -> None:
        """Free what stands for storages that are no more."""
        for number, (alive, address) in list(self._known.items()):
            if alive.expired():
                del self._known[number]
                if address:
                    self._machine().memory.free(address)
        self._looked_at = len(self._known)


def _storage(tensor: Any) -> Any:
    """Return the storage of a tensor in memory of the host; None where there is none of that kind."""
    try:
        return tensor.untyped_storage() if tensor.device.type == "cpu" else None
    except (NotImplementedError, RuntimeError):  # tensors without a storage: sparse ones, those that only have a shape
        return None


def start(machine: Callable[[], Machine]) -> None:
    """Let tensors of this thread be on the GPU while a simulation goes on. Call it once PyTorch is imported."""
    import torch
    from torch.overrides import TorchFunctionMode

    storages = Storages(machine)
    answers = _Answers(torch, storages)

    class OnGpu(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not machine().simulations:
                return function(*args, **(kwargs or {}))
            return answers.answer(function, args, kwargs or {})

    mode = OnGpu()
    mode.__enter__()
    accesses_of(machine, storages).__enter__()
    node = torch.autograd.function.BackwardCFunction
    backward = node.apply

    def with_mode(self: Any, *gradients: Any) -> Any:
        """Run a function's backward, for which PyTorch sets modes aside; gradients are where its tensors are."""
        if not machine().simulations:
            return backward(self, *gradients)
        saved = [one for one in self.saved_tensors if one is not None]
        if not saved or any(one in storages for one in saved):
            for one in answers.tensors(gradients):
                storages.add(one)
        with mode:
            return backward(self, *gradients)

    node.apply = with_mode


class _Answers:
    """What functions of PyTorch do while the GPU is simulated."""

    def __init__(self, torch: Any, storages: Storages) -> None:
        self._torch, self._storages = torch, storages
        self._here = torch.device(_GPU, 0)
        tensor = torch.Tensor
        self._asked: dict[Any, Callable[[Any], Any]] = {
            tensor.device.__get__: lambda one: self._here,
            tensor.is_cuda.__get__: lambda one: True,
            tensor.is_cpu.__get__: lambda one: False,
            tensor.get_device: lambda one: 0,
            tensor.data_ptr: storages.address,
            tensor.__cuda_array_interface__.__get__: self._interface,
            tensor.__dlpack_device__: lambda one: (_DLPACK_CUDA, 0),
        }

    def answer(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Return what `function` returns, with its tensors where the program has them."""
        torch, storages = self._torch, self._storages
        if getattr(function, "__name__", "") in DIRECT:
            for one in self.tensors(args):
                storages.before(one, stores=True)
        if function in self._asked and args[0] in storages:
            return self._asked[function](args[0])
        if function is torch.Tensor.__dlpack__ and args[0] in storages:
            kept = {key: value for key, value in kwargs.items() if key == "max_version"}
            return _on_gpu(function(args[0], **kept), storages.address(args[0]))
        if function in (torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.cpu):
            return self._moved(function, args, kwargs)
        given = kwargs.get("device")
        to_gpu = self._is_gpu(given)
        if to_gpu:
            kwargs = kwargs | {"device": "cpu"}
        made = function(*args, **kwargs)
        if to_gpu or (given is None and any(one in storages for one in self.tensors((args, tuple(kwargs.values()))))):
            for one in self.tensors(made):
                storages.add(one)
        return made

    def _moved(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Do what to(), cuda() or cpu() is asked for: between host and GPU it is a copy."""
        torch, tensor = self._torch, args[0]
        on_gpu = tensor in self._storages
        to_gpu = on_gpu
        if function in (torch.Tensor.cuda, torch.Tensor.cpu):
            to_gpu, made = function is torch.Tensor.cuda, tensor
        else:
            wanted = [*args[1:], kwargs.get("device"), kwargs.get("other")]
            for one in wanted:
                if isinstance(one, torch.Tensor):
                    to_gpu = one in self._storages
                elif isinstance(one, str | torch.device) or type(one) is int:
                    to_gpu = self._is_gpu(one)
            args = [tensor, *("cpu" if self._is_gpu(one) else one for one in args[1:])]
            if self._is_gpu(kwargs.get("device")):
                kwargs = kwargs | {"device": "cpu"}
            made = function(*args, **kwargs)
        if to_gpu != on_gpu and _same_storage(made, tensor):
            made = made.clone(memory_format=torch.preserve_format)
        if to_gpu:
            self._storages.add(made)
        return made

    def _is_gpu(self, device: Any) -> bool:
        """Whether a device is the GPU. Raises GemmsimError for another GPU than the first."""
        if type(device) is int:
            kind, index = _GPU, str(device)
        elif isinstance(device, str | self._torch.device):
            kind, _, index = str(device).partition(":")
        else:
            return False
        if kind == _GPU and int(index or 0):
            raise GemmsimError(f"the program uses cuda:{index}: gemmsim simulates one GPU a process, cuda:0")
        return bool(kind == _GPU)

    def tensors(self, found: Any) -> Iterator[Any]:
        """Yield the tensors among values, and in their lists and tuples."""
        if isinstance(found, self._torch.Tensor):
            yield found
        elif isinstance(found, list | tuple):
            for one in found:
                yield from self.tensors(one)

    def _interface(self, tensor: Any) -> dict[str, Any]:
        """Return what the CUDA array interface, version 2, says of the tensor."""
        size = tensor.element_size()
        kind = "b" if tensor.dtype == self._torch.bool else "c" if tensor.is_complex() else "f"
        if not (tensor.is_floating_point() or kind in "bc"):
            kind = "u" if str(tensor.dtype).startswith("torch.uint") else "i"
        strides = None if tensor.is_contiguous() else tuple(size * one for one in tensor.stride())
        address = self._storages.address(tensor) if tensor.numel() else 0
        data = {"shape": tuple(tensor.shape), "strides": strides, "data": (address, False)}
        return {"typestr": f"<{kind}{size}", "version": 2, **data}


def _same_storage(one: Any, other: Any) -> bool:
    return bool(one.untyped_storage()._cdata == other.untyped_storage()._cdata)


def _on_gpu(capsule: Any, address: int) -> Any:
    """Change what a DLPack capsule says: the tensor is on the GPU, and where. Its layout is in dlpack.h."""
    interface, name = ctypes.pythonapi, b"dltensor"
    interface.PyCapsule_GetPointer.restype = ctypes.c_void_p
    interface.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    interface.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    if not interface.PyCapsule_IsValid(capsule, name):
        name = b"dltensor_versioned"
    at = interface.PyCapsule_GetPointer(capsule, name) + (_VERSIONED_AT if name != b"dltensor" else 0)
    ctypes.c_uint64.from_address(at).value = address
    (ctypes.c_int32 * 2).from_address(at + 8)[:] = [_DLPACK_CUDA, 0]
    return capsule
