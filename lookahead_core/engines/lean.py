"""Decoder layers of the most common shape, in as few calls as they can be asked for.

Through a small model a pass of a few rows takes as long between the matrix products as in them. These layers compute
the same as transformers' own: sums and gates are done by the products beside them, rotation and norms in fewer steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from lookahead_core.engines.packed import Packed, is_plain, stacked
from lookahead_core.engines.twin import FOLD_ROWS, folded, tree_attention

PARTS = {"self_attn", "mlp", "input_layernorm", "post_attention_layernorm"}
ATTENTION_PARTS = {"q_proj", "k_proj", "v_proj", "o_proj"}
ATTENTIONS = {"LlamaAttention", "MistralAttention", "Qwen2Attention", "Qwen3Attention", "GraniteAttention"}
NORMS = {"q_norm", "k_norm"}
MLP_PARTS = {"gate_proj", "up_proj", "down_proj"}


def use_lean_layers(twin: Any) -> None:
    """Put lean layers in place of a twin's own, which have this shape."""
    layers = common_layers(twin)
    shared = Shared()
    for index, layer in enumerate(list(layers)):
        layers[index] = LeanLayer(layer, index, shared)


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


class Norm:
    """Rows divided by their root mean square, and weighted."""

    def __init__(self, norm: Any, weights: Sequence[torch.Tensor] = ()) -> None:
        """With `weights`, which are one below the other, each of a row's parts has its own."""
        weight = torch.stack(list(weights)) if weights else norm.weight
        width = weight.shape[-1]
        self.weight = weight.detach().float() * width**0.5
        self.least = torch.tensor((norm.variance_epsilon * width) ** 0.5)

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        lengths = torch.linalg.vector_norm(rows, 2, -1, True, dtype=torch.float32)
        return (rows / torch.hypot(lengths, self.least)).mul_(self.weight).to(rows.dtype)


class Shared:
    """What all layers need in a pass and the first of them makes: the rotation, and the mask for folded heads."""

    def __init__(self) -> None:
        self._angles: Any = None
        self._mask: torch.Tensor | None = None
        self._folded: torch.Tensor | None = None
        self.cosine = self.sine = torch.empty(0)

    def turn(self, angles: tuple[torch.Tensor, torch.Tensor]) -> None:
        """Cosines and sines for halves that change places: the second half comes first, and with a minus."""
        if self._angles is angles:
            return
        self._angles = angles
        cosine, sine = (each[0].unsqueeze(1) for each in angles)
        first, second = sine.chunk(2, -1)
        self.cosine, self.sine = cosine, torch.cat([-first, second], -1)

    def folded(self, mask: torch.Tensor, group: int) -> torch.Tensor:
        if self._folded is None or self._mask is not mask:
            self._mask, self._folded = mask, folded(mask, group)
        return self._folded


class LeanLayer(nn.Module):
    """One decoder layer, over packed matrices."""

    def __init__(self, layer: Any, index: int, shared: Shared) -> None:
        super().__init__()
        attention, mlp = layer.self_attn, layer.mlp
        self.index, self.shared = index, shared
        self.width, self.scaling = attention.head_dim, attention.scaling
        self.heads = attention.q_proj.out_features // self.width
        self.key_heads = attention.k_proj.out_features // self.width
        self.before_attention, self.before_mlp = Norm(layer.input_layernorm), Norm(layer.post_attention_layernorm)
        self.of_heads = _norm_of_heads(attention, self.heads, self.key_heads)
        takers = [attention.q_proj, attention.k_proj, attention.v_proj]
        self.taken = Packed(*stacked(takers), takers)
        others = (attention.o_proj, mlp.gate_proj, mlp.up_proj, mlp.down_proj)
        self.given, self.gate, self.up, self.down = (Packed(layer.weight, layer.bias, [layer]) for layer in others)

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        past_key_values: Any,
        **others: Any,
    ) -> torch.Tensor:
        mixed = self._mixed(self.before_attention(hidden_states), attention_mask, position_embeddings, past_key_values)
        hidden_states = self.given.plus(mixed, hidden_states)
        rows = self.before_mlp(hidden_states)
        return self.down.plus(self.up.times(rows, self.gate.silu(rows)), hidden_states)

    def _mixed(self, rows: torch.Tensor, mask: torch.Tensor, angles: Any, states: Any) -> torch.Tensor:
        """What attention takes from all slots that a row sees."""
        count = rows.shape[1]
        taken = self.taken(rows).view(count, -1, self.width)
        turned = self._turned(taken[:, : -self.key_heads], angles).transpose(0, 1)[None]
        values = taken[:, -self.key_heads :].transpose(0, 1)[None]
        keys, values = states.layers[self.index].update(turned[:, self.heads :], values)
        if count <= FOLD_ROWS and isinstance(keys, torch.Tensor):
            mask = self.shared.folded(mask, self.heads // self.key_heads)
        mixed, _ = tree_attention(self, turned[:, : self.heads], keys, values, mask, self.scaling)
        return mixed.view(1, count, -1)

    def _turned(self, heads: torch.Tensor, angles: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """Queries and keys, turned by where they stand."""
        heads = heads if self.of_heads is None else self.of_heads(heads)
        self.shared.turn(angles)
        swapped = heads.unflatten(-1, (2, -1)).flip(-2).flatten(-2)
        return torch.addcmul(heads * self.shared.cosine, swapped, self.shared.sine)


def _norm_of_heads(attention: Any, heads: int, key_heads: int) -> Norm | None:
    """The norms of queries and keys, head by head, where a family has them."""
    if not hasattr(attention, "q_norm"):
        return None
    weights = [attention.q_norm.weight] * heads + [attention.k_norm.weight] * key_heads
    return Norm(attention.q_norm, weights)
