"""Running generators of steps to their end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lookahead_core.steps import last_step, passes_of


def test_the_last_step_is_returned_after_all_others_were_made() -> None:
    made: list[int] = []

    def steps() -> Iterator[int]:
        for number in range(3):
            made.append(number)
            yield number

    assert last_step(steps()) == 2
    assert made == [0, 1, 2]


def test_a_generator_without_steps_has_no_last_step() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        last_step([])


def test_each_step_becomes_none_and_the_last_one_is_the_result() -> None:
    def outer() -> Iterator[str | None]:
        yield (yield from passes_of("abc"))

    assert list(outer()) == [None, None, None, "c"]
