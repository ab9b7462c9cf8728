"""The speculation record: its text against plain forwards, its passes added up, and its draws against the odds."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model, load_model
from lookahead_core.errors import ModelError
from lookahead_core.experiments.speculation_record import (
    SpeculationRecord,
    rejection_steps,
    speculation_record,
    speculation_steps,
)
from lookahead_core.steps import last_step
from tests.conftest import tiny_llama
from tests.support.drafting import Oracle, Random

PROMPT = "One two three, one two three, one two"
SAMPLED = {"temperature": 0.9, "top_p": 0.9, "seed": 11}


@pytest.fixture(scope="module")
def model(byte_tokenizer: Any) -> Model:
    return load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)


@pytest.fixture(scope="module")
def similar_model(draft_model: Model) -> Model:
    """A model that often agrees with `model`."""
    return draft_model


@torch.no_grad()
def plain_greedy(model: Model, token_ids: list[int], tokens: int) -> list[int]:
    """The likeliest token again and again, each from a forward pass over the whole text."""
    path = list(token_ids)
    for _ in range(tokens):
        path.append(int(model.hf_model(torch.tensor([path])).logits[0, -1].argmax()))
        if path[-1] in model.end_token_ids:
            break
    return path[len(token_ids) :]


def check_passes(record: SpeculationRecord) -> None:
    """Check each pass against the plain text: what was accepted is in it, and what was rejected is not."""
    text, at = record.plain_token_ids, 0
    for number, one in enumerate(record.passes, 1):
        assert one.number == number
        path, accepted = [None], [index for index, node in enumerate(one.nodes) if node.accepted]
        for index in accepted:
            assert one.nodes[index].parent == path[-1], "the accepted nodes are one path from the root"
            path.append(index)
        for index, node in enumerate(one.nodes):
            above = -1 if node.parent is None else node.parent
            assert above < index and node.drafters and 0 < node.odds <= 1
            assert node.depth == 1 + (0 if node.parent is None else one.nodes[node.parent].depth)
            if node.parent in path:
                assert (node.token_id == text[at + node.depth - 1]) == node.accepted
            else:
                assert not node.accepted
        added = one.added
        assert added.token_id == text[at + len(accepted)] == record.token_ids[at + len(accepted)]
        below = [node for node in one.nodes if node.parent == path[-1]]
        assert added.kind == ("alone" if not one.nodes else "correction" if below else "bonus")
        assert one.before == at
        at += len(accepted) + 1
    assert at == len(record.token_ids)


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [2, 40])
def test_the_greedy_text_is_that_of_plain_forwards_and_its_passes_add_up(model: Model, tokens: int) -> None:
    record = speculation_record(model, PROMPT, tokens=tokens)
    expected = plain_greedy(model, Document(model, PROMPT).token_ids, tokens)
    assert list(record.token_ids) == list(record.plain_token_ids) == expected
    assert record.equal is True
    assert record.text == record.plain_text == "".join(record.texts)
    assert record.plain_passes == len(expected)
    check_passes(record)
    if tokens == 40:
        assert len(record.passes) < record.plain_passes, "a repeating text takes fewer passes with drafts"
        assert sum(one.accepted for one in record.passes) + len(record.passes) == len(expected)


@pytest.mark.slow
@pytest.mark.parametrize("drafters", [("suffix",), ("recycled",), ("suffix", "recycled")])
def test_a_drawn_text_is_equal_too_and_each_guess_has_its_drafters(model: Model, drafters: tuple[str, ...]) -> None:
    record = speculation_record(model, PROMPT, tokens=40, drafters=drafters, **SAMPLED)
    stream = Document(model, PROMPT).stream(max_new_tokens=40, speculate=False, **SAMPLED)
    assert list(record.token_ids) == [step.token_id for step in stream]
    assert record.equal is True and record.drafters == drafters
    check_passes(record)
    named = {name for one in record.passes for node in one.nodes for name in node.drafters}
    assert named <= set(drafters)


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [{}, SAMPLED])
def test_a_smaller_model_that_often_agrees_saves_passes(
    model: Model, similar_model: Model, chosen: dict[str, Any]
) -> None:
    record = speculation_record(model, "The keeper", tokens=40, drafters=(), draft_model=similar_model, **chosen)
    assert record.equal is True and record.drafters == ("model",)
    check_passes(record)
    accepted = sum(one.accepted for one in record.passes)
    drafted = sum(len(one.nodes) for one in record.passes)
    assert 0 < accepted < drafted
    assert len(record.passes) + accepted == 40


def test_the_same_model_as_draft_model_is_accepted_wholly_and_wins_a_bonus_token(model: Model) -> None:
    record = speculation_record(model, "The keeper", tokens=30, drafters=(), draft_model=model)
    check_passes(record)
    assert {one.added.kind for one in record.passes} <= {"bonus", "alone"}
    assert "bonus" in {one.added.kind for one in record.passes}


@pytest.mark.slow
def test_drafters_that_are_wrong_change_nothing_and_every_guess_of_theirs_is_rejected(model: Model) -> None:
    right = speculation_record(model, PROMPT, tokens=20).plain_token_ids
    ids = [*Document(model, PROMPT).token_ids, *right]
    record = speculation_record(model, PROMPT, tokens=20, drafters=(Random(model.vocabulary, 4),))
    check_passes(record)
    assert record.equal is True and any(one.nodes for one in record.passes)
    known = speculation_record(model, PROMPT, tokens=20, drafters=(Oracle(ids, model.vocabulary),))
    check_passes(known)
    assert len(known.passes) < len(record.passes)


def test_steps_grow_and_are_consistent_while_the_record_is_made(model: Model) -> None:
    steps = list(speculation_steps(model, PROMPT, tokens=20))
    passes = [len(step.passes) for step in steps]
    assert passes == sorted(passes) and passes[-1] > 1
    for step in steps:
        assert sum(one.accepted + 1 for one in step.passes) == len(step.token_ids) == len(step.texts)
    assert {step.equal for step in steps[:-1]} == {None} and steps[-1].equal is True
    assert steps[-1] == last_step(iter(steps))


@pytest.mark.slow
def test_a_record_is_the_same_again_whatever_passes_have_cost(model: Model) -> None:
    before = speculation_record(model, PROMPT, tokens=20, **SAMPLED)
    assert any(one.nodes for one in before.passes)
    for nodes in (1, 2, 4, 8, 16, 32, 64) * 20:
        model.engine.pass_costs.record(nodes, float(nodes))
    assert speculation_record(model, PROMPT, tokens=20, **SAMPLED) == before


def test_an_observer_sees_the_draft_and_the_stream_stays_as_it_was(model: Model) -> None:
    record = speculation_record(model, PROMPT, tokens=25)
    stream = Document(model, PROMPT).stream(max_new_tokens=25)
    assert [step.token_id for step in stream] == list(record.token_ids)
    assert sum(one.won for one in stream.passes) == 25


@pytest.mark.slow
@pytest.mark.parametrize("which", ["suffix", "model", "both"])
def test_a_thousand_rejection_draws_come_as_often_as_the_exact_odds(
    model: Model, similar_model: Model, which: str
) -> None:
    """Frequencies are within four standard deviations where at least five draws are expected, and all others together.

    The draws are seeded, so this holds always or never.
    """
    options: dict[str, Any] = {"temperature": 1.2, "seed": 3, "drafters": () if which == "model" else ("suffix",)}
    options |= {} if which == "suffix" else {"draft_model": similar_model}
    found = last_step(rejection_steps(model, PROMPT, draws=1000, **options))
    odds = Document(model, PROMPT).odds(temperature=1.2).exp()
    assert sum(found.counts.values()) == found.number == 1000
    expected = [(found.counts.get(token_id, 0), share) for token_id, share in enumerate(odds.tolist())]
    rare = [one for one in expected if 1000 * one[1] < 5]
    common = [one for one in expected if 1000 * one[1] >= 5]
    assert len(common) > 20
    for count, share in (*common, (sum(count for count, _ in rare), math.fsum(share for _, share in rare))):
        assert abs(count - 1000 * share) <= 4 * math.sqrt(1000 * share * (1 - share))
    assert found.drafted == 1000, "each draw had a draft to accept or reject"
    assert found.accepted < 1000
    # The share of drafts that hold is the sum of the smaller ones of both odds: a certain draft holds with its odds.
    if which == "model":
        source = Document(similar_model, PROMPT).odds(temperature=1.2).exp()
        share = float(torch.minimum(odds, source).sum())
        assert abs(found.accepted - 1000 * share) <= 4 * math.sqrt(1000 * share * (1 - share))
    assert [one.processed for one in found.odds] == pytest.approx([float(odds[one.token_id]) for one in found.odds])


def test_the_draws_of_a_certain_draft_are_accepted_with_its_odds(model: Model) -> None:
    """A drafted token that was not sampled is accepted with the probability that the model gives it."""
    text = Document(model, PROMPT)
    likeliest = int(text.odds(temperature=1.2).argmax())
    oracle = Oracle([*text.token_ids, likeliest], model.vocabulary)
    found = last_step(rejection_steps(model, PROMPT, draws=1000, drafters=(oracle,), temperature=1.2, seed=1))
    share = float(text.odds(temperature=1.2).exp()[likeliest])
    assert abs(found.counts[likeliest] - 1000 * share) <= 4 * math.sqrt(1000 * share * (1 - share))
    assert found.accepted == found.counts[likeliest]


@pytest.mark.parametrize(
    ("options", "because"),
    [
        ({"tokens": 1}, "tokens is 1, and must be a whole number from 2 to 60."),
        ({"tokens": 61}, "tokens is 61"),
        ({"drafters": ()}, "Choose at least one drafter"),
        ({"drafters": ("heads",)}, "drafters holds 'heads'"),
        ({"temperature": -1}, "temperature is -1"),
        ({"depth": 3}, "depth is not an option of"),
        ({"draft_model": "small"}, "draft_model is str"),
    ],
)
def test_wrong_options_are_refused_with_a_sentence(model: Model, options: dict[str, Any], because: str) -> None:
    with pytest.raises(ValueError, match=because):
        speculation_record(model, PROMPT, **options)


def test_what_cannot_be_recorded_is_refused_with_a_sentence(model: Model, byte_tokenizer: Any) -> None:
    with pytest.raises(ValueError, match="temperature is 0"):
        last_step(rejection_steps(model, PROMPT))
    network = tiny_llama(len(byte_tokenizer), seed=3)
    uncached = load_model(network, tokenizer=byte_tokenizer, dtype="float32", engine="uncached")
    with pytest.raises(ModelError, match="runs without a cache"):
        speculation_record(uncached, PROMPT)
