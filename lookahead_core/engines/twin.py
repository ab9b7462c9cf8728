"""A second body on the same weights.

Engines never touch the model that a person handed over. They run a twin: the same modules copied, every parameter
shared and none copied, so that attention, products and the type of the last product can be our own.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import AttentionInterface

ATTENTION = "lookahead"
FOLD_ROWS = 64
"""Up to so many rows, the heads that share a key are folded into the rows: measured in benchmarks/README.md."""
HEAD_BYTES = 1 << 29
"""The largest float32 copy of the output matrix that is made for the sake of exact odds."""


def twin_of(hf_model: nn.Module) -> Any:
    """A copy of the modules around the very same parameters, ready for prediction."""
    shared = {id(parameter): parameter for parameter in hf_model.parameters()}
    return copy.deepcopy(hf_model, shared).eval()


def tree_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of a few rows over many slots, without repeating the keys that several heads share."""
    if options.get("softcap") is not None or options.get("s_aux") is not None:
        raise NotImplementedError("This attention has terms that the fused product cannot take.")
    _, heads, rows, width = query.shape
    shared = key.shape[1]
    if shared < heads and attention_mask is not None and rows <= FOLD_ROWS:
        group = heads // shared
        folded = query.reshape(1, shared, group * rows, width)
        mask = attention_mask.expand(1, group, rows, -1).reshape(1, 1, group * rows, -1)
        mixed = functional.scaled_dot_product_attention(folded, key, value, attn_mask=mask, scale=scaling)
        mixed = mixed.reshape(1, heads, rows, -1)
    else:
        mixed = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=attention_mask, scale=scaling, enable_gqa=shared < heads
        )
    return mixed.transpose(1, 2).contiguous(), None


AttentionInterface.register(ATTENTION, tree_attention)


class Float32Head(nn.Module):
    """The output matrix with its product in float32: in bfloat16 a logit of 20 is only known to a sixteenth."""

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.weight = head.weight.detach().float()
        self.bias = None if head.bias is None else head.bias.detach().float()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return linear_flipped(hidden.float(), self.weight, self.bias)


class FlippedLinear(nn.Module):
    """A linear layer that multiplies from the left: twice as fast for a few rows where the library favours it."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return linear_flipped(rows, self.weight, self.bias)


def linear_flipped(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """The same product as `functional.linear`, asked for as weight · rowsᵀ."""
    flat = rows.reshape(-1, rows.shape[-1])
    if len(flat) == 1 or rows.device.type != "cpu":
        return functional.linear(rows, weight, bias)
    product = (weight @ flat.t()).t()
    if bias is not None:
        product = product + bias
    return product.reshape(*rows.shape[:-1], weight.shape[0])


def use_float32_head(twin: Any) -> None:
    """Have the logits computed in float32, where the output matrix is a plain one of bearable size."""
    head = twin.get_output_embeddings()
    plain = type(head) is nn.Linear and head.weight.dtype in (torch.bfloat16, torch.float16)
    if plain and head.weight.numel() * 4 <= HEAD_BYTES:
        twin.set_output_embeddings(Float32Head(head))


def use_flipped_products(twin: Any) -> None:
    """On a processor, in float32, replace the linear layers where a measurement says that it pays."""
    for parent in list(twin.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Linear and child.weight.dtype is torch.float32 and child.weight.device.type == "cpu":
                setattr(parent, name, FlippedLinear(child))


def flipping_pays(rows: int = 5, width: int = 512) -> bool:
    """Measure on this machine whether a product of a few rows is faster from the left."""
    weight, few = torch.randn(3 * width, width), torch.randn(rows, width)
    plain, flipped = [], []
    for _ in range(30):
        plain.append(_seconds(lambda: functional.linear(few, weight)))
        flipped.append(_seconds(lambda: linear_flipped(few, weight, None)))
    # The fastest of each, since another program on the machine can only slow a product down.
    return min(flipped) * 1.1 < min(plain)


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
