"""Loads machine code with llvmlite, as numba itself does."""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import binding

from gemmsim.native.code_store import MachineCode


@cache
def _target() -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple()


def cpu() -> str:
    """Return the name and features of this machine's CPU. Machine code runs only on CPUs where both are equal."""
    return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"


class Loaded:
    """An object file in memory. The `address` of its function is valid as long as this object lives."""

    def __init__(self, code: MachineCode) -> None:
        self._engine = binding.create_mcjit_compiler(
            binding.parse_assembly(""), _target().create_target_machine(jit=True)
        )
        self._engine.add_object_file(binding.ObjectFileRef.from_data(code.object))
        self._engine.finalize_object()
        self.address = self._engine.get_function_address(code.symbol)
