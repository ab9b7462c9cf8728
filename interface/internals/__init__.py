"""The Internals tab: every token of a text or a conversation, and what the model thought there."""

from interface.internals.internals import build

__all__ = ["build"]
