"""Quantization to 4 or 8 bits: which library a device uses, and the configuration that transformers takes.

Rows of a pass stay independent: only weights are quantized, or activations row by row.
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
"""Values of the option `quantize`."""
GROUP_SIZE = 32
"""Number of 4-bit weights that share a scale on the CPU: the smallest that the kernel takes, for accuracy."""
ROW_MULTIPLE = 16
"""The 4-bit kernel of the CPU takes matrices whose number of rows is a multiple of this."""


@dataclass(frozen=True)
class QuantizationLibrary:
    """The library that quantizes on a type of device, and a function that makes a configuration of transformers for it.

    The function takes `quantize` and `dtype` as `quantization_config` does, and raises ImportError without the library.
    """

    requirement: str
    """What to install, as pip takes it."""
    make_config: Callable[[str, torch.dtype | None], Any]


def quantization_config(quantize: str | None, device: str, dtype: torch.dtype | None) -> Any:
    """Return the quantization configuration of transformers for a type of device; None if `quantize` is None.

    `quantize` is "4bit" or "8bit", and is not checked. `dtype` is that in which quantized weights are multiplied, where
    the library lets it be chosen; None leaves it to the library. Raises ModelError if the type of device has no library
    for it, or if the library is not installed.
    """
    if quantize is None:
        return None
    library = LIBRARIES.get(device)
    if library is None:
        raise ModelError(f"There is no quantization on {device}: leave quantize out, or choose another device.")
    try:
        return library.make_config(quantize, dtype)
    except ImportError as error:
        raise ModelError(
            f'quantize="{quantize}" on {device} needs a library: run `pip install "{library.requirement}"`.'
        ) from error


def _torchao(quantize: str, dtype: torch.dtype | None) -> Any:
    """Return a `TorchAoConfig` that quantizes weights only, to 8 bits for "8bit" and to 4 bits for "4bit".

    8-bit weights share a scale per row of a matrix, 4-bit ones per `GROUP_SIZE` weights of a row. `dtype` is ignored.
    Raises ImportError without torchao.
    """
    from torchao.quantization import Int8WeightOnlyConfig
    from transformers import TorchAoConfig

    return TorchAoConfig(_four_bits() if quantize == "4bit" else Int8WeightOnlyConfig(set_inductor_config=False))


@functools.cache
def _four_bits() -> Any:
    """Return a torchao configuration of 4-bit weights, of which `GROUP_SIZE` of a row share a scale.

    Matrices that torchao's CPU kernel refuses stay unquantized: their number of outputs is no multiple of
    `ROW_MULTIPLE`, or that of inputs none of `GROUP_SIZE`. Raises ImportError without torchao.
    """
    from torchao.core.config import AOBaseConfig
    from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig
    from torchao.quantization import quantize_
    from torchao.quantization.transform_module import register_quantize_module_handler

    @dataclass
    class Int4WeightWhereItFits(AOBaseConfig):  # type: ignore[misc]
        """The configuration; transformers reads the number of bits from the name of this class."""

        group_size: int = GROUP_SIZE

    @register_quantize_module_handler(Int4WeightWhereItFits)  # type: ignore[untyped-decorator]
    def quantize_linear(module: nn.Linear, config: Int4WeightWhereItFits) -> nn.Module:
        if module.out_features % ROW_MULTIPLE == 0 and module.in_features % config.group_size == 0:
            quantize_(module, PrototypeInt4WeightOnlyConfig(config.group_size, set_inductor_config=False))
        return module

    return Int4WeightWhereItFits()


def _bitsandbytes(quantize: str, dtype: torch.dtype | None) -> Any:
    """Return a `BitsAndBytesConfig`: 4-bit NF4 weights with products in `dtype`, or 8-bit weights and activations.

    With 8 bits, each row of activations has its own scale, and no columns are computed in 16 bits as outliers: these
    are found over all rows, and a row would depend on the others. Also silences the library's warning about casts.
    Raises ImportError without bitsandbytes.
    """
    import bitsandbytes  # noqa: F401
    from transformers import BitsAndBytesConfig

    # It logs a warning about its cast to float16 at each product.
    logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
    if quantize == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True, llm_int8_threshold=0.0)
    return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype)


LIBRARIES = {
    "cpu": QuantizationLibrary("torchao>=0.18,<0.19", _torchao),
    "cuda": QuantizationLibrary("bitsandbytes>=0.50,<0.51", _bitsandbytes),
}


def is_quantized(hf_model: nn.Module) -> bool:
    """Whether any parameter is not a plain `nn.Parameter`, as the weights that these libraries quantize are not."""
    return any(type(parameter) is not nn.Parameter for parameter in hf_model.parameters())


def check_quantized_products(hf_model: Any, name: str) -> None:
    """Run one token through the model; raise ModelError if quantized weights do not implement an operation of it.

    `name` is the model's name for the message. Other errors pass through.
    """
    try:
        with torch.inference_mode():
            hf_model(torch.zeros(1, 1, dtype=torch.int64, device=hf_model.device), use_cache=False)
    except NotImplementedError as error:
        raise ModelError(
            f"{name} computes in a way that quantized weights do not allow: leave quantize out."
        ) from error


def describe_quantization(hf_model: Any) -> str:
    """Return how the model's config says that weights are quantized: bits, as "4 bit", or else the method's name.

    Empty if they are not.
    """
    config = getattr(hf_model.config, "quantization_config", None)
    if config is None:
        return ""
    settings = config if isinstance(config, dict) else vars(config)
    named = re.search(r"Int(\d)Weight", type(settings.get("quant_type")).__name__)
    bits = settings.get("bits") or (named and named[1])
    for number in (4, 8):
        bits = bits or (number if getattr(config, f"load_in_{number}bit", False) else None)
    return f"{bits} bit" if bits else str(getattr(settings.get("quant_method"), "value", settings.get("quant_method")))
