"""The Rewrite tab: a source, an instruction, and a new text that grows among branches."""

from interface.tabs.rewrite.tab import build

__all__ = ["build"]
