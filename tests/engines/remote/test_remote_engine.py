"""A model on a server gives what the same model gives here: branches, odds, coverage, beams and streams."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model, load_model
from lookahead_core.command.model_loading import load_draft_model
from lookahead_core.engines.remote.remote_engine import RemoteEngine
from lookahead_core.engines.remote.truncated_prediction import truncated_prediction
from lookahead_core.errors import LookaheadError, ModelError
from lookahead_core.settings import Settings
from lookahead_core.speculation.drafters.suffix_drafter import SuffixDrafter
from lookahead_core.speculation.ngram_index import NgramIndex
from lookahead_core.tree import TokenTree
from tests.conftest import CORPUS
from tests.support.completions_server import CompletionsServer

MODES: list[dict[str, Any]] = [
    {"mode": "likely"},
    {"mode": "every_level", "branch_levels": 2, "branch_total": 12},
    {"mode": "forks", "cutoff": 0.2},
    {"mode": "best_first", "budget": 8},
]


@pytest.fixture(scope="module")
def server(tiny_model: Model) -> Iterator[CompletionsServer]:
    """A server of the tiny model that gives the 20 likeliest tokens only, as vLLM does by default."""
    served = CompletionsServer(tiny_model.hf_model, most_logprobs=20)
    yield served
    served.close()


@pytest.fixture(scope="module")
def whole_server(tiny_model: Model) -> Iterator[CompletionsServer]:
    """A server of the tiny model that gives the log-probabilities of all tokens."""
    served = CompletionsServer(tiny_model.hf_model, most_logprobs=-1)
    yield served
    served.close()


@pytest.fixture(scope="module")
def remote(server: CompletionsServer, byte_tokenizer: Any) -> Iterator[Model]:
    model = load_model(server.address, tokenizer=byte_tokenizer)
    yield model
    model.engine.close()  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def whole(whole_server: CompletionsServer, byte_tokenizer: Any) -> Iterator[Model]:
    model = load_model(whole_server.address, tokenizer=byte_tokenizer)
    yield model
    model.engine.close()  # type: ignore[attr-defined]


def prompts(count: int, seed: int = 0) -> list[str]:
    dice = random.Random(seed)
    return [CORPUS[dice.randrange(3)][: dice.randrange(4, 60)] for _ in range(count)]


def assert_equal_lookaheads(one: Any, other: Any) -> None:
    assert [branch.token_ids for branch in one.branches] == [branch.token_ids for branch in other.branches]
    for mine, theirs in zip(one.branches, other.branches, strict=True):
        assert mine.logprobs == pytest.approx(theirs.logprobs, abs=1e-5)
        assert mine.share == pytest.approx(theirs.share, abs=1e-5) and mine.ended == theirs.ended
    assert one.coverage == pytest.approx(other.coverage, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("options", MODES, ids=lambda options: options["mode"])
def test_branches_odds_and_coverage_are_those_of_the_local_engine(
    remote: Model, tiny_model: Model, options: dict[str, Any]
) -> None:
    for text in prompts(4):
        expected = Document(tiny_model, text).lookahead(k=4, depth=5, **options)
        assert_equal_lookaheads(Document(remote, text).lookahead(k=4, depth=5, **options), expected)


def test_a_lookahead_takes_two_requests_and_one_more_token_only_reads_what_is_new(
    remote: Model, server: CompletionsServer
) -> None:
    document = Document(remote, "Once upon a time")
    del server.bodies[:]
    result = document.lookahead(k=5, depth=10)
    assert [(len(body["prompt"]), body["max_tokens"]) for body in server.bodies] == [(1, 1), (5, 9)]
    assert result.cost.passes == 2 and document.lookahead(k=5, depth=10).cost.passes == 0
    document.accept(result.branches[0], 3)
    document.lookahead(k=1, depth=5)
    assert len(server.bodies) == 2
    assert all(
        body["ignore_eos"] and body["temperature"] == 0 and body["repetition_penalty"] == 1 for body in server.bodies
    )


def test_a_level_takes_one_request_whatever_the_number_of_branches(remote: Model, server: CompletionsServer) -> None:
    document = Document(remote, "Once upon a time there")
    del server.bodies[:]
    document.beam_search(num_beams=4, max_new_tokens=5)
    assert [len(body["prompt"]) for body in server.bodies] == [1, 4, 4, 4, 4]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"num_beam_groups": 2, "diversity_penalty": 0.5}, {"stopping": "seed"}])
def test_beams_are_those_of_the_local_engine(remote: Model, tiny_model: Model, options: dict[str, Any]) -> None:
    for text in prompts(3, seed=1):
        local = Document(tiny_model, text).beam_search(num_beams=4, max_new_tokens=6, **options).branches
        found = Document(remote, text).beam_search(num_beams=4, max_new_tokens=6, **options).branches
        assert [beam.token_ids for beam in found] == [beam.token_ids for beam in local]
        assert [beam.score for beam in found] == pytest.approx([beam.score for beam in local], abs=1e-5)


def test_greedy_streams_are_those_of_the_local_engine_and_end_at_end_tokens(remote: Model, tiny_model: Model) -> None:
    for text in prompts(3, seed=2):
        expected = [(step.token_id, step.finish) for step in Document(tiny_model, text).stream(max_new_tokens=12)]
        assert [(step.token_id, step.finish) for step in Document(remote, text).stream(max_new_tokens=12)] == expected


def test_branches_end_at_end_tokens_though_the_server_goes_on(byte_tokenizer: Any, tiny_model: Model) -> None:
    served = CompletionsServer(tiny_model.hf_model)
    model = load_model(served.address, tokenizer=byte_tokenizer)
    engine = model.engine
    tree = TokenTree()
    head = tree.descend(tree.root, [5, 9, 11])
    tree.move_head(head)
    path: list[int] = [5, 9, 11]
    for _ in range(3):
        path.append(int(served.next_logprobs(path).argmax()))
    steps = list(engine.roll_out([head], 12, frozenset({path[-1]})))
    cut = path.index(path[-1], 3) + 1
    assert [node.token_id for nodes in steps for node in nodes] == path[3:cut]
    tree.check()
    engine.close()  # type: ignore[attr-defined]
    served.close()


def test_the_mass_of_all_other_tokens_is_exact_and_predictions_say_that_they_are_truncated(
    remote: Model, tiny_model: Model
) -> None:
    local, found = (Document(model, "After careful").predict() for model in (tiny_model, remote))
    assert found.truncated and not local.truncated and len(found.token_ids) == 20
    known = math.fsum(map(math.exp, local.logprobs[:20]))
    odds, rest = found.reheated(1.0)
    assert rest == pytest.approx(1 - known, abs=1e-5) and sum(odds) + rest == pytest.approx(1)
    assert sum(found.tail) == remote.vocabulary - 20
    assert found.entropy == pytest.approx(local.entropy, rel=0.1)


def test_what_needs_the_odds_of_all_tokens_is_refused_by_a_server_that_does_not_give_them(remote: Model) -> None:
    document = Document(remote, "Once upon a time")
    sentence = "needs the log-probabilities of all tokens, .* gives only the 20 likeliest: start it with"
    for refused in (
        lambda: document.lookahead(k=2, depth=2, banned={7}),
        lambda: document.lookahead(k=2, depth=2, mode="sampled"),
        lambda: document.lookahead(k=2, depth=2, heal=True),
        lambda: document.lookahead(k=2, depth=2, towards="sea"),
        lambda: list(document.stream(max_new_tokens=2, temperature=0.8, seed=1)),
        lambda: document.predict(row=True),
        lambda: document.beam_search(num_beams=20, max_new_tokens=3),
        lambda: document.beam_search(num_beams=2, max_new_tokens=3, no_repeat_ngram_size=2),
    ):
        with pytest.raises(LookaheadError, match=sentence):
            refused()
    assert document.lookahead(k=2, depth=2).branches


def test_what_a_server_cannot_do_is_refused_with_a_sentence(remote: Model, whole: Model) -> None:
    document = Document(whole, "Once upon a time")
    own: list[Any] = [SuffixDrafter(NgramIndex())]
    for options in ({"speculate": True}, {"draft_model": whole}, {"source": "A text."}, {"drafters": own}):
        with pytest.raises(LookaheadError, match="is on a server, which makes drafts by itself"):
            document.stream(max_new_tokens=4, **options)
    with pytest.raises(LookaheadError, match="is on a server, which makes drafts by itself"):
        document.lookahead(k=2, depth=3, speculate=True)
    with pytest.raises(LookaheadError, match="repetition_penalty needs logits"):
        document.stream(max_new_tokens=4, repetition_penalty=1.2)
    with pytest.raises(ModelError, match="A draft head needs the model's weights, which are on a server"):
        remote.require_weights("A draft head")
    assert remote.describe().endswith(" · remote") and remote.device == "server"


def test_the_command_loads_no_draft_model_beside_a_model_on_a_server(remote: Model) -> None:
    with pytest.raises(ModelError, match="A draft model needs the model's weights, which are on a server"):
        load_draft_model(remote, {"draft_model": "little"})


@pytest.mark.slow
def test_with_the_odds_of_all_tokens_everything_is_as_with_the_local_engine(whole: Model, tiny_model: Model) -> None:
    assert whole.vocabulary == tiny_model.vocabulary
    for text in ("Once upon a ti", "After careful cons"):
        for options in ({"banned": {7, 70, 90}}, {"mode": "sampled", "seed": 3, "temperature": 0.9}, {"heal": True},
                        {"odds": "words"}, {"avoid": "sea"}):  # fmt: skip
            expected = Document(tiny_model, text).lookahead(k=3, depth=3, **options)
            assert_equal_lookaheads(Document(whole, text).lookahead(k=3, depth=3, **options), expected)
        streams = [
            Document(model, text).stream(max_new_tokens=8, temperature=0.9, seed=5) for model in (whole, tiny_model)
        ]
        assert [step.token_id for step in streams[0]] == [step.token_id for step in streams[1]]
        rows = [Document(model, text).predict(row=True).row for model in (whole, tiny_model)]
        assert torch.allclose(rows[0], rows[1], atol=1e-5)  # type: ignore[arg-type]


def test_the_tail_of_a_power_law_is_found_from_its_likeliest_tokens() -> None:
    weights = [rank**-1.2 for rank in range(1, 2001)]
    logprobs = [math.log(weight / math.fsum(weights)) for weight in weights]
    found = truncated_prediction(dict(enumerate(logprobs[:20])), 2000)
    assert found.entropy == pytest.approx(-math.fsum(math.exp(value) * value for value in logprobs), rel=0.01)
    for temperature in (0.7, 1.0, 1.6):
        hot = [math.exp(value / temperature) for value in logprobs]
        odds, rest = found.reheated(temperature)
        assert rest == pytest.approx(math.fsum(hot[20:]) / math.fsum(hot), rel=0.02)
        assert odds[0] == pytest.approx(hot[0] / math.fsum(hot), rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("most", "options"), [(-1, {}), (20, {}), (20, {"temperature": 0.6, "top_p": 0.9}), (-1, {"banned": {104}})]
)
def test_a_typed_word_is_completed_from_odds_among_the_tokens_that_begin_with_it(
    byte_tokenizer: Any, tiny_model: Model, most: int, options: dict[str, Any]
) -> None:
    served = CompletionsServer(tiny_model.hf_model, most_logprobs=most)
    served.processes = True
    model = load_model(served.address, tokenizer=byte_tokenizer)
    for text in ("Once upon a ti", "The", *prompts(3, seed=4)):
        local = Document(tiny_model, text).lookahead(k=4, depth=4, heal=True, **options)
        del served.bodies[:]
        assert_equal_lookaheads(Document(model, text).lookahead(k=4, depth=4, heal=True, **options), local)
        assert options.get("banned") or all(body["logprobs"] != -1 for body in served.bodies)
    model.engine.close()  # type: ignore[attr-defined]
    served.close()


@pytest.mark.parametrize("most", [5, 20, 64])
@pytest.mark.parametrize("count", [3, 40, 200])
def test_odds_among_some_tokens_are_the_softmax_over_them_and_those_of_unlikely_ones_are_exact_too(
    byte_tokenizer: Any, tiny_model: Model, most: int, count: int
) -> None:
    served = CompletionsServer(tiny_model.hf_model, most_logprobs=most)
    served.processes = True
    engine: Any = load_model(served.address, tokenizer=byte_tokenizer).engine
    tree = TokenTree()
    node = tree.descend(tree.root, [5, 9])
    token_ids = sorted(random.Random(count).sample(range(256), count))
    row = served.next_logprobs([5, 9])[token_ids].log_softmax(0)
    expected = dict(zip(token_ids, row.tolist(), strict=True))
    scores = engine.score([node])
    del served.bodies[:]
    other = next(token_id for token_id in range(256) if token_id not in expected)
    named = [*sorted(token_ids, key=lambda each: expected[each])[:10], other, token_ids[0]]
    prediction, logprobs = scores.among(node, token_ids, named)
    assert logprobs == pytest.approx([expected.get(each, -math.inf) for each in named], abs=1e-5)
    likeliest = sorted(expected, key=lambda each: -expected[each])[: min(most, count)]
    assert list(prediction.token_ids) == likeliest
    assert prediction.logprobs == pytest.approx([expected[each] for each in likeliest], abs=1e-5)
    assert all(body["logprobs"] <= most for body in served.bodies)
    engine.close()
    served.close()


def test_the_rows_of_all_tokens_that_a_typed_word_needs_are_fetched_once(
    byte_tokenizer: Any, tiny_model: Model
) -> None:
    served = CompletionsServer(tiny_model.hf_model, most_logprobs=-1)
    engine: Any = load_model(served.address, tokenizer=byte_tokenizer).engine
    tree = TokenTree()
    first, second, third = (tree.descend(tree.root, [5, last]) for last in (9, 8, 7))

    def fetched(node: Any) -> int:
        """How many requests for all tokens it takes; the row is that of a plain forward."""
        scores = engine.score([node])
        del served.bodies[:]
        (row,) = scores.logprobs_of([node])
        expected = served.next_logprobs(tree.token_ids(node))
        assert row.tolist() == pytest.approx(expected.tolist(), abs=1e-5)
        return sum(body["logprobs"] == -1 for body in served.bodies)

    # As in typing: the beginning of the word stays, and its end is another one with each letter.
    assert [fetched(each) for each in (first, first, second, first, third, first, second)] == [1, 0, 1, 0, 1, 0, 1]
    engine.close()
    served.close()


def test_whole_rows_have_no_log_total_as_they_are_no_logits(whole: Model) -> None:
    assert Document(whole, "Once upon").predict(row=True).log_total is None


def test_groups_of_beams_read_more_tokens_by_their_penalties(byte_tokenizer: Any, tiny_model: Model) -> None:
    served = CompletionsServer(tiny_model.hf_model, most_logprobs=5)
    model = load_model(served.address, tokenizer=byte_tokenizer)
    document = Document(model, "Once upon")
    assert document.beam_search(num_beams=2, max_new_tokens=3).branches
    with pytest.raises(LookaheadError, match="gives only the 5 likeliest"):
        document.beam_search(num_beams=4, num_beam_groups=2, diversity_penalty=0.5, max_new_tokens=3)
    model.engine.close()  # type: ignore[attr-defined]
    served.close()


def test_a_long_common_beginning_is_sent_alone_first_and_only_while_the_server_lacks_it(
    remote: Model, server: CompletionsServer
) -> None:
    tree = TokenTree()
    trunk = tree.descend(tree.root, [3 + index % 200 for index in range(60)])
    del server.bodies[:]
    leaves = [tree.expand(trunk, token_id) for token_id in (5, 6, 7)]
    remote.engine.score(leaves)
    assert [len(body["prompt"]) for body in server.bodies] == [1, 3]
    remote.engine.score(leaves)
    assert [len(body["prompt"]) for body in server.bodies] == [1, 3, 3]


def test_tokens_that_are_not_the_likeliest_are_not_believed(byte_tokenizer: Any, tiny_model: Model) -> None:
    served = CompletionsServer(tiny_model.hf_model)
    served.other_tokens = True
    model = load_model(served.address, tokenizer=byte_tokenizer)
    expected = Document(tiny_model, "After careful").lookahead(k=2, depth=4)
    assert_equal_lookaheads(Document(model, "After careful").lookahead(k=2, depth=4), expected)
    model.engine.close()  # type: ignore[attr-defined]
    served.close()


def test_the_window_moves_so_that_the_server_never_clips_an_answer(byte_tokenizer: Any, tiny_model: Model) -> None:
    served = CompletionsServer(tiny_model.hf_model, most_tokens=24)
    model = load_model(served.address, tokenizer=byte_tokenizer, settings=Settings())
    assert model.context_length == 23
    document = Document(model, CORPUS[0])
    result = document.lookahead(k=2, depth=6)
    assert all(len(branch.token_ids) == 6 or branch.ended for branch in result.branches)
    assert all(len(body["prompt"][0]) + body["max_tokens"] <= 24 for body in served.bodies)
    engine, tree = model.engine, TokenTree()
    head = tree.descend(tree.root, range(3, 23))
    assert isinstance(engine, RemoteEngine)
    with pytest.raises(LookaheadError, match=r"longer than the 24 tokens that .* reads"):
        list(engine.roll_out([head], 26, frozenset()))
    engine.close()
    served.close()
