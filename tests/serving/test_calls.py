"""The calls as functions: what they say is what the model says, nothing is read twice, and nobody hears of another."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from lookahead_core import Document, LookaheadError, Model, compress, load_model
from lookahead_core.serving.calls import Calls
from lookahead_core.serving.tree_pool import TreePool
from lookahead_core.text.chat import tokenize_conversation
from tests.conftest import CORPUS, byte_level, tiny_llama
from tests.support.scripted_model import parrot
from tests.support.witness import around
from tests.text.test_chat import PLAIN, PLAIN_TEXT_TURNS

TALK = [{"role": "user", "content": "The sea <|end|> 🙂"}, {"role": "assistant", "content": "The old "}]


def chatty(tokenizer: Any, template: str | None = PLAIN, seed: int = 0) -> Model:
    made = copy.deepcopy(tokenizer)
    made.chat_template = template
    return load_model(tiny_llama(len(tokenizer), seed, max_position_embeddings=4096), tokenizer=made)


def impossible(tokenizer: Any) -> Model:
    """A model that holds most tokens to be impossible: all but those of ASCII."""
    hf_model, made = tiny_llama(len(tokenizer), 0, max_position_embeddings=4096), copy.deepcopy(tokenizer)
    made.chat_template = PLAIN
    allowed = tokenizer("seaTh odk.", add_special_tokens=False).input_ids
    bias = torch.full((len(tokenizer),), -math.inf)
    bias[allowed] = 0.0
    hf_model.lm_head.bias = torch.nn.Parameter(bias)
    return load_model(hf_model, tokenizer=made)


@pytest.fixture(scope="module")
def model(byte_tokenizer: Any) -> Model:
    return chatty(byte_tokenizer)


@pytest.fixture
def calls(model: Model) -> Calls:
    return Calls(model)


def rewriting_ids(model: Model, doc: str, prompt: str, written: str) -> list[int]:
    """What the prototype gives the model: transformers' own template, and the text in progress after it."""
    messages = [{"role": "user", "content": f"{prompt}\n\n{doc}"}]
    opened = model.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    return [*opened, *model.tokenizer(written, add_special_tokens=False).input_ids]


def plain_rows(model: Model, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        return model.hf_model(torch.tensor([ids])).logits[0].float().log_softmax(-1)


def greedy(model: Model, ids: list[int], depth: int) -> list[int]:
    for _ in range(depth):
        ids = [*ids, int(plain_rows(model, ids)[-1].argmax())]
        if ids[-1] in model.end_token_ids:
            break
    return ids


@pytest.mark.parametrize("depth", [1, 2, 7])
@pytest.mark.parametrize("name", ["depth", "n_future_tokens"])
def test_next_token_is_the_likeliest_tokens_each_gone_on_with_greedily(
    calls: Calls, model: Model, depth: int, name: str
) -> None:
    found = calls.next_token("A sea.", "Shorten it.", "The old", k=4, **{name: depth})
    ids = rewriting_ids(model, "A sea.", "Shorten it.", "The old")
    row = plain_rows(model, ids)[-1]
    firsts = row.topk(4).indices.tolist()
    expected = [greedy(model, [*ids, one], depth - 1 if one not in model.end_token_ids else 0) for one in firsts]
    assert [branch["ids"] for branch in found["branches"]] == [path[len(ids) :] for path in expected]
    assert [branch["share"] for branch in found["branches"]] == pytest.approx(row.exp()[firsts].tolist(), rel=1e-4)
    assert found["next_tokens"] == [branch["text"] for branch in found["branches"]]


def test_a_text_without_a_document_or_a_beginning_is_predicted_too(calls: Calls) -> None:
    assert len(calls.next_token("", "Write a poem.", "")["next_tokens"]) == 5


def test_logprobs_are_a_plain_forwards_at_every_token_the_template_included(calls: Calls, model: Model) -> None:
    lines = calls.logprobs(messages=TALK, k=3)["logprobs"]
    ids = [line["id"] for line in lines[:-1]]
    rows = plain_rows(model, ids)
    assert lines[0]["logprobs"] == [] and lines[-1]["token"] is None and lines[-1]["id"] is None
    assert "".join(line["token"] for line in lines[:-1]).startswith("<|start|>user\nThe sea <|end|> ")
    for place, line in enumerate(lines[1:], 1):
        row = rows[place - 1]
        kept = [one["id"] for one in line["alternatives"][:3]]
        assert kept == row.topk(3).indices.tolist()
        for one in line["alternatives"]:
            assert one["logprob"] == pytest.approx(float(row[one["id"]]), abs=1e-4)
        if line["id"] is not None:
            came = float(row[line["id"]])
            assert line["id"] in [one["id"] for one in line["alternatives"]], "the token that came is among them"
            assert line["logprob"] == pytest.approx(came, abs=1e-4)
            assert line["rank"] == int((row > came).sum()) + 1
            assert len(line["alternatives"]) == 3 + (line["id"] not in kept)


def test_repeated_logprobs_cost_no_pass_and_are_the_same(calls: Calls, model: Model) -> None:
    first = calls.logprobs("The sea and the sky 🙂", k=5)
    passes = model.engine.passes
    assert calls.logprobs("The sea and the sky 🙂", k=5) == first
    assert model.engine.passes == passes


def test_a_text_begins_with_its_first_token(calls: Calls) -> None:
    lines = calls.logprobs("The sea")["logprobs"]
    assert lines[0]["token"] == "The" or lines[0]["token"] == "T"
    assert "".join(line["token"] for line in lines[:-1]) == "The sea"


def test_alternatives_with_equal_texts_stay_apart_by_their_ids(calls: Calls) -> None:
    lines = calls.logprobs("🙂🙂", k=50)["logprobs"]
    same = [[one["text"] for one in line["alternatives"]] for line in lines]
    assert any(len(set(texts)) < len(texts) for texts in same), "parts of characters look alike"
    for line in lines:
        ids = [one["id"] for one in line["alternatives"]]
        assert len(set(ids)) == len(ids)
        for text, logprob in dict(line["logprobs"]).items():
            assert logprob == max(one["logprob"] for one in line["alternatives"] if one["text"] == text)


def test_all_tokens_are_evaluated_in_chunks_of_128_and_each_step_says_how_many_are_done(calls: Calls) -> None:
    with calls.open_document("the sea and the sky " * 60) as opened:
        total = len(opened.tokens)
        assert total > 256
        assert list(opened.evaluate_steps()) == [*range(128, total, 128), total]
        assert list(opened.evaluate_steps()) == []


@pytest.mark.parametrize("k", [1, 3])
def test_each_alternative_comes_once_and_a_tokens_own_is_added_only_if_it_is_not_among_them(
    calls: Calls, model: Model, k: int
) -> None:
    start = model.tokenizer("The sea").input_ids
    agreed = model.codec.bytes_of(int(plain_rows(model, start)[-1].argmax())).decode()
    (first, *entries, last) = calls.logprobs(text=f"The sea{agreed} was grey", k=k)["logprobs"]
    counts = {rank: [] for rank in ("first", "later")}
    for entry in (*entries, last):
        ids = [one["id"] for one in entry["alternatives"]]
        assert len(set(ids)) == len(ids) == k + (entry["id"] is not None and entry["rank"] > k)
        counts["first" if entry["rank"] == 1 else "later"].append(len(ids))
    assert first["alternatives"][:-1] == [] and all(counts.values())


def test_a_token_that_is_not_among_the_kept_ones_has_one_rank_with_those_of_equal_probability() -> None:
    model = parrot(["the sea was grey"])
    entries = Calls(model).logprobs(text=" grey the sea was")["logprobs"][:-1]
    rows = plain_rows(model, [entry["id"] for entry in entries])
    unseen = [place for place in range(1, len(entries)) if entries[place]["logprob"] < -10]
    assert unseen
    for place in unseen:
        row, token_id = rows[place - 1], entries[place]["id"]
        assert token_id > 100 and int((row == row[token_id]).sum()) > 100
        assert entries[place]["rank"] == 1 + int((row > row[token_id]).sum())


@pytest.mark.parametrize(("nodes", "left"), [(9, 9), (10, 10), (11, 10), (30, 10)])
def test_after_a_call_its_tree_forgets_the_nodes_beyond_the_limit(
    model: Model, nodes: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookahead_core.serving.call_document.MOST_NODES", 10)
    with Calls(model).open_document("The sea") as opened:
        opened.document.predict()
        tree, length = opened.document.tree, len(opened.tokens)
        tree.descend(opened.document.head, range(100, 100 + nodes))
    assert tree.size == length + left


def test_ten_clicks_read_the_source_once(calls: Calls, model: Model) -> None:
    source, text, tokens = "The old keeper climbed the stairs again and again. " * 8, "", []
    for _ in range(10):
        [tree] = calls.tree_pool.free_trees or [None]
        before = tree.work.tokens if tree is not None else 0
        told = calls.next_token(source, "Shorten it.", text, k=3, depth=3)
        [tree] = calls.tree_pool.free_trees
        tokens.append(tree.work.tokens - before)
        text += next((one for one in told["next_tokens"] if one), " sea")
    assert tokens[0] > 100
    assert max(tokens[1:]) < 30


def test_a_turn_that_is_passed_on_reads_the_new_turn_only(calls: Calls, model: Model) -> None:
    talk = [
        {"role": "user", "content": "The old keeper climbed the stairs. " * 10},
        {"role": "assistant", "content": "A"},
    ]
    calls.continue_messages(talk)
    [tree] = calls.tree_pool.free_trees
    before = tree.work.tokens
    calls.continue_messages([*talk, {"role": "user", "content": "And"}])
    assert calls.tree_pool.free_trees == [tree]
    assert tree.work.tokens - before < 60


def test_the_calls_of_others_change_no_answer(model: Model, calls: Calls) -> None:
    for secret in ("The secret word is lighthouse", "The secret word is keeper"):
        calls.generate(secret, max_new_tokens=8)
        calls.next_token(secret, "Shorten.", secret)
        calls.logprobs(secret)
    for name, given in (
        ("lookahead", {"text": "The secret word is"}),
        ("generate", {"text": "The secret word is", "temperature": 1.0, "seed": 3, "max_new_tokens": 12}),
        ("logprobs", {"text": "The secret word is"}),
        ("beam_search", {"text": "The secret word is"}),
    ):
        shared, alone = getattr(calls, name)(**given), getattr(Calls(model), name)(**given)
        assert texts_of(shared) == texts_of(alone)


def texts_of(answer: Any) -> Any:
    """An answer without its figures, which grouping may move in the last digits."""
    if isinstance(answer, dict):
        return {key: texts_of(value) for key, value in answer.items() if not isinstance(value, float)}
    return [texts_of(one) for one in answer if not isinstance(one, float)] if isinstance(answer, list) else answer


def test_two_calls_at_once_with_one_beginning_do_not_disturb_each_other(calls: Calls) -> None:
    expected = calls.lookahead("The sea", depth=6)
    runs = [calls.steps("lookahead", {"text": "The sea", "depth": 6}) for _ in range(3)]
    answers = [None] * 3
    while any(answer is None for answer in answers):
        answers = [next(run, answer) or answer for run, answer in zip(runs, answers, strict=True)]
    assert [texts_of(answer) for answer in answers] == [texts_of(expected)] * 3


def test_a_tree_pool_is_bounded_and_drops_idle_trees() -> None:
    now = [0.0]
    pool = TreePool(capacity=2, max_idle_seconds=10, clock=lambda: now[0])
    for first in range(4):
        with pool.borrow([first]) as tree:
            tree.descend(tree.root, [first, 7])
    assert len(pool) == 2
    with pool.borrow([3, 7, 8]) as tree:
        assert 3 in tree.root.children
        with pool.borrow([3, 7]) as other:
            assert other is not tree, "a tree has one user at a time"
    now[0] = 11.0
    with pool.borrow([3]) as fresh:
        assert not fresh.root.children


@pytest.mark.parametrize("most", [0, 1, 3])
def test_a_full_pool_keeps_the_trees_used_last(most: int) -> None:
    pool = TreePool(capacity=most)
    for first in range(5):
        with pool.borrow([first]) as tree:
            tree.descend(tree.root, [first, 7])
    assert len(pool) == most
    assert [next(iter(tree.root.children)) for tree in pool.free_trees] == list(range(5 - most, 5))


def test_calls_use_the_pool_that_they_are_made_with(model: Model) -> None:
    for most in (0, 1):
        pool = TreePool(capacity=most)
        calls = Calls(model, pool)
        for text in ("The sea", "After", "Emoji"):
            calls.logprobs(text)
        assert calls.tree_pool is pool and len(pool) == most


@pytest.mark.parametrize("most", [-1, 2.5, True, "8"])
def test_a_pool_size_that_is_no_whole_number_is_refused(most: Any) -> None:
    with pytest.raises(ValueError, match=r"capacity is .* and must be a whole number from 0"):
        TreePool(capacity=most)


def test_the_tree_that_knows_most_tokens_is_lent_if_it_knows_more_than_half() -> None:
    pool, now = TreePool(), []
    for path in ([1, 2, 3], [1, 2, 3, 4, 5], [9]):
        with pool.borrow([77]) as tree:
            tree.descend(tree.root, path)
            now.append(tree)
    with pool.borrow([1, 2, 3, 4, 6]) as tree:
        assert tree is now[1]
    with pool.borrow([1, 2, 3, 7, 7]) as tree, pool.borrow([1, 2, 3, 7, 7]) as other:
        assert {id(tree), id(other)} == {id(now[0]), id(now[1])}
    with pool.borrow([1, 2, 3, 7, 7, 7]) as tree:
        assert tree not in now, "half of them is not more than half"
    with pool.borrow([]) as tree:
        assert tree not in now


def test_a_tree_is_lent_to_its_owner_only() -> None:
    pool = TreePool()
    with pool.borrow([1, 2], "Ada") as hers:
        hers.descend(hers.root, [1, 2])
    with pool.borrow([1, 2], "Ben") as his, pool.borrow([1, 2]) as nobodys:
        assert len({id(hers), id(his), id(nobodys)}) == 3 and not his.root.children
        assert his.session_key != hers.session_key
    with pool.borrow([1, 2], "Ada") as again:
        assert again is hers


def test_what_one_owner_has_asked_saves_another_no_work(model: Model) -> None:
    read: list[int] = []
    counted, pool = around(model, lambda: read.append(1)), TreePool()
    passes = []
    for owner in ("Ada", "Ben", "Ada"):
        read.clear()
        Calls(counted, pool, owner=owner).logprobs("The sea was very quiet")
        passes.append(len(read))
    assert passes[0] == passes[1] > passes[2]


def test_a_tree_is_dropped_after_the_maximum_idle_time() -> None:
    now = [0.0]
    pool = TreePool(max_idle_seconds=10, clock=lambda: now[0])
    with pool.borrow([1]) as tree:
        tree.descend(tree.root, [1])
    now[0] = 10.0
    with pool.borrow([1]) as again:
        assert again is tree
    now[0] = 20.5
    with pool.borrow([1]) as fresh:
        assert fresh is not tree and len(pool) == 0
    with pool.borrow([5]):
        now[0] = 31.0
    assert len(pool) == 1, "what has been idle for too long goes when another comes back"


def test_an_ending_is_a_branch_without_text_that_says_so() -> None:
    model = parrot(["The sea."])
    model.tokenizer.chat_template = model.codec.tokenizer.chat_template = PLAIN
    found = Calls(model).continue_messages([{"role": "user", "content": "The sea."}], 3, 4)["continuations"]
    assert (found[0]["doc_text"], found[0]["ended"]) == ("", True)
    assert found[0]["ids"] == [0]


def test_the_end_of_a_turn_ends_a_branch_though_the_model_ends_texts_with_another_token() -> None:
    model = parrot(["The sea<|start|>and"])
    model.tokenizer.chat_template = model.codec.tokenizer.chat_template = PLAIN.replace("<|end|>", "<|start|>")
    found = Calls(model).continue_messages([{"role": "user", "content": "The"}], 1, 9)["continuations"][0]
    assert found["ids"][-1] == 1 and found["ended"]
    assert found["doc_text"] == " sea"


def test_a_template_in_plain_words_never_leaks_into_a_branch() -> None:
    said = "Yes.\n\n### user:\nMore\n\n### user:\nMore"
    model = parrot([said], ["Yes.", "\n\n### user:\n"])
    model.tokenizer.chat_template = model.codec.tokenizer.chat_template = PLAIN_TEXT_TURNS
    talk = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "Yes."}]
    found = Calls(model).continue_messages(talk, 3, 4)["continuations"]
    assert found[0]["doc_text"] == "" and found[0]["ended"]
    assert all("###" not in one["doc_text"] for one in found)
    spoken = Calls(model).generate(messages=talk, max_new_tokens=8)
    assert "###" not in spoken["text"]
    assert (spoken["finish"], spoken["ended"]) == ("end", True)
    assert Calls(model).generate(messages=talk, stop=["Yes"], max_new_tokens=8)["finish"] == "end"


def test_what_a_person_typed_may_have_begun_the_words_that_end_a_message() -> None:
    model = parrot(["Yes.\n\n### user:\nMore"], ["Yes.\n\n", "### user:\n"])
    model.tokenizer.chat_template = model.codec.tokenizer.chat_template = PLAIN_TEXT_TURNS
    talk = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "Yes.\n\n"}]
    found = Calls(model).continue_messages(talk, 1, 4)["continuations"]
    assert (found[0]["doc_text"], found[0]["ended"]) == ("", True)
    beams = Calls(model).beam_search(messages=talk, num_beams=1, max_new_tokens=4)["branches"]
    assert (beams[0]["text"], beams[0]["ended"]) == ("", True)


def test_highlights_cut_the_exact_characters_with_a_plain_forwards_loss(calls: Calls, model: Model) -> None:
    doc = "The 🙂 sea, naïve."
    lines = calls.highlights(doc, "Shorten it.")["highlights"]
    assert "".join(doc[line["start"] : line["end"]] for line in lines) == doc
    ids = rewriting_ids(model, doc, "Shorten it.", doc)
    rows, place = plain_rows(model, ids), len(ids) - len(model.tokenizer(doc, add_special_tokens=False).input_ids)
    for line in lines:
        loss = 0.0
        for token_id in line["ids"]:
            loss -= float(rows[place - 1][token_id])
            place += 1
        assert line["token_loss"] == pytest.approx(loss, abs=1e-3)
        assert line["token"] == doc[line["start"] : line["end"]] and len(line["topk_tokens"]) == 5


def test_generate_and_beam_search_are_the_documents_own(calls: Calls, model: Model) -> None:
    document = Document(model, "The sea and")
    ids = [step.token_id for step in document.stream(max_new_tokens=9)]
    assert calls.generate("The sea and", max_new_tokens=9)["ids"] == ids
    beams = document.beam_search(num_beams=3, max_new_tokens=5).branches
    found = calls.beam_search("The sea and", num_beams=3, max_new_tokens=5)["branches"]
    assert [one["ids"] for one in found] == [list(beam.token_ids) for beam in beams]


def test_as_many_revisions_as_requested_are_returned_and_the_seed_decides(calls: Calls) -> None:
    ask = {"prompt": "Shorten it.", "doc": "The sea.", "n": 3, "max_length": 6}
    one, same, other = calls.gen_revisions(**ask), calls.gen_revisions(**ask), calls.gen_revisions(**ask, seed=5)
    assert one["ok"] and len(one["revised_docs"]) == 3
    assert one == same or texts_of(one) == texts_of(same)
    assert texts_of(one) != texts_of(other)


@pytest.mark.parametrize(
    ("name", "given", "default"),
    [
        ("next_token", {"original_doc": "A sea.", "prompt": "Go", "doc_in_progress": "The"}, {"k": 5, "depth": 2}),
        ("continue_messages", {"messages": TALK}, {"n_branch_tokens": 5, "n_future_tokens": 5}),
        ("logprobs", {"text": "The sea"}, {"k": 5}),
        (
            "lookahead",
            {"text": "The old keep"},
            {"k": 5, "depth": 5, "mode": "likely", "until": "tokens", "heal": False},
        ),
        ("lookahead", {"text": "The", "mode": "sampled"}, {"temperature": 1.0, "top_p": 1.0, "seed": 0}),
        ("generate", {"text": "The old"}, {"max_new_tokens": 40, "temperature": 0, "stop": []}),
        ("generate", {"text": "The old", "seed": 3}, {"temperature": 1.0, "top_k": 0, "top_p": 1.0}),
        ("beam_search", {"text": "The old"}, {"num_beams": 5, "max_new_tokens": 10, "length_penalty": 1.0}),
        ("gen_revisions", {"prompt": "Go", "doc": "A sea.", "max_length": 5}, {"n": 5, "seed": 0}),
        ("highlights", {"doc": "The sea"}, {"prompt": "Rewrite this document to be more concise.", "k": 5}),
        ("highlights", {"doc": "The sea"}, {"updated_doc": " \n"}),
    ],
)
def test_what_is_left_out_of_a_call_is_as_the_documents_say(
    model: Model, name: str, given: dict[str, Any], default: dict[str, Any]
) -> None:
    bare, full = getattr(Calls(model), name)(**given), getattr(Calls(model), name)(**given, **default)
    assert texts_of(bare) == texts_of(full) and bare.keys() == full.keys()


def test_alternatives_are_counted_under_either_name_and_what_lies_ahead_changes_nothing(calls: Calls) -> None:
    for count in (1, 7):
        lines = calls.logprobs("The sea", n_branch_tokens=count, n_future_tokens=9)["logprobs"]
        assert len(lines[-1]["alternatives"]) == count
        assert texts_of(lines) == texts_of(calls.logprobs("The sea", k=count)["logprobs"])
    for wrong in (0, 51):
        with pytest.raises(ValueError, match=f"k is {wrong}, and must be a whole number from 1 to 50"):
            calls.logprobs("The sea", n_branch_tokens=wrong)
    assert len(calls.logprobs("The sea", k=50)["logprobs"][-1]["alternatives"]) == 50


def test_revisions_are_streams_of_one_seed_drawn_as_the_prototype_drew_them(calls: Calls, model: Model) -> None:
    ids = rewriting_ids(model, "The sea.", "Shorten it.", "")
    ending = replace(model, end_token_ids=model.end_token_ids | {0})
    found = calls.gen_revisions("Shorten it.", "The sea.", n=2, max_length=12, seed=4)["revised_docs"]
    for number, one in enumerate(found):
        options = {"temperature": 0.5, "top_k": 50, "top_p": 0.95, "seed": 4, "stream": number}
        stream = Document(ending, token_ids=ids).stream(max_new_tokens=12, **options)
        assert one["ids"] == [step.token_id for step in stream]


def test_a_start_token_is_reported_by_its_name_before_all_characters(fallback_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(fallback_tokenizer), eos_token_id=2), tokenizer=fallback_tokenizer)
    first, second, *_ = Calls(model).logprobs("the sea 🙂")["logprobs"]
    assert (first["token"], first["id"], first["start"], first["end"], first["message"]) == ("<s>", 1, 0, 0, None)
    assert (first["logprob"], first["rank"], first["alternatives"]) == (None, None, [])
    assert (second["start"], second["message"]) == (0, 0) and second["logprob"] is not None
    (empty, after) = Calls(model).logprobs("")["logprobs"]
    assert (empty["token"], after["token"], after["start"], after["end"]) == ("<s>", None, 0, 0)
    assert len(after["alternatives"]) == 5


def test_an_empty_text_without_a_start_token_is_refused() -> None:
    bare = tiny_llama(400)
    model = load_model(bare, tokenizer=byte_level(CORPUS))
    model = replace(model, start_ids=())
    with pytest.raises(LookaheadError, match="The text is empty, and this model has no start token"):
        Calls(model).logprobs("")


def test_revisions_end_where_the_template_ends_a_message_in_plain_words() -> None:
    words = ["### assistant:\n", "Yes.", "\n\n### user:\n"]
    model = parrot(["### assistant:\nYes.\n\n### user:\nMore"], words)
    model.tokenizer.chat_template = model.codec.tokenizer.chat_template = PLAIN_TEXT_TURNS
    found = Calls(model).gen_revisions("Go", "on", n=3, max_length=8)["revised_docs"]
    assert [(one["doc_text"], one["text"], one["finish"], one["ended"]) for one in found] == [
        ("Yes.",) * 2 + ("end", True)
    ] * 3
    (cut,) = Calls(model).gen_revisions("Go", "on", n=1, max_length=1)["revised_docs"]
    assert (cut["doc_text"], cut["finish"], cut["ended"]) == ("Yes.", "length", False)


@pytest.mark.parametrize("n", [1, 20])
def test_up_to_twenty_revisions_may_be_requested(calls: Calls, n: int) -> None:
    found = calls.gen_revisions("Shorten it.", "The sea.", n=n, max_length=2)["revised_docs"]
    assert len(found) == n and all(one["doc_text"] == one["text"] for one in found)
    for wrong in (0, 21, -n, True, 2.0):
        with pytest.raises(ValueError, match=f"n is {wrong}, and must be a whole number from 1 to 20"):
            calls.gen_revisions("Shorten it.", "The sea.", n=wrong)


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("lookahead", {}, "Give either text or messages"),
        ("lookahead", {"text": "a", "messages": TALK}, "Give either text or messages"),
        ("lookahead", {"text": 7}, "text is int"),
        ("lookahead", {"text": "a", "k": -1}, "k is -1"),
        ("next_token", {"original_doc": 5, "prompt": "", "doc_in_progress": ""}, "^original_doc is int"),
        ("next_token", {"original_doc": "", "prompt": "", "doc_in_progress": 7}, "^doc_in_progress is int"),
        ("next_token", {"original_doc": "", "prompt": 7, "doc_in_progress": ""}, "^prompt is int"),
        ("highlights", {"doc": 5}, "^doc is int"),
        ("highlights", {"doc": 5, "updated_doc": "a"}, "^doc is int"),
        ("highlights", {"doc": "a", "updated_doc": 7}, "^updated_doc is int"),
        ("highlights", {"doc": "a", "updated_doc": 0}, "^updated_doc is int"),
        ("gen_revisions", {"prompt": "p", "doc": 5}, "^doc is int"),
        ("logprobs", {"text": "a", "k": 0}, "k is 0"),
        ("logprobs", {"text": "sea " * 5000}, "this model sees 4,096"),
        ("next_token", {"original_doc": "sea " * 5000, "prompt": "p", "doc_in_progress": ""}, "shorten"),
        ("generate", {"text": "a", "stop": "b"}, "stop must be a list"),
        ("continue_messages", {"messages": []}, "At least one message must be provided."),
    ],
)
def test_an_invalid_call_is_refused_with_a_sentence(calls: Calls, name: str, given: Any, sentence: str) -> None:
    with pytest.raises((ValueError, LookaheadError), match=sentence):
        getattr(calls, name)(**given)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("logprobs", {"text": "The sea 🙂"}),
        ("logprobs", {"messages": TALK, "k": 50}),
        ("highlights", {"doc": "The 🙂 sea."}),
        ("next_token", {"original_doc": "The 🙂.", "prompt": "p", "doc_in_progress": "", "k": 20}),
        ("lookahead", {"text": "The sea", "k": 20, "depth": 3}),
        ("generate", {"text": "The sea 🙂", "max_new_tokens": 5}),
        ("beam_search", {"text": "The sea", "num_beams": 20, "max_new_tokens": 3}),
    ],
)
def test_what_is_impossible_is_plain_json_without_a_number(byte_tokenizer: Any, name: str, given: Any) -> None:
    answer = getattr(Calls(impossible(byte_tokenizer)), name)(**given)
    said = json.dumps(answer, allow_nan=False)
    assert name not in ("logprobs", "highlights") or "null" in said


def test_a_character_of_several_tokens_that_the_model_agreed_with_is_the_likeliest() -> None:
    model = parrot(["x🦊", *CORPUS[:2] * 3])
    model.tokenizer.chat_template = model.codec.tokenizer.chat_template = PLAIN
    fox = Calls(model).highlights("x🦊")["highlights"][-1]
    assert (fox["token"], fox["rank"]) == ("🦊", 1) and len(fox["ids"]) > 1
    assert fox["most_likely_token"] == "🦊"


def test_where_the_model_would_have_gone_elsewhere_the_likeliest_is_another(calls: Calls) -> None:
    lines = calls.highlights("The old sea and naïve 🙂 stairs.")["highlights"]
    differing = [line for line in lines if line["rank"] > 1]
    assert differing and all(line["most_likely_token"] == line["topk_tokens"][0] for line in differing)
    assert all(line["most_likely_token"] == line["token"] for line in lines if line["rank"] == 1)


@pytest.mark.parametrize(
    ("name", "options"), [("generate", {"max_new_tokens": 20}), ("beam_search", {"num_beams": 2, "max_new_tokens": 20})]
)
def test_a_text_near_the_end_of_the_context_is_read_once(
    byte_tokenizer: Any, name: str, options: dict[str, int]
) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer), 0, max_position_embeddings=128), tokenizer=byte_tokenizer)
    calls = Calls(model)
    text = "The sea and the sky. " * 40
    text = text[: model.codec.encode(text)[125].start]
    assert getattr(calls, name)(text, **options)
    tree = calls.tree_pool.free_trees[0]
    assert 90 < tree.work.tokens < 128 + 2 * 20, "most of it, and what was made, once"


def test_probabilities_of_all_tokens_are_there_up_to_the_whole_context(byte_tokenizer: Any) -> None:
    calls = Calls(load_model(tiny_llama(len(byte_tokenizer), max_position_embeddings=32), tokenizer=byte_tokenizer))
    text = next(text for text in ("z" * size for size in range(8, 99)) if len(byte_tokenizer(text).input_ids) == 32)
    assert len(calls.logprobs(text=text)["logprobs"]) == 33
    with pytest.raises(LookaheadError, match="There are 33 tokens, and this model sees 32 at once"):
        calls.logprobs(text=text + "z")


def test_earlier_messages_may_take_three_quarters_of_the_context_and_no_more(byte_tokenizer: Any) -> None:
    made = copy.deepcopy(byte_tokenizer)
    made.chat_template = PLAIN
    small = load_model(tiny_llama(len(made), 0, max_position_embeddings=128), tokenizer=made)

    def talk(letters: int) -> tuple[list[dict[str, str]], int]:
        messages = [{"role": "user", "content": "z" * letters}, {"role": "assistant", "content": ""}]
        return messages, tokenize_conversation(small.codec, messages).opening_length

    template_length = talk(1)[1] - 1
    fits, exceeds = talk(96 - template_length), talk(97 - template_length)
    assert (fits[1], exceeds[1]) == (96, 97)
    assert Calls(small).continue_messages(fits[0], n_branch_tokens=2)["continuations"]
    with pytest.raises(LookaheadError, match="There are 97 tokens before the last message"):
        Calls(small).continue_messages(exceeds[0], n_branch_tokens=2)


def test_a_stop_string_of_the_caller_ends_a_text_by_stop_and_not_by_its_end() -> None:
    calls = Calls(parrot(["the sea was grey"]))
    stopped, ended = calls.generate("the", stop=[" was"]), calls.generate("the")
    assert (stopped["text"], stopped["finish"], stopped["ended"]) == (" sea", "stop", False)
    assert (ended["text"], ended["finish"], ended["ended"]) == (" sea was grey", "end", True)


def test_what_writes_nothing_needs_no_room_behind_a_conversation(byte_tokenizer: Any) -> None:
    made = copy.deepcopy(byte_tokenizer)
    made.chat_template = PLAIN
    small = Calls(load_model(tiny_llama(len(made), 0, max_position_embeddings=128), tokenizer=made))
    talk = [{"role": "user", "content": "x" * 100}, {"role": "assistant", "content": ""}]
    lines = small.logprobs(messages=talk)["logprobs"]
    assert 96 < len(lines) <= 129
    with pytest.raises(LookaheadError, match="shorten the earlier messages"):
        small.continue_messages(talk)


@pytest.mark.parametrize("name", ["lookahead", "generate", "continue_messages", "next_token"])
def test_calls_say_from_where_on_the_model_has_read(byte_tokenizer: Any, name: str) -> None:
    made = copy.deepcopy(byte_tokenizer)
    made.chat_template = PLAIN
    small = Calls(load_model(tiny_llama(len(made), 0, max_position_embeddings=128), tokenizer=made))
    for text, seen in (("The sea", False), ("The sea and the sky. " * 40, True)):
        talk = [{"role": "user", "content": "Go"}, {"role": "assistant", "content": text}]
        given = {
            "continue_messages": {"messages": talk},
            "next_token": {"original_doc": "", "prompt": "Go", "doc_in_progress": text},
        }.get(name, {"text": text})
        found = getattr(small, name)(**given)["seen_from"]
        assert (0 < found < len(text)) is seen and type(found) is int


def test_compress_returns_the_kept_text_and_all_spans_of_the_source(model: Model) -> None:
    text = "The old keeper climbed the stairs, again and again. The sea was grey, said Anna Vold in 1907."
    calls = Calls(model)
    answer, found = calls.compress(text, 0.5), compress(model, text, 0.5)
    assert answer["text"] == found.text
    assert (answer["tokens_before"], answer["tokens_after"]) == (found.tokens_before, found.tokens_after)
    names = ("start", "end", "kept", "protected", "tokens")
    assert [{name: span[name] for name in names} for span in answer["spans"]] == [
        {name: getattr(span, name) for name in names} for span in found.spans
    ]
    sums = [span["surprise"] for span in answer["spans"]]
    assert sums[0] is None and found.spans[0].surprise is None, "nothing comes before the first token"
    assert sums[1:] == pytest.approx([span.surprise for span in found.spans[1:]], rel=1e-4)
    json.dumps(answer, allow_nan=False)
    before = model.engine.passes
    assert texts_of(calls.compress(text, 0.25)) == texts_of(Calls(model).compress(text, 0.25))
    assert model.engine.passes == before + 1, "only the calls without a tree of the text read it again"


def test_compress_may_be_of_one_token_and_never_says_nan(model: Model) -> None:
    assert json.dumps(Calls(model).compress("a", 1.0), allow_nan=False)
