"""Joins kept spans of a source to a shorter text, with white space of the source between them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lookahead_core.text.boundaries import LINE_BREAKS, is_space_separated

_WHITE_SPACE = re.compile(r"\s+")


def join_spans(source: str, kept: Sequence[tuple[int, int]]) -> str:
    """Return the text of the kept spans of `source`: (start, end) pairs in order, without overlaps.

    Characters between two spans are replaced by white space: by the run with the most line breaks among them and around
    them, the first of equal ones. Without any white space it is a space if two letters or digits of a script with
    spaces would meet, else nothing. The text has white space at its ends only where these are the ends of the source.
    """
    parts: list[str] = []
    before = 0
    for start, end in _runs(kept):
        text = source[start:end]
        first = start + len(text) - len(text.lstrip()) if start else 0
        after = start + len(text.rstrip()) if end < len(source) else end
        if first >= after:
            continue
        if parts:
            parts.append(_separator(source[before:first], parts[-1][-1], source[first]))
        parts.append(source[first:after])
        before = after
    return "".join(parts)


def _runs(kept: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans, with adjacent ones merged."""
    runs: list[tuple[int, int]] = []
    for start, end in kept:
        if runs and runs[-1][1] == start:
            runs[-1] = runs[-1][0], end
        else:
            runs.append((start, end))
    return runs


def _separator(gap: str, left: str, right: str) -> str:
    """Return the white space that replaces `gap`, the characters of the source between `left` and `right`."""
    found: list[str] = _WHITE_SPACE.findall(gap)
    if found:
        return max(found, key=lambda white: sum(white.count(sign) for sign in LINE_BREAKS))
    return " " if is_space_separated(left) and is_space_separated(right) else ""
