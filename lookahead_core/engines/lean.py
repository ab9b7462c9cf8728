"""Decoder layers of the most common shape, in as few calls as they can be asked for.

Through a small model a pass of a few rows takes as long between the matrix products as in them. These layers compute
the same as transformers' own: sums and gates are done by the products beside them, rotation and norms in fewer steps,
and TorchScript runs them all without coming back to Python. It is deprecated, and its heir needs a compiler on every
machine; where it is gone the same functions run as they stand. Few rows take a shorter way still, where there is one
(native.py). Models in which nothing else stands beside such layers are gone through straight.
"""

import contextlib
import copy
import warnings
import weakref
from collections.abc import Sequence
from itertools import groupby
from typing import Any, List, NamedTuple, Optional

import torch
from torch import nn
from transformers.modeling_outputs import CausalLMOutput

from lookahead_core.engines.attention import FOLD_ROWS, attend, folded
from lookahead_core.engines.joint import caches_of
from lookahead_core.engines.native import NativeLayers, Way, native_layers
from lookahead_core.engines.packed import (
    Packed,
    is_plain,
    packed,
    product,
    product_plus,
    product_times,
    silu_product,
    stacked,
)
from lookahead_core.engines.ways import attention_widens, single_rows_fold

PARTS = {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"}
ATTENTION_PARTS = {"q_proj", "k_proj", "v_proj", "o_proj"}
ATTENTIONS = {"LlamaAttention", "MistralAttention", "Qwen2Attention", "Qwen3Attention", "GraniteAttention"}
NORMS = {"q_norm", "k_norm"}
MLP_PARTS = {"gate_proj", "up_proj", "down_proj"}
STRAIGHT = {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}
"""Models in which nothing stands between the embeddings, the layers, a norm and the output matrix."""


def use_lean_layers(twin: Any, *, widens: bool = False, compiles: bool = True) -> NativeLayers | None:
    """Put lean layers in place of a twin's own, which have this shape: neighbours that see the same run as one.

    `widens` says that what comes after them takes few rows in float32, also of a narrower model; `compiles` that there
    is room for compiled ones as well. Returns the last ones of these.
    """
    layers = common_layers(twin)
    kinds = getattr(twin.config.get_text_config(decoder=True), "layer_types", None) or [""] * len(layers)
    for _, run in groupby(range(len(layers)), key=lambda index: kinds[index]):
        first, *others = run
        layers[first] = LeanLayers([layers[index] for index in (first, *others)], first, widens, compiles)
        for index in others:
            layers[index] = Done()
    # Those behind the last run would only be walked over.
    del layers[first + 1 :]
    if type(twin).__name__ in STRAIGHT and len(layers) == 1 and not _is_listened_to(twin.model):
        twin.forward = Straight(twin)
    return layers[first].native


def _is_listened_to(body: Any) -> bool:
    """Whether somebody has asked to see, or to change, what goes through parts that would be passed by."""
    parts = (body, body.norm, body.rotary_emb)
    return any(part._forward_hooks or part._forward_pre_hooks for part in parts)


def common_layers(hf_model: Any) -> Any:
    """The model's decoder layers if all of them look like the common ones; an empty list else."""
    stacks = [module for module in hf_model.modules() if isinstance(module, nn.ModuleList) and len(module)]
    return next((stack for stack in stacks if all(map(_looks_common, stack))), [])


def _looks_common(layer: nn.Module) -> bool:
    """Whether a layer is one of a known kind, with the parts of a common one.

    That it computes the same is for the probe to show, which sees two layers and short texts only: others whose layers
    differ further down, or whose attention changes far on, would pass.
    """
    if _parts(layer) != PARTS or type(layer.self_attn).__name__ not in ATTENTIONS:
        return False
    attention, mlp = layer.self_attn, layer.mlp
    norms = [layer.input_layernorm, layer.post_attention_layernorm]
    norms += [getattr(attention, name) for name in NORMS & _parts(attention)]
    return (
        _parts(attention) - NORMS == ATTENTION_PARTS
        and len(_parts(attention) & NORMS) != 1
        and len({getattr(attention, name).bias is None for name in ("q_proj", "k_proj", "v_proj")}) == 1
        and _parts(mlp) - {"act_fn"} == MLP_PARTS
        and type(getattr(mlp, "act_fn", None)).__name__ in ("SiLU", "SiLUActivation")
        and all(is_plain(getattr(attention, name)) for name in ATTENTION_PARTS)
        and all(is_plain(getattr(mlp, name)) for name in MLP_PARTS)
        and all(hasattr(norm, "variance_epsilon") for norm in norms)
    )


def _parts(module: Any) -> set[str]:
    return {name for name, _ in module.named_children()}


class Norm(NamedTuple):
    """What rows are weighted with, times the root of their width, and the least length that they count as."""

    weight: torch.Tensor
    least: torch.Tensor


def norm_of(norm: Any, weights: Sequence[torch.Tensor] = ()) -> Norm:
    """A norm as it is computed here; with `weights`, one below the other, each of a row's parts has its own."""
    weight = torch.stack(list(weights)) if weights else norm.weight
    width = weight.shape[-1]
    return Norm(weight.detach().float() * width**0.5, torch.tensor((norm.variance_epsilon * width) ** 0.5))


def normed(norm: Norm, rows: torch.Tensor) -> torch.Tensor:
    """Rows divided by their root mean square, and weighted."""
    lengths = torch.linalg.vector_norm(rows, 2, [-1], True, dtype=torch.float32)
    return (rows / torch.hypot(lengths, norm.least)).mul_(norm.weight).to(rows.dtype)


class Weights(NamedTuple):
    """What one layer multiplies with."""

    before_attention: Norm
    taken: Packed
    """Queries, keys and values, one below the other."""
    of_heads: Optional[Norm]
    """The norms of queries and keys, head by head, where a family has them."""
    given: Packed
    before_mlp: Norm
    gate: Packed
    up: Packed
    down: Packed


PRODUCTS = ("taken", "given", "gate", "up", "down")
"""Those of them that are matrices."""


def weights_of(layer: Any, halves: bool) -> Weights:
    """A layer's weights, packed; with `halves` in half precision as well."""
    attention, mlp = layer.self_attn, layer.mlp
    takers = [attention.q_proj, attention.k_proj, attention.v_proj]
    given, gate, up, down = (
        packed(one.weight, one.bias, [one], halves=halves)
        for one in (attention.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj)
    )
    of_heads = None
    if hasattr(attention, "q_norm"):
        heads, key_heads = (one.out_features // attention.head_dim for one in takers[:2])
        weights = [attention.q_norm.weight] * heads + [attention.k_norm.weight] * key_heads
        of_heads = norm_of(attention.q_norm, weights)
    return Weights(
        norm_of(layer.input_layernorm),
        packed(*stacked(takers), takers, halves=halves),
        of_heads,
        given,
        norm_of(layer.post_attention_layernorm),
        gate,
        up,
        down,
    )


def without_halves(layer: Weights) -> Weights:
    """A layer's weights, none in half precision."""
    parts = {name: getattr(layer, name) for name in PRODUCTS}
    return layer._replace(**{name: part._replace(few=0, halves=[]) for name, part in parts.items()})


def fewest_rows(layers: Sequence[Weights]) -> int:
    """For how many rows all of these products are fastest in float32 with matrices in half precision."""
    return min(getattr(layer, name).few for layer in layers for name in PRODUCTS)


def turned(heads: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Queries and keys, turned by where they stand; the first half of the sines has the minus."""
    swapped = heads.unflatten(-1, [2, -1]).flip([-2]).flatten(-2)
    return torch.addcmul(heads * cosine, swapped, sine)


class Run(nn.Module):
    """Layers one after the other, as TorchScript compiles them."""

    layers: List[Weights]

    def __init__(self, layers: Sequence[Any], *, halves: bool) -> None:
        super().__init__()
        attention = layers[0].self_attn
        self.width = int(attention.head_dim)
        self.scaling = float(attention.scaling)
        self.widens = attention_widens(attention.q_proj.weight.dtype)
        self.folds_one = single_rows_fold(attention.q_proj.weight.dtype)
        self.heads = int(attention.q_proj.out_features // self.width)
        self.key_heads = int(attention.k_proj.out_features // self.width)
        self.layers = [weights_of(layer, halves) for layer in layers]

    def forward(
        self,
        rows: torch.Tensor,
        counts: List[int],
        starts: List[int],
        masks: List[torch.Tensor],
        keys: List[List[torch.Tensor]],
        values: List[List[torch.Tensor]],
        cosine: torch.Tensor,
        sine: torch.Tensor,
    ) -> torch.Tensor:
        """The rows of several trees: of each so many, which come into its caches' slots from its start on."""
        for index, layer in enumerate(self.layers):
            taken = product(layer.taken, normed(layer.before_attention, rows)).view(len(rows), -1, self.width)
            heads, values_taken = taken[:, : -self.key_heads], taken[:, -self.key_heads :]
            of_heads = layer.of_heads
            if of_heads is not None:
                heads = normed(of_heads, heads)
            heads = turned(heads, cosine, sine)
            mixed: List[torch.Tensor] = []
            first = 0
            for tree, count in enumerate(counts):
                last, start, end = first + count, starts[tree], starts[tree] + count
                key, value = keys[tree][index], values[tree][index]
                key[0, :, start:end] = heads[first:last, self.heads :].transpose(0, 1)
                value[0, :, start:end] = values_taken[first:last].transpose(0, 1)
                query = heads[first:last, : self.heads].transpose(0, 1).unsqueeze(0).to(key.dtype)
                key, value = key[:, :, :end], value[:, :, :end]
                mixed.append(attend(query, key, value, masks[tree], self.scaling, self.widens, self.folds_one)[0])
                first = last
            given = mixed[0] if len(mixed) == 1 else torch.cat(mixed)
            rows = product_plus(layer.given, given.flatten(1).to(rows.dtype), rows)
            between = normed(layer.before_mlp, rows)
            between = product_times(layer.up, between, silu_product(layer.gate, between))
            rows = product_plus(layer.down, between, rows)
        return rows


class LeanLayers(nn.Module):
    """Stands in a twin where the first of several layers was, and does what all of them did."""

    def __init__(self, layers: Sequence[Any], first: int, widens: bool, compiles: bool) -> None:
        super().__init__()
        self.first, self.last = first, first + len(layers)
        self.dtype = layers[0].self_attn.q_proj.weight.dtype
        widens = widens or self.dtype is torch.float32
        run = Run(layers, halves=widens)
        self.group, self.key_heads, self.width = run.heads // run.key_heads, run.key_heads, run.width
        self.folds_one = run.folds_one
        self.few = fewest_rows(run.layers)
        self.run = compiled(run)
        native = native_layers(layers, self.usual, exactly) if widens and compiles else None
        # There is one way for few rows, and one copy of the weights for it.
        self.native = native if native is not None and native.most >= self.few else None
        if self.native is not None and self.few:
            self.few, run.layers = 0, [without_halves(layer) for layer in run.layers]
            self.run = compiled(run)

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        past_key_values: Any,
        **others: Any,
    ) -> torch.Tensor:
        return self.on(hidden_states[0], attention_mask, past_key_values, turns(*position_embeddings)[0])[None]

    def on(self, rows: torch.Tensor, mask: torch.Tensor, states: Any, turning: torch.Tensor) -> torch.Tensor:
        """What the layers make of rows; `turning` is what each row's queries and keys are turned with."""
        caches, counts = caches_of(states, self.first, self.last, len(rows))
        like = rows.new_empty(1, self.key_heads, 0, self.width, dtype=self.dtype)
        for layer in (layer for layers in caches for layer in layers if not layer.is_initialized):
            layer.lazy_initialization(like, like)
        starts = [layers[0].get_seq_length() for layers in caches]
        ends = [start + count for start, count in zip(starts, counts, strict=True)]
        masks = [part[..., :end] for part, end in zip(mask.split(counts, 2), ends, strict=True)]
        keys = [[layer.keys for layer in layers] for layers in caches]
        values = [[layer.values for layer in layers] for layers in caches]
        given = rows, counts, starts, masks, keys, values, turning
        if self.native is not None and len(rows) <= self.native.most:
            return self.native(*given)
        return self.usual(*given)

    def usual(
        self, rows: torch.Tensor, counts: list[int], starts: list[int], masks: list[torch.Tensor],
        keys: list[list[torch.Tensor]], values: list[list[torch.Tensor]], turning: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        """Through the layers by the library's products."""
        # Few rows are float32 all the way, also in narrower models: nothing is rounded between the products then.
        rows = rows.to(torch.float32 if len(rows) <= self.few else self.dtype)
        least = 1 if self.folds_one else 2
        masks = [folded(part, self.group) if least <= part.shape[2] <= FOLD_ROWS else part for part in masks]
        cosine, sine = turning.to(rows.dtype).unsqueeze(1).chunk(2, -1)
        return self.run(rows, counts, starts, masks, keys, values, cosine, sine)


def exactly(layer: Any) -> Way:
    """What computes a layer alone in float32, whatever it is in."""
    run = Run([copy.deepcopy(layer).float()], halves=False)

    def way(
        rows: torch.Tensor, counts: list[int], starts: list[int], masks: list[torch.Tensor],
        keys: list[list[torch.Tensor]], values: list[list[torch.Tensor]], turning: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        wide = ([[kept.float() for kept in tree] for tree in kind] for kind in (keys, values))
        return run(rows, counts, starts, [mask.float() for mask in masks], *wide, *turning.unsqueeze(1).chunk(2, -1))

    return way


def turns(cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Cosines and sines side by side, the first half of the sines with a minus."""
    first, second = sine.chunk(2, -1)
    return torch.cat([cosine, -first, second], -1)


class Straight:
    """What a model with one run of layers computes, without all that transformers does for any model there may be."""

    def __init__(self, twin: Any) -> None:
        # The twin holds this, and would else be held by it.
        self._twin = weakref.proxy(twin)
        self._norm = norm_of(twin.model.norm)
        self._turns = torch.empty(0)
        """What rows are turned with, by where they stand, as far as any stood."""

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
            body.embed_tokens(input_ids[0]), attention_mask, past_key_values, self._turning(position_ids[0])
        )
        return CausalLMOutput(logits=self._twin.lm_head(normed(self._norm, rows[logits_to_keep])[None]))

    def _turning(self, positions: torch.Tensor) -> torch.Tensor:
        longest = int(positions.max()) + 1
        if longest > len(self._turns):
            # Models whose rotation changes as a text grows never come here: `fit` refuses them the cache.
            stands = torch.arange(2 * longest, device=positions.device)[None]
            like = torch.empty(0, dtype=self._twin.dtype, device=positions.device)
            self._turns = turns(*self._twin.model.rotary_emb(like, stands))[0]
        return self._turns[positions]


class Done(nn.Module):
    """Stands where a layer was that another does with its own."""

    def forward(self, hidden_states: torch.Tensor, **others: Any) -> torch.Tensor:
        return hidden_states


def compiled(run: nn.Module) -> nn.Module:
    """Without Python between its calls, where this PyTorch still can."""
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        return torch.jit.script(run)
    return run
