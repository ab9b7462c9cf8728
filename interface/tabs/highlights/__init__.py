"""The Highlights tab: marks the words of a text where the model expected another token."""

from interface.tabs.highlights.tab import build

__all__ = ["build"]
