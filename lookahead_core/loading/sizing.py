"""Sizing: how many documents the KV cache of a replica holds, and how many replicas a number of people needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lookahead_core.errors import ModelError

GIBIBYTE = 1024**3
"""Bytes."""
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "fp8": 1}
"""Bytes per number of each dtype, by the dtype's name."""
BLOCK = 16
"""Tokens of a block, the unit in which vLLM reserves and shares its KV cache; 16 by default on GPUs."""
WINDOWED = {"sliding_attention": "sliding_window", "chunked_attention": "attention_chunk_size"}
"""The kinds of layers that need the last tokens only, and the field of the config with their number."""


@dataclass(frozen=True)
class ModelShape:
    """What decides the memory of a model's weights and of its KV cache."""

    parameters: int
    kv_heads: int
    head_dim: int
    windows: tuple[int | None, ...]
    """For each layer the number of last tokens whose keys and values it needs; None for those of all tokens."""

    def kv_bytes(self, tokens: int, number_bytes: int) -> int:
        """Return the bytes of the keys and values of a text of so many tokens, in all layers."""
        kept = sum(tokens if window is None else min(tokens, window) for window in self.windows)
        return 2 * self.kv_heads * self.head_dim * number_bytes * kept


@dataclass(frozen=True)
class Demand:
    """Who uses the servers, and for how long texts."""

    people: int
    """People with an open text at the same time; each has one document."""
    tokens: int
    """Tokens of a document, with its prompt."""
    branches: int = 5
    depth: int = 10
    """Tokens of a branch."""

    @property
    def cached_tokens(self) -> int:
        """The tokens in whole blocks that a document and its branches need: each branch also its part of a block."""
        return BLOCK * (math.ceil(self.tokens / BLOCK) + self.branches * (1 + math.ceil(self.depth / BLOCK)))


@dataclass(frozen=True)
class ReplicaMemory:
    """The memory of one server, and what of it is not for the KV cache."""

    bytes: int
    share: float = 0.9
    """The part of the memory that the server may use: vLLM's --gpu-memory-utilization."""
    overhead: int = 2 * GIBIBYTE
    """Bytes for activations and compiled graphs."""


@dataclass(frozen=True)
class Sizing:
    """The result of `size`. Bytes, unless it says otherwise."""

    weights: int
    kv_per_token: int
    """While no window is full."""
    kv_per_document: int
    """Of a document with its branches, in whole blocks."""
    kv_room: int
    """For the KV cache of a replica; 0 if the weights do not fit."""
    documents_per_replica: int
    replicas: int | None
    """The number of replicas whose caches hold the documents of all people; None if a replica holds none."""


def size(
    shape: ModelShape, demand: Demand, memory: ReplicaMemory, *, weight_bytes: float = 2, kv_bytes: int = 2
) -> Sizing:
    """Return how much memory documents need and how many replicas; it does not say how fast these are.

    `weight_bytes` and `kv_bytes` are the bytes of a number in the weights (half of one for four bits) and in the cache.
    """
    weights = math.ceil(shape.parameters * weight_bytes)
    per_document = shape.kv_bytes(demand.cached_tokens, kv_bytes)
    room = max(0, int(memory.bytes * memory.share) - weights - memory.overhead)
    documents = room // per_document
    return Sizing(
        weights=weights,
        kv_per_token=shape.kv_bytes(1, kv_bytes),
        kv_per_document=per_document,
        kv_room=room,
        documents_per_replica=documents,
        replicas=math.ceil(demand.people / documents) if documents else None,
    )


def read_shape(location: str, *, trust_remote_code: bool = False) -> ModelShape:
    """Return the shape of the model in a folder or of a Hub id; only its config is read, and no weights are loaded.

    Raises ModelError if it has no config, or layers whose memory is not that of keys and values.
    """
    from transformers import AutoConfig

    from lookahead_core.loading.from_transformers import PretrainedSource, quiet_loading

    try:
        with quiet_loading(PretrainedSource(location, trust_remote_code=trust_remote_code, local_only=False)):
            config = AutoConfig.from_pretrained(location, trust_remote_code=trust_remote_code)
    except Exception as error:
        raise ModelError(
            f"The config of {location} cannot be read ({type(error).__name__}): give a folder or Hub id that has a "
            "config.json, or the numbers --layers, --kv-heads, --head-dim and --parameters."
        ) from error
    return shape_of(config)


def shape_of(config: Any) -> ModelShape:
    """Return the shape of the model of a transformers config; ModelError if its layers keep something else."""
    text = config.get_text_config(decoder=True)
    layers, heads = text.num_hidden_layers, getattr(text, "num_attention_heads", None)
    kinds = getattr(text, "layer_types", None)
    if heads is None or getattr(text, "kv_lora_rank", None) or {*(kinds or ())} - {"full_attention", *WINDOWED}:
        raise ModelError(
            f"{text.model_type} keeps something else than keys and values of each token in some layers: "
            "read the size of its cache in the log of vLLM."
        )
    return ModelShape(
        parameters=_parameters(config),
        kv_heads=getattr(text, "num_key_value_heads", None) or heads,
        head_dim=getattr(text, "head_dim", None) or text.hidden_size // heads,
        windows=tuple(_window(text, kind) for kind in kinds or _uniform(text, layers)),
    )


def _uniform(text: Any, layers: int) -> Sequence[str]:
    """Return the kind of each layer of a config that does not list kinds."""
    slides = getattr(text, "sliding_window", None) and getattr(text, "use_sliding_window", True)
    return ["sliding_attention" if slides else "full_attention"] * layers


def _window(text: Any, kind: str) -> int | None:
    return getattr(text, WINDOWED[kind], None) if kind in WINDOWED else None


def _parameters(config: Any) -> int:
    """Return the number of parameters of the model of a config, shared ones once; no memory is needed for them."""
    import torch
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    return sum(each.numel() for each in model.parameters())
