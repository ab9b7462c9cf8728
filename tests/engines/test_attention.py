"""The attention function that is registered with transformers refuses what it does not compute."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lookahead_core.engines.attention import tree_attention


@pytest.mark.parametrize("option", [{"softcap": 50.0}, {"s_aux": torch.zeros(2)}])
def test_soft_capped_logits_and_attention_sinks_are_refused(option: dict[str, Any]) -> None:
    rows = torch.ones(1, 2, 3, 4)
    mask = torch.zeros(1, 1, 3, 3)
    assert tree_attention(torch.nn.Identity(), rows, rows, rows, mask)[0].shape == (1, 3, 2, 4)
    with pytest.raises(NotImplementedError, match="neither soft-capped logits nor attention sinks"):
        tree_attention(torch.nn.Identity(), rows, rows, rows, mask, **option)
