"""The n-gram index finds the longest and latest matches that a full scan finds, in bounded memory."""

from __future__ import annotations

import random
import tracemalloc
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lookahead_core.speculation import ngram_index
from lookahead_core.speculation.ngram_index import NgramIndex

LENGTHS = (16, 8, 4, 2, 1)
MILLION = 1_000_000


class Patient(NgramIndex):
    """Never tires of places that share a slot by chance."""

    max_steps = 2**30


class Scan:
    """The slow reference: a list of all that was ever added, with None between texts, and a look at every place."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.all: list[int | None] = []

    @property
    def oldest(self) -> int:
        return max(0, len(self.all) - self.most)

    def add(self, token_ids: list[int]) -> None:
        self.all += token_ids

    def begin(self) -> None:
        if self.all and self.all[-1] is not None:
            self.all.append(None)

    def after(self, place: int) -> int | None:
        return self.all[place] if self.oldest <= place < len(self.all) else None

    def agreement(self, place: int, path: list[int]) -> int:
        """How many tokens before a place are the path's last ones."""
        agreed = 0
        while agreed < min(32, len(path)) and place - agreed - 1 >= self.oldest:
            if self.all[place - agreed - 1] != path[-agreed - 1]:
                break
            agreed += 1
        return agreed

    def find(self, path: list[int], count: int) -> tuple[list[int], int]:
        places = [place for place in range(self.oldest, len(self.all)) if self.all[place] is not None]
        agreed = {place: self.agreement(place, path) for place in places}
        for length in LENGTHS:
            latest = [place for place in reversed(places) if agreed[place] >= length][:count]
            if latest:
                latest.sort(key=lambda place: (agreed[place], place), reverse=True)
                return latest, agreed[latest[0]]
        return [], 0


def assert_same(index: NgramIndex, scan: Scan, path: list[int], count: int) -> None:
    found = index.find(path, count)
    assert found == scan.find(path, count), (path, count)
    for place in found[0]:
        assert index.token_at(place) == scan.after(place) is not None


def play(index: NgramIndex, scan: Scan, steps: list[Any], paths: random.Random) -> None:
    """Both take the same adds and breaks, and after each the same questions."""
    for step in steps:
        if step is None:
            index.begin_text()
            scan.begin()
        else:
            index.add(step)
            scan.add(step)
        index.check()
        assert index.size == min(len(scan.all), scan.most)
        end = [token_id for token_id in scan.all[-40:] if token_id is not None]
        far = paths.randrange(len(scan.all) + 1)
        some = [token_id for token_id in scan.all[max(0, far - 40) : far] if token_id is not None]
        for path in (end, some, [*some, *end[-3:]]):
            assert_same(index, scan, path, paths.choice([1, 2, 4, 9]))
        for place in (scan.oldest - 1, scan.oldest, far, len(scan.all) - 1, len(scan.all), -1):
            assert index.token_at(place) == (scan.after(place) if place >= 0 else None)


def some_steps(dice: random.Random, alphabet: int, sizes: list[int]) -> list[Any]:
    """Adds of these sizes in some order, which repeat themselves, with breaks here and there."""
    text = [dice.randrange(alphabet) for _ in range(60)]
    steps: list[Any] = []
    for _ in range(8):
        start = dice.randrange(len(text))
        repeated = (text[start:] * 30)[: dice.choice(sizes)]
        steps.append(None if dice.random() < 0.2 else repeated)
        text[dice.randrange(len(text))] = dice.randrange(alphabet)
    return steps


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 2**32),
    most=st.sampled_from([1, 2, 3, 5, 17, 40, 64, 65, 100, 300, 1000]),
    alphabet=st.sampled_from([1, 2, 3, 10, 1000, 2**31]),
    sizes=st.lists(st.integers(0, 90), min_size=1, max_size=4),
)
def test_the_index_finds_what_a_full_scan_finds(seed: int, most: int, alphabet: int, sizes: list[int]) -> None:
    dice = random.Random(seed)
    play(Patient(most), Scan(most), some_steps(dice, alphabet, sizes), dice)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(st.one_of(st.none(), st.lists(st.integers(0, 2), max_size=40)), max_size=6),
    most=st.integers(1, 50),
    seed=st.integers(0, 99),
)
def test_after_any_adds_and_breaks_the_index_finds_what_a_full_scan_finds(
    steps: list[Any], most: int, seed: int
) -> None:
    play(Patient(most), Scan(most), steps, random.Random(seed))


@pytest.mark.parametrize("most", [50, 700, 5000])
def test_adding_many_tokens_at_once_equals_adding_one_by_one(most: int) -> None:
    dice = random.Random(most)
    text = [dice.randrange(7) for _ in range(1500)]
    slow, fast, mixed = NgramIndex(most), NgramIndex(most), NgramIndex(most)
    for index in (slow, fast, mixed):
        index.add([5, 6] * 8)
        index.begin_text()
    for token_id in text:
        slow.add([token_id])
    fast.add(text)
    start = 0
    while start < len(text):
        size = dice.randrange(1, 60)
        mixed.add(text[start : start + size])
        start += size
    for _ in range(100):
        far = dice.randrange(len(text))
        path = text[max(0, far - 40) : far]
        assert slow.find(path) == fast.find(path) == mixed.find(path)
    for index in (slow, fast, mixed):
        index.check()


def test_a_run_that_spans_two_adds_is_found() -> None:
    index = NgramIndex()
    index.add([1, 2])
    index.add([3, 4, 5])
    assert index.find([9, 2, 3]) == ([3], 2)
    assert [index.token_at(place) for place in (3, 4, 5)] == [4, 5, None]


def test_the_end_of_the_text_is_not_found_before_a_token_follows_it() -> None:
    index = NgramIndex()
    index.add([1, 2, 3])
    assert index.find([1, 2, 3]) == ([], 0)
    index.add([4, 1, 2, 3])
    assert index.find([4, 1, 2, 3]) == ([3], 3)


def test_no_run_and_no_continuation_crosses_a_break() -> None:
    index = NgramIndex()
    index.add([1, 2, 3])
    index.begin_text()
    index.begin_text()
    index.add([4, 5])
    assert index.find([3, 4]) == ([5], 1), "only the 4, which the 5 follows"
    assert index.find([2, 3]) == ([], 0), "nothing follows the end of a text"
    assert index.token_at(3) is None and index.token_at(4) == 4


def test_positions_are_sorted_by_match_length_then_by_recency() -> None:
    index = NgramIndex()
    for token_ids in ([7, 1, 2, 10], [1, 2, 11], [1, 2, 12], [1, 2, 13]):
        index.add(token_ids)
    assert [index.token_at(place) for place in index.find([9, 1, 2], count=2)[0]] == [13, 12]
    places, length = index.find([7, 1, 2])
    assert [index.token_at(place) for place in places] == [10, 13, 12, 11]
    assert length == 3


def test_the_length_is_that_of_the_real_agreement_up_to_thirty_two() -> None:
    index = NgramIndex()
    index.add([*range(100, 160), 7])
    for length in (1, 2, 3, 5, 7, 9, 15, 16, 17, 31, 32, 40):
        path = [5, *range(160 - length, 160)]
        assert index.find(path) == ([60], min(length, 32))


def test_overwritten_tokens_are_not_found_and_positions_keep_their_numbers() -> None:
    index = NgramIndex(10)
    index.add([1, 2, 3, *range(20, 26)])
    assert index.find([1, 2]) == ([2], 2)
    index.add([30, 31])
    assert index.find([1, 2]) == ([2], 1), "the 1 is forgotten"
    assert index.token_at(0) is None and index.token_at(1) == 2
    index.add([32])
    assert index.find([1, 2]) == ([], 0)
    assert index.find([25]) == ([9], 1)


def test_runs_with_colliding_hashes_are_distinguished_by_their_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngram_index, "HASH_MULTIPLIER", 0)  # now all of them do
    for seed in range(20):
        dice = random.Random(seed)
        most = dice.choice([30, 64, 200])
        play(Patient(most), Scan(most), some_steps(dice, 4, [1, 10, 70]), dice)


def test_tokens_added_in_many_batches_are_one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngram_index, "BATCH_SIZE", 30)
    for seed in range(10):
        dice = random.Random(seed)
        most = dice.choice([30, 64, 500])
        play(Patient(most), Scan(most), some_steps(dice, 3, [1, 20, 90]), dice)


def test_with_colliding_hashes_the_search_is_bounded_and_its_results_are_correct(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ngram_index, "HASH_MULTIPLIER", 0)
    walked = []
    whole_walk = ngram_index._RunTable.positions
    monkeypatch.setattr(
        ngram_index._RunTable, "positions", lambda *told: map(lambda one: walked.append(one) or one, whole_walk(*told))
    )
    dice = random.Random(1)
    text = [dice.randrange(50) for _ in range(3000)]
    index, scan = NgramIndex(3000), Scan(3000)
    index.add(text)
    scan.add(text)
    for far in range(2900, 3001):
        walked.clear()
        places, length = index.find(text[:far])
        assert len(walked) <= 5 * NgramIndex.max_steps
        assert length == max([scan.agreement(place, text[:far]) for place in places], default=0)


def test_a_text_of_one_repeated_token_gives_its_latest_positions() -> None:
    index = NgramIndex(5000)
    index.add([3] * 12_000)
    places, length = index.find([3] * 50)
    assert (places, length) == ([11_999, 11_998, 11_997, 11_996], 32)


def test_invalid_token_ids_raise_an_error_and_nothing_is_stored() -> None:
    index = NgramIndex()
    index.add([2**31 - 1, 0, 5])
    for wrong in ([1, -1], [2**31], [1.0], ["a"], "ab", 7, [None], [1] * 100 + [-5]):
        with pytest.raises(ValueError, match="whole numbers from 0 to 2147483647"):
            index.add(wrong)  # type: ignore[arg-type]
    assert index.size == 3
    assert index.find([2**31 - 1]) == ([1], 1)
    for most in (0, -1, 2.0, "9", True, 2**40):
        with pytest.raises(ValueError, match=r"most is .*, and must be a whole number of tokens"):
            NgramIndex(most)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="count is 0, and must be 1 or more"):
        index.find([5], 0)


def test_ids_of_other_libraries_are_token_ids_too() -> None:
    index = NgramIndex()
    index.add(np.arange(100))  # type: ignore[arg-type]
    index.add((5, 6))
    assert index.find(np.array([98, 99])) == ([100], 2)  # type: ignore[arg-type]


def test_an_index_of_a_short_document_takes_little_memory_and_an_empty_one_hardly_any() -> None:
    index = NgramIndex(MILLION)
    assert index.bytes < 8_000
    assert index.find([1, 2, 3]) == ([], 0)
    index.add(list(range(300)))
    assert index.bytes < 64 * 1024


@pytest.mark.parametrize("most", [900, 1024, 1025, 3000])
def test_memory_is_at_most_128_bytes_a_token_and_flat_once_the_bound_is_reached(most: int) -> None:
    dice = random.Random(most)
    index = NgramIndex(most)
    index.add([dice.randrange(100) for _ in range(most)])
    full = index.bytes
    assert full <= 128 * most + 1024
    for size in (1, 3, 50, 2 * most):
        index.add([dice.randrange(100) for _ in range(size)])
        assert index.bytes <= full + 200 and index.size == most
    index.check()


@pytest.mark.slow
def test_a_million_tokens_take_at_most_128_bytes_each_and_the_next_million_takes_no_more() -> None:
    dice = np.random.default_rng(0)
    texts = [(dice.zipf(1.2, MILLION) % 50_000).tolist() for _ in range(2)]
    tracemalloc.start()
    try:
        index = NgramIndex(MILLION)
        index.add(texts[0])
        first = tracemalloc.get_traced_memory()[0]
        index.add(texts[1])
        second = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert index.size == MILLION
    assert first <= 128 * MILLION
    assert second <= first + 10_000
    assert abs(index.bytes - second) < 50_000


def seconds_to_find(index: NgramIndex, paths: list[list[int]]) -> float:
    times = []
    for path in paths:
        start = perf_counter()
        index.find(path)
        times.append(perf_counter() - start)
    return median(times)


@pytest.mark.slow
def test_finding_takes_as_long_among_a_million_tokens_as_among_a_thousand() -> None:
    dice = np.random.default_rng(0)
    text = (dice.zipf(1.2, MILLION) % 50_000).tolist()
    small, large = NgramIndex(MILLION), NgramIndex(MILLION)
    small.add(text[:1000])
    large.add(text)
    ratios = []
    for _ in range(9):
        paths = [text[start : start + 40] for start in dice.integers(0, 950, 200)]
        ratios.append(seconds_to_find(large, paths) / seconds_to_find(small, paths))
    assert median(ratios) < 4, "a scan would take a thousand times as long"


@pytest.mark.parametrize("size", [1, 64])
def test_an_index_works_after_more_tokens_than_an_int32_can_count(size: int) -> None:
    index = NgramIndex(64)
    dice = random.Random(0)
    index.add([dice.randrange(4) for _ in range(64)])
    index._end = 2**32  # as if so many had come and gone
    for _ in range(2):
        for _ in range(64 // size):
            index.add([dice.randrange(4) for _ in range(size)])
        index.check()
    index.add([5, 6, 7])
    assert index.find([5, 6]) == ([index._end - 1], 2)
    assert index.token_at(index._end - 1) == 7
