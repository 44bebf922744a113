"""Launches whose results are needed late, in part or never; writes {case: (how each was executed, ok)} as JSON."""

import json
import sys
import warnings

import numpy as np
from numba import config, cuda

import gemmsim
from gemmsim.launch.spec import Settings

warnings.simplefilter("ignore")
config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
N = 16 * 32
VALUES = np.arange(N, dtype=np.float32)


@cuda.jit
def doubled(out, values):
    out[cuda.grid(1)] = 2 * values[cuda.grid(1)]


@cuda.jit
def negated(out, values):
    out[cuda.grid(1)] = -values[cuda.grid(1)]


@cuda.jit
def incremented(values):
    values[cuda.grid(1)] += 1


@cuda.jit
def numbers(places):
    places[cuda.grid(1)] = N - 1 - cuda.grid(1)


@cuda.jit
def gathered(out, values, places):
    out[cuda.grid(1)] = values[places[cuda.grid(1)]]


@cuda.jit
def numbered(out):
    out[cuda.threadIdx.x] = cuda.blockIdx.x


def arrays():
    return cuda.device_array(N, np.float32), cuda.device_array(N, np.float32), cuda.to_device(VALUES)


def overwritten(out, other, values):
    doubled[16, 32](out, values)
    negated[16, 32](out, values)
    return out, -VALUES


def overwritten_in_part(out, other, values):
    doubled[16, 32](out, values)
    negated[8, 32](out, values)
    return out, np.where(VALUES < N / 2, -VALUES, 2 * VALUES)


def read_between(out, other, values):
    doubled[16, 32](out, values)
    negated[16, 32](other, out)
    negated[16, 32](out, values)
    return other, -2 * VALUES


def input_changed(out, other, values):
    doubled[16, 32](out, values)
    values.copy_to_device(np.zeros(N, np.float32))
    return out, 2 * VALUES


def input_set_by_a_kernel(out, other, values):
    doubled[16, 32](out, values)
    incremented[16, 32](values)
    return out, 2 * VALUES


def input_freed(out, other, values):
    doubled[16, 32](out, values)
    del values
    return out, 2 * VALUES


def result_freed(out, other, values):
    doubled[16, 32](out, values)
    cuda.current_context().memory_manager.deallocations.clear()
    del out
    cuda.current_context().memory_manager.deallocations.clear()
    negated[16, 32](other, values)
    return other, -VALUES


def in_place(out, other, values):
    incremented[16, 32](values)
    return None, None


def leads_another(out, other, values):
    places = cuda.device_array(N, np.int32)
    numbers[16, 32](places)
    gathered[16, 32](out, values, places)
    return out, VALUES[::-1]


def part_read(out, other, values):
    doubled[16, 32](out, values)
    return out[:1], VALUES[:1]


def in_two_halves(out, other, values):
    large = cuda.device_array(256 * 32, np.float32)
    doubled[256, 32](large, cuda.to_device(np.arange(256 * 32, dtype=np.float32)))
    return large, 2 * np.arange(256 * 32)


def last_block_stores_last(out, other, values):
    few = cuda.device_array(32, np.float32)
    numbered[256, 32](few)
    return few, np.full(32, 255)


CASES = (
    *(overwritten, overwritten_in_part, read_between, input_changed, input_set_by_a_kernel, input_freed, result_freed),
    *(in_place, leads_another, part_read, in_two_halves, last_block_stores_last),
)


def main():
    found = {}
    with gemmsim.simulate("h200", settings=Settings(full_below=0)) as gpu:
        for case in CASES:
            begin = len(gpu.launches)
            given = list(arrays())
            out, expected = case(given.pop(0), given.pop(0), given.pop(0))
            same = out is None or bool(np.array_equal(out.copy_to_host(), expected))
            found[case.__name__] = [one.results for one in gpu.launches[begin:]], same
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
