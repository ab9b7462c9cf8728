"""The Type assistant tab: a conversation in which either side is written among branches."""

from interface.tabs.assistant.tab import build

__all__ = ["build"]
