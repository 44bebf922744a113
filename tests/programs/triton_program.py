"""A program in Triton, on tensors that are NumPy arrays with the few methods of torch's that Triton asks for."""

import sys

import numpy as np
import triton
import triton.language as tl


class Storage:
    def __init__(self, array):
        self.array = array

    def data_ptr(self):
        return self.array.ctypes.data

    def nbytes(self):
        return self.array.nbytes


class Tensor(Storage):
    dtype = "fp32"

    def untyped_storage(self):
        return Storage(self.array)


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 1024})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        total = tl.load(x_ptr + offsets) + tl.load(y_ptr + offsets)
    else:
        total = tl.load(x_ptr + offsets, mask=offsets < n) + tl.load(y_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, total, mask=offsets < n)


def main() -> None:
    random = np.random.default_rng(0)
    n = 98432
    x, y, out = random.random(n, np.float32), random.random(n, np.float32), np.zeros(n, np.float32)

    def call():
        add[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](Tensor(x), Tensor(y), Tensor(out), n)

    call()
    np.testing.assert_array_equal(out, x + y)
    sys.stdout.write(f"best {add.best_config.kwargs}, {triton.testing.do_bench(call) * 1e3:.3f} us\n")


if __name__ == "__main__":
    main()
