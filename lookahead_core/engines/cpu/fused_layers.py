"""Decoder layers of the Llama shape, computed in fewer calls than transformers makes.

In a small model, a pass of a few rows spends as much time between the matrix products as in them. These layers compute
the same as transformers' own: residual sums and gates are part of the products beside them, and rotary embedding and
RMSNorm take fewer steps. Passes of few rows go through compiled layers instead, where there are any
(compiled_layers.py).
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers.modeling_outputs import CausalLMOutput

from lookahead_core.engines.attention import FOLD_ROWS, attend, folded
from lookahead_core.engines.cpu.compiled_layers import ROWS, CompiledLayers, LayerFunction, compile_layers
from lookahead_core.engines.cpu.packed_matrix import (
    PackedMatrix,
    is_plain,
    packed,
    product,
    product_plus,
    product_times,
    silu_product,
    stacked,
)
from lookahead_core.engines.joint_cache import caches_of

PARTS = {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"}
PROJECTIONS = {"q_proj", "k_proj", "v_proj", "o_proj"}
ATTENTIONS = {"LlamaAttention", "MistralAttention", "Qwen2Attention", "Qwen3Attention", "GraniteAttention"}
HEAD_NORMS = {"q_norm", "k_norm"}
MLP_PARTS = {"gate_proj", "up_proj", "down_proj"}
BARE_MODELS = {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}
"""Models that are embeddings, layers, a final norm and an output matrix, with nothing between them."""


def use_fused_layers(twin: Any, *, compiles: bool = False) -> str:
    """Replace a twin's decoder layers by fused ones; adjacent layers of one kind become one module.

    With `compiles`, passes of at most `ROWS` rows go through compiled layers, if all layers can be compiled. Returns
    why that failed; an empty string if it did not, or was not tried.
    """
    layers = llama_layers(twin)
    kinds = getattr(twin.config.get_text_config(decoder=True), "layer_types", None) or [""] * len(layers)
    runs = [list(run) for _, run in groupby(range(len(layers)), key=lambda index: kinds[index])]
    compiled, reason = _compiled_runs([[layers[index] for index in run] for run in runs], compiles)
    for run, native in zip(runs, compiled, strict=True):
        first, *others = run
        layers[first] = FusedLayers([layers[index] for index in run], first, native)
        for index in others:
            layers[index] = SkippedLayer()
    # The model would only iterate over the modules that do nothing at the end.
    del layers[first + 1 :]
    if type(twin).__name__ in BARE_MODELS and len(layers) == 1 and not _has_hooks(twin.model):
        twin.forward = DirectForward(twin)
    return reason


def _compiled_runs(runs: list[list[Any]], compiles: bool) -> tuple[Sequence[CompiledLayers | None], str]:
    """For each run of layers its compiled form; None for all of them, and the reason, if one cannot be compiled."""
    none = [None] * len(runs)
    if not compiles:
        return none, ""
    found = []
    for run in runs:
        compiled, reason = compile_layers(run, float32_reference)
        if compiled is None:
            return none, reason
        found.append(compiled)
    return found, ""


def _has_hooks(body: Any) -> bool:
    """Whether somebody has registered hooks on modules that `DirectForward` would not call."""
    parts = (body, body.norm, body.rotary_emb)
    return any(part._forward_hooks or part._forward_pre_hooks for part in parts)


def llama_layers(hf_model: Any) -> Any:
    """The model's decoder layers if all of them have the Llama shape; an empty list otherwise."""
    stacks = [module for module in hf_model.modules() if isinstance(module, nn.ModuleList) and len(module)]
    return next((stack for stack in stacks if all(map(_has_llama_shape, stack))), [])


def _has_llama_shape(layer: nn.Module) -> bool:
    """Whether a layer has the attention class and the submodules of a known family.

    Whether it computes the same is tested by the probe, on two layers and short texts. A model whose later layers
    differ, or whose attention changes far into a text, would pass that test; hence the list of known classes.
    """
    if _parts(layer) != PARTS or type(layer.self_attn).__name__ not in ATTENTIONS:
        return False
    attention, mlp = layer.self_attn, layer.mlp
    norms = [layer.input_layernorm, layer.post_attention_layernorm]
    norms += [getattr(attention, name) for name in HEAD_NORMS & _parts(attention)]
    return (
        _parts(attention) - HEAD_NORMS == PROJECTIONS
        and len(_parts(attention) & HEAD_NORMS) != 1
        and len({getattr(attention, name).bias is None for name in ("q_proj", "k_proj", "v_proj")}) == 1
        and _parts(mlp) - {"act_fn"} == MLP_PARTS
        and type(getattr(mlp, "act_fn", None)).__name__ in ("SiLU", "SiLUActivation")
        and all(is_plain(getattr(attention, name)) for name in PROJECTIONS)
        and all(is_plain(getattr(mlp, name)) for name in MLP_PARTS)
        and all(hasattr(norm, "variance_epsilon") for norm in norms)
    )


def _parts(module: Any) -> set[str]:
    return {name for name, _ in module.named_children()}


class Norm(NamedTuple):
    """RMSNorm constants: the weight times sqrt(width), and the vector length that epsilon stands for."""

    weight: torch.Tensor
    least: torch.Tensor


def norm_of(norm: Any, weights: Sequence[torch.Tensor] = ()) -> Norm:
    """The constants of an RMSNorm module; with `weights`, of several norms with one epsilon, a row for each."""
    weight = torch.stack(list(weights)) if weights else norm.weight
    width = weight.shape[-1]
    return Norm(weight.detach().float() * width**0.5, torch.tensor((norm.variance_epsilon * width) ** 0.5))


def normed(norm: Norm, rows: torch.Tensor) -> torch.Tensor:
    """Rows after RMSNorm."""
    lengths = torch.linalg.vector_norm(rows, 2, [-1], True, dtype=torch.float32)
    return (rows / torch.hypot(lengths, norm.least)).mul_(norm.weight).to(rows.dtype)


class LayerWeights(NamedTuple):
    """One layer's norms and packed matrices."""

    input_norm: Norm
    qkv: PackedMatrix
    """Query, key and value projections, concatenated."""
    head_norms: Norm | None
    """The norms of queries and keys, a row for each head, in families that have them."""
    o_proj: PackedMatrix
    mlp_norm: Norm
    gate: PackedMatrix
    up: PackedMatrix
    down: PackedMatrix


def weights_of(layer: Any) -> LayerWeights:
    """A decoder layer's weights, packed."""
    attention, mlp = layer.self_attn, layer.mlp
    projections = [attention.q_proj, attention.k_proj, attention.v_proj]
    o_proj, gate, up, down = (
        packed(one.weight, one.bias) for one in (attention.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj)
    )
    head_norms = None
    if hasattr(attention, "q_norm"):
        heads, key_heads = (one.out_features // attention.head_dim for one in projections[:2])
        weights = [attention.q_norm.weight] * heads + [attention.k_norm.weight] * key_heads
        head_norms = norm_of(attention.q_norm, weights)
    return LayerWeights(
        norm_of(layer.input_layernorm),
        packed(*stacked(projections)),
        head_norms,
        o_proj,
        norm_of(layer.post_attention_layernorm),
        gate,
        up,
        down,
    )


def rotated(heads: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Queries and keys after rotary embedding; the first half of the sines is negated already."""
    swapped = heads.unflatten(-1, [2, -1]).flip([-2]).flatten(-2)
    return torch.addcmul(heads * cosine, swapped, sine)


class PackedLayers:
    """Decoder layers one after the other, over packed matrices."""

    def __init__(self, layers: Sequence[Any]) -> None:
        attention = layers[0].self_attn
        self.dtype = attention.q_proj.weight.dtype
        self.width = int(attention.head_dim)
        self.scaling = float(attention.scaling)
        self.heads = int(attention.q_proj.out_features // self.width)
        self.key_heads = int(attention.k_proj.out_features // self.width)
        self.layers = [weights_of(layer) for layer in layers]

    def __call__(
        self,
        rows: torch.Tensor,
        counts: Sequence[int],
        starts: Sequence[int],
        masks: Sequence[torch.Tensor],
        keys: Sequence[Sequence[torch.Tensor]],
        values: Sequence[Sequence[torch.Tensor]],
        rope: torch.Tensor,
    ) -> torch.Tensor:
        """The hidden states after all layers; the arguments are those of `CompiledLayers`."""
        rows = rows.to(self.dtype)
        group = self.heads // self.key_heads
        masks = [folded(mask, group) if mask.shape[2] <= FOLD_ROWS else mask for mask in masks]
        cosine, sine = rope.to(self.dtype).unsqueeze(1).chunk(2, -1)
        for index, layer in enumerate(self.layers):
            qkv = product(layer.qkv, normed(layer.input_norm, rows)).view(len(rows), -1, self.width)
            heads, new_values = qkv[:, : -self.key_heads], qkv[:, -self.key_heads :]
            if layer.head_norms is not None:
                heads = normed(layer.head_norms, heads)
            heads = rotated(heads, cosine, sine)
            attended = []
            first = 0
            for tree, count in enumerate(counts):
                last, start, end = first + count, starts[tree], starts[tree] + count
                key, value = keys[tree][index], values[tree][index]
                key[0, :, start:end] = heads[first:last, self.heads :].transpose(0, 1)
                value[0, :, start:end] = new_values[first:last].transpose(0, 1)
                query = heads[first:last, : self.heads].transpose(0, 1).unsqueeze(0).to(key.dtype)
                attended.append(attend(query, key[:, :, :end], value[:, :, :end], masks[tree], self.scaling)[0])
                first = last
            rows = product_plus(layer.o_proj, torch.cat(attended).flatten(1).to(rows.dtype), rows)
            between = normed(layer.mlp_norm, rows)
            between = product_times(layer.up, between, silu_product(layer.gate, between))
            rows = product_plus(layer.down, between, rows)
        return rows


class FusedLayers(nn.Module):
    """Stands in a twin in place of the first of several decoder layers, and computes all of them."""

    def __init__(self, layers: Sequence[Any], first: int, compiled: CompiledLayers | None) -> None:
        super().__init__()
        self.first, self.last = first, first + len(layers)
        self.packed = PackedLayers(layers)
        self.compiled = compiled

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        past_key_values: Any,
        **others: Any,
    ) -> torch.Tensor:
        return self.on(hidden_states[0], attention_mask, past_key_values, rope_of(*position_embeddings)[0])[None]

    def on(self, rows: torch.Tensor, mask: torch.Tensor, states: Any, rope: torch.Tensor) -> torch.Tensor:
        """The hidden states of a pass's rows after all layers."""
        caches, counts = caches_of(states, self.first, self.last, len(rows))
        like = rows.new_empty(1, self.packed.key_heads, 0, self.packed.width, dtype=self.packed.dtype)
        for layer in (layer for layers in caches for layer in layers if not layer.is_initialized):
            layer.lazy_initialization(like, like)
        starts = [layers[0].get_seq_length() for layers in caches]
        ends = [start + count for start, count in zip(starts, counts, strict=True)]
        masks = [part[..., :end] for part, end in zip(mask.split(counts, 2), ends, strict=True)]
        keys = [[layer.keys for layer in layers] for layers in caches]
        values = [[layer.values for layer in layers] for layers in caches]
        way = self.packed if self.compiled is None or len(rows) > ROWS else self.compiled
        return way(rows, counts, starts, masks, keys, values, rope)


def float32_reference(layer: Any) -> LayerFunction:
    """A function that computes one layer in float32, whatever the layer's own type is."""
    exact = PackedLayers([copy.deepcopy(layer).float()])

    def compute(
        rows: torch.Tensor, counts: Sequence[int], starts: Sequence[int], masks: Sequence[torch.Tensor],
        keys: Sequence[Sequence[torch.Tensor]], values: Sequence[Sequence[torch.Tensor]], rope: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        wide = ([[kept.float() for kept in tree] for tree in kind] for kind in (keys, values))
        return exact(rows, counts, starts, [mask.float() for mask in masks], *wide, rope)

    return compute


def rope_of(cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Cosines and sines of the rotary embedding side by side, the first half of the sines negated."""
    first, second = sine.chunk(2, -1)
    return torch.cat([cosine, -first, second], -1)


class DirectForward:
    """The forward of a model with one run of layers, without what transformers does for every possible model."""

    def __init__(self, twin: Any) -> None:
        # The twin holds this object; a strong reference back would keep both alive.
        self._twin = weakref.proxy(twin)
        self._norm = norm_of(twin.model.norm)
        self._ropes = torch.empty(0)
        """Rotary embeddings by position, up to the largest position so far."""

    def __call__(
        self,
        input_ids: torch.Tensor,
        position_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        past_key_values: Any,
        logits_to_keep: torch.Tensor,
        **others: Any,
    ) -> CausalLMOutput:
        body = self._twin.model
        rows = body.layers[0].on(
            body.embed_tokens(input_ids[0]), attention_mask, past_key_values, self._rope_at(position_ids[0])
        )
        return CausalLMOutput(logits=self._twin.lm_head(normed(self._norm, rows[logits_to_keep])[None]))

    def _rope_at(self, positions: torch.Tensor) -> torch.Tensor:
        longest = int(positions.max()) + 1
        if longest > len(self._ropes):
            # Models whose rotary embedding depends on the text's length use the uncached engine.
            known = torch.arange(2 * longest, device=positions.device)[None]
            like = torch.empty(0, dtype=self._twin.dtype, device=positions.device)
            self._ropes = rope_of(*self._twin.model.rotary_emb(like, known))[0]
        return self._ropes[positions]


class SkippedLayer(nn.Module):
    """Stands where a layer was that a `FusedLayers` module before it computes."""

    def forward(self, hidden_states: torch.Tensor, **others: Any) -> torch.Tensor:
        return hidden_states
