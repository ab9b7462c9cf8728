"""What JSON can say: it knows no numbers that are none, and lists are its only rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def number(value: float | None, digits: int | None = None) -> float | None:
    """A number, to so many digits where that is enough; what is impossible or unknown has none."""
    if value is None or not math.isfinite(value):
        return None
    return value if digits is None else float(f"{value:.{digits}g}")


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers that are none become null, sets become lists."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(value)
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value
