"""Model: the loaded weights, the tokenizer, and the engine that computes predictions with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lookahead_core.engines.cpu.prepare import Computation
from lookahead_core.engines.engine import Engine
from lookahead_core.text.codec import TextCodec


@dataclass(frozen=True)
class Model:
    """What documents share: the weights, the words and the engine."""

    name: str
    hf_model: Any
    """What transformers loaded, and left as it was."""
    tokenizer: Any
    codec: TextCodec
    engine: Engine
    engine_reason: str
    """Why this engine: empty for the cached one."""
    end_token_ids: frozenset[int]
    start_ids: tuple[int, ...]
    """What stands before every text; or, where nothing does, what an empty text starts from."""
    vocabulary: int
    context_length: int | None
    quantization: str
    """How the weights are rounded, as "4 bit"; empty where they are not."""
    computation: Computation
    """How passes are computed on this device, and why not faster."""

    @property
    def dtype(self) -> str:
        return str(self.hf_model.dtype).removeprefix("torch.")

    @property
    def device(self) -> str:
        return str(self.hf_model.device)

    def describe(self, *, details: bool = False) -> str:
        """One line for people: name, device, type, bits where they are few, engine.

        With `details`, further lines say how passes are computed, and why not faster.
        """
        kind = "uncached" if self.engine_reason else "cached"
        facts = (self.name.rstrip("/").rsplit("/")[-1], self.device.upper(), self.dtype, self.quantization, kind)
        line = " · ".join(filter(None, facts))
        if not details:
            return line
        reason = [f"uncached because {self.engine_reason}"] if self.engine_reason else []
        return "\n".join([line, *reason, *self.computation.lines()])


def model_and_source(one: Any, other: Any, call: str) -> tuple[Model, Any]:
    """A model and a source, which callers may give in either order; a ValueError unless one of the two is a model."""
    if isinstance(one, Model) == isinstance(other, Model):
        raise ValueError(f"{call} takes a model that load_model gave, and a source: give one of each.")
    return (one, other) if isinstance(one, Model) else (other, one)
