"""Llama models with random weights in the shapes of published models: their times are those of trained weights."""

from __future__ import annotations

from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel

SHAPES: dict[str, dict[str, Any]] = {
    "135M": {  # SmolLM2-135M
        "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
        "num_key_value_heads": 3, "vocab_size": 49_152,
    },
    "1.7B": {  # SmolLM2-1.7B
        "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 24, "num_attention_heads": 32,
        "num_key_value_heads": 32, "vocab_size": 49_152,
    },
    "8B": {  # Llama 3.1 8B
        "hidden_size": 4096, "intermediate_size": 14_336, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "vocab_size": 128_256,
    },
}  # fmt: skip
"""Options of a LlamaConfig by the name of the shape, its number of parameters."""
CONTEXT = 8192
"""The context length of all shapes, in tokens."""
SPREAD = 3.0
"""About the standard deviation of the logits: so wide that the likeliest tokens are rarely tied."""


def random_model(shape: str, dtype: str, device: str) -> PreTrainedModel:
    """Return a Llama of this shape on a device, without end tokens, with the same random weights at each call.

    `shape` is one of SHAPES, `dtype` a name such as "bfloat16", and `device` such as "cuda".
    """
    none: dict[str, Any] = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    config = LlamaConfig(**SHAPES[shape], **none, max_position_embeddings=CONTEXT, name_or_path=f"Llama {shape}")
    torch.manual_seed(0)
    # Made on the device: in the memory of the computer, 8 billion weights would take minutes.
    with torch.device(device):
        model = LlamaForCausalLM._from_config(config, dtype=getattr(torch, dtype)).eval()
    torch.nn.init.normal_(model.get_output_embeddings().weight, std=SPREAD / config.hidden_size**0.5)
    return model
