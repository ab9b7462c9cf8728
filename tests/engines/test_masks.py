"""Attention masks: plans from configurations, and bit sets as tensors."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lookahead_core.engines.masks import FULL, SLIDING, MaskPlan, additive, unpack

CPU = torch.device("cpu")


def config(**fields: Any) -> Any:
    """A configuration with a text configuration inside, as multimodal models have."""
    inner = SimpleNamespace(**fields)

    def text_config(decoder: bool) -> Any:
        assert decoder
        return inner

    return SimpleNamespace(get_text_config=text_config, layer_types=["of another part"], sliding_window=3)


@pytest.mark.parametrize(
    ("fields", "plan", "supported"),
    [
        ({}, MaskPlan((FULL,), None, False), True),
        ({"sliding_window": None, "layer_types": None}, MaskPlan((FULL,), None, False), True),
        ({"sliding_window": 8}, MaskPlan((SLIDING,), 8, False), True),
        ({"sliding_window": 8, "layer_types": [FULL, FULL]}, MaskPlan((FULL,), 8, False), True),
        ({"sliding_window": 8, "layer_types": [SLIDING, FULL, SLIDING]}, MaskPlan((SLIDING, FULL), 8, True), True),
        ({"sliding_window": None, "layer_types": [SLIDING, FULL]}, MaskPlan((SLIDING, FULL), None, True), False),
        ({"sliding_window": 0, "layer_types": [SLIDING]}, MaskPlan((SLIDING,), 0, False), False),
        ({"layer_types": ["chunked_attention", FULL]}, MaskPlan(("chunked_attention", FULL), None, True), False),
        ({"layer_types": ["linear_attention"]}, MaskPlan(("linear_attention",), None, False), False),
    ],
)
def test_a_plan_follows_from_the_configuration(fields: dict[str, Any], plan: MaskPlan, supported: bool) -> None:
    found = MaskPlan.of(config(**fields))
    assert found == plan
    assert found.supported is supported
    assert found.slides is (SLIDING in plan.kinds)


@pytest.mark.parametrize("slots", [1, 7, 8, 9, 16, 63, 64, 65, 200])
def test_bit_sets_become_a_boolean_tensor(slots: int) -> None:
    dice = random.Random(slots)
    bit_sets = [dice.getrandbits(slots) for _ in range(5)] + [0, (1 << slots) - 1]
    table = unpack(bit_sets, slots, CPU)
    assert table.dtype is torch.bool
    assert table.tolist() == [[bool(bits >> slot & 1) for slot in range(slots)] for bits in bit_sets]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_mask_is_zero_for_visible_slots_and_the_lowest_finite_number_elsewhere(dtype: torch.dtype) -> None:
    mask = additive(torch.tensor([[True, False], [False, True]]), dtype)
    assert mask.dtype is dtype
    lowest = torch.finfo(dtype).min
    assert mask.tolist() == [[[[0, lowest], [lowest, 0]]]]


def test_sliding_layers_see_only_slots_within_their_window() -> None:
    visible = torch.tensor([[True, True, True, False], [True, False, True, True]])
    distances = torch.tensor([[3, 2, 0, 1], [2, 1, 1, 0]])
    near = visible & torch.tensor([[False, False, True, True], [False, True, True, True]])
    plan = MaskPlan((SLIDING, FULL), 2, True)
    masks = plan.masks(visible, torch.float32, distances)
    assert isinstance(masks, dict)
    assert list(masks) == [SLIDING, FULL]
    assert torch.equal(masks[SLIDING], additive(near, torch.float32))
    assert torch.equal(masks[FULL], additive(visible, torch.float32))
    single = MaskPlan((SLIDING,), 2, False).masks(visible, torch.float32, distances)
    assert isinstance(single, torch.Tensor)
    assert torch.equal(single, masks[SLIDING])
    full = MaskPlan((FULL,), None, False).masks(visible, torch.float32)
    assert isinstance(full, torch.Tensor)
    assert torch.equal(full, masks[FULL])
