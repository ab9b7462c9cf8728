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
    """Which attention masks a model's layers need: one for all layers, or one for each layer type."""

    kinds: tuple[str, ...]
    """The layer types that occur in the model, each once."""
    window: int | None
    """The width, in tokens, of sliding-window attention; None if the configuration has none."""
    by_name: bool
    """Whether the model takes a dictionary of masks by layer type, as models with several layer types do."""

    @classmethod
    def of(cls, config: Any) -> MaskPlan:
        """Return the plan for a transformers configuration; check `supported` before it is used."""
        config = config.get_text_config(decoder=True)
        window = getattr(config, "sliding_window", None)
        kinds = tuple(dict.fromkeys(getattr(config, "layer_types", None) or ()))
        if not kinds:
            kinds = (SLIDING if window else FULL,)
        return cls(kinds, window, by_name=len(kinds) > 1)

    @property
    def supported(self) -> bool:
        """Whether every layer has full attention, or sliding-window attention with a known window."""
        return set(self.kinds) <= {FULL, SLIDING} and (not self.slides or bool(self.window))

    @property
    def slides(self) -> bool:
        """Whether some layers have sliding-window attention."""
        return SLIDING in self.kinds

    def masks(
        self, visible: torch.Tensor, dtype: torch.dtype, distances: torch.Tensor | None = None
    ) -> torch.Tensor | Mapping[str, torch.Tensor]:
        """Return additive masks of shape (1, 1, rows, slots) for one pass: a dictionary by layer type if `by_name`.

        `visible`, of shape (rows, slots), is True where a row may attend to a slot. If some layers have sliding-window
        attention, `distances` of the same shape is required (AssertionError otherwise): the depth of the row's node
        less that of the slot's node. Their mask also hides slots at a distance of `window` or more.
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
    """Return a boolean tensor on `device`, a row for each integer: column `i` is True where bit `i` is set (0: lowest).

    The shape is (number of integers, `slots`). Raises OverflowError if an integer is negative or has a bit beyond
    `slots`, rounded up to whole bytes.
    """
    width = (slots + 7) // 8
    table = np.frombuffer(b"".join(bits.to_bytes(width, "little") for bits in bit_sets), dtype=np.uint8)
    flags = np.unpackbits(table.reshape(len(bit_sets), width), axis=1, count=slots, bitorder="little")
    return torch.from_numpy(flags.view(np.bool_)).to(device)


def additive(visible: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return an additive mask of shape (1, 1, rows, slots): 0 where `visible`, else the lowest finite number.

    `visible` is boolean, of shape (rows, slots); `dtype` is a floating-point type. The additive form is right under
    every attention implementation; a boolean mask is silently wrong under eager.
    """
    mask = torch.full((1, 1, *visible.shape), torch.finfo(dtype).min, dtype=dtype, device=visible.device)
    return mask.masked_fill_(visible, 0)
