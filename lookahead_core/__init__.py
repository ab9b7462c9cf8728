"""Batched, cached branching on language models: several futures of a text at once, each with its odds."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lookahead_core.branches import Branch, Cost, Lookahead, LookaheadStep, Piece
    from lookahead_core.document import Document
    from lookahead_core.errors import CacheFull, LookaheadError, ModelError, TextError
    from lookahead_core.model import Model, load_model
    from lookahead_core.settings import Settings
    from lookahead_core.tree import Prediction

__all__ = [
    "Branch",
    "CacheFull",
    "Cost",
    "Document",
    "Lookahead",
    "LookaheadError",
    "LookaheadStep",
    "Model",
    "ModelError",
    "Piece",
    "Prediction",
    "Settings",
    "TextError",
    "load_model",
]

# A name is fetched when it is first used: torch takes seconds to import, and a page should not wait for it.
_HOMES = {
    "branches": ("Branch", "Cost", "Lookahead", "LookaheadStep", "Piece"),
    "document": ("Document",),
    "errors": ("CacheFull", "LookaheadError", "ModelError", "TextError"),
    "model": ("Model", "load_model"),
    "settings": ("Settings",),
    "tree": ("Prediction",),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
