"""A program that sets and reads variables of a module, which live from launch to launch at one address."""

import ctypes

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, Program, ProgramOptions

SOURCE = """
__device__ int counter = 5;
__constant__ int step = 2;
__device__ int* where;
extern "C" __global__ void bump(int* out) { counter += step; out[0] = counter; where = &counter; }
extern "C" __global__ void follow(int* out) { out[0] = *where; }
"""


def done(result):
    error, *values = result
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(str(error))
    return values[0] if len(values) == 1 else values


def main() -> None:
    device = Device()
    device.set_current()
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
    module = done(driver.cuModuleLoadData(Program(SOURCE, "c++", options=options).compile("cubin").code))
    place, out = done(driver.cuMemAlloc(4)), np.zeros(1, np.int32)

    def read(address) -> int:
        done(driver.cuMemcpyDtoH(out.ctypes.data, address, 4))
        return int(out[0])

    def launched(name: bytes) -> int:
        parameters = ((int(place),), (ctypes.c_void_p,))
        function = done(driver.cuModuleGetFunction(module, name))
        done(driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, parameters, 0))
        return read(place)

    def set_variable(name: bytes, value: int):
        address, size = done(driver.cuModuleGetGlobal(module, name))
        content = np.array([value], np.int32)
        done(driver.cuMemcpyHtoD(address, content.ctypes.data, size))
        return address

    assert [launched(b"bump"), launched(b"bump")] == [7, 9]
    counter = set_variable(b"counter", 100)
    set_variable(b"step", 7)
    assert [launched(b"bump"), launched(b"bump")] == [107, 114]
    assert read(counter) == 114
    assert launched(b"follow") == 114
    assert driver.cuModuleGetGlobal(module, b"nothing")[0] == driver.CUresult.CUDA_ERROR_NOT_FOUND
    assert driver.cuModuleGetFunction(module, b"nothing")[0] == driver.CUresult.CUDA_ERROR_NOT_FOUND


if __name__ == "__main__":
    main()
