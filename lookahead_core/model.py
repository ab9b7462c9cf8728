"""Model: the loaded weights, the tokenizer, and the engine that computes predictions with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lookahead_core.engines.cpu.prepare import Computation
from lookahead_core.engines.engine import Engine
from lookahead_core.errors import ModelError
from lookahead_core.text.codec import TextCodec


@dataclass(frozen=True)
class Model:
    """A loaded model: what all its documents share. Made by `load_model`."""

    name: str
    hf_model: Any
    """The transformers model, which behaves as if it had been loaded by itself; None for a model on a server."""
    tokenizer: Any
    """The transformers tokenizer; None for a model that has none."""
    codec: TextCodec
    """Converts between text and token ids."""
    engine: Engine
    """Computes predictions."""
    engine_reason: str
    """Why the cached engine is not used; empty if it is."""
    end_token_ids: frozenset[int]
    start_ids: tuple[int, ...]
    """The token ids before every text; if the tokenizer adds none, the start token of an empty text."""
    vocabulary: int
    """Number of token ids that the model has embeddings for."""
    context_length: int | None
    """Maximum number of tokens in a pass's path; None if there is no limit."""
    quantization: str
    """How the weights are quantized, as "4 bit"; empty if they are not."""
    computation: Computation
    """How passes are computed on this device, and why not faster."""
    address: str = ""
    """The address of the server that computes; empty for a model in this process."""

    @property
    def engine_name(self) -> str:
        """ "cached", "uncached" or "remote"."""
        if self.address:
            return "remote"
        return "uncached" if self.engine_reason else "cached"

    def require_weights(self, purpose: str) -> Any:
        """Return `hf_model`; raise ModelError, which begins with `purpose`, if the model is on a server."""
        if self.hf_model is None:
            raise ModelError(f"{purpose} needs the model's weights, which are on a server: load the model by its name.")
        return self.hf_model

    @property
    def dtype(self) -> str:
        """The name of the dtype of the weights, such as "bfloat16"; "unknown" for a model on a server."""
        if self.hf_model is None:
            return "unknown"
        return str(self.hf_model.dtype).removeprefix("torch.")

    @property
    def device(self) -> str:
        """The name of the device of the weights, such as "cpu" or "cuda:0"; of several, the first weights' one.

        "server" for a model on a server.
        """
        if self.hf_model is None:
            return "server"
        return str(self.hf_model.device)

    def describe(self, *, details: bool = False) -> str:
        """Return one line to be shown: name, device, dtype, quantization if any, and `engine_name`.

        For a model on a server: name, address and `engine_name`.

        Of the name only the part after the last slash is shown. With `details`, further lines say why the engine is
        uncached if it is, how passes are computed, and why not faster.
        """
        where = (self.address,) if self.address else (self.device.upper(), self.dtype, self.quantization)
        facts = (self.name.rstrip("/").rsplit("/")[-1], *where, self.engine_name)
        summary = " · ".join(filter(None, facts))
        if not details:
            return summary
        reason = [f"{self.engine_name} because {self.engine_reason}"] if self.engine_reason else []
        return "\n".join([summary, *reason, *self.computation.lines()])


def model_and_source(first: Any, second: Any, function: str) -> tuple[Model, Any]:
    """Return two arguments in the order model, other: the one that is a `Model` first.

    Raises a ValueError, with the name `function` in its message, unless exactly one of the two is a `Model`.
    """
    if isinstance(first, Model) == isinstance(second, Model):
        raise ValueError(f"{function} takes a model that load_model gave, and a source: give one of each.")
    return (first, second) if isinstance(first, Model) else (second, first)
