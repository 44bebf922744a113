"""A program with cuda.core and cuda.bindings, whose kernel in CUDA C++ NVRTC compiles."""

import sys

import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = """
__constant__ float factor = 2;
extern "C" __global__ void saxpy(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += factor * x[i];
}
"""


def done(result):
    error, *values = result
    if error != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(str(error))
    return values[0] if values else None


def main() -> None:
    device = Device()
    device.set_current()
    stream = device.create_stream()
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
    kernel = Program(SOURCE, "c++", options=options).compile("cubin").get_kernel("saxpy")
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    places = [done(driver.cuMemAlloc(a.nbytes)) for a in (x, y)]
    for array, place in zip((x, y), places, strict=True):
        done(driver.cuMemcpyHtoD(place, array.ctypes.data, array.nbytes))
    launch(stream, LaunchConfig(grid=8, block=128), kernel, int(places[0]), int(places[1]), np.int32(1000))
    stream.sync()
    out = np.zeros_like(y)
    done(driver.cuMemcpyDtoH(out.ctypes.data, places[1], out.nbytes))
    np.testing.assert_array_equal(out, 1 + 2 * x)
    sys.stdout.write(f"{device.properties.multiprocessor_count} SMs\n")


if __name__ == "__main__":
    main()
