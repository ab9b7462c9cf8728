"""Branches that a chat template's words end: shares, probabilities and coverage are those of what is left of them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model
from lookahead_core.document.results import Lookahead
from lookahead_core.document.template_endings import closed
from lookahead_core.serving.calls import Calls
from lookahead_core.text.chat import tokenize_conversation
from tests.support.scripted_model import parrot
from tests.text.test_chat import PLAIN_TEXT_TURNS

TALK = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "Yes."}]
WORDS = ["Yes.", "\n\n", "### user:\n", " More", " And", " so", " on"]
SAID = ["Yes.\n\n### user:\nGo", "Yes.\n\n More so", "Yes. And so on", "Yes. And\n\n### user:\nGo"]


@pytest.fixture(scope="module")
def model() -> Model:
    """A model that often ends an answer with the template's words, and whose line breaks need not begin them."""
    made = parrot(SAID, WORDS)
    made.tokenizer.chat_template = made.codec.tokenizer.chat_template = PLAIN_TEXT_TURNS
    return made


def path_logprobs(model: Model, before: list[int], path: tuple[int, ...]) -> list[float]:
    """The log-probability of each token of a path, by plain forwards."""
    found = []
    for place, token_id in enumerate(path):
        with torch.no_grad():
            row = model.hf_model(torch.tensor([[*before, *path[:place]]])).logits[0, -1].float().log_softmax(-1)
        found.append(float(row[token_id]))
    return found


def expected_shares(paths: list[tuple[int, ...]], logprobs: list[list[float]]) -> tuple[list[float], float]:
    """Of each path the probability of its shortest beginning that no other path has; and that of all beginnings."""
    shares, beginnings = [], {}
    for path, values in zip(paths, logprobs, strict=True):
        others = [other for other in paths if other != path]
        sizes = range(1, len(path) + 1)
        size = next((n for n in sizes if all(other[:n] != path[:n] for other in others)), len(path))
        shares.append(math.exp(math.fsum(values[:size])))
        beginnings[path[:size]] = shares[-1]
    whole = [one for one in beginnings if not any(one[:n] in beginnings for n in range(1, len(one)))]
    return shares, math.fsum(beginnings[one] for one in whole)


def views(model: Model, **options: Any) -> tuple[Lookahead, Lookahead, list[int]]:
    """A view, the same with branches ended by the template, and the ids before them."""
    talk = tokenize_conversation(model.codec, TALK)
    document = Document(model, talk.last_message, opening=talk.opening)
    result = document.lookahead(**options)
    return result, closed(result, talk, document.text), document.token_ids


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["likely", "every_level", "best_first", "forks", "sampled", "diverse"])
def test_shares_and_coverage_are_those_of_the_branches_as_they_are_ended(model: Model, mode: str) -> None:
    whole, shown, before = views(model, mode=mode, k=6, depth=4, cutoff=0.01, seed=3)
    paths = [branch.token_ids for branch in shown.branches]
    assert any(one.ended and one.token_ids not in {b.token_ids for b in whole.branches} for one in shown.branches)
    logprobs = [path_logprobs(model, before, path) for path in paths]
    shares, coverage = expected_shares(paths, logprobs)
    for branch, values, share in zip(shown.branches, logprobs, shares, strict=True):
        assert branch.share == pytest.approx(share, rel=1e-3)
        assert branch.probability == pytest.approx(math.exp(math.fsum(values)), rel=1e-3)
        assert list(branch.logprobs) == pytest.approx(values, abs=1e-3)
        assert len(branch.said) == len(branch.token_ids)
    assert shown.coverage == pytest.approx(coverage, rel=1e-3)
    assert shown.coverage <= 1 + 1e-9


def test_branches_that_their_end_makes_equal_are_shown_once_but_for_samples(model: Model) -> None:
    whole, shown, _ = views(model, mode="every_level", k=3, branch_levels=3, depth=4)
    paths = [branch.token_ids for branch in shown.branches]
    assert len(set(paths)) == len(paths) < len(whole.branches)
    whole, shown, _ = views(model, mode="sampled", k=12, depth=4, seed=1)
    assert len(shown.branches) == len(whole.branches) == 12


def test_a_view_that_no_end_of_a_message_comes_in_stays_as_it_is(model: Model) -> None:
    whole, shown, _ = views(model, k=3, depth=1)
    assert shown is whole


@pytest.mark.parametrize("mode", ["likely", "every_level", "sampled"])
def test_calls_tell_the_coverage_of_the_branches_that_they_show(model: Model, mode: str) -> None:
    answer = Calls(model).lookahead(messages=TALK, k=4, depth=4, mode=mode)
    paths = [tuple(branch["ids"]) for branch in answer["branches"]]
    shares, coverage = expected_shares(paths, [branch["logprobs"] for branch in answer["branches"]])
    assert [branch["share"] for branch in answer["branches"]] == pytest.approx(shares)
    assert answer["coverage"] == pytest.approx(coverage)
    assert any(branch["ended"] for branch in answer["branches"])


def test_beams_that_their_end_makes_equal_are_shown_once_with_the_better_score(model: Model) -> None:
    beams = Calls(model).beam_search(messages=TALK, num_beams=12, max_new_tokens=4)["branches"]
    paths = [tuple(beam["ids"]) for beam in beams]
    assert len(set(paths)) == len(paths) < 12
    scores = [beam["score"] for beam in beams]
    assert scores == sorted(scores, reverse=True)
    shares, _ = expected_shares(paths, [beam["logprobs"] for beam in beams])
    assert [beam["share"] for beam in beams] == pytest.approx(shares)
