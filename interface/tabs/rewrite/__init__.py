"""The Rewrite tab: from a source and an instruction, a new text is written with the help of branches."""

from interface.tabs.rewrite.tab import build

__all__ = ["build"]
