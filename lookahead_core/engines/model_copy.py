"""The engine's own copy of a model's modules, which shares all parameters with the model that the user loaded.

Engines never change the user's model. They run this copy, whose attention, matrix products and output head can be
replaced. The parameters are the same tensors, so the copy takes no memory for weights.
"""

from __future__ import annotations

import copy
from typing import Any

from torch import nn


def copy_sharing_parameters(hf_model: nn.Module) -> Any:
    """Return a deep copy of a model, in eval mode, with the very same parameter tensors and quantized weights.

    Buffers are copied. The model itself is not changed, except that 8-bit layers of bitsandbytes are initialised.
    """
    shared: dict[int, Any] = {id(parameter): parameter for parameter in hf_model.parameters()}
    for module in hf_model.modules():
        shared |= {id(tensor): tensor for tensor in _quantized_weights(module)}
    return copy.deepcopy(hf_model, shared).eval()


def _quantized_weights(module: Any) -> list[Any]:
    """Return the quantized weights that a bitsandbytes layer keeps outside of its parameters; [] for other layers.

    Initialises the state of an 8-bit layer that has not computed yet.
    """
    if getattr(getattr(module, "weight", None), "CB", None) is not None:
        # A layer moves this state out of its parameter at its first product. Of two layers that share a parameter the
        # second would find nothing, so the state is moved before the copy.
        module.init_8bit_state()
    state = getattr(module, "state", None)
    weights = [getattr(state, "CB", None), getattr(state, "SCB", None), getattr(module, "quant_state", None)]
    return [weight for weight in weights if weight is not None]
