"""The answer to a request: how often views are sent, and how large prefetched views are."""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from interface.server import page_session
from interface.server import prefetched_views as ahead_limits
from interface.server.branch_request import FORK_CUTOFF, BranchRequest
from interface.server.page_session import PageSession
from lookahead_core import Document, LookaheadError, Model, load_model
from lookahead_core.document import cost_meter
from lookahead_core.serving.job import Job
from lookahead_core.text.chat import max_opening_tokens, tokenize_conversation
from tests.conftest import tiny_llama
from tests.interface.server.test_page_service import TEMPLATE
from tests.support.witness import around

BASE = {"page": "a-page-of-somebody", "number": 1, "revision": 1}


def request_for(text: str, **given: Any) -> BranchRequest:
    return BranchRequest.from_json(BASE | {"text": text} | given)


class Clock:
    """In place of the module time: seconds go by only when they are chat_model to."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(page_session, "time", made)
    return made


def painted(model: Model, clock: Clock, each: float, view: float = 0.0) -> list[float]:
    """When a session gives views, where a pass takes so long, and to make a view so long; the settled one left out."""

    class Slow(PageSession):
        def _view(self, *arguments: Any) -> Any:
            clock.pass_by(view)
            return super()._view(*arguments)

    steps = Slow(around(model, lambda: clock.pass_by(each))).answer_steps(request_for("The sea.", k=2, depth=12))
    facts = [(clock.now, fact) for fact in steps]
    assert facts[-1][1]["state"] == "settled"
    return [now for now, fact in facts[:-1] if "view" in fact]


def test_a_view_is_painted_after_each_slow_pass_and_not_after_each_fast_one(tiny_model: Model, clock: Clock) -> None:
    assert len(painted(tiny_model, clock, 1.0)) >= 11
    assert len(painted(tiny_model, clock, page_session.PAINT_INTERVAL)) >= 11
    assert len(painted(tiny_model, clock, 0.0)) == 1
    times = painted(tiny_model, clock, page_session.PAINT_INTERVAL / 2.5)
    assert {round((later - one) / page_session.PAINT_INTERVAL, 6) for one, later in itertools.pairwise(times)} == {1.2}


def test_views_that_are_slow_to_make_are_made_less_often(tiny_model: Model, clock: Clock) -> None:
    times = painted(tiny_model, clock, 1.0, view=1.0)
    gaps = {later - one for one, later in itertools.pairwise(times)}
    assert gaps == {6.0}, "five times as long as it took, and the view itself"


def test_of_many_jobs_at_once_each_spends_a_sixth_of_its_own_seconds_on_views(
    tiny_model: Model, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_session, "_job_seconds", lambda: clock.now / 10)  # nine others have the rest of the time
    times = painted(tiny_model, clock, 10.0, view=0.5)
    assert len(times) > 2 and min(later - one for one, later in itertools.pairwise(times)) >= 10 * 5 * 0.5


def test_seconds_of_a_job_leave_out_the_time_of_others_and_have_its_share_of_passes(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookahead_core.serving.job.time", clock)
    seen: list[float] = []

    def steps() -> Iterator[None]:
        while True:
            clock.pass_by(1.0)
            seen.append(page_session._job_seconds())
            yield

    job = Job("a client", 1, steps(), on_step=lambda step: None, on_end=lambda error: None)
    job.run()
    clock.pass_by(20.0)
    job.run()
    job.pass_seconds += 5.0
    job.run()
    assert seen == [1.0, 2.0, 8.0]
    job.close(lambda job: None)
    assert page_session._job_seconds() == clock.now


def test_the_final_view_is_that_of_a_healed_lookahead_of_the_requested_depth(tiny_model: Model) -> None:
    for text in ("The sea.", "The light"):
        (*_, last) = PageSession(tiny_model).answer_steps(request_for(text, k=3, depth=4))
        document = Document(tiny_model, text)
        healed = bool(document.reopens)
        found = document.lookahead(k=3, depth=4 + healed, heal=True, stop_at_repetition=True)
        rows = ["".join(piece["text"] for piece in branch["pieces"]) for branch in last["view"]["branches"]]
        assert rows == [branch.text for branch in found.branches]
        assert last["view"]["asked"]["depth"] == 4
        assert (last["state"], last["note"]) == ("settled", None)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["The sea.", "He saw the ship"], ids=["whole", "re-opened"])
def test_at_another_temperature_the_rows_are_those_of_tokens_at_temperature_1(tiny_model: Model, text: str) -> None:
    def view(odds: str, **fields: Any) -> Any:
        (*_, last) = PageSession(tiny_model).answer_steps(request_for(text, k=6, depth=3, odds=odds, **fields))
        return last["view"] | {"cost": None}

    for settings in ({"temperature": 0.4}, {"temperature": 1.6, "top_p": 0.9}, {"top_p": 0.5}):
        for odds in ("tokens", "words"):
            assert view(odds, **settings) == view("tokens")
    assert view("words", temperature=1, top_p=1) == view("words")


def test_an_empty_text_without_a_conversation_has_no_view(tiny_model: Model) -> None:
    (only,) = PageSession(tiny_model).answer_steps(request_for(""))
    assert only == {"state": "empty"}


def prefetched_views(model: Model, **options: Any) -> tuple[Any, list[Any]]:
    """Return the settled view of a text, and the news with each view that is prefetched behind it."""
    session, request = PageSession(model), request_for("The sea.", **options)
    (*_, last) = session.answer_steps(request)
    return last["view"], [fact for fact in session.ahead_steps(request) if fact]


def size(view: Any) -> int:
    return len(json.dumps(view, separators=(",", ":")))


def test_a_prefetched_view_holds_sixteen_probabilities_and_tokens_where_there_is_room(tiny_model: Model) -> None:
    _, facts = prefetched_views(tiny_model, k=3, depth=3)
    assert len(facts) >= 6
    assert all(len(fact["ahead"][1]["rest"]) == ahead_limits.AHEAD_KEPT == 16 for fact in facts)


def test_prefetched_views_shrink_before_they_are_left_out(tiny_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_meter, "time", Clock())  # seconds have more or fewer digits
    k = 3
    _, facts = prefetched_views(tiny_model, k=k, depth=3)
    whole = [size(fact["ahead"][1]) for fact in facts]
    rests = set()
    for most in (k * max(whole), k * max(whole) - 1, k * min(whole) * 2 // 3, k * min(whole) // 2, min(whole), 100):
        monkeypatch.setattr(page_session, "AHEAD_BYTES", most)
        _, fewer = prefetched_views(tiny_model, k=k, depth=3)
        sizes = [size(fact["ahead"][1]) for fact in fewer]
        kept = [len(fact["ahead"][1]["rest"]) for fact in fewer]
        rests |= set(kept)
        assert sum(sizes) <= most
        assert all(each <= most // k or left == 0 for each, left in zip(sizes, kept, strict=True))
        expected = 16 if most == k * max(whole) else 4
        assert all(left <= expected for left, each in zip(kept, whole, strict=False) if each == max(whole))
        assert [fact["ahead"][0] for fact in fewer] == [fact["ahead"][0] for fact in facts[: len(fewer)]]
    assert rests == {16, 4, 0}


def test_the_number_of_prefetched_tokens_is_reported_and_bounded(tiny_model: Model) -> None:
    session, request = PageSession(tiny_model), request_for("The sea.", k=9, depth=12)
    for _ in session.answer_steps(request):
        pass
    assert session.document is not None
    before = session.document.tree.work.tokens
    chat_model = [fact["tokens_ahead"] for fact in session.ahead_steps(request) if fact]
    assert chat_model == sorted(chat_model)
    assert 0 < chat_model[-1] <= session.document.tree.work.tokens - before <= ahead_limits.AHEAD_NODES + 9 * 12


@pytest.fixture
def chat_model(byte_tokenizer: Any) -> Model:
    """A model that takes instructions, and sees 400 tokens."""
    tokenizer = copy.deepcopy(byte_tokenizer)
    tokenizer.chat_template = TEMPLATE
    return load_model(tiny_llama(len(tokenizer), max_position_embeddings=400), tokenizer=tokenizer)


def test_a_prompt_may_take_three_quarters_of_the_context(chat_model: Model) -> None:
    most = max_opening_tokens(400)
    assert most == 300

    def length(words: int) -> int:
        messages = [{"role": "user", "content": "a " * words}, {"role": "assistant", "content": ""}]
        return len(tokenize_conversation(chat_model.codec, messages).opening)

    fits = next(words for words in range(1, 400) if length(words + 1) > most)
    exact = length(fits) == most
    (*_, last) = PageSession(chat_model).answer_steps(request_for("The", instruction="a " * fits, k=1, depth=1))
    assert last["state"] == "settled"
    assert exact, "the edge itself is tried"
    for given, words in (
        (
            {"instruction": "a " * (fits + 1)},
            r"^Instruction and source have 30\d tokens\. .* shorten the source until",
        ),
        (
            {"role": "assistant", "messages": [{"role": "user", "content": "a " * (fits + 1)}]},
            r"^The earlier messages have 30\d",
        ),
    ):
        with pytest.raises(LookaheadError, match=words):
            list(PageSession(chat_model).answer_steps(request_for("The", **given)))


def test_a_new_conversation_opens_a_new_document_on_the_same_tree(chat_model: Model) -> None:
    session = PageSession(chat_model)
    opened: list[Document] = []

    def look(text: str, **given: Any) -> Document:
        for _ in session.answer_steps(request_for(text, k=1, depth=1, **given)):
            pass
        assert session.document is not None
        opened.append(session.document)
        return session.document

    first, same, other = look("The"), look("The sea"), look("The sea", instruction="Shorten.")
    assert first is same
    assert other is not first
    assert other.tree is first.tree
    assert look("The sea") is not other
    assert {id(one.tree) for one in opened} == {id(first.tree)}


def test_branches_end_where_the_template_ends_a_message(chat_model: Model) -> None:
    end = chat_model.codec.require_tokenizer().convert_tokens_to_ids("<|end|>")
    session = PageSession(replace(chat_model, end_token_ids=frozenset()))
    for _ in session.answer_steps(request_for("The", instruction="Shorten.", k=1, depth=1)):
        pass
    assert session.document is not None
    assert session.document.model.end_token_ids == {end}


def test_a_session_without_a_request_has_no_tree(tiny_model: Model) -> None:
    assert PageSession(tiny_model).tree() is None


def test_an_edited_row_replaces_its_original_and_a_click_on_it_is_prefetched(tiny_model: Model) -> None:
    for text in ("The sea.", "The light"):
        session, document = PageSession(tiny_model), Document(tiny_model, text)
        (*_, last) = session.answer_steps(request_for(text, k=3, depth=4))
        plain = last["view"]["branches"]
        kept = plain[1]["ids"][:2]
        request = request_for(text, k=3, depth=4, edits=[{"row": plain[1]["ids"], "before": kept, "text": " old sky"}])
        (*_, last) = session.answer_steps(request)
        rows = last["view"]["branches"]
        assert [row["ids"] for row in (rows[0], rows[2])] == [row["ids"] for row in (plain[0], plain[2])]
        start, end = rows[1]["edited"]
        assert rows[1]["ids"][:start] == kept
        spelled = b"".join(map(tiny_model.codec.bytes_of, rows[1]["ids"][start:end]))
        assert spelled == b" old sky"
        assert len(rows[1]["at"]) == len(rows[1]["ids"]) > end
        assert session.document is not None
        assert session.document.text == text
        ahead = {key for step in session.ahead_steps(request) if "ahead" in step for key in [step["ahead"][0]]}
        first = rows[1]["pieces"][0]["tokens"]
        assert " ".join(map(str, rows[1]["ids"][:first])) in ahead
        assert document.text == text


def test_a_change_that_is_left_out_for_a_banned_token_in_it_is_named_with_the_token(tiny_model: Model) -> None:
    session = PageSession(tiny_model)
    (*_, last) = session.answer_steps(request_for("The sea.", k=3, depth=4))
    row = last["view"]["branches"][1]["ids"]
    edits = [{"row": row, "before": [], "text": text} for text in (" sea", " old sky")]
    kept, left_out = ([one.token_id for one in tiny_model.codec.encode(edit["text"], True)] for edit in edits)
    banned = next(token_id for token_id in left_out if token_id not in kept)
    (*_, last) = session.answer_steps(request_for("The sea.", k=3, depth=4, edits=edits, banned=[banned]))
    token = tiny_model.codec.bytes_of(banned).decode().strip()
    assert last["note"].startswith(f"Your change to “old sky” is left out: it has the banned token “{token}”.")
    (*_, last) = session.answer_steps(request_for("The sea.", k=3, depth=4, edits=edits))
    assert "note" not in last or not last["note"]


def test_a_view_towards_a_word_says_how_likely_it_is_and_which_tokens_hold_it(tiny_model: Model) -> None:
    (*_, last) = PageSession(tiny_model).answer_steps(request_for("The sea.", k=3, depth=4, towards="é"))
    view = last["view"]
    assert (view["asked"]["towards"], view["word"]["word"], view["word"]["within"]) == ("é", "é", 4)
    assert 0 < view["word"]["low"] <= view["word"]["high"] <= 1
    for row in view["branches"]:
        start, end = row["word"]
        assert "é" in b"".join(map(tiny_model.codec.bytes_of, row["ids"][start:end])).decode()


@pytest.mark.parametrize("k", [5, 10])
def test_in_forks_no_row_has_a_lower_share_than_a_likely_token_that_begins_none(default_model: Model, k: int) -> None:
    text = "My grandmother always"
    options = request_for(text, mode="forks", k=k, depth=4).options
    document = Document(default_model, text)
    result = document.lookahead(**options)
    prediction = document.predict()
    first = {branch.token_ids[0] for branch in result.branches}
    left_out = [
        math.exp(logprob)
        for token_id, logprob in zip(prediction.token_ids, prediction.logprobs, strict=True)
        if token_id not in first and math.exp(logprob) >= FORK_CUTOFF
    ]
    assert max(left_out, default=0.0) <= min(branch.share for branch in result.branches)
