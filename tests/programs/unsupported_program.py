"""Calls what gemmsim does not simulate, one kind after the other, and writes {kind: what gemmsim says} as JSON."""

import ctypes
import json
import sys

from cuda.bindings import driver
from cuda.core import Device, Program, ProgramOptions

import gemmsim
from gemmsim.support.errors import GemmsimError

PARENT = """
extern "C" __global__ void child(int* a) { a[threadIdx.x] = 1; }
extern "C" __global__ void parent(int* a) { child<<<1, 32>>>(a); }
"""


def launch_from_a_kernel():
    options = ProgramOptions(std="c++17", arch=f"sm_{Device().arch}", relocatable_device_code=True)
    code = Program(PARENT, "c++", options=options).compile("ptx").code
    module = driver.cuModuleLoadData(code)[1]
    error, function = driver.cuModuleGetFunction(module, b"parent")
    if error:
        return (error,)
    return driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, ((0,), (ctypes.c_void_p,)), 0)


NO_CONTEXT = driver.CUcontext(0)
KINDS = {
    "graphs": lambda: driver.cuGraphCreate(0),
    "capture": lambda: driver.cuStreamBeginCapture(0, driver.CUstreamCaptureMode(0)),
    "textures": lambda: driver.cuTexObjectCreate(driver.CUDA_RESOURCE_DESC(), driver.CUDA_TEXTURE_DESC(), None),
    "surfaces": lambda: driver.cuSurfObjectCreate(driver.CUDA_RESOURCE_DESC()),
    "arrays": lambda: driver.cuArrayCreate(driver.CUDA_ARRAY_DESCRIPTOR()),
    "mipmaps": lambda: driver.cuMipmappedArrayCreate(driver.CUDA_ARRAY3D_DESCRIPTOR(), 1),
    "peer access": lambda: driver.cuCtxEnablePeerAccess(NO_CONTEXT, 0),
    "copies to a peer": lambda: driver.cuMemcpyPeer(1, NO_CONTEXT, 2, NO_CONTEXT, 4),
    "other processes": lambda: driver.cuIpcGetMemHandle(4096),
    "pools": lambda: driver.cuMemPoolCreate(driver.CUmemPoolProps()),
    "pool of the device": lambda: driver.cuDeviceGetDefaultMemPool(0),
    "virtual memory": lambda: driver.cuMemAddressReserve(1 << 21, 0, 0, 0),
    "multicast": lambda: driver.cuMulticastCreate(driver.CUmulticastObjectProp()),
    "rectangles": lambda: driver.cuMemcpy2D(driver.CUDA_MEMCPY2D()),
    "other interfaces": lambda: driver.cuImportExternalMemory(driver.CUDA_EXTERNAL_MEMORY_HANDLE_DESC()),
    "writes of streams": lambda: driver.cuStreamWriteValue32(0, 4096, 1, 0),
    "dynamic parallelism": launch_from_a_kernel,
}


def said_of(call) -> str:
    try:
        with gemmsim.simulate("h200"):
            driver.cuInit(0)
            Device().set_current()
            error, *_ = call()
            if error:
                raise RuntimeError(str(error))
    except GemmsimError as refused:
        return str(refused)
    return ""


if __name__ == "__main__":
    sys.stdout.write(json.dumps({kind: said_of(call) for kind, call in KINDS.items()}))
