"""The compression benchmark: sources and questions from a seed, what its tables count, and a small run."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from benchmarks.compression import (
    Answer,
    answer_until,
    cost_of,
    removed_of,
    source_of_length,
    table_of_answers,
    table_of_costs,
    table_of_removed,
)
from benchmarks.questions import sources
from lookahead_core import Model, compress, load_model
from tests.conftest import byte_level, tiny_llama


@pytest.fixture(scope="module")
def reader() -> Model:
    """A tiny model that reads the benchmark's sources in few tokens."""
    tokenizer = byte_level([source.text for source in islice(sources(1), 3)], vocabulary=1500)
    return load_model(tiny_llama(len(tokenizer), max_position_embeddings=2048), tokenizer=tokenizer)


def test_sources_are_the_same_for_a_seed_and_each_answer_is_where_its_span_says() -> None:
    for source, again in zip(islice(sources(0), 30), sources(0), strict=False):
        assert source == again
        assert len({fact.kind for fact in source.facts}) == len(source.facts) == 5
        for fact, (start, end) in zip(source.facts, source.spans, strict=True):
            assert source.text[start:end] == fact.answer.strip()
            assert source.text.count(fact.sentence) == 1
            assert fact.beginning + fact.answer in fact.sentence, "the sentence states the answer in the same words"
    first, other = next(sources(0)), next(sources(1))
    assert first.text != other.text


def test_a_small_run_counts_answers_in_kept_parts(reader: Model) -> None:
    answers = list(answer_until(reader, 0.25, 6, seed=0))
    assert sum(one.kept for one in answers) == 6 and answers[-1].kept
    assert answers == list(answer_until(reader, 0.25, 6, seed=0))


def test_the_table_counts_same_and_right_answers_of_kept_and_of_removed_parts() -> None:
    answers = [
        Answer("town", "", " Oslo", True, " Oslo", " Oslo"),
        Answer("town", "", " Oslo", True, " Oslo", " the"),
        Answer("job", "", " baker", True, " nurse", " nurse"),
        Answer("job", "", " baker", False, " baker", " nurse"),
    ]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table_of_answers(answers).splitlines()[2:]]
    assert rows == [
        ["town", "2", "50%", "100%", "50%"],
        ["job", "1", "100%", "0%", "0%"],
        ["**all in kept parts**", "3", "67%", "67%", "33%"],
        ["in removed parts", "1", "0%", "100%", "0%"],
    ]


def test_an_answer_is_removed_unless_all_of_it_is_kept_and_shorter_texts_lose_no_fewer(reader: Model) -> None:
    quarter, half, whole = (removed_of(reader, ratio, 12, seed=0) for ratio in (0.25, 0.5, 1.0))
    lost = dict.fromkeys(("town", "person", "number", "job", "colour"), 0)
    for number, source in enumerate(islice(sources(0), 3)):
        found = compress(reader, source.text, 0.25)
        kept = {index for span in found.kept for index in range(span.start, span.end)}
        for fact, (start, end) in list(zip(source.facts, source.spans, strict=True))[: 5 if number < 2 else 2]:
            lost[fact.kind] += not kept.issuperset(range(start, end))
    assert {kind: removed for kind, (removed, _) in quarter["kinds"].items()} == lost
    assert [questions for _, questions in quarter["kinds"].values()] == [3, 3, 2, 2, 2]
    assert (quarter["questions"], quarter["removed"]) == (12, sum(lost.values())) and sum(lost.values()) > 0
    assert quarter["removed"] >= half["removed"] >= whole["removed"] == 0


def test_the_table_of_removed_answers_has_a_row_for_each_share() -> None:
    found = {"ratio": 0.25, "questions": 3, "removed": 2, "kinds": {"town": (0, 1), "job": (2, 2)}}
    last = table_of_removed([found]).splitlines()[-1]
    assert [cell.strip() for cell in last.split("|")[1:-1]] == ["0.25", "3", "2", "0 of 1", "2 of 2"]


@pytest.mark.slow
def test_costs_are_relative_to_one_reading(reader: Model) -> None:
    text = source_of_length(reader, 100, 0)
    assert len(reader.codec.encode(text)) in range(95, 105)
    cost: dict[str, Any] = cost_of(reader, 100, 0.25, 1, 0)
    assert cost["evaluated"] <= 1.05 * cost["tokens"]
    for other in ("plain", "scored", "read"):
        assert cost[f"to_{other}"] == pytest.approx(cost["ours"] / cost[other])
    assert len(table_of_costs([cost]).splitlines()) == 3
