"""The columns of a comparison: checks the JSON that a page sends and refuses invalid fields in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lookahead_core.text import chat

FEWEST_COLUMNS, MOST_COLUMNS = 2, 4
MOST_COLUMN_BRANCHES = 5
"""The largest `k` of a request with columns: branches of each."""


@dataclass(frozen=True)
class Column:
    """One of several ways in which the same text is continued, side by side."""

    instruction: str | None = None
    """What the text shall follow; None if the text continues as it is."""
    temperature: float | None = None
    """The temperature that this column's tokens are drawn with; None for the request's own."""


def columns_from_json(fields: Mapping[str, Any]) -> tuple[Column, ...]:
    """Return the columns in the JSON of a request; () if it has none. Raises ValueError if they are invalid.

    `columns` is a list of 2 to 4 objects with `instruction` and `temperature`, both optional. A request with columns
    has no instruction, source or conversation of its own, and a `k` of at most MOST_COLUMN_BRANCHES.
    """
    value = fields.get("columns")
    if value is None:
        return ()
    if not isinstance(value, list) or not FEWEST_COLUMNS <= len(value) <= MOST_COLUMNS:
        raise ValueError(f"columns must be a list of {FEWEST_COLUMNS} to {MOST_COLUMNS} columns.")
    if any(fields.get(name) for name in ("instruction", "source", "role")):
        raise ValueError("With columns, the instruction stands in a column, and there is no source or conversation.")
    k = fields.get("k", MOST_COLUMN_BRANCHES)
    if isinstance(k, int | float) and k > MOST_COLUMN_BRANCHES:
        raise ValueError(f"k is {k}, and with columns it may be {MOST_COLUMN_BRANCHES} at most.")
    return tuple(_column(number, column) for number, column in enumerate(value, start=1))


def lookaheads_of(columns: Sequence[Column], *, sampled: bool) -> tuple[list[Column], list[int]]:
    """Return the distinct lookaheads that columns need, and for each column the index of its own among them.

    Columns that differ in temperature alone share one unless it is `sampled`: a page computes their odds itself.
    """
    needed = [column if sampled else Column(column.instruction) for column in columns]
    distinct = list(dict.fromkeys(needed))
    return distinct, [distinct.index(column) for column in needed]


def _column(number: int, value: object) -> Column:
    """Return a column from its JSON; raise ValueError if it is invalid. `number` is its number from 1."""
    if not isinstance(value, dict):
        raise ValueError(f"Column {number} must be an object with an instruction or a temperature.")
    instruction, temperature = value.get("instruction"), value.get("temperature")
    if instruction is not None and not isinstance(instruction, str):
        raise ValueError(f"The instruction of column {number} must be a text.")
    if instruction is not None and len(instruction) > chat.MAX_INSTRUCTION:
        raise ValueError(
            f"The instruction of column {number} has {len(instruction):,} characters, and at most "
            f"{chat.MAX_INSTRUCTION:,} are allowed: shorten it."
        )
    if temperature is not None and not _is_temperature(temperature):
        raise ValueError(f"The temperature of column {number} must be a number from 0 to 2.")
    return Column(instruction or None, None if temperature is None else float(temperature))


def _is_temperature(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 2
