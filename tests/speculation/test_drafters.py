"""The guesses of each drafter, their odds, and what it learns from: the documented figures."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from lookahead_core import load_model
from lookahead_core.engines.engine import NodeScores
from lookahead_core.speculation.drafters.draft_model_drafter import DraftModelDrafter
from lookahead_core.speculation.drafters.protocol import Guess, GuessAccuracy
from lookahead_core.speculation.drafters.successor_drafter import SuccessorDrafter
from lookahead_core.speculation.drafters.suffix_drafter import INITIAL_ODDS, SuffixDrafter, SuffixMatches
from lookahead_core.speculation.ngram_index import NgramIndex
from lookahead_core.tree import TokenTree
from tests.conftest import tiny_llama
from tests.support.families import plain_rows

TEXT = list(range(100, 200))
STRANGER = 7


def read(text: list[int] = TEXT, **options: Any) -> SuffixDrafter:
    """The drafter that looks into its own text, having read this one."""
    suffix = SuffixDrafter(NgramIndex(), **options)
    suffix.read(text)
    return suffix


def guesses(suffix: SuffixDrafter, path: list[int]) -> list[Guess]:
    state = suffix.start(path, None, 8)
    return [] if state is None else list(suffix.ways(state))


@pytest.mark.parametrize(
    ("agreed", "odds"),
    [(1, 0.2), (2, 0.4), (3, 0.4), (4, 0.7), (7, 0.7), (8, 0.88), (15, 0.88), (16, 0.95), (31, 0.95), (32, 0.98),
     (40, 0.98)],
)  # fmt: skip
def test_longer_matches_have_higher_odds(agreed: int, odds: float) -> None:
    (way,) = guesses(read(), [STRANGER, *TEXT[50 - agreed : 50]])
    assert (way.token_id, way.odds, way.source) == (TEXT[50], odds, None)


def test_odds_follow_the_frequency_among_the_latest_four_matches() -> None:
    suffix = read([1, 2, 30, 1, 2, 31, 1, 2, 32, 1, 2, 31, 1, 2, 31])
    found = guesses(suffix, [STRANGER, 1, 2])
    assert [(way.token_id, way.odds) for way in found] == [(31, pytest.approx(0.3)), (32, pytest.approx(0.1))]
    assert len({way.sign for way in found}) == 2, "what came more often is another kind of guess"
    (only,) = guesses(read([1, 2, 30, 1, 2, 30]), [STRANGER, 1, 2])
    (once,) = guesses(read([1, 2, 30]), [STRANGER, 1, 2])
    assert only.odds == once.odds == 0.4 and len({only.sign, once.sign, found[0].sign}) == 3


def test_guesses_continue_through_the_text_while_they_are_followed() -> None:
    suffix = read()
    state = suffix.start([STRANGER, *TEXT[46:50]], None, 8)
    for place, odds in ((50, 0.7), (51, 0.7), (52, 0.7), (53, 0.7), (54, 0.88)):
        (way,) = suffix.ways(state)
        assert (way.token_id, way.odds) == (TEXT[place], odds)
        assert suffix.follow(state, STRANGER) is None
        state = suffix.follow(state, TEXT[place])
    (way,) = guesses(suffix, TEXT[:99])
    assert way.token_id == TEXT[99]
    assert not guesses(suffix, TEXT), "nothing follows the end"
    assert not guesses(suffix, [STRANGER])


def test_after_a_replaced_word_the_text_is_guessed_to_continue_behind_it() -> None:
    suffix = read()
    assert [way.token_id for way in guesses(suffix, TEXT[:50])] == [TEXT[50]]
    (astray,) = guesses(suffix, [*TEXT[:50], STRANGER])
    assert (astray.token_id, astray.odds) == (TEXT[51], 0.25)
    (two,) = guesses(suffix, [*TEXT[:50], STRANGER, STRANGER])
    assert two.token_id == TEXT[52], "as many tokens on as the text has gone astray for"
    back = guesses(suffix, [*TEXT[:50], STRANGER, TEXT[53]])
    assert [(way.token_id, way.odds) for way in back] == [(TEXT[54], 0.5)], "one token near by is surer than elsewhere"


def test_only_a_match_of_four_tokens_is_a_copy_and_returns_are_guessed_only_near_it() -> None:
    suffix = read()
    assert guesses(suffix, [STRANGER, *TEXT[47:50]])
    assert not guesses(suffix, [STRANGER, *TEXT[47:50], STRANGER]), "three tokens may agree by chance"
    guesses(suffix, TEXT[:50])
    for gone in range(1, 15):
        found = guesses(suffix, [*TEXT[:50], *[STRANGER] * gone])
        assert [way.token_id for way in found] == ([TEXT[50 + gone]] if gone <= 12 else [])
    for offset in range(12):
        suffix = read()
        guesses(suffix, TEXT[:50])
        ways = {way.token_id: way.odds for way in guesses(suffix, [*TEXT[:50], STRANGER, TEXT[50 + offset]])}
        if offset < 11:
            assert ways == {TEXT[51 + offset]: 0.5}
        else:
            assert ways == {TEXT[52]: 0.25, TEXT[62]: 0.2}, "too far away: it is looked for anywhere"


def test_a_text_that_others_copied_from_is_looked_into_beside_the_own() -> None:
    other = NgramIndex()
    other.add([*TEXT[:20], 55])
    suffix = read().with_indexes([other])
    found = guesses(suffix, [STRANGER, *TEXT[15:20]])
    assert {way.token_id: way.odds for way in found} == {TEXT[20]: 0.35, 55: 0.35}
    longer = guesses(suffix, [STRANGER, TEXT[99], *TEXT[15:20]])
    assert {way.token_id for way in longer} == {TEXT[20], 55}
    assert [way.token_id for way in guesses(read(), [STRANGER, *TEXT[15:20]])] == [TEXT[20]], "the own alone"


def test_the_suffix_drafter_indexes_only_tokens_that_continue_its_text() -> None:
    suffix = read()
    suffix.hear([*TEXT, 1, 2], 2, None, [])  # type: ignore[arg-type]
    assert suffix.own.size == 102 and [way.token_id for way in guesses(suffix, [STRANGER, TEXT[99]])] == [1]
    suffix.hear([*TEXT, 8, 9], 2, None, [])  # type: ignore[arg-type]
    assert suffix.own.size == 102, "another text that grows from the same place"
    suffix.hear([*TEXT, 1, 2, 3], 1, None, [])  # type: ignore[arg-type]
    assert suffix.own.size == 103
    deaf = read(learns_from_passes=False)
    deaf.hear([*TEXT, 1, 2], 2, None, [])  # type: ignore[arg-type]
    assert deaf.own.size == 100
    short = read([5, 6])
    short.hear([5, 6, 7], 1, None, [])  # type: ignore[arg-type]
    assert short.own.size == 3


def test_a_text_that_was_edited_is_read_again_from_a_little_before_the_change() -> None:
    suffix = read()
    suffix.read([*TEXT, 1, 2, 3])
    assert suffix.own.size == 103, "what follows is added"
    suffix.read([*TEXT[:50], 9, 9, 9])
    # The break, sixteen tokens before the change, and the three behind it.
    assert suffix.own.size == 103 + 1 + 16 + 3
    ways = {way.token_id: way.odds for way in guesses(suffix, [STRANGER, *TEXT[40:50]])}
    assert ways == {TEXT[50]: 0.44, 9: 0.44}, "the old text and the new one have each gone on in their way"


def test_suffix_matches_count_and_follow_their_positions() -> None:
    index = NgramIndex()
    index.add([1, 2, 3, 1, 2, 4])
    matches = SuffixMatches("run", 2, ((index, 2), (index, 5)))
    assert [(way.token_id, way.odds) for way in matches.guesses()] == [(3, 0.2), (4, 0.2)]
    followed = matches.follow(3)
    assert followed is not None and (followed.length, followed.positions) == (3, ((index, 3),))
    assert matches.follow(9) is None
    assert SuffixMatches("run", 2, ((index, 6),)).guesses() == []


def recycled() -> tuple[SuccessorDrafter, TokenTree]:
    """One that has heard what a pass thought of two nodes of the path 1, 2, 3."""
    tree, drafter = TokenTree(), SuccessorDrafter()
    end = tree.descend(tree.root, [1, 2, 3])
    rows = torch.tensor([[0.05, 0.5, 0.2, 0.15, 0.06, 0.04], [0.3, 0.05, 0.25, 0.2, 0.12, 0.08]]).log()
    nodes = [end.parent, end]
    drafter.hear([1, 2, 3], 1, NodeScores(nodes, rows), nodes)  # type: ignore[arg-type]
    return drafter, tree


def test_probable_successors_are_guessed_after_the_same_token_or_pair() -> None:
    drafter, _ = recycled()
    pair = drafter.ways(drafter.start([9, 2, 3], None, 5))
    assert [way.token_id for way in pair] == [0, 2, 3, 4], "four at most, and none below a tenth"
    assert [way.odds for way in pair] == pytest.approx([0.8 * odds for odds in (0.3, 0.25, 0.2, 0.12)])
    alone = drafter.ways(drafter.start([9, 9, 3], None, 5))
    assert [way.odds for way in alone] == pytest.approx([0.5 * odds for odds in (0.3, 0.25, 0.2, 0.12)])
    assert len({way.sign for way in (*pair, *alone)}) == 8, "kinds: how much agrees, the rank, the tenth of the odds"
    assert [way.token_id for way in drafter.ways((1, 2))] == [1, 2, 3]
    assert drafter.ways(drafter.follow(drafter.start([9, 2], None, 5), 3))[0].odds == pair[0].odds
    assert drafter.ways((4, 5)) == ()


def test_successors_of_a_later_pass_replace_those_of_an_earlier_one() -> None:
    drafter, tree = recycled()
    node = tree.descend(tree.root, [8, 3])
    drafter.hear([8, 3], 1, NodeScores([node], torch.tensor([[0.9, 0.02, 0.02, 0.02, 0.02, 0.02]]).log()), [node])
    assert [way.odds for way in drafter.ways((8, 3))] == [pytest.approx(0.72)]
    assert [way.odds for way in drafter.ways((5, 3))] == [pytest.approx(0.45)], "the token alone: the latest counts"
    assert len(drafter.ways((2, 3))) == 4, "the pair is another one"


def little(choose: Any = None) -> tuple[DraftModelDrafter, Any]:
    hf_model = tiny_llama(60, eos_token_id=None)
    model = load_model(hf_model, tokenizer=None)
    return DraftModelDrafter(
        model, 60, choose or (lambda row, path: (int(row.argmax()), None)), GuessAccuracy()
    ), hf_model


def test_a_draft_model_guesses_its_chosen_token_and_its_most_probable_others() -> None:
    drafter, hf_model = little()
    path = [5, 9, 13]
    state = drafter.start(path, None, 3)
    for _ in range(3):
        odds = plain_rows(hf_model, [path])[0].softmax(-1)
        best = odds.topk(3)
        first, *others = drafter.ways(state)
        assert first.token_id == int(best.indices[0])
        assert first.odds == pytest.approx(0.4 + 0.6 * float(best.values[0]), rel=1e-3)
        assert [way.token_id for way in others] == best.indices[1:].tolist()
        assert [way.odds for way in others] == pytest.approx((0.5 * best.values[1:]).tolist(), rel=1e-3)
        path.append(first.token_id)
        following = drafter.follow(state, first.token_id)
        if following is None or not drafter.ways(following):
            break
        state = following
    assert drafter.follow(state, 59) is None or not drafter.ways(drafter.follow(state, 59))


def test_a_draft_model_stops_when_its_draft_has_odds_below_0_3() -> None:
    drafter, hf_model = little()
    for start in range(12):
        drafter._chosen = {}
        path = [start, 2 * start + 1, 7]
        drafter.start(path, None, 8)
        likely, expected = 1.0, 0
        while expected < 8 and likely >= 0.3:
            odds = plain_rows(hf_model, [path])[0].softmax(-1)
            likely *= 0.4 + 0.6 * float(odds.max())
            path.append(int(odds.argmax()))
            expected += 1
        assert len(drafter._chosen) == expected


def test_a_draft_model_runs_at_most_eight_tokens_ahead_and_no_deeper_than_the_draft() -> None:
    drafter, _ = little()
    drafter._accuracy = Sure()
    for reach, expected in ((1, 1), (3, 3), (8, 8), (40, 8)):
        drafter.start([5, 9, 13], None, reach)
        assert len(drafter._chosen) == expected
    assert drafter.start([], None, 4) is None and drafter.start([5, 60], None, 4) is None
    assert drafter.start([5, 59], None, 4) is not None


class Sure(GuessAccuracy):
    def odds(self, drafter: str, way: Guess) -> float:
        return 1.0


def test_a_sampled_token_of_a_draft_model_is_its_only_guess_with_its_source() -> None:
    source = torch.full((60,), 1 / 60, dtype=torch.float64)
    drafter, _ = little(lambda row, path: (len(path), source))
    state = drafter.start([5, 9, 13], None, 2)
    (way,) = drafter.ways(state)
    assert (way.token_id, way.odds) == (3, 0.7) and way.source is source
    (second,) = drafter.ways(drafter.follow(state, 3))
    assert second.token_id == 4
    assert math.isclose(second.odds, 0.7)


@pytest.mark.parametrize("kind", INITIAL_ODDS)
def test_the_first_odds_rise_with_the_length_of_a_match_and_stay_below_1(kind: str) -> None:
    odds = INITIAL_ODDS[kind]
    assert list(odds) == sorted(odds) and odds[0] >= 0 and odds[-1] < 1
    assert len(odds) == 1 + (32).bit_length(), "lengths from 32 on are alike"


def test_the_first_odds_of_copied_tokens_grow_with_the_length_of_the_match() -> None:
    assert INITIAL_ODDS.keys() == {"run", "near", "astray"}
    for odds in INITIAL_ODDS.values():
        assert odds[0] >= 0 and odds[-1] < 1 and list(odds) == sorted(odds)
