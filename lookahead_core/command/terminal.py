"""Writing to a terminal: width, colours, control characters, and a progress line.

A terminal never gets a control character that a model wrote; files and pipes get texts as they are.
"""

from __future__ import annotations

import itertools
import re
import shutil
import sys
import unicodedata
from typing import IO

CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that move a terminal's cursor, change its colours or reverse its lines; not line breaks and tabs."""
MIN_COLUMNS = 12
"""Minimum width of a quoted text, in columns, however narrow the terminal is."""


def visible(text: str) -> str:
    """Return the text with each of `CONTROL_CHARACTERS` escaped, such as `\\x1b`; line breaks and tabs stay."""
    return CONTROL_CHARACTERS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def columns(text: str) -> int:
    """Return how many columns of a terminal the text takes: two for wide characters, none for combining or hidden ones.

    Line breaks and other control characters count as one.
    """
    return sum(map(_column, text))


def _column(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, room: int, more: str = "…") -> str:
    """Return the text, or if it is wider than `room` columns its beginning and `more`, in at most `room` columns.

    `room` must be at least the length of `more`, whose characters take one column each.
    """
    if columns(text) <= room:
        return text
    kept = sum(width <= room - len(more) for width in itertools.accumulate(map(_column, text)))
    return text[:kept] + more


def percent(share: float) -> str:
    """Return a probability from 0 to 1 as text such as "41 %", "4.1 %" or "<0.1 %"."""
    if share < 0.0005:
        return "<0.1 %"
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"


class Screen:
    """The command's standard output: a terminal with its width and colours, or a file or pipe."""

    def __init__(self, file: IO[str], *, colours: bool, width: int | None = None) -> None:
        """Colours are used in a terminal only. `width` is in columns; without it, lines are as wide as the terminal.

        They have 80 columns if there is no terminal.
        """
        self.file = file
        self.is_terminal = file.isatty()
        self.colours = colours and self.is_terminal
        self.width = width or shutil.get_terminal_size().columns
        self.ellipsis, self.fork, self.last, self.beside = self._signs()
        self._ends = "\n"

    def write(self, text: str, *, faint: bool = False) -> None:
        """Write a text and flush; on a terminal with control characters escaped, and faint with `faint`."""
        if text:
            shown = visible(text) if self.is_terminal else text
            self.file.write(self.faint(shown) if faint else shown)
            self.file.flush()
            self._ends = text[-1]

    def line(self, line: str) -> None:
        """Write a text as it is and a line break, and flush; its control characters must be escaped already."""
        self.file.write(f"{line}\n")
        self.file.flush()

    def end_line(self) -> None:
        """Write a line break if the last text that `write` wrote does not end with one."""
        if self._ends != "\n":
            self.write("\n")

    def faint(self, text: str) -> str:
        """Return the text with the escape codes of a faint colour; as it is where there are no colours."""
        return f"\x1b[2m{text}\x1b[0m" if self.colours else text

    def quoted(self, text: str, room: int) -> str:
        """Return `repr(text)`, cut to `room` columns, or to MIN_COLUMNS if that is more.

        A cut text ends with an ellipsis and without the closing quote.
        """
        return cut(repr(text), max(room, MIN_COLUMNS), self.ellipsis)

    def _signs(self) -> tuple[str, str, str, str]:
        """Return four strings: the ellipsis, and the tree signs for a fork, the last child, and a line beside children.

        Each tree sign is three columns wide, trailing spaces included: "├─ ", "└─ " and "│" with two spaces. If the
        file's encoding lacks any of these characters, all four strings are ASCII, and the ellipsis is "...".
        """
        try:
            "…├└│─".encode(getattr(self.file, "encoding", None) or "utf-8")
        except UnicodeError:
            return "...", "|- ", "`- ", "|  "
        return "…", "├─ ", "└─ ", "│  "


def report(sentence: str, fraction: float | None = None) -> None:
    """Show progress on one line of standard error if it is a terminal; the next report overwrites it, "" clears it.

    `fraction` is the part that is done, 0 to 1, shown in percent; None if it is unknown.
    """
    if sys.stderr.isatty():
        room = shutil.get_terminal_size().columns - 1
        line = cut(visible(sentence) + ("" if fraction is None else f" {fraction:.0%}"), room)
        sys.stderr.write(f"\r{line}{' ' * (room - columns(line))}\r{line}")
        sys.stderr.flush()


def complain(sentence: str, status: int = 2) -> int:
    """Clear the progress line and write one sentence to standard error; return `status`, an exit status.

    It is in one line, with control characters escaped.
    """
    report("")
    print(" ".join(visible(sentence).split()), file=sys.stderr)
    return status
