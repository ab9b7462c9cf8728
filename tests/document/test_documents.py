"""Laws 3 and 4, and what a document promises: nothing is lost, nothing is computed twice, every id is exact."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch

from lookahead_core import CacheFull, Document, LookaheadError, Model, TextError, load_model
from lookahead_core.document.document import AcceptedTokens
from lookahead_core.engines import cache
from lookahead_core.settings import Settings
from tests.conftest import tiny_llama
from tests.support.families import FAMILIES, make, plain_rows, plain_rows_by_length
from tests.support.parameters import mostly_slow


def continuations(hf_model: Any, ids: list[int], k: int, depth: int, stop: frozenset[int]) -> list[list[int]]:
    """What k separate greedy runs give: a plain forward for each token, over everything so far."""
    (logits,) = plain_rows(hf_model, [ids])
    runs = [[token_id] for token_id in logits.topk(k).indices.tolist()]
    for _ in range(depth - 1):
        going = [run for run in runs if run[-1] not in stop]
        for run, logits in zip(going, plain_rows_by_length(hf_model, [[*ids, *run] for run in going]), strict=True):
            run.append(int(logits.argmax()))
    return runs


@pytest.mark.parametrize("family", mostly_slow(FAMILIES, 10))
def test_lookahead_is_the_k_greedy_continuations_that_k_separate_runs_give(family: str) -> None:
    hf_model = make(family)
    hf_model.generation_config.eos_token_id = [5, 17]
    model = load_model(hf_model, tokenizer=None)
    dice = random.Random(1)
    for k, depth in ((1, 6), (5, 10), (20, 3), (3, 1)):
        ids = [dice.randrange(96) for _ in range(20)]
        result = Document(model, token_ids=ids).lookahead(k=k, depth=depth)
        expected = continuations(hf_model, ids, k, depth, frozenset({5, 17}))
        assert [list(branch.token_ids) for branch in result.branches] == expected
        for branch in result.branches:
            assert branch.ended == (branch.token_ids[-1] in (5, 17))


def test_odds_are_the_plain_forwards(tiny_model: Model) -> None:
    document = Document(tiny_model, "the old keeper watched.")
    result = document.lookahead(k=4, depth=5)
    for branch in result.branches:
        paths = [document.token_ids + list(branch.token_ids[:length]) for length in range(len(branch.token_ids))]
        rows = plain_rows(tiny_model.hf_model, paths)
        expected = [
            float(torch.log_softmax(row, -1)[token_id]) for row, token_id in zip(rows, branch.token_ids, strict=True)
        ]
        assert branch.logprobs == pytest.approx(expected, abs=1e-4)
        assert branch.share == pytest.approx(math.exp(expected[0]), rel=1e-4)
        assert branch.probability == pytest.approx(math.exp(sum(expected)), rel=1e-3)
    assert result.coverage == pytest.approx(sum(branch.share for branch in result.branches))


def test_a_lookahead_without_banned_tokens_keeps_predictions_and_no_rows(tiny_model: Model) -> None:
    document = Document(tiny_model, "the old")
    for mode in ("likely", "forks", "best_first", "every_level"):
        document.lookahead(k=3, depth=3, mode=mode)
    assert {node.memo for node in document.tree.nodes()} == {None}


def test_live_slots_are_the_prompt_and_each_branch_but_its_leaves(tiny_model: Model) -> None:
    for length, k, depth in ((30, 5, 10), (7, 3, 4), (100, 20, 2)):
        dice = random.Random(length)
        document = Document(tiny_model, token_ids=[dice.randrange(2, 300) for _ in range(length)])
        result = document.lookahead(k=k, depth=depth)
        if not any(branch.ended for branch in result.branches):
            assert result.cost.live_slots == result.cost.tokens == length + k * (depth - 1)
            assert result.cost.passes == depth
            slot_bytes = 2 * 2 * 2 * 8 * 4
            assert result.cost.cache_bytes <= 2 * result.cost.live_slots * slot_bytes


def test_after_accepting_only_unseen_nodes_are_evaluated(tiny_model: Model) -> None:
    document = Document(tiny_model, "After careful")
    result = document.lookahead(k=5, depth=8)
    chosen = result.branches[2]
    assert not chosen.ended
    seen = {node for node in document.tree.nodes() if node.prediction is not None}
    document.accept(chosen, 3)
    again = document.lookahead(k=5, depth=8)
    evaluated = {node for node in document.tree.nodes() if node.prediction is not None} - seen
    assert again.cost.tokens == len(evaluated) > 0
    assert document.lookahead(k=5, depth=8).cost.passes == 0
    assert document.lookahead(k=3, depth=5).cost.passes == 0


@pytest.mark.parametrize("words", [5, 50, 150])
def test_typing_a_word_evaluates_that_word_and_the_new_branches_whatever_stood_before(
    tiny_model: Model, words: int
) -> None:
    document = Document(tiny_model, "once upon a time " * (words // 4) + "the keeper")
    document.lookahead(k=3, depth=4)
    before = len(document.token_ids)
    document.text += " again"
    result = document.lookahead(k=3, depth=4)
    new = len(document.token_ids) - before
    assert not any(branch.ended for branch in result.branches)
    assert result.cost.tokens <= new + 1 + 3 * 3, "the word, at most one token read again, and the branches"


def test_an_edit_that_matches_a_branch_never_accepted_finds_it_in_the_cache(tiny_model: Model) -> None:
    start = "After careful consideration of the"
    for text in (start + " sea", start + " sky", start + " risks,"):
        document = Document(tiny_model, start)
        document.lookahead(k=20, depth=2)
        grown = Document(tiny_model, text).token_ids
        assert grown[:-1] == document.token_ids or len(grown) > len(document.token_ids)
        # The branch is in the tree, as if it had been among the likeliest, and was never accepted.
        node = document.tree.descend(document.head, grown[len(document.token_ids) :])
        tiny_model.engine.evaluate([node])
        work = document.tree.work.passes
        document.text = text
        assert document.head is node
        document.predict()
        assert document.tree.work.passes == work
        document.text = start
        assert document.lookahead(k=20, depth=2).cost.passes == 0


def test_going_back_to_an_older_text_needs_no_pass_though_its_slots_were_freed(
    tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "TRIM_ABOVE", 100)
    document = Document(tiny_model, "the sea was")
    first = document.lookahead(k=4, depth=6)
    head = document.tree.head
    for number in range(20):
        document.text = f"{number}, and no other, was it"
        document.lookahead(k=4, depth=6)
    assert head not in document.tree.cache.slots
    assert document.tree.cache.used <= 200
    passes = document.tree.work.passes
    document.text = "the sea was"
    again = document.lookahead(k=4, depth=6)
    assert [branch.token_ids for branch in again.branches] == [branch.token_ids for branch in first.branches]
    assert document.tree.work.passes == passes
    document.lookahead(k=4, depth=7)
    assert document.tree.work.passes > passes, "deeper rows need the slots again"


def test_accepting_inserts_exactly_the_tokens_and_characters_shown(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea")
    result = document.lookahead(k=4, depth=6)
    for branch in result.branches:
        for piece_number, piece in enumerate(branch.pieces):
            fresh = Document(tiny_model, "the sea")
            shown = fresh.lookahead(k=4, depth=6).branches[result.branches.index(branch)]
            inserted = fresh.accept(shown, piece.tokens)
            assert inserted == "".join(piece.text for piece in branch.pieces[: piece_number + 1])
            assert fresh.text == "the sea" + inserted
            assert fresh.token_ids == document.token_ids + list(branch.token_ids[: piece.tokens])
            fresh.rewind(piece.tokens)
            assert (fresh.text, fresh.token_ids) == (document.text, document.token_ids)
            fresh.check()


def test_an_ending_is_a_branch_that_inserts_nothing(byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    first = Document(model, "the").predict().token_ids[1]
    hf_model = tiny_llama(len(byte_tokenizer), eos_token_id=first)
    document = Document(load_model(hf_model, tokenizer=byte_tokenizer), "the")
    branch = document.lookahead(k=3, depth=4).branches[1]
    assert branch.ended and branch.token_ids == (first,) and branch.text == "" and branch.pieces == ()
    assert document.accept(branch) == "" and document.text == "the"


def test_a_branch_of_an_older_text_is_refused_in_a_sentence(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea")
    branch = document.lookahead(k=2, depth=3).branches[0]
    document.text = "the sky"
    with pytest.raises(LookaheadError, match="look ahead again"):
        document.accept(branch)
    document.text = "the sea"
    document.accept(branch, 1)


@pytest.mark.parametrize("mode", ["likely", "every_level", "forks", "best_first", "diverse"])
def test_stopping_at_any_step_leaves_the_document_sound_and_keeps_what_was_computed(
    tiny_model: Model, mode: str
) -> None:
    full = Document(tiny_model, "the old")
    cost = full.lookahead(k=3, depth=5, mode=mode).cost
    for stop_after in range(1, cost.passes + 1):
        document = Document(tiny_model, "the old")
        steps = document.lookahead_steps(k=3, depth=5, mode=mode)
        for _ in range(stop_after):
            step = next(steps)
        steps.close()
        document.check()
        spent = step.result.cost.passes
        rest = document.lookahead(k=3, depth=5, mode=mode)
        assert spent + rest.cost.passes == cost.passes
        assert rest.branches == full.lookahead(k=3, depth=5, mode=mode).branches


def test_a_step_can_be_read_after_the_document_has_moved_on(tiny_model: Model) -> None:
    document = Document(tiny_model, "the old")
    steps = list(document.lookahead_steps(k=3, depth=5))
    expected = document.lookahead(k=3, depth=5).branches
    document.text = "something else 🙂"
    assert steps[-1].result.branches == expected


def test_a_long_text_is_read_in_chunks_with_a_step_for_each(byte_tokenizer: Any) -> None:
    hf_model = tiny_llama(len(byte_tokenizer), max_position_embeddings=4096)
    dice = random.Random(0)
    ids = [dice.randrange(2, 300) for _ in range(1500)]
    document = Document(load_model(hf_model, tokenizer=byte_tokenizer), token_ids=ids)
    left = [step.tokens_to_read for step in document.lookahead_steps(k=2, depth=2)]
    assert left[:3] == [988, 476, 0]
    assert document.tree.work.tokens == 1502
    row = document.predict(row=True).row
    (logits,) = plain_rows(hf_model, [ids])
    assert float((row - torch.log_softmax(logits, -1)).abs().max()) <= 1e-5 * float(logits.abs().max())


def test_a_text_longer_than_the_context_keeps_its_newest_part_and_says_so(byte_tokenizer: Any) -> None:
    hf_model = tiny_llama(len(byte_tokenizer), max_position_embeddings=64)
    document = Document(load_model(hf_model, tokenizer=byte_tokenizer), "the sea and the sky " * 40)
    result = document.lookahead(k=3, depth=8)
    assert 0 < result.seen_from < len(document.text)
    visible = document.text[result.seen_from :]
    assert 64 - 8 - 16 <= document.head.depth <= 64 - 8
    assert Document(document.model, visible).lookahead(k=3, depth=8).branches[0].text == result.branches[0].text
    costs = []
    for _ in range(12):
        document.accept(result.branches[0], 1)
        result = document.lookahead(k=3, depth=8)
        costs.append(result.cost.tokens)
        document.check()
    assert sum(cost > 30 for cost in costs) <= 2, "the window moves on a stride, not at every token"
    with pytest.raises(ValueError, match="depth is 64"):
        document.lookahead(depth=64)


def test_the_cache_stays_within_its_bound_by_forgetting_what_nobody_sees(byte_tokenizer: Any) -> None:
    slot_bytes = 2 * 2 * 2 * 8 * 4
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    model.engine.cache_bytes = 120 * slot_bytes  # type: ignore[attr-defined]
    dice = random.Random(0)
    documents = [Document(model, "the old keeper"), Document(model, "a small sea")]
    for _ in range(25):
        document = dice.choice(documents)
        result = document.lookahead(k=5, depth=6)
        alive = [branch for branch in result.branches if not branch.ended]
        document.accept(dice.choice(alive), 1)
        assert sum(cache.bytes for cache in model.engine._caches) <= model.engine.cache_bytes  # type: ignore[attr-defined]
        for each in documents:
            each.check()
        expected = continuations(model.hf_model, document.token_ids, 2, 3, model.end_token_ids)
        assert [list(branch.token_ids) for branch in document.lookahead(k=2, depth=3).branches] == expected


def test_a_document_that_rests_makes_room_for_another_and_is_read_again_when_its_turn_comes(
    byte_tokenizer: Any,
) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    model.engine.cache_bytes = 100 * 256  # type: ignore[attr-defined]
    dice = random.Random(0)
    texts = [[dice.randrange(2, 300) for _ in range(70)] for _ in range(2)]
    documents = [Document(model, token_ids=ids) for ids in texts]
    for turn, document in enumerate([*documents, *documents]):
        # What was predicted is kept though its slots are gone, so the second time asks for more than the first.
        k, depth = (2, 3) if turn < 2 else (3, 4)
        result = document.lookahead(k=k, depth=depth)
        assert result.cost.tokens > 70
        expected = continuations(model.hf_model, document.token_ids, k, depth, model.end_token_ids)
        assert [list(branch.token_ids) for branch in result.branches] == expected
        assert sum(cache.bytes for cache in model.engine._caches) <= 100 * 256  # type: ignore[attr-defined]
        for each in documents:
            each.check()


def test_a_branch_ends_at_an_end_token_though_the_text_once_went_on_behind_it(byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    end = Document(model, "the").predict().token_ids[0]
    model = load_model(tiny_llama(len(byte_tokenizer), eos_token_id=end), tokenizer=byte_tokenizer)
    start = model.tokenizer("the").input_ids
    document = Document(model, token_ids=[*start, end, 9, 9])
    document.lookahead(k=2, depth=3)
    document.rewind(2)
    document.predict()
    document.rewind(1)
    branch = document.lookahead(k=2, depth=5).branches[0]
    assert branch.token_ids == (end,)
    assert branch.ended


def test_rewind_without_a_number_takes_one_token_back(tiny_model: Model) -> None:
    document = Document(tiny_model, token_ids=[3, 1, 4, 1, 5])
    document.rewind()
    assert document.token_ids == [3, 1, 4, 1]


def test_what_the_model_sees_does_not_move_to_and_fro_near_the_end_of_its_context(byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer), max_position_embeddings=64), tokenizer=byte_tokenizer)
    dice = random.Random(0)
    document = Document(model, token_ids=[dice.randrange(2, 300) for _ in range(60)])
    result = document.lookahead(k=2, depth=8)
    depth = document.head.depth
    assert depth < 60
    document.predict()
    assert document.head.depth == depth
    document.accept(result.branches[0], 2)
    assert document.head.depth == depth + 2


def test_a_long_text_whose_room_was_taken_between_two_chunks_is_read_again_from_the_start(
    byte_tokenizer: Any,
) -> None:
    hf_model = tiny_llama(len(byte_tokenizer), max_position_embeddings=4096)
    model = load_model(hf_model, tokenizer=byte_tokenizer)
    model.engine.cache_bytes = 2000 * 256  # type: ignore[attr-defined]
    dice = random.Random(0)
    one, other = (Document(model, token_ids=[dice.randrange(2, 300) for _ in range(size)]) for size in (1500, 1700))
    steps = one.lookahead_steps(k=2, depth=2)
    next(steps)
    other.lookahead(k=2, depth=2)
    *_, last = steps
    one.check()
    other.check()
    expected = continuations(hf_model, one.token_ids, 2, 2, model.end_token_ids)
    assert [list(branch.token_ids) for branch in last.result.branches] == expected
    (logits,) = plain_rows(hf_model, [one.token_ids])
    row = one.predict(row=True).row
    assert float((row - torch.log_softmax(logits, -1)).abs().max()) <= 1e-5 * float(logits.abs().max())


@pytest.mark.slow
def test_everything_unseen_is_forgotten_before_a_cache_is_called_full(byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    model.engine.cache_bytes = 40 * 256  # type: ignore[attr-defined]
    document = Document(model)
    for number in range(300):
        document.text = f"{number} the"
        document.lookahead(k=20, depth=1)
        document.check()
        assert document.tree.cache.bytes <= 40 * 256


@pytest.mark.parametrize("engine", ["cached", "uncached"])
def test_a_document_forgets_the_oldest_of_what_nobody_sees(
    byte_tokenizer: Any, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookahead_core.document.document.MOST_NODES", 200)
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer, engine=engine)
    document = Document(model)
    for number in range(60):
        document.text = f"{number} the"
        document.lookahead(k=5, depth=3)
        document.check()
        assert document.tree.size <= 250


@pytest.mark.parametrize(("nodes", "left"), [(35, 35), (40, 40), (41, 30)])
def test_up_to_a_limit_all_nodes_are_kept_and_beyond_it_a_quarter_of_it_is_forgotten(
    tiny_model: Model, nodes: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookahead_core.document.document.MOST_NODES", 40)
    document = Document(tiny_model, token_ids=[5, 6, 7])
    document.predict()
    document.tree.descend(document.head, range(100, 100 + nodes))
    document.new_view()
    assert document.tree.size == 3 + left


@pytest.mark.parametrize("part", ["tree", "text", "cache", "head"])
def test_a_check_notices_what_is_wrong(tiny_model: Model, part: str) -> None:
    document = Document(tiny_model, "the old")
    document.lookahead(k=2, depth=2)
    document.check()
    if part == "tree":
        document.tree.size += 1
    elif part == "text":
        document.passage.text += "er"
    elif part == "cache":
        document.tree.cache.slots.popitem()
    else:
        document.tree.head = document.tree.root
    with pytest.raises(AssertionError):
        document.check()


def test_a_generator_left_behind_by_an_edit_says_so_and_touches_nothing(tiny_model: Model) -> None:
    document = Document(tiny_model, "the old")
    steps = document.lookahead_steps(k=3, depth=6)
    next(steps)
    next(steps)
    document.text = "something else"
    document.prune()
    with pytest.raises(LookaheadError, match="another lookahead of it has begun, while branches were growing"):
        next(steps)
    document.check()


def test_a_cache_too_small_for_the_text_says_so_and_loses_nothing(
    byte_tokenizer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer, settings=Settings(cache_mb=1))
    model.engine.cache_bytes = 20 * 256  # type: ignore[attr-defined]
    document = Document(model, "the sea")
    document.lookahead(k=2, depth=3)
    document.text = "the sea " * 30
    with pytest.raises(CacheFull, match="shorten the text, or ask for fewer or shorter branches"):
        document.lookahead(k=2, depth=3)
    assert "LOOKAHEAD_CACHE_MB" in caplog.text, "what the person who runs the server can do is in the log"
    assert document.text == "the sea " * 30
    document.text = "the sky"
    assert document.lookahead(k=2, depth=3).branches
    document.check()


def test_half_a_cache_of_holes_is_closed(tiny_model: Model) -> None:
    document = Document(tiny_model, "the old keeper")
    document.lookahead(k=10, depth=8)
    cache: Any = document.tree.cache
    before = cache.capacity
    document.tree.new_view()
    document.prune()
    assert cache.holes == 0 and cache.capacity < before
    document.check()
    assert len(cache.slots) == len(document.token_ids)


def test_without_a_tokenizer_there_are_ids_and_no_text() -> None:
    document = Document(load_model(make("llama"), tokenizer=None), token_ids=[1, 2, 3])
    branch = document.lookahead(k=2, depth=3).branches[0]
    document.accept(branch, 2)
    assert document.token_ids == [1, 2, 3, *branch.token_ids[:2]]
    with pytest.raises(TextError, match="without a tokenizer"):
        _ = document.text
    with pytest.raises(TextError, match="without a tokenizer"):
        Document(document.model, "text")
    with pytest.raises(LookaheadError, match="no start token"):
        Document(document.model, token_ids=[]).lookahead()


def test_an_empty_text_starts_from_the_start_token(byte_tokenizer: Any, tiny_model: Model) -> None:
    document = Document(tiny_model)
    assert document.text == "" and document.token_ids == [byte_tokenizer.bos_token_id]
    branch = document.lookahead(k=3, depth=3).branches[0]
    document.accept(branch)
    assert document.text == branch.text
    document.text = "the"
    assert byte_tokenizer.bos_token_id not in document.token_ids
    document.text = ""
    assert document.token_ids == [byte_tokenizer.bos_token_id]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"k": 0}, "k is 0, and must be a whole number from 1 to 20"),
        ({"k": 21}, "k is 21"),
        ({"k": 2.5}, "k is 2.5"),
        ({"k": True}, "k is True"),
        ({"depth": 1000}, "depth is 1000, and must be a whole number from 1 to 100"),
        ({"mode": "wild"}, "mode is 'wild', and must be one of likely"),
        ({"cutoff": -1}, "cutoff is -1"),
        ({"cutoff": float("nan")}, "cutoff is nan"),
        ({"slope": 0.5}, "slope is 0.5"),
        ({"budget": 0}, "budget is 0"),
        ({"heal": 1}, "heal is 1"),
        ({"mode": "every_level", "k": 20, "branch_levels": 3}, "branch_levels is 3"),
        ({"colour": 1}, "colour is not an option"),
    ],
)
def test_an_option_out_of_range_is_named_in_a_sentence(
    tiny_model: Model, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match=sentence.replace("(", "\\(")):
        Document(tiny_model, "the").lookahead(**options)


def test_hostile_arguments_of_a_document_get_a_sentence(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea")
    branch = document.lookahead(k=1, depth=2).branches[0]
    for call, sentence in (
        (lambda: document.accept(branch, 99), "tokens is 99"),
        (lambda: document.accept(branch, -1), "tokens is -1"),
        (lambda: document.accept([10**9]), "token_ids holds 1000000000"),
        (lambda: document.accept(None), "token_ids is None, and must be a list of token ids"),
        (lambda: Document(document.model, token_ids=5), "token_ids is 5"),
        (lambda: Document(document.model, opening=3), "opening is 3"),
        (lambda: Document(document.model, opening="abc"), "opening holds 'a'"),
        (lambda: Document(document.model, opening=[10**9]), "opening holds 1000000000"),
        (lambda: Document(document.model, opening=[-5]), "opening holds -5"),
        (lambda: Document("gpt2", "x"), "model is str, and must be a model that load_model returned"),
        (lambda: Document(document.model, tree="foo"), "tree is str, and must be the tree of a document"),
        (lambda: document.accept([True]), "token_ids holds True"),
        (lambda: document.accept([1.5]), "token_ids holds 1.5"),
        (lambda: document.accept(torch.tensor([[1, 2]])), "token_ids holds tensor"),
        (lambda: document.rewind(10**6), "tokens is 1000000"),
        (lambda: setattr(document, "text", None), "text is NoneType"),
        (lambda: Document(tiny_model, "a", token_ids=[1]), "both given"),
    ):
        with pytest.raises(ValueError, match=sentence):
            call()
    assert document.text == "the sea"
    assert Document(tiny_model, token_ids=list(torch.tensor([5, 6]))).token_ids == [5, 6]


def test_a_client_that_undoes_an_accept_gets_the_branches_that_it_had(tiny_model: Model) -> None:
    """The last token before them was accepted, so it is not re-opened: its word was chosen, not typed."""
    document, codec = Document(tiny_model), tiny_model.codec
    letter = next(token_id for token_id in range(400) if codec.bytes_of(token_id).isalpha())
    document.follow("The old keeper ")
    accepted = AcceptedTokens(len(document.text), (letter,))
    before = "The old keeper " + codec.bytes_of(letter).decode()
    more = tuple(token.token_id for token in codec.encode("and so", continuing=True))
    document.follow(before, [accepted])
    had = document.lookahead(k=3, depth=3, heal=True).branches
    document.follow(before + "and so", [AcceptedTokens(len(before), more)])
    document.follow(before)
    assert [branch.token_ids for branch in document.lookahead(k=3, depth=3, heal=True).branches] == [
        branch.token_ids for branch in had
    ]
    assert not document.reopens


def test_a_text_that_cannot_be_followed_leaves_the_document_as_it_is(tiny_model: Model) -> None:
    document = Document(tiny_model, "The sea")
    result = document.lookahead(k=2, depth=2)
    accepted = [AcceptedTokens(7, result.branches[0].token_ids)]
    followed: Any
    for followed, error in (
        ("The sea" + result.branches[0].text + "\ud800", TextError),
        (5, ValueError),
        (None, ValueError),
    ):
        with pytest.raises(error):
            document.follow(followed, accepted)
        assert document.text == "The sea"
        document.check()
        assert document.accept(result.branches[0], tokens=0) == ""


def test_integers_of_numpy_count_tokens(tiny_model: Model) -> None:
    np = pytest.importorskip("numpy")
    document = Document(tiny_model, "The sea")
    branch = document.lookahead(k=2, depth=3, banned={np.int64(9)}).branches[0]
    assert document.lookahead(k=2, depth=3, banned=np.array([9])).branches[0].token_ids == branch.token_ids
    whole, _ = document.text, document.accept(branch, tokens=np.int64(2))
    document.rewind(np.int64(2))
    assert document.text == whole
    with pytest.raises(ValueError, match="must hold whole numbers from 0"):
        document.lookahead(banned={np.int64(-1)})
