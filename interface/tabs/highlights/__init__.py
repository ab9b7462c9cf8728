"""The Highlights tab: in a given text, the words where the model would have gone elsewhere."""

from interface.tabs.highlights.tab import build

__all__ = ["build"]
