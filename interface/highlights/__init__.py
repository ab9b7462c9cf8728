"""The Highlights tab: in a given text, the words where the model would have gone elsewhere."""

from interface.highlights.highlights import build

__all__ = ["build"]
