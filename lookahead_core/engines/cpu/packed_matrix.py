"""Linear layers with a matrix in oneDNN's own memory layout ("packed")."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn


class PackedLinear(nn.Module):
    """A linear layer without gradients, made from `weight`, (outputs, inputs), on the CPU, and `bias` or None.

    It holds a copy of the weight, of its dtype, in oneDNN's own memory layout ("packed"); with an unpacked weight,
    oneDNN would reorder it in every product. It has no parameters, and no attribute `weight` or `bias`. `packs` must be
    true for the dtype.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self._matrix = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), None)
        self._bias = None if bias is None else bias.detach()

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return `rows @ weight.T`, plus the bias if any, for rows of shape (..., inputs) and of the weight's dtype.

        No rows give an empty result.
        """
        if not rows.numel():
            # oneDNN rejects products without rows.
            return rows.new_empty((*rows.shape[:-1], self.out_features))
        return torch.ops.mkldnn._linear_pointwise(rows, self._matrix, self._bias, "none", [], "")  # type: ignore[no-any-return]


@functools.cache
@torch.inference_mode()
def packs(dtype: torch.dtype) -> bool:
    """Whether this PyTorch build and this processor can multiply packed matrices of a dtype, see `PackedLinear`.

    One product is tried at the first call for a dtype.
    """
    one = torch.ones(1, 1, dtype=dtype, device="cpu")
    try:
        PackedLinear(one, None)(one)
    except (AttributeError, RuntimeError):
        return False
    return True


def is_plain(layer: Any) -> bool:
    """Whether a module is exactly `nn.Linear`, no subclass, with a weight that is exactly `nn.Parameter`.

    Quantized weights are a subclass of Parameter.
    """
    return type(layer) is nn.Linear and type(layer.weight) is nn.Parameter
