"""The Type assistant tab: either side of a conversation is written with the help of branches."""

from interface.tabs.assistant.tab import build

__all__ = ["build"]
