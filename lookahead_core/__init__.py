"""Batched, cached branching on language models: several futures of a text at once, each with its odds."""

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
