"""A program with PyTorch's tensors on the GPU, given to a kernel of numba.cuda."""

import sys

import torch
from numba import cuda


@cuda.jit
def increment(values):
    i = cuda.grid(1)
    if i < values.size:
        values[i] += 1


@cuda.jit
def doubled(out, values):
    i = cuda.grid(1)
    if i < values.size:
        out[i] = 2 * values[i]


def launches_wait() -> None:
    """Check what repeated launches store, which nothing needs until their input or their output is touched."""
    values, out = torch.ones(64, device="cuda"), torch.zeros(64, device="cuda")
    weight = torch.ones(64, device="cuda", requires_grad=True)
    for _ in range(4):
        doubled[2, 32](out, values)
    values.zero_()
    assert out.tolist() == [2] * 64
    for _ in range(4):
        doubled[2, 32](out, values)
    (out * weight).sum().backward()
    assert weight.grad.tolist() == [0] * 64
    loss = (out * weight).sum()
    values.fill_(3)
    for _ in range(4):
        doubled[2, 32](out.detach(), values)
    loss.backward()  # of the product, PyTorch has kept `out`, and cannot know that a kernel has changed it since
    assert weight.grad.tolist() == [6] * 64


def sums_are_of_float32() -> None:
    """Check that sums of 16-bit floats on the GPU are rounded once, as CUDA's are."""
    torch.manual_seed(0)
    values, ones = torch.randn(1151, 64).half(), torch.ones(64).half()
    gradient = torch.randn(1151, 64).half()
    bias = torch.zeros(64, dtype=torch.float16, device="cuda", requires_grad=True)
    made = torch.nn.functional.layer_norm(values.cuda(), (64,), ones.cuda(), bias)
    made.backward(gradient.cuda())
    assert bias.grad.dtype == torch.float16 and bias.grad.cpu().equal(gradient.float().sum(0).half())
    host = torch.nn.functional.layer_norm(values.float(), (64,), ones.float())
    assert (made.detach().cpu().float() - host).abs().max() < 2e-3
    product = values.cuda() @ gradient.cuda().T
    assert product.is_cuda and product.cpu().equal((values.float() @ gradient.float().T).half())


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
    launches_wait()
    sums_are_of_float32()
    if "graph" in sys.argv:
        torch.cuda.CUDAGraph()
    if "pool" in sys.argv:
        torch.cuda.MemPool()
    if "second" in sys.argv:
        torch.zeros(1, device="cuda:1")
    if "own" in sys.argv:
        torch.cuda.get_rng_state()


if __name__ == "__main__":
    main()
