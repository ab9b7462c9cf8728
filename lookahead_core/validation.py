"""Options from keyword arguments: every name and value checked, a wrong one told in a sentence."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

T = TypeVar("T")


def parse_options(kind: type[T], given: Mapping[str, Any], verb: str) -> T:
    """The options of this kind, made from keyword arguments."""
    known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    for name in given:
        if name not in known:
            raise ValueError(f"{name} is not an option of {verb}; the options are {', '.join(known)}.")
    return kind(**given)


def check_integer(name: str, value: object, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}, and must be a whole number from {low} to {high:,}.")


def check_number(name: str, value: object, low: float, high: float, *, above: bool = False) -> None:
    """A number from `low` to `high`; with `above`, `low` itself is not one."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    if not fits or (above and value == low):
        most = "" if high == math.inf else f", and at most {high:g}"
        bounds = f"more than {low:g}{most}" if above else f"from {low:g} to {high:g}"
        raise ValueError(f"{name} is {value!r}, and must be a number {bounds}.")


def as_token_id(given: Any) -> int:
    """A token id, also from arrays that have whole numbers of their own kind; below 0 where it is none."""
    try:
        return -1 if isinstance(given, bool) else operator.index(given)
    except TypeError:
        return -1


def check_choice(name: str, value: object, allowed: tuple[Any, ...]) -> None:
    if not any(value is one or (isinstance(one, str) and value == one) for one in allowed):
        raise ValueError(f"{name} is {value!r}, and must be one of {', '.join(map(str, allowed))}.")
