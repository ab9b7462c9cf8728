"""The fields of a page's request at their limits: each limit is allowed, and one more is refused with a sentence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from interface.server import branch_request
from interface.server.branch_request import BranchRequest, MessageContext, whole
from interface.server.call_arguments import CAPS, LONGEST_STOP, MOST_STOPS, checked
from interface.server.page_session import ahead_depth
from interface.tabs.highlights import text_analysis
from interface.tabs.highlights.text_analysis import HighlightsRequest
from interface.tabs.internals import token_odds
from interface.tabs.internals.token_odds import InternalsRequest
from lookahead_core.text import chat

CALLS_PAGE = Path(__file__).parents[3] / "docs" / "calls.md"

BASE = {"page": "a-page-of-somebody", "number": 1, "revision": 1, "text": "The sea"}
SAID = {"role": "user", "content": "Hello"}


def of(**given: Any) -> BranchRequest:
    return BranchRequest.from_json(BASE | given)


def talk(*messages: dict[str, str], **given: Any) -> BranchRequest:
    return of(role="assistant", messages=list(messages), **given)


def test_a_request_has_the_fields_of_its_json() -> None:
    assert of() == BranchRequest(
        page="a-page-of-somebody",
        number=1,
        revision=1,
        text="The sea",
        options={"k": 5, "depth": 5, "mode": "likely", "until": "tokens", "banned": ()},
    )
    more = of(
        k=3, depth=7.0, mode="forks", until="word", banned=[4, 5], temperature=0.5, top_p=0.5, seed=3, ahead=False
    )
    assert more.options == {
        "k": 3,
        "depth": 7,
        "mode": "forks",
        "until": "word",
        "banned": (4, 5),
        "cutoff": 0.05,
        "split_limit": 3,
    }
    assert more.ahead is False
    assert [of(ahead=given).ahead for given in (True, None, 0, "no")] == [True] * 4
    drawn = of(mode="sampled", temperature=0.5, top_p=0.6, seed=3)
    assert {name: drawn.options[name] for name in ("temperature", "top_p", "seed")} == {
        "temperature": 0.5,
        "top_p": 0.6,
        "seed": 3,
    }
    assert set(of(mode="sampled").options) == {"k", "depth", "mode", "until", "banned"}


def test_at_another_temperature_the_lookahead_is_that_at_temperature_1_with_the_odds_of_tokens() -> None:
    assert of(odds="words").options["odds"] == of(odds="words", temperature=1, top_p=1).options["odds"] == "words"
    for changed in ({"temperature": 0.5}, {"top_p": 0.6}):
        assert of(odds="words", **changed).options == of(**changed).options == of().options
    for wrong in ({"temperature": 3}, {"top_p": 0}, {"odds": "letters"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            of(**wrong)


def test_words_and_changes_of_rows_are_checked() -> None:
    assert of(towards="sea").options["towards"] == "sea"
    assert of(avoid="sea").options["avoid"] == "sea"
    assert not {"towards", "avoid"} & set(of(towards="", avoid=None).options)
    for wrong in ({"towards": "x" * 41}, {"avoid": 3}, {"towards": "a", "avoid": "b"}):
        with pytest.raises(ValueError, match=r"towards|avoid"):
            of(**wrong)
    edit = {"row": [3, 4], "before": [3], "text": " sea"}
    (made,) = of(edits=[edit]).edits
    assert (made.row, made.edit.before, made.edit.text) == ((3, 4), (3,), " sea")
    assert made.edit.earlier == ()
    (again,) = of(edits=[edit | {"before": [3, 4, 5], "earlier": [[0, 1], [2, 3]]}]).edits
    assert again.edit.earlier == ((0, 1), (2, 3))
    assert (of().edits, of(edits=[]).edits) == ((), ())
    assert len(of(edits=[edit] * branch_request.MOST_EDITS).edits) == branch_request.MOST_EDITS
    longest = [5] * branch_request.MOST_ROW_TOKENS
    assert of(edits=[edit | {"row": longest}]).edits[0].row == tuple(longest)
    for wrong_edits in (
        [edit] * (branch_request.MOST_EDITS + 1),
        "x",
        [3],
        [edit | {"row": [*longest, 5]}],
        [edit | {"before": [-1]}],
        [edit | {"before": [True]}],
        [edit | {"before": [1.5]}],
        [edit | {"text": ""}],
        [edit | {"text": "x" * 201}],
        [{"row": [], "before": []}],
        *([edit | {"earlier": spans}] for spans in ([[0, 2]], [[1, 1]], [[-1, 1]], [[0]], [0], "x", [[0, 1]] * 9)),
    ):
        with pytest.raises(ValueError, match=r"edits must|Each change|ids of a row|earlier changes|text (is|has)"):
            of(edits=wrong_edits)


@pytest.mark.parametrize("k", [1, 5, 20])
def test_every_level_has_k_rows_in_all(k: int) -> None:
    assert of(mode="every_level", k=k).options["branch_total"] == k
    assert "branch_total" not in of(mode="likely", k=k).options


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, None),
        ({"instruction": "", "source": ""}, None),
        ({"instruction": "Shorten."}, MessageContext((("user", "Shorten."),), "assistant")),
        ({"source": "A text."}, MessageContext((("user", "A text."),), "assistant")),
        (
            {"instruction": "Shorten.", "source": "A text."},
            MessageContext((("user", "Shorten.\n\nA text."),), "assistant"),
        ),
        ({"role": "user", "messages": [], "instruction": "Shorten."}, MessageContext((), "user")),
        ({"role": "assistant", "messages": [SAID]}, MessageContext((("user", "Hello"),), "assistant")),
        ({"messages": [SAID]}, None),
    ],
)
def test_the_conversation_of_a_text_comes_from_its_messages_or_instruction_and_source(
    given: dict[str, Any], message: MessageContext | None
) -> None:
    assert of(**given).message == message


def test_the_messages_end_with_an_empty_one_of_the_writers_role() -> None:
    assert MessageContext((("user", "Hello"),), "assistant").messages == [SAID, {"role": "assistant", "content": ""}]


EDGES: list[tuple[Any, str, int, Any]] = [
    (branch_request, "MOST_CHARACTERS", 9, lambda size: of(text="x" * size)),
    (branch_request, "MOST_SOURCE", 9, lambda size: of(source="x" * size)),
    (chat, "MAX_INSTRUCTION", 9, lambda size: of(instruction="x" * size)),
    (branch_request, "MOST_MESSAGES", 3, lambda size: talk(*[SAID] * size)),
    (
        branch_request,
        "MOST_CHARACTERS",
        10,
        lambda size: talk({"role": "user", "content": "x" * (size - 5)}, SAID, text=""),
    ),
    (branch_request, "MOST_BRANCHES", 20, lambda size: of(k=size)),
    (branch_request, "MOST_DEPTH", 40, lambda size: of(depth=size)),
    (text_analysis, "MOST_TEXT", 9, lambda size: HighlightsRequest.from_json(BASE | {"text": "x" * size})),
    (text_analysis, "MOST_TEXT", 9, lambda size: HighlightsRequest.from_json(BASE | {"start": size})),
    (token_odds, "MOST_TEXT", 9, lambda size: InternalsRequest.from_json(BASE | {"text": "x" * size})),
    (
        token_odds,
        "MOST_TEXT",
        9,
        lambda size: InternalsRequest.from_json(BASE | {"messages": [SAID, SAID | {"content": "x" * (size - 5)}]}),
    ),
]


@pytest.mark.parametrize(
    ("module", "name", "most", "ask"), EDGES, ids=[f"{edge[1]}-{place}" for place, edge in enumerate(EDGES)]
)
def test_every_limit_is_allowed_and_one_more_is_refused_with_both_numbers(
    module: Any, name: str, most: int, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert getattr(module, name) >= most
    monkeypatch.setattr(module, name, most)
    ask(most)
    with pytest.raises(ValueError, match=str(most)) as caught:
        ask(most + 1)
    assert str(caught.value).endswith((".", "up.", "conversation."))


def test_the_documented_limits_are_unchanged() -> None:
    """As the README, the documents and the page's own sliders have them."""
    assert (
        branch_request.MOST_CHARACTERS,
        branch_request.MOST_SOURCE,
        branch_request.MOST_BRANCHES,
        branch_request.MOST_DEPTH,
    ) == (
        200_000,
        100_000,
        20,
        40,
    )
    assert (branch_request.MOST_MESSAGES, text_analysis.MOST_TEXT, token_odds.MOST_TEXT, token_odds.MOST_TOKENS) == (
        100,
        60_000,
        20_000,
        2_000,
    )


@pytest.mark.parametrize("page", ["x" * 16, "x" * 64, "Az09_-" * 3])
def test_a_valid_page_id_is_accepted(page: str) -> None:
    assert of(page=page).page == page


@pytest.mark.parametrize(
    "page", ["x" * 15, "x" * 65, "x" * 16 + "\n", "x" * 15 + "ä", "x" * 15 + " ", 7, None, ["x" * 16]]
)
def test_an_invalid_page_id_is_refused(page: Any) -> None:
    with pytest.raises(ValueError, match="load the page again"):
        of(page=page)


def test_an_invalid_whole_number_is_refused_with_its_bounds() -> None:
    assert [whole("k", value, 1, 3) for value in (1, 3, 2.0)] == [1, 3, 2]
    for value in (0, 4, 1.5, "2", None, True, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=r"^k must be a whole number from 1 to 3\.$"):
            whole("k", value, 1, 3)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"banned": "the"}, "banned"),
        ({"mode": "magic"}, "mode"),
        ({"text": 7}, "The text must be a string."),
        ({"instruction": 7}, "The instruction must be a text"),
        ({"source": ["a"]}, "The source must be a text"),
        ({"role": "system", "messages": []}, "role must be user or assistant"),
        ({"role": "user", "messages": None}, "messages must be a list"),
        ({"role": "user", "messages": [SAID, {"role": "user"}]}, "Message 2 must be"),
        ({"role": "user", "messages": [{"role": "robot", "content": "a"}]}, "Message 1 must be"),
    ],
)
def test_an_invalid_field_is_named(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        of(**wrong)


@pytest.mark.parametrize(
    ("k", "depth", "mode", "reach"),
    [
        (1, 40, "likely", 40),
        (5, 40, "likely", 13),
        (5, 13, "likely", 13),
        (5, 12, "likely", 12),
        (17, 9, "likely", 2),
        (18, 9, "likely", 1),
        (20, 9, "sampled", 1),
        (20, 9, "forks", 9),
        (20, 40, "best_first", 40),
    ],
)
def test_the_depth_of_prefetched_views_fits_the_budget(k: int, depth: int, mode: str, reach: int) -> None:
    assert ahead_depth({"k": k, "depth": depth, "mode": mode}) == reach


def test_the_caps_of_the_calls_are_those_of_their_document() -> None:
    rows = re.findall(r"^\| (`[^|]+`) \| ([\d, ]+) \|$", CALLS_PAGE.read_text(encoding="utf-8"), re.M)
    documented: dict[str, int] = {}
    for names, figures in rows:
        known, numbers = re.findall(r"`(\w+)`", names), [int(one.replace(",", "")) for one in figures.split(", ")]
        documented |= dict(zip(known, numbers * (len(known) // len(numbers)), strict=True))
    aliases = {"n_branch_tokens": "k", "n_future_tokens": "depth"}
    assert {name: documented.get(aliases.get(name, name)) for name in CAPS} == CAPS


@pytest.mark.parametrize("name", CAPS)
def test_a_calls_numbers_are_capped(name: str) -> None:
    call = {
        "n": "gen_revisions",
        "max_length": "gen_revisions",
        "num_beams": "beam_search",
        "max_new_tokens": "generate",
    }
    calls = {"n_branch_tokens": "continue_messages", "n_future_tokens": "continue_messages"} | call
    needed = {"continue_messages": {"messages": []}, "gen_revisions": {"prompt": "", "doc": ""}}
    where = calls.get(name, "lookahead")
    given = needed.get(where, {})
    for value in (1, CAPS[name]):
        assert checked(where, given | {name: value})[name] == value
    assert type(checked(where, given | {name: 1.0})[name]) is int
    for value in (0, CAPS[name] + 1, True, "1"):
        with pytest.raises(ValueError, match=rf"^{name} must be a whole number from 1 to {CAPS[name]}\.$"):
            checked(where, given | {name: value})


def test_missing_arguments_of_a_call_stay_missing() -> None:
    assert checked("logprobs", {"text": "a", "n_branch_tokens": None}) == {"text": "a", "n_branch_tokens": None}
    given = {"text": "a", "stop": ["b"] * MOST_STOPS}
    assert checked("generate", given) == given
    assert checked("generate", {"text": "a", "stop": ["b" * LONGEST_STOP]})
    for stop in (None, "b" * 1000, 7):
        assert checked("generate", {"text": "a", "stop": stop})["stop"] == stop  # the call itself says what it is


def test_unknown_and_missing_arguments_of_a_call_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^'secret' is not an argument of this call; it takes text, k, "):
        checked("lookahead", {"text": "a", "secret": 1})
    with pytest.raises(ValueError, match=r"^'x{40}' is not an argument"):
        checked("lookahead", {"x" * 100: 1})
    with pytest.raises(ValueError, match=r"^doc is missing; this call takes prompt, doc, "):
        checked("gen_revisions", {"prompt": "a"})
    most = branch_request.MOST_CHARACTERS
    assert checked("lookahead", {"text": "x" * most})
    with pytest.raises(ValueError, match=r"^text has 200,001 characters, and at most 200,000 are allowed"):
        checked("lookahead", {"text": "x" * (most + 1)})
