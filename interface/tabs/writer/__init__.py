"""The writer's tab: a text on paper, and beside it where it could go."""

from interface.tabs.writer.tab import build

__all__ = ["build"]
