"""Batched, cached branching on language models: several futures of a text at once, each with its odds."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lookahead_core.agreement import Check, agreement_length, generate_and_check
    from lookahead_core.api import Calls
    from lookahead_core.batch import beam_search_batch, lookahead_batch, stream_batch
    from lookahead_core.branches import (
        Beam,
        BeamNode,
        Beams,
        BeamStep,
        Branch,
        Cost,
        Lookahead,
        LookaheadStep,
        Other,
        Piece,
    )  # fmt: skip
    from lookahead_core.corpus import Corpus, load_corpus
    from lookahead_core.document import Document
    from lookahead_core.errors import CacheFull, LookaheadError, ModelError, TextError
    from lookahead_core.model import Model, load_model
    from lookahead_core.settings import Settings
    from lookahead_core.strategies.drafters import Drafter, Way
    from lookahead_core.strategies.heads import load_heads
    from lookahead_core.strategies.speculate import Pass
    from lookahead_core.strategies.trained import Heads
    from lookahead_core.stream import Stream, Streams, StreamStep
    from lookahead_core.training import train_heads
    from lookahead_core.tree import Prediction

# A name is fetched when it is first used: torch takes seconds to import, and a page should not wait for it.
_HOMES = {
    "agreement": ("Check", "agreement_length", "generate_and_check"),
    "api": ("Calls",),
    "batch": ("beam_search_batch", "lookahead_batch", "stream_batch"),
    "branches": (
        "Beam", "BeamNode", "Beams", "BeamStep", "Branch", "Cost", "Lookahead", "LookaheadStep", "Other", "Piece",
    ),
    "corpus": ("Corpus", "load_corpus"),
    "document": ("Document",),
    "errors": ("CacheFull", "LookaheadError", "ModelError", "TextError"),
    "model": ("Model", "load_model"),
    "settings": ("Settings",),
    "strategies.drafters": ("Drafter", "Way"),
    "strategies.heads": ("load_heads",),
    "strategies.speculate": ("Pass",),
    "strategies.trained": ("Heads",),
    "stream": ("Stream", "StreamStep", "Streams"),
    "training": ("train_heads",),
    "tree": ("Prediction",),
}  # fmt: skip

__all__ = [
    "Beam", "BeamNode", "BeamStep", "Beams", "Branch", "CacheFull", "Calls", "Check", "Corpus", "Cost", "Document",
    "Drafter", "Heads", "Lookahead", "LookaheadError", "LookaheadStep", "Model", "ModelError", "Other", "Pass",
    "Piece", "Prediction", "Settings", "Stream", "StreamStep", "Streams", "TextError", "Way", "agreement_length",
    "beam_search_batch", "generate_and_check", "load_corpus", "load_heads", "load_model", "lookahead_batch",
    "stream_batch", "train_heads",
]  # fmt: skip


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
