"""Makes machine code of LLVM modules, and loads it, both with llvmlite."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from llvmlite import binding

from gemmsim.native.code_store import MachineCode

_LEVEL = 3  # of optimisation


@cache
def _target() -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_default_triple()


def cpu() -> str:
    """Return the name and features of this machine's CPU. Machine code runs only on CPUs where both are equal."""
    return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"


def compiled(module: str) -> bytes:
    """Optimise an LLVM module, given as text, and return the object file for this machine's CPU."""
    machine = _target().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=_LEVEL,
        reloc="default",
        codemodel="jitdefault",
        jit=True,
    )
    parsed = binding.parse_assembly(module)
    parsed.triple, parsed.data_layout = machine.triple, str(machine.target_data)
    passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(_LEVEL))
    passes.getModulePassManager().run(parsed, passes)
    return bytes(machine.emit_object(parsed))


class Loaded:
    """Object files in memory. The `addresses` of their functions are valid as long as this object lives."""

    def __init__(self, codes: Sequence[MachineCode]) -> None:
        self._engine = binding.create_mcjit_compiler(
            binding.parse_assembly(""), _target().create_target_machine(jit=True)
        )
        for code in codes:
            self._engine.add_object_file(binding.ObjectFileRef.from_data(code.object))
        self._engine.finalize_object()
        self.addresses = [self._engine.get_function_address(code.symbol) for code in codes]
