"""Devices and dtypes: which dtype a device gets, and which models are moved to it."""

from __future__ import annotations

import pytest
import torch

from lookahead_core.engines.cpu.packed_matrix import packs
from lookahead_core.loading.device import fastest_dtype, move_to_device
from tests.conftest import tiny_llama


@pytest.mark.parametrize(
    ("device_map", "moved"),
    [
        (None, True),
        ({"": "cpu"}, True),
        ({"model": 0, "lm_head": 1}, False),
    ],
)
def test_a_model_on_one_device_is_moved_and_one_on_several_stays(
    device_map: dict[str, object] | None, moved: bool
) -> None:
    hf_model = tiny_llama(300)
    if device_map is not None:
        hf_model.hf_device_map = device_map
    move_to_device(hf_model, "meta", torch.float32)
    assert {parameter.device.type for parameter in hf_model.parameters()} == {"meta" if moved else "cpu"}


def test_every_device_gets_the_dtype_that_its_instructions_support(monkeypatch: pytest.MonkeyPatch) -> None:
    for supported, dtype in ((True, torch.bfloat16), (False, torch.float16)):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda supported=supported: supported)
        assert fastest_dtype("cuda") is dtype
        assert fastest_dtype("mps") is torch.bfloat16
    for supported in (True, False):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda supported=supported: supported)
        wanted = torch.bfloat16 if supported and packs(torch.bfloat16) else torch.float32
        assert fastest_dtype("cpu") is wanted
