"""Batched, cached branching on language models: several futures of a text at once, each with its probability."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lookahead_core.analysis.agreement import Check, agreement_length, generate_and_check
    from lookahead_core.analysis.compression import Compression, CompressionSpan, compress
    from lookahead_core.document.batch import beam_search_batch, lookahead_batch, lookahead_batch_steps, stream_batch
    from lookahead_core.document.document import Document
    from lookahead_core.document.joint_lookahead import LookaheadBatchStep
    from lookahead_core.document.results import (
        BannedToken,
        Beam,
        BeamNode,
        Beams,
        BeamStep,
        Branch,
        Cost,
        Lookahead,
        LookaheadStep,
        NextWord,
        Other,
        Piece,
    )  # fmt: skip
    from lookahead_core.document.stream import Stream, Streams, StreamStep
    from lookahead_core.errors import CacheFull, LookaheadError, ModelError, TextError
    from lookahead_core.loading.load_model import load_model
    from lookahead_core.model import Model
    from lookahead_core.prediction import Prediction
    from lookahead_core.serving.calls import Calls
    from lookahead_core.settings import Settings
    from lookahead_core.speculation.corpus import Corpus, load_corpus
    from lookahead_core.speculation.draft_and_verify import Pass
    from lookahead_core.speculation.drafters.protocol import Drafter, Guess, Way
    from lookahead_core.speculation.heads_file import Heads
    from lookahead_core.speculation.load_heads import load_heads
    from lookahead_core.training.trainer import train_heads

__version__ = "0.7.0"

# A public name is imported when it is first used: torch takes seconds to import, and a page should not wait for it.
_HOMES = {
    "analysis.agreement": ("Check", "agreement_length", "generate_and_check"),
    "analysis.compression": ("Compression", "CompressionSpan", "compress"),
    "document.batch": ("beam_search_batch", "lookahead_batch", "lookahead_batch_steps", "stream_batch"),
    "document.document": ("Document",),
    "document.joint_lookahead": ("LookaheadBatchStep",),
    "document.results": (
        "BannedToken", "Beam", "BeamNode", "Beams", "BeamStep", "Branch", "Cost", "Lookahead", "LookaheadStep",
        "NextWord", "Other", "Piece",
    ),
    "document.stream": ("Stream", "StreamStep", "Streams"),
    "errors": ("CacheFull", "LookaheadError", "ModelError", "TextError"),
    "loading.load_model": ("load_model",),
    "model": ("Model",),
    "prediction": ("Prediction",),
    "serving.calls": ("Calls",),
    "settings": ("Settings",),
    "speculation.corpus": ("Corpus", "load_corpus"),
    "speculation.draft_and_verify": ("Pass",),
    "speculation.drafters.protocol": ("Drafter", "Guess", "Way"),
    "speculation.load_heads": ("load_heads",),
    "speculation.heads_file": ("Heads",),
    "training.trainer": ("train_heads",),
}  # fmt: skip

__all__ = [
    "BannedToken",
    "Beam",
    "BeamNode",
    "BeamStep",
    "Beams",
    "Branch",
    "CacheFull",
    "Calls",
    "Check",
    "Compression",
    "CompressionSpan",
    "Corpus",
    "Cost",
    "Document",
    "Drafter",
    "Guess",
    "Heads",
    "Lookahead",
    "LookaheadBatchStep",
    "LookaheadError",
    "LookaheadStep",
    "Model",
    "ModelError",
    "NextWord",
    "Other",
    "Pass",
    "Piece",
    "Prediction",
    "Settings",
    "Stream",
    "StreamStep",
    "Streams",
    "TextError",
    "Way",
    "agreement_length",
    "beam_search_batch",
    "compress",
    "generate_and_check",
    "load_corpus",
    "load_heads",
    "load_model",
    "lookahead_batch",
    "lookahead_batch_steps",
    "stream_batch",
    "train_heads",
]  # fmt: skip


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
