"""Validation of options: each function raises ValueError with a sentence that names the option and what is allowed."""

from __future__ import annotations

import math
import numbers
import operator
import reprlib
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

MOST_REPR = 200
"""Characters of a value that the sentence of an error repeats."""
_REPR = reprlib.Repr()
_REPR.maxlevel = 3
_REPR.maxlist = _REPR.maxtuple = _REPR.maxset = _REPR.maxdict = 20
_REPR.maxstring = _REPR.maxlong = _REPR.maxother = MOST_REPR


def short_repr(value: object) -> str:
    """Return `repr(value)` for the sentence of an error, shortened by "..." to about MOST_REPR characters."""
    text = _REPR.repr(value)
    return text if len(text) <= MOST_REPR else f"{text[:MOST_REPR]}..."


def parse_options(kind: type[T], keywords: Mapping[str, Any], function: str) -> T:
    """Return an instance of the options dataclass `kind` with these keyword arguments.

    Numbers of other libraries, such as NumPy's, become int or float. Raises ValueError if a name is not a field of
    `kind`; the dataclass itself checks the values. `function` is the name of the called function, for the message.
    """
    known = [field.name for field in fields(kind)]
    for name in keywords:
        if name not in known:
            raise ValueError(f"{name} is not an option of {function}; the options are {', '.join(known)}.")
    return kind(**{name: _plain_number(value) for name, value in keywords.items()})


def _plain_number(value: Any) -> Any:
    """Return an integer or real number of any library as an int or float; a bool and anything else as it is."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def check_integer(name: str, value: object, low: int, high: int) -> None:
    """Raise ValueError, with the option's `name`, unless `value` is an integer from `low` to `high`, inclusive.

    An integer of an array library is one, and a bool is none.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or not low <= int(value) <= high:
        raise ValueError(f"{name} is {short_repr(value)}, and must be a whole number from {low} to {high:,}.")


def check_number(name: str, value: object, low: float, high: float, *, above: bool = False) -> None:
    """Raise ValueError, with the option's `name`, unless `value` is an int or float from `low` to `high`, inclusive.

    Bools and NaN are refused; with `above`, `low` itself too.
    """
    fits = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    if not fits or (above and value == low):
        most = "" if high == math.inf else f", and at most {high:g}"
        bounds = f"more than {low:g}{most}" if above else f"from {low:g} to {high:g}"
        raise ValueError(f"{name} is {short_repr(value)}, and must be a number {bounds}.")


def as_token_id(value: Any) -> int:
    """Return a value as an int, also if it is an integer of an array library; -1 if it is a bool or no integer.

    No limits are checked: a negative integer is returned as it is, and so is one beyond any vocabulary.
    """
    try:
        return -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return -1


def check_choice(name: str, value: object, allowed: tuple[Any, ...]) -> None:
    """Raise ValueError, with the option's `name`, unless `value` is one of `allowed`.

    Strings are compared by value, all else by identity, so that 1 is not True.
    """
    if not any(value is one or (isinstance(one, str) and value == one) for one in allowed):
        raise ValueError(f"{name} is {short_repr(value)}, and must be one of {', '.join(map(str, allowed))}.")
