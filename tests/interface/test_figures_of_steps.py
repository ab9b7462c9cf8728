"""The figures that the page draws of each step of a lookahead can be true together, and agree with its result."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from lookahead_core import Document, Model
from lookahead_core.serving.json_view import lookahead_as_json
from tests.conftest import CORPUS
from tests.interface.test_scripts import node
from tests.support.parameters import mostly_slow
from tests.support.scripted_model import parrot

SCRIPT = Path(__file__).parents[1] / "support" / "scripts" / "shape_steps.js"
ROUNDING = 1e-4
REHEATED = 0.01
"""Maximum error of odds at another temperature, see `Prediction`."""
SHOWN = 0.0011 + ROUNDING
"""Maximum error of a share of a word that is shown without a sign."""
LEAST_LEFT = 0.0011 + ROUNDING
"""Below this, what rows leave at a temperature other than 1 is not known exactly, and drawn as a bound."""
TEXTS = ["the", "The keep", "Once upon a ti", "The keeper "]

View = dict[str, Any]


@pytest.fixture(scope="module")
def speller() -> Model:
    """A model that spells words in several pieces, with other words that begin alike."""
    return parrot(
        [*CORPUS[:2], "The keep keeps the keeper's well-kept key, 3.14 or 1984.", "the the theory then. Then"]
    )


def steps_of(model: Model, text: str, **options: Any) -> list[View]:
    steps = Document(model, text).lookahead_steps(**options)
    return [lookahead_as_json(step.result) for step in steps if step.result.branches]


def drawn(cases: list[dict[str, Any]]) -> list[Any]:
    ended = node(str(SCRIPT), given=json.dumps(cases))
    assert ended.returncode == 0, ended.stderr
    found: list[Any] = json.loads(ended.stdout)
    return found


def cases_of(steps: list[View], **settings: Any) -> list[dict[str, Any]]:
    """Each step without a pinned row, and with the last step's second and last row pinned, as after a click."""
    last, names = steps[-1]["branches"], ("ids", "logprobs", "pieces", "ended", "healed")
    pinned = [None, *({name: branch[name] for name in names} for branch in (last[0], last[len(last) // 2]))]
    return [
        {"view": view, "pinned": pin, "growing": view is not steps[-1], "settings": settings}
        for view in steps
        for pin in pinned
    ]


def begins_with(path: list[int], beginning: list[int]) -> bool:
    return path[: len(beginning)] == beginning


def check_together(one: Any, error: float = ROUNDING) -> None:
    """What excludes each other holds 100 % at most, and coverage is what the rows hold together."""
    own = [row for row in one["rows"] if not row["extra"]]
    kinds = {row["word"] is not None for row in own}
    assert len(kinds) <= 1, "shares of words and of tokens are not added"
    apart = [
        row
        for index, row in enumerate(own)
        if not any(
            begins_with(row["ids"], other["ids"]) and (len(other["ids"]) < len(row["ids"]) or place < index)
            for place, other in enumerate(own)
            if other is not row
        )
    ]
    if kinds == {True}:
        apart = own
        assert len({row["word"] for row in own}) == len(own)
    total = math.fsum(row["share"]["p"] for row in apart)
    assert total <= 1 + error, own
    assert one["rest"]["p"] == pytest.approx(1 - one["coverage"]["p"], abs=ROUNDING)
    least, bound = any(row["share"].get("atLeast") for row in own), bool(one["coverage"].get("atLeast"))
    assert bound == bool(one["rest"].get("bound"))
    if bound and not least:
        assert 1 - LEAST_LEFT <= one["coverage"]["p"] <= total + ROUNDING, "a bound, where the rows hold nearly all"
    elif least and not one["coverage"]["p"]:
        assert bound, "nothing is said of the coverage while a share is being computed"
    else:
        assert least == bound
        assert one["coverage"]["p"] == pytest.approx(min(1, total), abs=ROUNDING)
    assert all(other["odds"]["p"] <= one["rest"]["p"] + SHOWN for other in one["others"])


def check_words(one: Any, final: dict[str, tuple[float, float]]) -> None:
    """A share without a sign is that of the result, and one with "≥" is no more."""
    for row in one["rows"]:
        if row["word"] in final:
            low, high = final[row["word"]]
            assert row["share"]["p"] <= high + SHOWN
            assert row["share"].get("atLeast") or row["share"]["p"] >= low - SHOWN


@pytest.mark.slow
@pytest.mark.parametrize("heal", mostly_slow([True, False], 1))
def test_the_shares_of_every_step_can_be_true_together_with_odds_of_words(speller: Model, heal: bool) -> None:
    for k in (1, 5):
        for text in TEXTS:
            steps = steps_of(speller, text, k=k, depth=3, odds="words", heal=heal)
            final = {
                word["text"]: (word["share"] - word["error"], word["share"] + word["error"])
                for word in (branch["next_word"] for branch in steps[-1]["branches"])
            }
            for one in drawn(cases_of(steps)):
                check_together(one)
                check_words(one, final)


def check_others(one: Any, view: View) -> None:
    """The rows and the list hold what all first tokens of rows and list hold: nothing of a row's token is left out."""
    firsts: dict[tuple[int, ...], float] = {}
    for branch in view["branches"]:
        size = branch["pieces"][0]["tokens"] if branch["pieces"] else len(branch["ids"])
        firsts[tuple(branch["ids"][:size])] = math.exp(math.fsum(branch["logprobs"][:size]))
    for other in view["rest"]:
        firsts[tuple(other["ids"])] = math.exp(math.fsum(other["logprobs"]))
    if len({len(ids) for ids in firsts}) == 1:
        found = one["coverage"]["p"] + math.fsum(other["odds"]["p"] for other in one["others"])
        assert found == pytest.approx(math.fsum(firsts.values()), abs=2 * ROUNDING)


@pytest.mark.slow
@pytest.mark.parametrize("mode", mostly_slow(["forks", "likely", "every_level", "best_first", "sampled"], 1))
def test_the_shares_of_every_step_can_be_true_together_with_odds_of_tokens(speller: Model, mode: str) -> None:
    steps = [
        steps_of(speller, text, k=5, depth=4, mode=mode, heal=heal) for text in TEXTS[1:4] for heal in (False, True)
    ]
    for view in (each[-1] for each in steps):
        check_others(drawn([{"view": view, "pinned": None, "growing": False, "settings": {}}])[0], view)
    for temperature, error in ((1, ROUNDING), (0.7, REHEATED)):
        for one in drawn([case for each in steps for case in cases_of(each, temperature=temperature)]):
            check_together(one, error)
