"""The Internals tab: every token of a text or a conversation with its id and its probability."""

from interface.tabs.internals.tab import build

__all__ = ["build"]
