"""What is not simulated is named in one line, each kind by its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytest.importorskip("numba_cuda", reason="the compiler wheels are not installed")
NAMES = {
    "graphs": "CUDA graphs (cuGraphCreate)",
    "capture": "CUDA graphs (cuStreamBeginCapture)",
    "textures": "textures (cuTexObjectCreate)",
    "surfaces": "surfaces (cuSurfObjectCreate)",
    "arrays": "CUDA arrays (cuArrayCreate)",
    "mipmaps": "textures (cuMipmappedArrayCreate)",
    "peer access": "peer access (cuCtxEnablePeerAccess)",
    "copies to a peer": "peer access (cuMemcpyPeer)",
    "other processes": "memory of other processes (cuIpcGetMemHandle)",
    "pools": "memory pools (cuMemPoolCreate)",
    "pool of the device": "memory pools (cuDeviceGetDefaultMemPool)",
    "virtual memory": "virtual memory management (cuMemAddressReserve)",
    "multicast": "multicast objects (cuMulticastCreate)",
    "rectangles": "copies of rectangles (cuMemcpy2D)",
    "other interfaces": "resources of other interfaces (cuImportExternalMemory)",
    "writes of streams": "waits and writes of streams (cuStreamWriteValue32)",
    "dynamic parallelism": "dynamic parallelism (a kernel that launches kernels)",
}


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    done = subprocess.run([sys.executable, str(HERE / "unsupported_program.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("kind", NAMES)
def test_each_kind_is_named(said: dict[str, str], kind: str) -> None:
    assert said[kind].endswith(f"the program uses {NAMES[kind]}, which gemmsim does not simulate")
    assert "\n" not in said[kind]


def test_every_kind_is_tested(said: dict[str, str]) -> None:
    assert set(said) == set(NAMES)
