"""Parameters of tests of which a part runs by default and all run among the slow tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def mostly_slow(values: Iterable[Any], count: int) -> list[Any]:
    """Return values as parameters for `pytest.mark.parametrize`; those after the first `count` are slow."""
    listed = list(values)
    return [*listed[:count], *(pytest.param(value, marks=pytest.mark.slow) for value in listed[count:])]
