"""Reads a text from standard input."""

from __future__ import annotations

import re
import sys


def read_standard_input() -> str:
    """Return standard input as text, without its last line break; raise ValueError if it is closed or not UTF-8."""
    if sys.stdin is None:
        raise ValueError("There is no standard input to read; give a text to continue.")
    try:
        return re.sub(r"\r?\n\Z", "", sys.stdin.buffer.read().decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"Byte {error.start} of standard input is not UTF-8; give it as UTF-8.") from None
