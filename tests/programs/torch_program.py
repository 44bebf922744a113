"""A program with PyTorch's tensors on the GPU, given to a kernel of numba.cuda."""

import sys

import torch
from numba import cuda


@cuda.jit
def increment(values):
    i = cuda.grid(1)
    if i < values.size:
        values[i] += 1


def main() -> None:
    assert torch.cuda.is_available()
    held = torch.arange(64, device="cuda", dtype=torch.float32)
    host = held.cpu()
    assert held.is_cuda and (held + 1).is_cuda and held[3:].device == torch.device("cuda", 0)
    assert not host.is_cuda and not (host + 1).is_cuda and torch.zeros(3).device.type == "cpu"
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    increment[2, 32](held)
    increment[1, 32](held[32:])
    end.record()
    torch.cuda.synchronize()
    expected = torch.arange(64) + 1
    expected[32:] += 1
    assert held.cpu().equal(expected.float()) and host.equal(torch.arange(64).float())  # cpu() has copied it
    moved = host.to("cuda")
    moved.add_(1)
    assert host[0] == 0 and moved.to(0) is moved and moved.to(host) is not moved
    weight = torch.ones(3, device="cuda", requires_grad=True)
    (2 * weight).sum().backward()
    assert weight.grad.is_cuda and weight.grad.tolist() == [2, 2, 2]
    assert torch.nn.Linear(2, 2).to("cuda").weight.is_cuda
    sys.stdout.write(f"{torch.cuda.get_device_properties('cuda').multi_processor_count} SMs, ")
    sys.stdout.write(f"{begin.elapsed_time(end) * 1e3:.3f} us\n")
    if "graph" in sys.argv:
        torch.cuda.CUDAGraph()
    if "own" in sys.argv:
        torch.cuda.get_rng_state()


if __name__ == "__main__":
    main()
