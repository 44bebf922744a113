"""Computes operators of PyTorch that sum up 16-bit floats as its CUDA kernels do: in float32, rounded once at the end.

On the CPU some of them add up in the tensors' own type, or round what one pass hands to the next. A bias gradient of
layer_norm over a thousand rows is off by 0.06 then.

CUDA's kernels accumulate in `at::acc_type` (float32 for float16 and bfloat16), and cuBLAS is asked for float32 as the
type to compute in (ATen/AccumulateType.h, at::cuda::blas).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_SUMMING = frozenset(
    {"mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "sum", "mean", "cumsum", "var", "var_mean", "std", "norm"}
    | {"linalg_vector_norm", "convolution", "convolution_backward", "native_layer_norm", "native_layer_norm_backward"}
    | {"native_group_norm", "native_group_norm_backward", "_softmax", "_softmax_backward_data", "_log_softmax"}
    | {"_log_softmax_backward_data", "logsumexp"}
)
# Of these, mean and reciprocal deviation stay in float32 between the passes.
_WITH_STATISTICS = frozenset({"native_layer_norm", "native_group_norm"})


def sums_up(operator: Any, torch: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether an operator sums up and its first tensor is of a 16-bit float type; not where it is told a type."""
    name = operator._schema.name.removeprefix("aten::")
    first = next((one for one in args if isinstance(one, torch.Tensor)), None)
    narrow = first is not None and first.dtype in (torch.float16, torch.bfloat16)
    return narrow and name in _SUMMING and kwargs.get("dtype") is None and "out" not in kwargs


def in_float32(operator: Any, torch: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return what an operator returns that `sums_up`, in the type of its first tensor."""
    dtype = next(one for one in args if isinstance(one, torch.Tensor)).dtype
    wide = [_as(torch, one, (torch.float16, torch.bfloat16), torch.float32) for one in args]
    made = operator(*wide, **kwargs)
    if not isinstance(made, tuple):
        return _as(torch, made, (torch.float32,), dtype)
    kept = operator._schema.name.removeprefix("aten::") in _WITH_STATISTICS
    return tuple(
        one if kept and number else _as(torch, one, (torch.float32,), dtype) for number, one in enumerate(made)
    )


def _as(torch: Any, value: Any, of: Sequence[Any], dtype: Any) -> Any:
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.dtype in of else value
