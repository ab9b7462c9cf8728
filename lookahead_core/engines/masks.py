"""Attention masks: from the bit sets of visible slots that a cache keeps to the tensors that a model's layers take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

FULL, SLIDING = "full_attention", "sliding_attention"
"""The layer types of transformers' configurations for which a mask over the flat cache can be built."""


@dataclass(frozen=True)
class MaskPlan:
    """Which masks a model's layers need: one for all layers, or one for each layer type."""

    kinds: tuple[str, ...]
    """The layer types that occur in the model, each once."""
    window: int | None
    """The width, in tokens, of sliding-window attention."""
    by_name: bool
    """Whether the model takes a dictionary of masks by layer type, as models with several layer types do."""

    @classmethod
    def of(cls, config: Any) -> MaskPlan:
        """The plan for a transformers configuration."""
        config = config.get_text_config(decoder=True)
        window = getattr(config, "sliding_window", None)
        kinds = tuple(dict.fromkeys(getattr(config, "layer_types", None) or ()))
        if not kinds:
            kinds = (SLIDING if window else FULL,)
        return cls(kinds, window, by_name=len(kinds) > 1)

    @property
    def supported(self) -> bool:
        """Whether every layer has full or sliding-window attention, which a mask over the flat cache can express."""
        return set(self.kinds) <= {FULL, SLIDING} and (not self.slides or bool(self.window))

    @property
    def slides(self) -> bool:
        """Whether some layers have sliding-window attention."""
        return SLIDING in self.kinds

    def masks(
        self, visible: torch.Tensor, dtype: torch.dtype, distances: torch.Tensor | None = None
    ) -> torch.Tensor | Mapping[str, torch.Tensor]:
        """Additive masks of shape (1, 1, rows, slots) for one pass: one tensor, or a dictionary by layer type.

        `visible` is a boolean tensor of shape (rows, slots). Sliding layers also need `distances` of the same shape:
        how many tokens each slot lies above each row in the tree.
        """
        made: dict[str, torch.Tensor] = {}
        for kind in self.kinds:
            allowed = visible
            if kind == SLIDING:
                assert distances is not None
                assert self.window is not None
                allowed = visible & (distances < self.window)
            made[kind] = additive(allowed, dtype)
        return made if self.by_name else made[self.kinds[0]]


def unpack(bit_sets: Sequence[int], slots: int, device: torch.device) -> torch.Tensor:
    """Integers whose bits stand for slots, as a boolean tensor of shape (rows, slots)."""
    width = (slots + 7) // 8
    table = np.frombuffer(b"".join(bits.to_bytes(width, "little") for bits in bit_sets), dtype=np.uint8)
    flags = np.unpackbits(table.reshape(len(bit_sets), width), axis=1, count=slots, bitorder="little")
    return torch.from_numpy(flags.view(np.bool_)).to(device)


def additive(visible: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """An additive mask of shape (1, 1, rows, slots): 0 where `visible`, else the lowest finite number of `dtype`.

    The additive form is right under every attention implementation; a boolean mask is silently wrong under eager.
    """
    mask = torch.full((1, 1, *visible.shape), torch.finfo(dtype).min, dtype=dtype, device=visible.device)
    return mask.masked_fill_(visible, 0)
