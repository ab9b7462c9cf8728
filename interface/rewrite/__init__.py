"""The Rewrite tab: a source, an instruction, and a new text that grows among branches."""

from interface.rewrite.rewrite import build

__all__ = ["build"]
