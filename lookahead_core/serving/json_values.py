"""Makes values JSON-safe: NaN and infinity become null, sets become sorted lists."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def finite_or_none(value: float | None, digits: int | None = None) -> float | None:
    """Return the number, rounded to `digits` significant digits if that is set; None for None, NaN and infinity."""
    if value is None or not math.isfinite(value):
        return None
    return value if digits is None else float(f"{value:.{digits}g}")


def json_safe(value: Any) -> Any:
    """Return a value in a form that `json.dumps(allow_nan=False)` takes: NaN and infinity are None, at any depth.

    Mappings and lists are copied, tuples become lists, and sets become sorted lists of their elements as they are. Any
    other value, also one that JSON does not know, and all keys are returned as they are.
    """
    if isinstance(value, float):
        return finite_or_none(value)
    if isinstance(value, Mapping):
        return {name: json_safe(item) for name, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(value)
    return [json_safe(item) for item in value] if isinstance(value, list | tuple) else value
