"""The floor: the matrix products of a lookahead in plain PyTorch, and nothing else. Its time bounds ours from below.

The weights are random, with a model's own shapes and dtype, and distinct in each layer, so that the processor's caches
hold no more of them than of real ones. Query, key and value weights are one matrix, gate and up another. Attention is
its two products over the flat cache, all query heads of one key head together, without mask or softmax. The prompt is
multiplied in chunks, the branches as k rows a pass, and the output matrix only with the rows whose logits are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

CHUNK = 512
# Attention inside a chunk goes by blocks that end at their own diagonal, so half of the scores are never computed, and
# a block's scores stay in the processor's caches. Of 32 to 512 rows this was the fastest in both types, or close.
BLOCK = 128
Floor = Callable[[int, int, int], None]


@dataclass(frozen=True)
class Shape:
    """The sizes of a Llama-like model that decide the shapes of its matrix products."""

    hidden: int
    intermediate: int
    heads: int
    key_value_heads: int
    head_size: int
    layers: int
    vocabulary: int

    @classmethod
    def of(cls, config: Any) -> Shape:
        """Return the sizes in the configuration of a Llama-like transformers model."""
        heads, hidden = config.num_attention_heads, config.hidden_size
        return cls(
            hidden=hidden,
            intermediate=config.intermediate_size,
            heads=heads,
            key_value_heads=getattr(config, "num_key_value_heads", None) or heads,
            head_size=getattr(config, "head_dim", None) or hidden // heads,
            layers=config.num_hidden_layers,
            vocabulary=config.vocab_size,
        )


@dataclass(frozen=True)
class Layer:
    """One layer's random matrices, of shape (outputs, inputs); keys and values of shape (key heads, slots, width)."""

    query_key_value: Tensor
    output: Tensor
    gate_up: Tensor
    down: Tensor
    keys: Tensor
    values: Tensor


@dataclass(frozen=True)
class Inputs:
    """The random inputs of the products, the same for every layer: CHUNK rows, of which a pass uses the first ones."""

    hidden: Tensor
    attended: Tensor
    intermediate: Tensor
    queries: Tensor
    """Queries of shape (key heads, CHUNK * group, head size): each query head of a group is a row."""

    @property
    def group(self) -> int:
        """Query heads for each key head."""
        return self.queries.shape[1] // CHUNK


def floor(config: Any, dtype: torch.dtype, device: torch.device | str = "cpu", slots: int = 4096) -> Floor:
    """Return a function (prompt_tokens, k, depth) that computes the matrix products of a lookahead, and returns None.

    `config` is the configuration of a Llama-like transformers model. The function raises ValueError if the tree has
    more than `slots` tokens, or k exceeds CHUNK.
    """
    shape = Shape.of(config)
    make = _maker(dtype, device)
    layers = [_layer(shape, make, slots) for _ in range(shape.layers)]
    head = make(shape.vocabulary, shape.hidden)
    inputs = _inputs(shape, make)

    @torch.inference_mode()
    def multiply(prompt_tokens: int, k: int, depth: int) -> None:
        if prompt_tokens + k * (depth - 1) > slots or k > CHUNK:
            raise ValueError(f"{prompt_tokens} tokens, k {k}, depth {depth} exceed {slots} slots or {CHUNK} rows.")
        for cached in range(0, prompt_tokens, CHUNK):
            _pass(layers, inputs, min(CHUNK, prompt_tokens - cached), cached)
        linear(inputs.hidden[:1], head)
        for step in range(depth - 1):
            _pass(layers, inputs, k, prompt_tokens + k * step)
            linear(inputs.hidden[:k], head)

    return multiply


def _pass(layers: list[Layer], inputs: Inputs, rows: int, cached: int) -> None:
    """Multiply `rows` rows in all layers, with attention over `cached` slots and the rows themselves."""
    for layer in layers:
        linear(inputs.hidden[:rows], layer.query_key_value)
        for start in range(0, rows, BLOCK):
            _attend(layer, inputs, min(BLOCK, rows - start), cached + start)
        linear(inputs.attended[:rows], layer.output)
        linear(inputs.hidden[:rows], layer.gate_up)
        linear(inputs.intermediate[:rows], layer.down)


def _attend(layer: Layer, inputs: Inputs, rows: int, cached: int) -> None:
    """Compute both products of attention for `rows` rows over `cached` slots and those of the rows."""
    slots = cached + rows
    scores = inputs.queries[:, : rows * inputs.group] @ layer.keys[:, :slots].transpose(1, 2)
    scores @ layer.values[:, :slots]


def _layer(shape: Shape, make: Callable[..., Tensor], slots: int) -> Layer:
    queries = shape.heads * shape.head_size
    keys = shape.key_value_heads * shape.head_size
    return Layer(
        query_key_value=make(queries + 2 * keys, shape.hidden),
        output=make(shape.hidden, queries),
        gate_up=make(2 * shape.intermediate, shape.hidden),
        down=make(shape.hidden, shape.intermediate),
        keys=make(shape.key_value_heads, slots, shape.head_size),
        values=make(shape.key_value_heads, slots, shape.head_size),
    )


def _inputs(shape: Shape, make: Callable[..., Tensor]) -> Inputs:
    group = shape.heads // shape.key_value_heads
    return Inputs(
        hidden=make(CHUNK, shape.hidden),
        attended=make(CHUNK, shape.heads * shape.head_size),
        intermediate=make(CHUNK, shape.intermediate),
        queries=make(shape.key_value_heads, CHUNK * group, shape.head_size),
    )


def _maker(dtype: torch.dtype, device: torch.device | str) -> Callable[..., Tensor]:
    """Return a function that makes random tensors of the sizes it takes; their sequence is always the same."""
    generator = torch.Generator(device).manual_seed(0)

    def make(*sizes: int) -> Tensor:
        return torch.randn(*sizes, generator=generator, dtype=dtype, device=device) / sizes[-1] ** 0.5

    return make
