"""Starts the simulated machine of this process: `simulate`, and what programs, tests and notebooks need of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from gemmsim.gpu import load_gpu
from gemmsim.gpu.spec import GpuSpec
from gemmsim.launch.spec import USUAL_SETTINGS, Settings
from gemmsim.programs import contexts, launch_calls, memory_calls, module_calls
from gemmsim.programs.library import DriverLibrary
from gemmsim.programs.machine import COMPLETE_BELOW, Machine
from gemmsim.programs.numba_toolchain import look_again
from gemmsim.programs.packages import adapt_packages
from gemmsim.report.studies.programs import ProgramLaunch, render_text
from gemmsim.support.errors import GemmsimError

# Importing these modules registers their functions.
_FUNCTIONS = (contexts, launch_calls, memory_calls, module_calls)
_library: list[DriverLibrary] = []


class Simulation:
    """A GPU that is not there, as `simulate` gives it: what was launched on it since then."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._first = len(machine.launches)

    @property
    def gpu(self) -> GpuSpec:
        return self._machine.gpu

    @property
    def launches(self) -> Sequence[ProgramLaunch]:
        """The launches since the simulation began, in order."""
        return tuple(self._machine.launches[self._first :])

    @property
    def beside(self) -> Sequence[str]:
        """What is to be said of work that programs of this process did without a launch."""
        return tuple(self._machine.beside)

    def raise_failure(self) -> None:
        """Raise GemmsimError for the last launch that could not be simulated; the program may have caught it."""
        if isinstance(self._machine.failure, GemmsimError):
            raise self._machine.failure

    def __str__(self) -> str:
        return render_text(self.launches, self.beside)


@contextmanager
def simulate(
    gpu: GpuSpec | str,
    *,
    sanitize: bool = False,
    closer_look: bool = False,
    complete_below: float = COMPLETE_BELOW,
    settings: Settings = USUAL_SETTINGS,
) -> Iterator[Simulation]:
    """Let programs of this process use a GPU that is not there, while the context lasts.

    gpu          a name, a GPU file, or a GpuSpec
    sanitize     whether launches are checked for races and other defects
    closer_look  whether reports get what HTML pages draw: accesses lane by lane, and one block
    complete_below  warp instructions of a launch up to which every block is executed, so that its results are complete;
                    of a larger one, only a sample is, which is said
    settings     of every launch

    All simulations of one process are on one GPU, as packages keep what they have asked of it. Raises GemmsimError for
    another one, where the process has loaded NVIDIA's driver, and in place of the error of a package whose cause is
    that a launch could not be executed, or called what is not simulated.
    """
    spec = load_gpu(gpu) if isinstance(gpu, str) else gpu
    if not _library:
        _library.append(DriverLibrary(Machine(spec)))
        look_again()
        adapt_packages(lambda: _library[0].machine)
    machine = _library[0].machine
    if machine.gpu != spec:
        raise GemmsimError(
            f"this process simulates {machine.gpu.name} already: packages keep what they compiled for it; simulate "
            f"{spec.name} in another process"
        )
    machine.settings, machine.sanitize, machine.closer_look = settings, sanitize, closer_look
    machine.complete_below = complete_below
    machine.failure = None
    machine.simulations += 1
    try:
        yield Simulation(machine)
    except GemmsimError:
        raise
    except Exception as error:
        raise_cause(machine, error)
        raise
    finally:
        machine.simulations -= 1


def raise_cause(machine: Machine, error: BaseException) -> None:
    """Raise GemmsimError where an exception that a package raised has its cause in the simulated machine."""
    if isinstance(machine.failure, GemmsimError):
        raise machine.failure from error
    if machine.refused and ("NOT_SUPPORTED" in str(error) or "801" in str(error)):
        raise GemmsimError(f"the program uses {_in_words(machine.refused[-1])}, which gemmsim does not simulate")
    if "cudaError" in str(error):
        raise GemmsimError(_RUNTIME) from error
    if machine.failure is not None:
        raise machine.failure from error


_RUNTIME = (
    "the program uses the CUDA runtime (libcudart), as CuPy does, which needs more of a driver than the driver API "
    "that gemmsim simulates: load the same kernel by cuda.core, or write it in numba.cuda or Triton"
)

# What functions of the driver API belong to, by how their names begin.
_SUBJECTS = {
    ("cuGraph", "cuStreamBeginCapture", "cuStreamGetCaptureInfo", "cuUserObject"): "CUDA graphs",
    ("cuTex", "cuMipmapped"): "textures",
    ("cuSurf",): "surfaces",
    ("cuArray",): "CUDA arrays",
    ("cuCtxEnablePeer", "cuCtxDisablePeer", "cuDeviceGetP2P", "cuMemcpyPeer", "cuMemcpy3DPeer"): "peer access",
    ("cuIpc",): "memory of other processes",
    ("cuMemPool", "cuMemAllocFromPool", "cuDeviceGetDefaultMemPool", "cuDeviceGetMemPool"): "memory pools",
    ("cuMemAddress", "cuMemCreate", "cuMemMap", "cuMemSetAccess"): "virtual memory management",
    ("cuMulticast",): "multicast objects",
    ("cuMemcpy2D", "cuMemcpy3D", "cuMemsetD2D"): "copies of rectangles",
    ("cuImportExternal", "cuExternal", "cuGraphics", "cuGL", "cuEGL", "cuVDPAU"): "resources of other interfaces",
    ("cuStreamWait", "cuStreamWrite", "cuStreamBatch"): "waits and writes of streams",
    ("cuGreenCtx", "cuDeviceGetDevResource"): "green contexts",
}


def _in_words(name: str) -> str:
    subject = next((text for begin, text in _SUBJECTS.items() if name.startswith(begin)), "")
    return f"{subject} ({name})" if subject else name
