"""Makes values JSON-safe: NaN and infinity become null, sets become sorted lists."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def finite_or_none(value: float | None, digits: int | None = None) -> float | None:
    """Return the number, rounded to this many significant digits; None for None, NaN and infinity."""
    if value is None or not math.isfinite(value):
        return None
    return value if digits is None else float(f"{value:.{digits}g}")


def json_safe(value: Any) -> Any:
    """Return the value for `json.dumps(allow_nan=False)`, with nested mappings, lists, tuples and sets copied."""
    if isinstance(value, float):
        return finite_or_none(value)
    if isinstance(value, Mapping):
        return {name: json_safe(item) for name, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(value)
    return [json_safe(item) for item in value] if isinstance(value, list | tuple) else value
