"""The Write tab: a text, and branches that continue it at the caret."""

from interface.tabs.writer.tab import build

__all__ = ["build"]
