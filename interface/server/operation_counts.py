"""What a server counts about its work, for whoever runs it: numbers only, no text, no id and no address."""

from __future__ import annotations

from collections import Counter

from interface.server.error_sentences import kind
from lookahead_core.histogram import Histogram

SECOND_BOUNDS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)
"""Bounds, in seconds, by which the times to complete views are counted."""


class OperationCounts:
    """Counts since the start of the server; each `ModelLoader` has one. For use in the server's event loop only."""

    def __init__(self) -> None:
        self.errors: Counter[str] = Counter()
        """Errors that were answered with a sentence, by their `kind`."""
        self.responses: Counter[int] = Counter()
        """HTTP responses by status."""
        self.calls: Counter[str] = Counter()
        """Calls of programs, by name."""
        self.clicks: Counter[bool] = Counter()
        """Clicks, by whether the view behind them had been prefetched."""
        self.view_seconds = Histogram(SECOND_BOUNDS)
        """The seconds from a page's request to its complete view."""

    def count_error(self, error: Exception) -> None:
        """Count an error that is answered with a sentence."""
        self.errors[kind(error)] += 1
