"""The Lab tab: experiments that show how decoding works, on the loaded model and a prompt of one's own."""

from interface.tabs.lab.tab import build

__all__ = ["build"]
