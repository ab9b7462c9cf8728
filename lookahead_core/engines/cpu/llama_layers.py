"""Decoder layers of the Llama shape, replaced by compiled layers wherever those are as fast or faster.

Compiled layers (compiled_layers.py) compute every pass of at most `ROWS` rows. Larger passes of a float32 model go
through them as well, `ROWS` rows at a time. Larger passes of a bfloat16 model go through the model's own layers, whose
matrix products then run in bfloat16.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import torch
from torch import nn
from transformers.modeling_outputs import CausalLMOutput

from lookahead_core.engines.cpu.compiled_layers import ROWS, CompiledLayers, LayerFunction, compile_layers
from lookahead_core.engines.cpu.packed_matrix import is_plain
from lookahead_core.engines.joint_cache import caches_of

PARTS = {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"}
PROJECTIONS = {"q_proj", "k_proj", "v_proj", "o_proj"}
ATTENTIONS = {"LlamaAttention", "MistralAttention", "Qwen2Attention", "Qwen3Attention", "GraniteAttention"}
HEAD_NORMS = {"q_norm", "k_norm"}
MLP_PARTS = {"gate_proj", "up_proj", "down_proj"}
DIRECT_MODELS = {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}
"""Models that are embeddings, layers, a final norm and an output matrix, with nothing between them."""


def use_compiled_layers(model_copy: Any) -> str:
    """Replace a model copy's decoder layers by `LayerRun` modules, in place, if all of them can be compiled.

    Adjacent layers of one kind become one module. Returns "" then; otherwise the reason, and nothing is changed.
    """
    layers = llama_layers(model_copy)
    if not layers:
        return "they are for decoder layers of the Llama shape"
    kinds = getattr(model_copy.config.get_text_config(decoder=True), "layer_types", None) or [""] * len(layers)
    runs = []
    for _, indices in groupby(range(len(layers)), key=lambda index: kinds[index]):
        first, *others = indices
        members = [layers[index] for index in (first, *others)]
        compiled, reason = compile_layers(members, float32_reference)
        if compiled is None:
            return reason
        runs.append(LayerRun(members, first, compiled))
    last = runs[-1].first
    for index in range(last + 1):
        layers[index] = SkippedLayer()
    for run in runs:
        layers[run.first] = run
    # Without these, the model would only iterate over modules that do nothing.
    del layers[last + 1 :]
    if type(model_copy).__name__ in DIRECT_MODELS and len(runs) == 1 and not _has_hooks(model_copy.model):
        model_copy.forward = DirectForward(model_copy)
    return ""


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

    `compile_layers` compares the first and the last layer with the compiled ones. A family whose layers between them
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


class LayerRun(nn.Module):
    """Stands in a model copy in place of the first of several decoder layers, and computes all of them."""

    def __init__(self, layers: Sequence[Any], first: int, compiled: CompiledLayers) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.first, self.compiled = first, compiled

    def compiles(self, rows: int) -> bool:
        """Whether a pass of this many rows goes through the compiled layers."""
        return rows <= ROWS or self.compiled.dtype is torch.float32

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        past_key_values: Any,
        **others: Any,
    ) -> torch.Tensor:
        """The hidden states after all layers, as decoder layers of transformers return them."""
        if self.compiles(hidden_states.shape[1]):
            rope = rope_of(*position_embeddings)[0]
            return self.compute(hidden_states[0], attention_mask, past_key_values, rope)[None]
        shared = {"attention_mask": attention_mask, "position_embeddings": position_embeddings, **others}
        for layer in self.layers:
            hidden_states = layer(hidden_states, past_key_values=past_key_values, **shared)
        return hidden_states

    def compute(self, rows: torch.Tensor, mask: torch.Tensor, states: Any, rope: torch.Tensor) -> torch.Tensor:
        """The hidden states of a pass's rows after the compiled layers, in float32."""
        caches, counts = caches_of(states, self.first, self.first + len(self.layers), len(rows))
        shape = self.compiled.shape
        like = rows.new_empty(1, shape.key_heads, 0, shape.head_width, dtype=self.compiled.dtype)
        for layer in (layer for layers in caches for layer in layers if not layer.is_initialized):
            layer.lazy_initialization(like, like)
        starts = [layers[0].get_seq_length() for layers in caches]
        keys = [[layer.keys for layer in layers] for layers in caches]
        values = [[layer.values for layer in layers] for layers in caches]
        if len(rows) <= ROWS:
            masks = [
                part[..., : start + part.shape[2]] for part, start in zip(mask.split(counts, 2), starts, strict=True)
            ]
            return self.compiled(rows, counts, starts, masks, keys, values, rope)
        results = []
        for tree, first, count, done in _parts_of(counts):
            rows_of, end = slice(first, first + count), starts[tree] + done + count
            part = ([count], [end - count], [mask[:, :, rows_of, :end]], [keys[tree]], [values[tree]], rope[rows_of])
            results.append(self.compiled(rows[rows_of], *part))
        return torch.cat(results)


def _parts_of(counts: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """The rows of each tree in parts of at most `ROWS`: tree, first row, rows, and rows of the tree before them."""
    start = 0
    for tree, count in enumerate(counts):
        for done in range(0, count, ROWS):
            yield tree, start + done, min(ROWS, count - done), done
        start += count


def float32_reference(layer: Any) -> LayerFunction:
    """A function that computes one layer for one tree, by its own `forward` in float32, whatever its own type is."""
    exact = copy.deepcopy(layer).float()

    def compute(
        rows: torch.Tensor, counts: Sequence[int], starts: Sequence[int], masks: Sequence[torch.Tensor],
        keys: Sequence[Sequence[torch.Tensor]], values: Sequence[Sequence[torch.Tensor]], rope: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        cosine, sine = rope[None].chunk(2, -1)
        first, second = sine.chunk(2, -1)
        before = _ShortCache(*(kept[0][0][:, :, : starts[0]].float() for kept in (keys, values)))
        rotation = cosine, torch.cat([-first, second], -1)
        shared = {"attention_mask": masks[0].float(), "position_embeddings": rotation}
        return exact(rows[None], past_key_values=before, **shared)[0]  # type: ignore[no-any-return]

    return compute


class _ShortCache:
    """Keys and values of earlier slots, to which a layer's `update` appends its own."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        self._states = keys, values

    def update(self, keys: torch.Tensor, values: torch.Tensor, *others: Any) -> tuple[torch.Tensor, ...]:
        return tuple(torch.cat(pair, 2) for pair in zip(self._states, (keys, values), strict=True))


def rope_of(cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Cosines and sines of the rotary embedding side by side, the first half of the sines negated."""
    first, second = sine.chunk(2, -1)
    return torch.cat([cosine, -first, second], -1)


class DirectForward:
    """The forward of a model whose layers are one `LayerRun`: for compiled passes without transformers' other steps."""

    def __init__(self, model_copy: Any) -> None:
        # The model copy holds this object; a strong reference back would keep both alive.
        self._model_copy = weakref.proxy(model_copy)
        self._own = type(model_copy).forward
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
    ) -> Any:
        body = self._model_copy.model
        layers, ids = body.layers[0], input_ids[0]
        if not layers.compiles(len(ids)):
            return self._own(
                self._model_copy, input_ids=input_ids, position_ids=position_ids, attention_mask=attention_mask,
                past_key_values=past_key_values, logits_to_keep=logits_to_keep, **others,
            )  # fmt: skip
        rows = layers.compute(body.embed_tokens(ids), attention_mask, past_key_values, self._rope_at(position_ids[0]))
        return CausalLMOutput(logits=self._model_copy.lm_head(body.norm(rows[logits_to_keep])[None]))

    def _rope_at(self, positions: torch.Tensor) -> torch.Tensor:
        longest = int(positions.max()) + 1
        if longest > len(self._ropes):
            # Models whose rotary embedding depends on the text's length use the uncached engine.
            known = torch.arange(2 * longest, device=positions.device)[None]
            like = torch.empty(0, dtype=self._model_copy.dtype, device=positions.device)
            self._ropes = rope_of(*self._model_copy.model.rotary_emb(like, known))[0]
        return self._ropes[positions]


class SkippedLayer(nn.Module):
    """Stands where a layer was that a `LayerRun` before it computes."""

    def forward(self, hidden_states: torch.Tensor, **others: Any) -> torch.Tensor:
        return hidden_states
