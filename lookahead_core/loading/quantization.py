"""Weights of four or eight bits: which library suits a device, and what to ask transformers for.

Only ways whose rows do not know of each other: weights alone are rounded, or activations row by row.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from lookahead_core.errors import ModelError

QUANTIZE = ("4bit", "8bit")
GROUP = 32
"""How many weights of four bits share a scale on a processor: the fewest that the kernel takes, for truer odds."""
PACKED = 16
"""The kernel for four bits on a processor takes matrices whose height is a multiple of this."""


@dataclass(frozen=True)
class QuantizationLibrary:
    """Who rounds the weights on a kind of device, and what transformers is told."""

    requirement: str
    configured: Callable[[str, torch.dtype], Any]


def configuration(quantize: str | None, device: str, dtype: torch.dtype) -> Any:
    """What transformers takes for these bits on this kind of device; None where nothing is to be rounded."""
    if quantize is None:
        return None
    library = LIBRARIES.get(device)
    if library is None:
        raise ModelError(f"There are no weights of few bits on {device}: leave quantize out, or choose another device.")
    try:
        return library.configured(quantize, dtype)
    except ImportError as error:
        raise ModelError(
            f'quantize="{quantize}" on {device} needs a library: run `pip install "{library.requirement}"`.'
        ) from error


def _torchao(quantize: str, dtype: torch.dtype) -> Any:
    """Weights alone are rounded: eight bits with a scale for each row, four with one for each group of a row."""
    from torchao.quantization import Int8WeightOnlyConfig
    from transformers import TorchAoConfig

    return TorchAoConfig(_four_bits() if quantize == "4bit" else Int8WeightOnlyConfig(set_inductor_config=False))


@functools.cache
def _four_bits() -> Any:
    """torchao's four bits for processors, where they fit; other matrices stay as they are, where torchao would fail."""
    from torchao.core.config import AOBaseConfig
    from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig
    from torchao.quantization import quantize_
    from torchao.quantization.transform_module import register_quantize_module_handler

    @dataclass
    class Int4WeightWhereItFits(AOBaseConfig):
        """Its name says its bits to transformers, which reads them there."""

        group_size: int = GROUP

    @register_quantize_module_handler(Int4WeightWhereItFits)
    def rounded(module: nn.Linear, config: Int4WeightWhereItFits) -> nn.Module:
        if module.out_features % PACKED == 0 and module.in_features % config.group_size == 0:
            quantize_(module, PrototypeInt4WeightOnlyConfig(config.group_size, set_inductor_config=False))
        return module

    return Int4WeightWhereItFits()


def _bitsandbytes(quantize: str, dtype: torch.dtype) -> Any:
    """Four bits of weights alone; or eight of weights and of activations, row by row: no outliers over all rows."""
    import bitsandbytes  # noqa: F401
    from transformers import BitsAndBytesConfig

    # It tells of its cast to float16 at each product.
    logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
    if quantize == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True, llm_int8_threshold=0.0)
    return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype)


LIBRARIES = {
    "cpu": QuantizationLibrary("torchao>=0.18,<0.19", _torchao),
    "cuda": QuantizationLibrary("bitsandbytes>=0.50,<0.51", _bitsandbytes),
}


def is_quantized(hf_model: nn.Module) -> bool:
    """Whether any of its weights are something else than plain numbers."""
    return any(type(parameter) is not nn.Parameter for parameter in hf_model.parameters())


def require_products(hf_model: Any, name: str) -> None:
    """A ModelError where the model multiplies in a way that its library knows no rounded weights for: tried now."""
    try:
        with torch.inference_mode():
            hf_model(torch.zeros(1, 1, dtype=torch.int64, device=hf_model.device), use_cache=False)
    except NotImplementedError as error:
        raise ModelError(
            f"{name} computes in a way that weights of few bits do not allow: leave quantize out."
        ) from error


def told(hf_model: Any) -> str:
    """How the weights are rounded, for people: bits, else the method's name; empty where they are not."""
    found = getattr(hf_model.config, "quantization_config", None)
    if found is None:
        return ""
    facts = found if isinstance(found, dict) else vars(found)
    named = re.search(r"Int(\d)Weight", type(facts.get("quant_type")).__name__)
    bits = facts.get("bits") or (named and named[1])
    for number in (4, 8):
        bits = bits or (number if getattr(found, f"load_in_{number}bit", False) else None)
    return f"{bits} bit" if bits else str(getattr(facts.get("quant_method"), "value", facts.get("quant_method")))
