"""numba kernels that the tests of compile/ compile."""

from numba import cuda


@cuda.jit(fastmath=True)
def scale(x, y, factor):
    i = cuda.grid(1)
    if i < x.shape[0]:
        y[i] = factor * x[i]


@cuda.jit(launch_bounds=(256, 2))
def bounded(x, y, factor):
    i = cuda.grid(1)
    y[i] = factor * x[i]


@cuda.jit(max_registers=24)
def limited(x, y, factor):
    crowd(x, y, factor)


@cuda.jit
def free(x, y, factor):
    crowd(x, y, factor)


@cuda.jit(device=True)
def crowd(x, y, factor):
    i = cuda.grid(1)
    total = x[0]
    for k in range(32):
        total += x[i + 7 * k] * x[i * k]
    y[i] = factor * total


def mirrored_rows(x):
    """Each row is the one before it, mirrored, plus one; other blocks made that."""
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    for row in range(1, x.shape[0]):
        x[row, i] = x[row - 1, x.shape[1] - 1 - i] + 1
        grid.sync()


def plain(x, y, factor):
    i = cuda.grid(1)
    y[i] = factor * x[i]


def unknown_name(x, y, factor):
    y[0] = nowhere(x)  # noqa: F821


def build(times):
    @cuda.jit
    def repeated(x, y, factor):
        i = cuda.grid(1)
        total = x[i]
        for _ in range(times):
            total = total * factor
        y[i] = total

    return repeated


number = 3
