"""The Internals tab: every token of a text or a conversation, and what the model thought there."""

from interface.tabs.internals.tab import build

__all__ = ["build"]
