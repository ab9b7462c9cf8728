"""The columns of a comparison in a page's request, checked: invalid fields are refused with a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lookahead_core.text import chat

FEWEST_COLUMNS, MOST_COLUMNS = 2, 4
MOST_COLUMN_BRANCHES = 5
"""Maximum `k` of a request with columns: the number of branches of each."""


@dataclass(frozen=True)
class Column:
    """A column of a comparison: an instruction and a temperature with which the page's text is continued."""

    instruction: str | None = None
    """The instruction for the model; None if the text is continued without one."""
    temperature: float | None = None
    """The temperature of this column, from 0 to 2; None for the request's own."""


def columns_from_json(fields: Mapping[str, Any]) -> tuple[Column, ...]:
    """Return the columns in the JSON of a request; () if it has none. Raises ValueError if they are invalid.

    The field `columns` is a list of 2 to 4 objects with `instruction` and `temperature`, both optional. A request with
    columns must have no instruction, source or conversation of its own, and a `k` of at most MOST_COLUMN_BRANCHES.
    """
    value = fields.get("columns")
    if value is None:
        return ()
    if not isinstance(value, list) or not FEWEST_COLUMNS <= len(value) <= MOST_COLUMNS:
        raise ValueError(f"columns must be a list of {FEWEST_COLUMNS} to {MOST_COLUMNS} columns.")
    if any(fields.get(name) for name in ("instruction", "source", "role")):
        raise ValueError("A request with columns has instructions in its columns only, no source and no conversation.")
    k = fields.get("k", MOST_COLUMN_BRANCHES)
    if isinstance(k, int | float) and k > MOST_COLUMN_BRANCHES:
        raise ValueError(f"k is {k}, and may be at most {MOST_COLUMN_BRANCHES} with columns.")
    return tuple(_column(number, column) for number, column in enumerate(value, start=1))


def lookaheads_of(columns: Sequence[Column], *, by_temperature: bool) -> tuple[list[Column], list[int]]:
    """Return the columns that need a lookahead of their own, and for each of `columns` the index of its lookahead.

    Without `by_temperature`, columns that differ in temperature alone share one: the page computes their odds itself.
    """
    needed = [column if by_temperature else Column(column.instruction) for column in columns]
    distinct = list(dict.fromkeys(needed))
    return distinct, [distinct.index(column) for column in needed]


def _column(number: int, value: object) -> Column:
    """Return the column in a JSON value; raise ValueError if it is invalid. `number`, from 1, is for the error."""
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
