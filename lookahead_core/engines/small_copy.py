"""A second body on the same weights.

Engines never touch the model that a person handed over. They run a twin: the same modules copied, every parameter
shared and none copied, so that attention, products and the type of the last product can be our own.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from transformers import AttentionInterface

from lookahead_core.engines.attention import attend
from lookahead_core.engines.joint_cache import JointTensors

ATTENTION = "lookahead"


def twin_of(hf_model: nn.Module) -> Any:
    """A copy of the modules around the very same parameters, ready for prediction."""
    shared = {id(parameter): parameter for parameter in hf_model.parameters()}
    for module in hf_model.modules():
        shared |= {id(held): held for held in _beside_parameters(module)}
    return copy.deepcopy(hf_model, shared).eval()


def _beside_parameters(module: Any) -> list[Any]:
    """What bitsandbytes keeps of rounded weights in its layers, where others would keep parameters."""
    if getattr(getattr(module, "weight", None), "CB", None) is not None:
        # At its first product a layer takes this from its parameter; of two with one parameter the second finds none.
        module.init_8bit_state()
    state = getattr(module, "state", None)
    kept = [getattr(state, "CB", None), getattr(state, "SCB", None), getattr(module, "quant_state", None)]
    return [held for held in kept if held is not None]


def tree_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor | JointTensors,
    value: torch.Tensor | JointTensors,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of a few rows over many slots, each over the slots of its own tree."""
    if options.get("softcap") is not None or options.get("s_aux") is not None:
        raise NotImplementedError("This attention has terms that the fused product cannot take.")
    if not isinstance(key, JointTensors):
        return attend(query, key, value, attention_mask, scaling), None
    masks = attention_mask.split(key.rows, 2)
    parts = zip(query.split(key.rows, 2), key.tensors, value.tensors, masks, strict=True)
    mixed = [
        attend(rows, keys, values, mask[..., : keys.shape[2]].contiguous(), scaling)
        for rows, keys, values, mask in parts
    ]
    return torch.cat(mixed, 1), None


AttentionInterface.register(ATTENTION, tree_attention)
