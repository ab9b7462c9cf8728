"""Parameters of tests of which a part runs by default and all run among the slow tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def mostly_slow(values: Iterable[Any], count: int) -> list[Any]:
    """Return values as parameters for `pytest.mark.parametrize`; those after the first `count` are slow."""
    listed = list(values)
    return [*listed[:count], *(_slow(value) for value in listed[count:])]


def _slow(value: Any) -> Any:
    """Return a value as a slow parameter; a tuple stays one value for each of the names that it stands for."""
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
