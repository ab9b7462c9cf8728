"""The forward of Llama-shaped models, whose decoder layers are compiled (compiled_layers.py).

Compiled layers compute every pass, `ROWS` rows at a time, with one exception: where the processor has AMX, passes of
more than `ROWS` rows of a bfloat16 model go through the model's own forward, whose matrix products run in bfloat16.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import nn
from transformers import DynamicCache
from transformers.modeling_outputs import CausalLMOutput

from lookahead_core.engines.cpu.compiled_layers import ROWS, CompiledLayers, LayerFunction, TreeRows, compile_layers
from lookahead_core.engines.cpu.packed_matrix import is_plain
from lookahead_core.engines.joint_cache import caches_of

MODELS = {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}
"""Models that are embeddings, layers of one kind, a final norm and an output matrix, with nothing between them.

`compile_layers` compares the first and the last layer with the compiled ones. A family whose layers between them
differ, or whose attention changes far into a text, would pass that test; hence this list.
"""
MODULES = {
    "", "input_layernorm", "self_attn", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "post_attention_layernorm", "mlp", "mlp.gate_proj", "mlp.up_proj", "mlp.act_fn", "mlp.down_proj",
}  # fmt: skip
HEAD_NORMS = {"self_attn.q_norm", "self_attn.k_norm"}
"""The modules of a layer, and those that some families have in addition."""


def use_compiled_layers(model_copy: Any) -> str:
    """Replace a model copy's forward by a `CompiledForward`, in place, and return "".

    If its layers cannot be compiled, or modules have forward hooks, change nothing and return the reason as a clause.
    """
    if not has_llama_shape(model_copy):
        return "they are for models of the Llama shape whose layers are all of one kind"
    # Compiled layers would not call the hooks of the modules that they replace.
    if any(module._forward_hooks or module._forward_pre_hooks for module in model_copy.model.modules()):
        return "somebody has registered forward hooks"
    compiled, reason = compile_layers(model_copy.model.layers, float32_reference)
    if compiled is not None:
        model_copy.forward = CompiledForward(model_copy, compiled)
    return reason


def compiles_large_passes(dtype: torch.dtype) -> bool:
    """Whether compiled layers compute passes of more than `ROWS` rows of models of this dtype too.

    False for bfloat16 on processors with AMX, which multiply packed bfloat16 matrices several times faster.
    """
    return dtype is torch.float32 or not torch.cpu._is_amx_tile_supported()


def has_llama_shape(hf_model: Any) -> bool:
    """Whether a model's class is named in MODELS, and its decoder layers are of one kind and have a Llama's modules.

    Each layer must have exactly MODULES, with or without HEAD_NORMS, and its projections must be plain, see `is_plain`.
    """
    kinds = set(getattr(hf_model.config, "layer_types", None) or ())
    return type(hf_model).__name__ in MODELS and len(kinds) <= 1 and all(map(_is_llama_layer, hf_model.model.layers))


def _is_llama_layer(layer: nn.Module) -> bool:
    modules = dict(layer.named_modules())
    return set(modules) in (MODULES, MODULES | HEAD_NORMS) and all(
        is_plain(module) for name, module in modules.items() if name.endswith("_proj")
    )


class CompiledForward:
    """A callable that takes the place of `forward` in a model copy whose decoder layers are compiled.

    It takes the arguments of the model's own forward in a pass of the cached engine, with `input_ids` of shape
    (1, rows). It returns a `CausalLMOutput` with logits of shape (1, wanted, vocabulary), for the row indices in
    `logits_to_keep`. If `compiles_large_passes` is False, the model's own forward computes passes of more than `ROWS`
    rows.
    """

    def __init__(self, model_copy: Any, compiled: CompiledLayers) -> None:
        # The model copy holds this object; a strong reference back would keep both alive.
        self._model_copy = weakref.proxy(model_copy)
        self._own = type(model_copy).forward
        self.compiled, self.compiles_large_passes = compiled, compiles_large_passes(compiled.dtype)

    def __call__(self, input_ids: torch.Tensor, **inputs: Any) -> Any:
        body, ids = self._model_copy.model, input_ids[0]
        if len(ids) > ROWS and not self.compiles_large_passes:
            return self._own(self._model_copy, input_ids, **inputs)
        rope = self._rope_at(inputs["position_ids"][0])
        rows = self._compute(body.embed_tokens(ids), inputs["attention_mask"], inputs["past_key_values"], rope)
        return CausalLMOutput(logits=self._model_copy.lm_head(body.norm(rows[inputs["logits_to_keep"]])[None]))

    def _compute(self, rows: torch.Tensor, mask: torch.Tensor, states: Any, rope: torch.Tensor) -> torch.Tensor:
        """Return the hidden states of a pass's rows after all layers, in float32, and write the caches in `states`.

        `rows` has the shape (rows, hidden), one tree after the other, and `rope` (rows, 2 * head width). `mask` is
        additive, of shape (1, 1, rows, slots). `states` is the pass's `past_key_values`, of one tree or from
        `joint_cache`, with room reserved for the rows; the slots that they fill are in use only after `FlatCache.add`.
        """
        caches, counts = caches_of(states, len(rows))
        shape, trees = self.compiled.shape, []
        like = rows.new_empty(1, shape.key_heads, 0, shape.head_width, dtype=self.compiled.dtype)
        for layers, tree_mask in zip(caches, mask.split(counts, 2), strict=True):
            for layer in layers:
                if not layer.is_initialized:
                    layer.lazy_initialization(like, like)
            start = layers[0].get_seq_length()
            visible = tree_mask[..., : start + tree_mask.shape[2]]
            trees.append(TreeRows(start, visible, [(layer.keys, layer.values) for layer in layers]))
        calls = list(_calls_of(trees))
        sizes = [sum(part.count for part in parts) for parts in calls]
        each = zip(rows.split(sizes), rope.split(sizes), calls, strict=True)
        found = [self.compiled(some, angles, parts) for some, angles, parts in each]
        return found[0] if len(found) == 1 else torch.cat(found)

    def _rope_at(self, positions: torch.Tensor) -> torch.Tensor:
        """Return the rotary embeddings at positions, a 1-D tensor; shape (positions, 2 * head width).

        For each position: the cosines, then the sines with the first half negated, in the model's dtype.
        """
        like = torch.empty(0, dtype=self._model_copy.dtype, device=positions.device)
        cosine, sine = self._model_copy.model.rotary_emb(like, positions[None])
        first, second = sine[0].chunk(2, -1)
        return torch.cat([cosine[0], -first, second], -1)


def _calls_of(trees: Sequence[TreeRows]) -> Iterator[list[TreeRows]]:
    """Yield the trees of each call of compiled layers: as many as have at most `ROWS` rows together, in order.

    A tree of more rows is divided, see `TreeRows.parts`.
    """
    parts: list[TreeRows] = []
    for part in (part for tree in trees for part in tree.parts(ROWS)):
        if parts and sum(other.count for other in parts) + part.count > ROWS:
            yield parts
            parts = []
        parts.append(part)
    if parts:
        yield parts


def float32_reference(layer: Any) -> LayerFunction:
    """Return a function that computes one layer by the layer's own `forward`, on a copy with its weights in float32.

    The function takes float32 rows of exactly one tree, and returns their hidden states after the layer. It reads the
    first `start` slots of the first layer in the tree's cache, and changes nothing.
    """
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
