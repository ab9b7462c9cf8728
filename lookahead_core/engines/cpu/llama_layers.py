"""Decoder layers of the Llama shape, replaced by compiled layers wherever those are as fast or faster.

Compiled layers (compiled_layers.py) compute every pass of at most `ROWS` rows. Larger passes of a float32 model go
through them as well, `ROWS` rows at a time. Larger passes of a bfloat16 model go through the model's own layers, whose
matrix products then run in bfloat16.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
from torch import nn
from transformers import DynamicCache
from transformers.modeling_outputs import CausalLMOutput

from lookahead_core.engines.cpu.compiled_layers import ROWS, CompiledLayers, LayerFunction, TreeRows, compile_layers
from lookahead_core.engines.cpu.packed_matrix import is_plain
from lookahead_core.engines.joint_cache import caches_of

ATTENTIONS = {"LlamaAttention", "MistralAttention", "Qwen2Attention", "Qwen3Attention", "GraniteAttention"}
ACTIVATIONS = {"SiLU", "SiLUActivation"}
MODULES = {
    "", "input_layernorm", "self_attn", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "post_attention_layernorm", "mlp", "mlp.gate_proj", "mlp.up_proj", "mlp.act_fn", "mlp.down_proj",
}  # fmt: skip
HEAD_NORMS = {"self_attn.q_norm", "self_attn.k_norm"}
"""The modules of a layer, and those that some families have in addition."""
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
    for _, group in groupby(range(len(layers)), key=lambda index: kinds[index]):
        indices = list(group)
        members = [layers[index] for index in indices]
        compiled, reason = compile_layers(members, float32_reference)
        if compiled is None:
            return reason
        runs.append(LayerRun(members, indices[0], compiled))
    for run in runs:
        for index in range(run.first, run.first + len(run.layers)):
            layers[index] = run if index == run.first else SkippedLayer()
    # Without these, the model would only iterate over modules that do nothing.
    del layers[runs[-1].first + 1 :]
    if type(model_copy).__name__ in DIRECT_MODELS and len(runs) == 1:
        body = model_copy.model
        # `DirectForward` would not call the hooks of these modules.
        if not any(part._forward_hooks or part._forward_pre_hooks for part in (body, body.norm, body.rotary_emb)):
            model_copy.forward = DirectForward(model_copy)
    return ""


def llama_layers(hf_model: Any) -> Any:
    """The model's decoder layers if all of them have the Llama shape; an empty list otherwise."""
    stacks = [module for module in hf_model.modules() if isinstance(module, nn.ModuleList) and len(module)]
    return next((stack for stack in stacks if all(map(_has_llama_shape, stack))), [])


def _has_llama_shape(layer: nn.Module) -> bool:
    """Whether a layer has the attention class and the submodules of a known family.

    `compile_layers` compares the first and the last layer with the compiled ones. A family whose layers between them
    differ, or whose attention changes far into a text, would pass that test; hence the list of known classes.
    """
    modules = dict(layer.named_modules())
    if set(modules) not in (MODULES, MODULES | HEAD_NORMS):
        return False
    return (
        type(modules["self_attn"]).__name__ in ATTENTIONS
        and type(modules["mlp.act_fn"]).__name__ in ACTIVATIONS
        and all(is_plain(module) for name, module in modules.items() if name.endswith("_proj"))
        and all(hasattr(module, "variance_epsilon") for name, module in modules.items() if name.endswith("norm"))
    )


class LayerRun(nn.Module):
    """Stands in a model copy in place of the first of several decoder layers, and computes all of them."""

    def __init__(self, layers: Sequence[Any], first: int, compiled: CompiledLayers) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.first, self.compiled = first, compiled

    def compiles(self, rows: int) -> bool:
        """Whether a pass of this many rows goes through the compiled layers."""
        return rows <= ROWS or self.compiled.dtype is torch.float32

    def forward(self, hidden_states: torch.Tensor, **inputs: Any) -> torch.Tensor:
        """The hidden states after all layers; takes the arguments of transformers' decoder layers."""
        if self.compiles(hidden_states.shape[1]):
            rope = rope_of(*inputs["position_embeddings"])[0]
            return self.compute(hidden_states[0], inputs["attention_mask"], inputs["past_key_values"], rope)[None]
        for layer in self.layers:
            hidden_states = layer(hidden_states, **inputs)
        return hidden_states

    def compute(self, rows: torch.Tensor, mask: torch.Tensor, states: Any, rope: torch.Tensor) -> torch.Tensor:
        """The hidden states of a pass's rows after the compiled layers, in float32."""
        caches, counts = caches_of(states, self.first, self.first + len(self.layers), len(rows))
        shape, trees = self.compiled.shape, []
        like = rows.new_empty(1, shape.key_heads, 0, shape.head_width, dtype=self.compiled.dtype)
        for layers, tree_mask in zip(caches, mask.split(counts, 2), strict=True):
            for layer in layers:
                if not layer.is_initialized:
                    layer.lazy_initialization(like, like)
            start = layers[0].get_seq_length()
            visible = tree_mask[..., : start + tree_mask.shape[2]]
            trees.append(TreeRows(start, visible, [(layer.keys, layer.values) for layer in layers]))
        if len(rows) <= ROWS:
            return self.compiled(rows, rope, trees)
        parts = [part for tree in trees for part in tree.parts(ROWS)]
        sizes = [part.count for part in parts]
        each = zip(rows.split(sizes), rope.split(sizes), parts, strict=True)
        return torch.cat([self.compiled(part_rows, angles, [part]) for part_rows, angles, part in each])


def float32_reference(layer: Any) -> LayerFunction:
    """A function that computes one layer for one tree, by its own `forward` in float32, whatever its own type is."""
    exact = copy.deepcopy(layer).float()

    def compute(rows: torch.Tensor, rope: torch.Tensor, trees: Sequence[TreeRows]) -> torch.Tensor:
        (tree,) = trees
        cosine, sine = rope[None].chunk(2, -1)
        first, second = sine.chunk(2, -1)
        keys, values = (states[:, :, : tree.start].float() for states in tree.cache[0])
        earlier = DynamicCache()
        earlier.update(keys, values, exact.self_attn.layer_idx)
        shared = {"attention_mask": tree.mask.float(), "position_embeddings": (cosine, torch.cat([-first, second], -1))}
        return exact(rows[None], past_key_values=earlier, **shared)[0]  # type: ignore[no-any-return]

    return compute


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

    def __call__(self, input_ids: torch.Tensor, **inputs: Any) -> Any:
        body = self._model_copy.model
        layers, ids = body.layers[0], input_ids[0]
        if not layers.compiles(len(ids)):
            return self._own(self._model_copy, input_ids, **inputs)
        rope = self._rope_at(inputs["position_ids"][0])
        rows = layers.compute(body.embed_tokens(ids), inputs["attention_mask"], inputs["past_key_values"], rope)
        return CausalLMOutput(logits=self._model_copy.lm_head(body.norm(rows[inputs["logits_to_keep"]])[None]))

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
