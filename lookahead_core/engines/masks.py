"""Who may see whom: from the bits of sight that the cache keeps to the masks that a model's layers take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

FULL, SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True)
class MaskPlan:
    """Which masks a model's layers want: one for all, or one for each kind of layer."""

    kinds: tuple[str, ...]
    window: int | None
    by_name: bool
    """Whether the model takes a dictionary of masks, which those with several kinds of layers do."""

    @classmethod
    def of(cls, config: Any) -> MaskPlan:
        """Read the plan off a model's configuration."""
        config = config.get_text_config(decoder=True)
        window = getattr(config, "sliding_window", None)
        kinds = tuple(dict.fromkeys(getattr(config, "layer_types", None) or ()))
        if not kinds:
            kinds = (SLIDING if window else FULL,)
        return cls(kinds, window, by_name=len(kinds) > 1)

    @property
    def supported(self) -> bool:
        """Whether every kind of layer is one that a mask over the flat cache can serve."""
        return set(self.kinds) <= {FULL, SLIDING} and (not self.slides or bool(self.window))

    @property
    def slides(self) -> bool:
        """Whether some layers look back only so far."""
        return SLIDING in self.kinds

    def masks(
        self, seen: torch.Tensor, dtype: torch.dtype, distances: torch.Tensor | None = None
    ) -> torch.Tensor | Mapping[str, torch.Tensor]:
        """Additive masks of shape (1, 1, rows, slots) for the rows of one pass.

        Where some layers look back only so far, `distances` tells how far above each row each slot stands.
        """
        made: dict[str, torch.Tensor] = {}
        for kind in self.kinds:
            visible = seen
            if kind == SLIDING:
                assert distances is not None
                visible = seen & (distances < self.window)
            made[kind] = additive(visible, dtype)
        return made if self.by_name else made[self.kinds[0]]


def unpack(sights: Sequence[int], slots: int, device: torch.device) -> torch.Tensor:
    """Numbers whose bits are slots, as a boolean tensor of shape (rows, slots)."""
    width = (slots + 7) // 8
    table = np.frombuffer(b"".join(sight.to_bytes(width, "little") for sight in sights), dtype=np.uint8)
    bits = np.unpackbits(table.reshape(len(sights), width), axis=1, count=slots, bitorder="little")
    return torch.from_numpy(bits.view(np.bool_)).to(device)


def additive(visible: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """0 where a row may look, the lowest finite number where it may not: right under every kind of attention."""
    mask = torch.full((1, 1, *visible.shape), torch.finfo(dtype).min, dtype=dtype, device=visible.device)
    return mask.masked_fill_(visible, 0)
