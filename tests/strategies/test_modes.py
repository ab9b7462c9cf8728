"""The lookahead modes equal slow reference searches that share no code with them."""

from __future__ import annotations

import codecs
import gc
import itertools
import math
import re
import weakref
from dataclasses import replace
from typing import Any

import pytest

from lookahead_core import Document, Model, TextError, load_model
from lookahead_core.document.coverage import covered_probability, distinguishing_lengths
from lookahead_core.serving.json_view import lookahead_as_json
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from tests.conftest import tiny_llama
from tests.serving.test_json_view import Node as PackedNode
from tests.strategies.test_sampling import reference_noise, reference_odds
from tests.support.families import make, plain_rows
from tests.support.parameters import mostly_slow
from tests.support.scripted_model import parrot
from tests.support.spelling import tokens_as_bytes

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]


@pytest.fixture(scope="module")
def model() -> Any:
    hf_model = make("llama")
    hf_model.generation_config.eos_token_id = 7
    return load_model(hf_model, tokenizer=None)


class Odds:
    """Plain forwards, remembered."""

    def __init__(self, hf_model: Any) -> None:
        self.hf_model = hf_model
        self.known: dict[tuple[int, ...], list[tuple[float, int]]] = {}

    def after(self, path: tuple[int, ...]) -> list[tuple[float, int]]:
        """Probabilities and ids after the prompt and a path, likeliest first."""
        if path not in self.known:
            (logits,) = plain_rows(self.hf_model, [PROMPT + list(path)])
            probabilities = logits.softmax(-1).tolist()
            self.known[path] = sorted(((p, i) for i, p in enumerate(probabilities)), reverse=True)
        return self.known[path]

    def without(self, path: tuple[int, ...], banned: Any) -> list[tuple[float, int]]:
        """The same for the tokens that are not banned, which have all of the probability."""
        left = [(p, i) for p, i in self.after(path) if i not in banned]
        return [(p / math.fsum(p for p, _ in left), i) for p, i in left]

    def of(self, path: tuple[int, ...], banned: Any = ()) -> float:
        return math.prod(
            next(p for p, i in self.without(path[:place], banned) if i == token_id)
            for place, token_id in enumerate(path)
        )


@pytest.fixture(scope="module")
def odds(model: Any) -> Odds:
    return Odds(model.hf_model)


def paths(result: Any) -> list[tuple[int, ...]]:
    return [branch.token_ids for branch in result.branches]


def test_every_level_branches_at_each_of_the_first_levels_then_continues_greedily(model: Any, odds: Odds) -> None:
    def grow(path: tuple[int, ...]) -> list[tuple[int, ...]]:
        if len(path) == 5 or (path and path[-1] == 7):
            return [path]
        ways = 3 if len(path) < 2 else 1
        return [full for _, token_id in odds.after(path)[:ways] for full in grow((*path, token_id))]

    result = Document(model, token_ids=PROMPT).lookahead(mode="every_level", k=3, branch_levels=2, depth=5)
    assert paths(result) == grow(())
    for branch in result.branches:
        assert branch.share == pytest.approx(odds.of(branch.token_ids[:2]), rel=1e-3)
    assert result.coverage == pytest.approx(sum(branch.share for branch in result.branches))


@pytest.mark.parametrize(
    ("total", "shape"), [(1, [1]), (2, [1, 1]), (5, [2, 2, 1]), (9, [3, 3, 3]), (10, [3, 3, 2, 2])]
)
def test_a_total_of_branches_is_shared_evenly_among_the_first_tokens(
    model: Any, odds: Odds, total: int, shape: list[int]
) -> None:
    wanted = [
        (first, second)
        for (_, first), count in zip(odds.after(()), shape, strict=False)
        for _, second in odds.after((first,))[:count]
    ]
    for k in (1, 20):
        result = Document(model, token_ids=PROMPT).lookahead(mode="every_level", k=k, branch_total=total, depth=4)
        assert [path[:2] for path in paths(result)] == wanted
    assert result.coverage == pytest.approx(sum(branch.share for branch in result.branches))


def test_a_total_of_branches_on_three_levels_is_reached(model: Any) -> None:
    for total in range(1, 30):
        options = {"mode": "every_level", "branch_total": total, "branch_levels": 3, "depth": 3}
        found = paths(Document(model, token_ids=PROMPT).lookahead(**options))
        ended = any(path[-1] == 7 for path in found)
        assert len(set(found)) == total or (ended and len(found) < total)


FORKS = [(0.05, 1.0), (0.05, 1.5), (0.9, 1.0), (0.0, 1.0)]


def paths_with_forks(odds: Odds, depth: int, cutoff: float, slope: float, split_limit: int) -> list[tuple[int, ...]]:
    """All paths that split only where another token passes the cutoff, depth first, likelier tokens first."""
    leaves: list[tuple[int, ...]] = [()]
    for level in range(depth):
        grown = []
        for path in leaves:
            if path and path[-1] == 7:
                grown.append(path)
                continue
            ways = odds.after(path)[:split_limit]
            chosen = [ways[0], *(way for way in ways[1:] if way[0] >= cutoff * slope**level)]
            grown += [(*path, token_id) for _, token_id in chosen]
        leaves = grown
    return leaves


def share_beside(odds: Odds, path: tuple[int, ...], rows: list[tuple[int, ...]]) -> float:
    """The probability of a path's shortest prefix that no row begins with."""
    return odds.of(next(path[:size] for size in range(1, 9) if all(row[:size] != path[:size] for row in rows)))


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize(("cutoff", "slope"), FORKS)
def test_forks_adds_the_row_with_the_highest_share_beside_those_it_has_until_there_are_k(
    model: Any, odds: Odds, k: int, cutoff: float, slope: float
) -> None:
    candidates, rows = paths_with_forks(odds, 4, cutoff, slope, 3), []
    while len(rows) < min(k, len(candidates)):
        # Of paths with the same share `max` takes the first: that with the likelier tokens.
        left = [path for path in candidates if path not in rows]
        rows.append(max(left, key=lambda path: share_beside(odds, path, rows)))
    document = Document(model, token_ids=PROMPT)
    result = document.lookahead(mode="forks", k=k, depth=4, cutoff=cutoff, slope=slope, split_limit=3)
    assert paths(result) == [path for path in candidates if path in rows]


@pytest.mark.parametrize("k", [3, 6])
@pytest.mark.parametrize(("cutoff", "slope"), FORKS)
def test_no_path_that_forks_leaves_out_would_have_a_higher_share_than_a_row_it_shows(
    model: Any, odds: Odds, k: int, cutoff: float, slope: float
) -> None:
    candidates = paths_with_forks(odds, 4, cutoff, slope, 3)
    options = {"mode": "forks", "k": k, "cutoff": cutoff, "slope": slope, "split_limit": 3}
    for step in Document(model, token_ids=PROMPT).lookahead_steps(depth=4, **options):
        rows = paths(step.result)
        assert step.result.coverage == pytest.approx(sum(branch.share for branch in step.result.branches))
        assert len(rows) <= k and step.result.coverage <= 1 + 1e-6
    lowest = min(branch.share for branch in step.result.branches)
    for path in set(candidates) - set(rows):
        assert share_beside(odds, path, rows) <= lowest + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("budget", "width"), [(1, 1), (12, 1), (12, 4), (40, 16)])
def test_best_first_grows_the_most_probable_frontier_nodes_within_its_budget(
    model: Any, odds: Odds, budget: int, width: int
) -> None:
    frontier = [(token_id,) for _, token_id in odds.after(())[:4]]
    done: list[tuple[int, ...]] = []
    spent = 0
    while spent < budget:
        open_ones = [path for path in frontier if path[-1] != 7 and len(path) < 4]
        chosen = sorted(open_ones, key=odds.of, reverse=True)[: min(width, budget - spent)]
        if not chosen:
            break
        spent += len(chosen)
        frontier = [path for path in frontier if path not in chosen]
        frontier += [(*path, token_id) for path in chosen for _, token_id in odds.after(path)[:4]]
    expected = sorted(frontier + done, key=odds.of, reverse=True)[:4]
    document = Document(model, token_ids=PROMPT)
    result = document.lookahead(mode="best_first", k=4, depth=4, budget=budget, width=width)
    assert paths(result) == expected
    assert result.cost.tokens <= len(PROMPT) + budget


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["likely", "every_level", "forks", "best_first", "diverse", "surprising"])
def test_shares_are_of_the_distinguishing_prefix_and_add_up_to_at_most_one(model: Any, odds: Odds, mode: str) -> None:
    result = Document(model, token_ids=PROMPT).lookahead(mode=mode, k=6, depth=5, cutoff=0.02)
    rows = paths(result)
    assert len(set(rows)) == len(rows)
    for branch in result.branches:
        others = [path for path in rows if path != branch.token_ids]
        length = next(
            size
            for size in range(1, len(branch.token_ids) + 1)
            if all(path[:size] != branch.token_ids[:size] for path in others)
        )
        assert branch.share == pytest.approx(odds.of(branch.token_ids[:length]), rel=1e-3)
        assert branch.probability == pytest.approx(odds.of(branch.token_ids), rel=1e-3)
    assert result.coverage == pytest.approx(sum(branch.share for branch in result.branches))
    assert sum(odds.of(branch.token_ids) for branch in result.branches) <= result.coverage <= 1 + 1e-6


MODES = ["likely", "every_level", "forks", "best_first", "sampled", "diverse", "surprising"]
PROMPT_TEXT = "After careful consideration of the"


class Draws:
    """What a stream draws: the plain forward's odds and the published generator's noise, token by token."""

    def __init__(self, hf_model: Any, seed: int, temperature: float, top_p: float) -> None:
        self.hf_model, self.seed, self.temperature, self.top_p = hf_model, seed, temperature, top_p

    def token(self, ids: list[int], stream: int, position: int, allowed: Any = None) -> int:
        """The token of a stream at a position, after these ids."""
        (logits,) = plain_rows(self.hf_model, [ids])
        odds = logits.softmax(-1).tolist()
        if allowed is not None:
            odds = [value if token_id in allowed else 0.0 for token_id, value in enumerate(odds)]
        if self.temperature == 0:
            return max(range(len(odds)), key=lambda token_id: odds[token_id])
        law = reference_odds(odds, self.temperature, self.top_p)
        scores = [
            (math.log(value) + reference_noise(self.seed, stream, position, token_id), token_id)
            for token_id, value in enumerate(law)
            if value > 0
        ]
        return max(scores)[1]

    def row(self, ids: list[int], stream: int, depth: int, stop: Any, unread: int = 0) -> tuple[int, ...]:
        path: list[int] = []
        while len(path) < depth and not (path and path[-1] in stop):
            path.append(self.token(ids + path, stream, len(ids) + len(path) + unread))
        return tuple(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("temperature", "top_p", "seed"), [(1, 1.0, 0), (0.7, 0.9, 12), (2.0, 0.5, 2**53), (0, 1.0, 4), (1.0, 1e-6, 9)]
)
def test_sampled_streams_depend_on_their_seed_stream_and_position(
    model: Any, temperature: float, top_p: float, seed: int
) -> None:
    draws = Draws(model.hf_model, seed, temperature, top_p)
    requested = {"mode": "sampled", "depth": 5, "temperature": temperature, "top_p": top_p, "seed": seed}
    expected = [draws.row(PROMPT, stream, 5, {7}) for stream in range(5)]
    result = Document(model, token_ids=PROMPT).lookahead(k=5, **requested)
    assert paths(result) == expected
    assert result.cost.passes <= 5, "all streams grow in one pass a level"
    single = Document(model, token_ids=PROMPT).lookahead(k=1, **requested)
    assert paths(single) == expected[:1]
    used = Document(model, token_ids=PROMPT)
    for other in ({"temperature": 1.9}, {"top_p": 0.3}, {"seed": 77}, {"banned": expected[0][:1]}):
        used.lookahead(k=5, **(requested | other))
    assert paths(used.lookahead(k=5, **requested)) == expected, "what was drawn otherwise is not taken for it"
    uncached = load_model(model.hf_model, tokenizer=None, engine="uncached")
    assert paths(Document(uncached, token_ids=PROMPT).lookahead(k=5, **requested)) == expected


@pytest.mark.slow
def test_a_sampled_branch_continues_the_same_way_after_any_part_of_it_is_accepted(model: Any) -> None:
    requested = {"mode": "sampled", "k": 4, "temperature": 1.3, "top_p": 0.95, "seed": 5}
    long = Document(model, token_ids=PROMPT).lookahead(depth=12, **requested).branches
    for stream in range(4):
        for taken in (1, 3, 6):
            document = Document(model, token_ids=PROMPT)
            shown = document.lookahead(depth=7, **requested).branches[stream]
            if taken >= len(shown.token_ids):
                continue
            document.accept(shown, taken)
            after = document.lookahead(depth=6, **requested).branches[stream].token_ids
            assert after == long[stream].token_ids[taken : taken + 6]


def test_samples_keep_their_position_in_a_text_longer_than_the_context(byte_tokenizer: Any) -> None:
    hf_model = tiny_llama(len(byte_tokenizer), max_position_embeddings=64)
    document = Document(load_model(hf_model, tokenizer=byte_tokenizer), "the sea and the sky " * 12)
    result = document.lookahead(mode="sampled", k=3, depth=6, seed=8)
    window = [node.token_id for node in document.tree.path(document.head)]
    unread = len(document.token_ids) - len(window)
    assert unread > 0
    draws = Draws(hf_model, 8, 1.0, 1.0)
    stop = document.model.end_token_ids
    assert paths(result) == [draws.row(window, stream, 6, stop, unread) for stream in range(3)]


@pytest.mark.slow
def test_a_repeated_sampled_lookahead_needs_no_pass_and_keeps_no_memory(tiny_model: Model) -> None:
    document = Document(tiny_model, PROMPT_TEXT)
    requested = {"mode": "sampled", "k": 6, "depth": 5, "temperature": 1.5}
    first = document.lookahead(**requested, seed=1)
    assert first.cost.passes == 5
    again = [document.lookahead(**requested, seed=seed) for seed in range(60)][1]
    assert again.branches == first.branches and again.cost.passes == 0
    assert document.lookahead(**requested, seed=59).cost.passes == 0
    assert len(document.head.memo or ()) <= 256, "the oldest of sixty times six go"
    document.text = "something else"
    gone = [weakref.ref(node) for node in document.tree.nodes() if node.memo and node is not document.head]
    document.prune()
    gc.collect()
    assert gone and not any(node() for node in gone)


def test_equal_sampled_branches_are_all_returned_and_covered_once(model: Any, odds: Odds) -> None:
    result = Document(model, token_ids=PROMPT).lookahead(mode="sampled", k=5, depth=4, temperature=0)
    assert len(paths(result)) == 5 and len(set(paths(result))) == 1
    assert result.coverage == pytest.approx(odds.after(())[0][0], rel=1e-4)
    for seed in range(8):
        result = Document(model, token_ids=PROMPT).lookahead(mode="sampled", k=8, depth=3, temperature=0.6, seed=seed)
        rows = sorted(set(paths(result)))
        beginnings = [
            next((row[:n] for n in range(1, len(row)) if not any(o[:n] == row[:n] for o in rows if o != row)), row)
            for row in rows
        ]
        assert result.coverage == pytest.approx(math.fsum(odds.of(path) for path in beginnings), rel=1e-3)
        shares = {branch.token_ids: branch.share for branch in result.branches}
        assert result.coverage == pytest.approx(sum(shares.values()))


@pytest.mark.slow
@pytest.mark.parametrize("text", ["the old keep", "Once upon a ", "watched the s", "the  "])
@pytest.mark.parametrize(("temperature", "top_p"), [(1.5, 1.0), (0.7, 0.8), (0.0, 1.0)])
def test_a_healed_sample_is_drawn_among_all_ways_to_go_on_from_the_typed_text(
    tiny_model: Model, text: str, temperature: float, top_p: float
) -> None:
    document, odds = Document(tiny_model, text), ways_on(tiny_model, text)
    ids, before = document.token_ids, len(document.token_ids) - 1
    requested = {"mode": "sampled", "k": 6, "depth": 4, "heal": True, "seed": 3}
    requested |= {"temperature": temperature, "top_p": top_p}
    result = document.lookahead(**requested)
    law = reference_odds(list(odds.values()), temperature, top_p) if temperature else []
    draws = Draws(tiny_model.hf_model, 3, temperature, top_p)
    for stream, branch in enumerate(result.branches):
        first = max(odds, key=lambda path: odds[path])
        if temperature:
            scores = {
                path: math.log(p) + reference_noise(3, stream, before + len(path) - 1, path[-1])
                for path, p in zip(odds, law, strict=True)
                if p > 0
            }
            first = max(scores, key=lambda path: scores[path])
        rest = draws.row([*ids[:-1], *first], stream, 4 - len(first), tiny_model.end_token_ids)
        assert branch.healed and branch.token_ids == (*first, *rest)
    again = document.lookahead(**requested)
    assert again.cost.passes == 0 and again.branches == result.branches
    for other in ({"seed": 4}, {"k": 9}, {"temperature": 0.9}, {"top_p": 0.5}):
        changed = requested | other
        assert paths(document.lookahead(**changed)) == paths(Document(tiny_model, text).lookahead(**changed))


TALES = [
    "The old keeper climbed the stairs, and the sea was grey.\nHe saw the lamp, and then the old ship again.\n",
    "The sea was grey, and the old keeper saw a ship. He climbed again, and the lamp was small.\n\nThe end came.",
    "A small ship came, then the grey sea. The keeper saw the stairs and the lamp again.\n",
]
"""Letters, spaces, commas, full stops and line breaks alone: where words and sentences end is plain to see."""
ENDINGS = {
    "word": re.compile(r"\s*([A-Za-z]+(?=[ ,.\n])|[,.])|\n"),
    "clause": re.compile(r"[^,.\n]*([,.](?=[ \n])|\n)"),
    "sentence": re.compile(r"[^.\n]*(\.(?=[ \n])|\n)"),
    "line": re.compile(r"[^\n]*\n+"),
}
"""What ends at the first word, clause, sentence or line that is seen to end in such a text."""


@pytest.fixture(scope="module")
def teller() -> Model:
    """A model that tells of the sea, in tokens that are parts of words, words, signs and line breaks."""
    return parrot(TALES)


def cut_by_reading(model: Model, start: list[int], row: tuple[int, ...], until: str) -> tuple[tuple[int, ...], int]:
    """What stays of a row, and how many of its tokens had to be known, by the text that the tokenizer makes of them."""
    decode = model.tokenizer.decode
    before = len(decode(start))
    lengths = [len(decode([*start, *row[:size]])) - before for size in range(len(row) + 1)]
    text = decode([*start, *row])[before:]
    for known in range(1, len(row) + 1):
        if row[known - 1] in model.end_token_ids:
            break
        if found := ENDINGS[until].match(text[: lengths[known]]):
            return row[: next(size for size in range(known + 1) if lengths[size] >= found.end())], known
    return row, len(row)


@pytest.mark.parametrize("until", mostly_slow(ENDINGS, 2))
@pytest.mark.parametrize("mode", ["likely", pytest.param("sampled", marks=pytest.mark.slow)])
def test_a_branch_grows_to_the_first_boundary_and_no_further(teller: Model, until: str, mode: str) -> None:
    cuts, plain = 0, re.compile(rb"[A-Za-z ,.\n]+")
    pieces = tokens_as_bytes(teller.tokenizer)
    banned = [i for i, piece in enumerate(pieces) if not plain.fullmatch(piece) and i not in teller.end_token_ids]
    requested = {"mode": mode, "k": 8, "depth": 24, "seed": 2, "banned": banned}
    for text in ("The old", "The old kee", "He saw the lamp", "A small ship came, then", "The sea was grey."):
        whole = Document(teller, text)
        rows = whole.lookahead(**requested)
        document = Document(teller, text)
        result = document.lookahead(until=until, **requested)
        needed = set()
        for row, branch in zip(rows.branches, result.branches, strict=True):
            expected, seen = cut_by_reading(teller, whole.token_ids, row.token_ids, until)
            assert branch.token_ids == expected
            assert branch.logprobs == pytest.approx(row.logprobs[: len(expected)], abs=1e-4)
            assert branch.probability == pytest.approx(math.exp(math.fsum(branch.logprobs)))
            cuts += len(expected) < len(row.token_ids)
            needed |= {row.token_ids[:count] for count in range(seen)}
        assert result.cost.tokens == len(whole.token_ids) + len(needed) - 1, "only what is incomplete costs a pass"
    assert cuts >= (10 if mode == "sampled" else 1)


@pytest.mark.parametrize("mode", ["every_level", "forks", "best_first", "diverse", "surprising"])
def test_modes_with_a_tree_return_each_complete_path_once_and_nothing_below_it(tiny_model: Model, mode: str) -> None:
    requested = {"mode": mode, "k": 4, "cutoff": 0.02, "branch_levels": 3, "budget": 40}
    for level, until in enumerate(ENDINGS, start=1):
        document = Document(tiny_model, PROMPT_TEXT)
        result = document.lookahead(until=until, depth=8, **requested)
        rows = paths(result)
        assert len(set(rows)) == len(rows) and result.coverage <= 1
        for branch in result.branches:
            for piece in branch.pieces[:-1]:
                assert piece.ends < level, "nothing grows behind a boundary"
            complete = branch.pieces and branch.pieces[-1].ends >= level
            assert complete or branch.ended or mode == "best_first" or len(branch.token_ids) == 8
        assert document.lookahead(until=until, depth=8, **requested).cost.passes == 0


def test_a_path_that_another_path_continues_is_covered_with_it() -> None:
    half = math.log(0.5)
    rows = {(1,): (half,), (1, 2): (half, half), (1, 2, 3): (half, half, half), (4, 5): (2 * half, half)}
    lengths = distinguishing_lengths([*rows, (4, 5)])
    assert lengths == {(1,): 1, (1, 2): 2, (1, 2, 3): 3, (4, 5): 1}
    assert covered_probability(rows, lengths) == pytest.approx(0.5 + 0.25)


def test_without_a_tokenizer_there_are_no_words_to_end_with(model: Any) -> None:
    with pytest.raises(TextError, match="without a tokenizer"):
        Document(model, token_ids=PROMPT).lookahead(until="word")


@pytest.mark.parametrize("count", mostly_slow([3, 80, 1, 60], 2))
@pytest.mark.parametrize("mode", MODES)
def test_a_banned_token_has_no_share_and_odds_are_renormalised_without_it(
    model: Any, odds: Odds, mode: str, count: int
) -> None:
    """Of a vocabulary of 96, of which a prediction keeps 64: with 60 or 80 banned the full row has to tell."""
    banned = {token_id for _, token_id in odds.after(())[:count]}
    document = Document(model, token_ids=PROMPT)
    requested = {"mode": mode, "k": 4, "depth": 4, "cutoff": 0.001, "temperature": 2}
    document.lookahead(**requested)
    result = document.lookahead(banned=banned, **requested)
    assert result.branches
    rows = paths(result)
    for branch in result.branches:
        assert not banned & set(branch.token_ids)
        others = [path for path in rows if path != branch.token_ids]
        sizes = range(1, len(branch.token_ids) + 1)
        apart = next((n for n in sizes if all(p[:n] != branch.token_ids[:n] for p in others)), sizes[-1])
        assert branch.share == pytest.approx(odds.of(branch.token_ids[:apart], banned), rel=1e-3)
        assert branch.probability == pytest.approx(odds.of(branch.token_ids, banned), rel=1e-3)
        for place, said in enumerate(branch.said):
            law = dict((i, p) for p, i in odds.without(branch.token_ids[:place], banned))
            assert set(said.token_ids) <= set(law) and len(said.token_ids) == min(64, len(law))
            assert list(map(math.exp, said.logprobs)) == pytest.approx([law[i] for i in said.token_ids], rel=1e-3)
    shares = {branch.token_ids: branch.share for branch in result.branches}
    assert result.coverage == pytest.approx(sum(shares.values()))
    if count >= 60:
        left = math.fsum(math.exp(other.logprobs[0]) for other in result.rest)
        firsts = math.fsum(odds.of((first,), banned) for first in {path[0] for path in rows})
        assert left + firsts == pytest.approx(1, abs=1e-3), "everything that is not banned is told"
    again = document.lookahead(banned=list(banned), **requested)
    assert again.cost.passes == 0 and again.branches == result.branches
    free = document.lookahead(**requested)
    assert free.cost.passes == 0, "what is known without bans stays known"
    for branch in free.branches:
        assert branch.probability == pytest.approx(odds.of(branch.token_ids), rel=1e-3)
    if mode == "likely":
        assert rows == [greedy_without(odds, (first,), banned) for first in allowed(odds, (), banned)[:4]]
    if mode == "every_level":
        firsts = [(one, two) for one in allowed(odds, (), banned)[:4] for two in allowed(odds, (one,), banned)[:4]]
        ways = [(one, two) if one != 7 else (one,) for one, two in firsts]
        assert rows == [greedy_without(odds, way, banned) for way in dict.fromkeys(ways)]


@pytest.mark.parametrize("mode", ["likely", "sampled"])
def test_odds_without_the_likeliest_token_can_be_reheated(model: Any, odds: Odds, mode: str) -> None:
    first = odds.after(())[0][1]
    requested = {"mode": mode, "k": 3, "depth": 3, "banned": [first], "temperature": 0}
    result = Document(model, token_ids=PROMPT).lookahead(**requested)
    view = lookahead_as_json(result)
    for branch, shown in zip(result.branches, view["branches"], strict=True):
        for place, said in enumerate(branch.said):
            (logits,) = plain_rows(model.hf_model, [PROMPT + list(branch.token_ids[:place])])
            logits[first] = -math.inf
            for temperature in (0.3, 1.0, 2.0):
                exact = (logits / temperature).softmax(0)[list(said.token_ids)].tolist()
                assert said.reheated(temperature)[0] == pytest.approx(exact, rel=0.01)
            node = PackedNode(view["nodes"][shown["at"][place]])
            assert node.below[0] == 0
            exact = (logits / 0.5).softmax(0)
            assert node.probability(shown["logprobs"][place], 5) == pytest.approx(
                float(exact[branch.token_ids[place]]), rel=0.01
            )
    # At temperature 0 a page gives all of the probability to what lies nothing below the likeliest token.
    top = PackedNode(view["nodes"][0]).top
    assert view["branches"][0]["logprobs"][0] == pytest.approx(top, abs=1e-3)
    assert (
        view["asked"]["banned"] == 1
        and lookahead_as_json(replace(result, options=LookaheadOptions()))["asked"]["banned"] == 0
    )


def allowed(odds: Odds, path: tuple[int, ...], banned: set[int]) -> list[int]:
    return [token_id for _, token_id in odds.after(path) if token_id not in banned]


def greedy_without(odds: Odds, path: tuple[int, ...], banned: set[int]) -> tuple[int, ...]:
    while len(path) < 4 and path[-1] != 7:
        path = (*path, allowed(odds, path, banned)[0])
    return path


def test_a_sample_with_bans_is_drawn_from_the_renormalised_rest(model: Any) -> None:
    banned = {5, 9, 11, 20, 33}
    draws = Draws(model.hf_model, 6, 1.2, 0.9)
    result = Document(model, token_ids=PROMPT).lookahead(
        mode="sampled", k=5, depth=1, banned=banned, temperature=1.2, top_p=0.9, seed=6
    )
    left = set(range(96)) - banned
    assert paths(result) == [(draws.token(PROMPT, stream, len(PROMPT), left),) for stream in range(5)]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_bans_apply_when_the_last_token_is_reopened_but_not_to_that_token(tiny_model: Model, mode: str) -> None:
    document = Document(tiny_model, "the old keep")
    requested = {"mode": mode, "k": 5, "depth": 4, "heal": True, "cutoff": 0.0, "temperature": 2}
    free = document.lookahead(**requested)
    banned = {branch.token_ids[0] for branch in free.branches} | {document.head.token_id}
    banned |= {branch.token_ids[1] for branch in free.branches}
    ids, head, hf_model = document.token_ids, document.head.token_id, tiny_model.hf_model
    spelled = tokens_as_bytes(tiny_model.tokenizer)
    for asked_banned in (banned, banned - {head}):
        result = document.lookahead(**requested, banned=asked_banned)
        assert result.branches and result.coverage <= 1 + 1e-6
        for branch in result.branches:
            through = branch.token_ids[0] == head
            assert not asked_banned & set(branch.token_ids[through:])
            logprob = 0.0
            for place, token_id in enumerate(branch.token_ids):
                (row,) = plain_rows(hf_model, [[*ids[:-1], *branch.token_ids[:place]]])
                gone = asked_banned if place else asked_banned - {head}
                left = [i for i in range(len(row)) if i not in gone and (place or spelled[i].startswith(spelled[head]))]
                logprob += float(row[token_id] - row[left].logsumexp(0))
            assert branch.logprob == pytest.approx(logprob, abs=1e-3)
        for other in result.rest:
            assert not asked_banned & set(other.token_ids[other.token_ids[0] == head :])
        assert document.lookahead(**requested, banned=asked_banned).cost.passes == 0


@pytest.mark.parametrize("mode", MODES)
def test_the_rest_holds_the_other_probable_first_tokens(model: Any, odds: Odds, mode: str) -> None:
    document = Document(model, token_ids=PROMPT)
    banned = {odds.after(())[1][1]}
    result = document.lookahead(mode=mode, k=3, depth=3, banned=banned)
    firsts = {path[0] for path in paths(result)}
    expected = [(i, p) for p, i in odds.without((), banned)[:64] if i not in firsts]
    assert [other.token_ids for other in result.rest] == [(token_id,) for token_id, _ in expected]
    for other, (token_id, probability) in zip(result.rest, expected, strict=True):
        assert math.exp(*other.logprobs) == pytest.approx(probability, rel=1e-3)
        assert (other.text, other.ended) == (None, token_id == 7)


@pytest.mark.parametrize("mode", MODES)
def test_a_healed_row_is_set_apart_by_text_that_it_inserts(tiny_model: Model, mode: str) -> None:
    for text, k in itertools.product(("the old keep", "watched the s", "Once upon a "), (1, 2, 5)):
        document = Document(tiny_model, text)
        spelled = tokens_as_bytes(tiny_model.tokenizer)
        typed = len(spelled[document.token_ids[-1]])
        result = document.lookahead(mode=mode, k=k, depth=4, heal=True, cutoff=0.0)
        for branch in result.branches:
            path, others = branch.token_ids, [row for row in paths(result) if row != branch.token_ids]
            apart = [n for n in range(1, len(path)) if all(row[:n] != path[:n] for row in others)]
            inserted = {n: b"".join(spelled[i] for i in path[:n])[typed:] for n in apart}
            whole = {n: codecs.getincrementaldecoder("utf-8")("replace").decode(inserted[n]) for n in apart}
            size = next((n for n in apart if whole[n]), len(path))
            assert branch.share == pytest.approx(math.exp(math.fsum(branch.logprobs[:size])))
        rest = math.fsum(math.exp(math.fsum(other.logprobs)) for other in result.rest)
        assert result.coverage + rest <= 1 + 1e-6, "no text is counted among the rows and among the rest"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("banned", [(), (5,)])
def test_a_word_that_is_typed_again_after_its_token_was_removed_has_the_same_rows(
    tiny_model: Model, mode: str, banned: tuple[int, ...]
) -> None:
    document, options = Document(tiny_model, "the old keep"), {"mode": mode, "k": 5, "depth": 3, "heal": True}
    first = document.lookahead(**options, banned=banned)
    before = paths(first)
    head = document.tree.head
    document.rewind(1)
    document.lookahead(k=1, depth=1)
    document.prune()
    assert head not in document.tree.nodes() and document.tree.head is head.parent
    document.text = "the old keep"
    again = document.lookahead(**options, banned=banned)
    assert paths(again) == before
    assert [branch.logprob for branch in again.branches] == pytest.approx([branch.logprob for branch in first.branches])


def test_the_rest_of_a_healed_lookahead_holds_the_text_that_would_be_inserted(tiny_model: Model) -> None:
    document = Document(tiny_model, "watched the s")
    ids, spelled = document.token_ids, tokens_as_bytes(tiny_model.tokenizer)
    result = document.lookahead(k=2, depth=3, heal=True)
    before, after = plain_rows(tiny_model.hf_model, [ids[:-1], ids])
    allowed = [i for i in range(len(spelled)) if spelled[i].startswith(spelled[ids[-1]])]
    given = dict(zip(allowed, before[allowed].softmax(0).tolist(), strict=True))
    following = after.softmax(0).tolist()
    odds = {(i,): p for i, p in given.items() if i != ids[-1]}
    odds |= {(ids[-1], i): given[ids[-1]] * p for i, p in enumerate(following)}
    begun = {branch.token_ids[: 1 + (branch.token_ids[0] == ids[-1])] for branch in result.branches}
    expected = sorted((path for path in odds if path not in begun), key=lambda path: -odds[path])
    assert [other.token_ids for other in result.rest][:40] == expected[:40]
    for other in result.rest:
        path = b"".join(spelled[i] for i in other.token_ids)[len(spelled[ids[-1]]) :]
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(path)
        assert other.text == (text if text and "\ufffd" not in text else None)
        assert math.exp(sum(other.logprobs)) == pytest.approx(odds[other.token_ids], rel=1e-3)
    logits = before
    assert result.said is not None
    for temperature in (0.5, 1.0, 2.0):
        shares, rest = result.said.reheated(temperature)
        exact = (logits[list(result.said.token_ids)] / temperature).softmax(0).tolist()
        assert shares == pytest.approx(exact, rel=0.01) and rest == pytest.approx(0, abs=0.01)


def ways_on(model: Model, text: str) -> dict[tuple[int, ...], float]:
    """The probability of every token that replaces the last typed one, and of every token after the typed one.

    They are conditioned on the typed text, and have a sum of 1.
    """
    ids, spelled = Document(model, text).token_ids, tokens_as_bytes(model.tokenizer)
    before, after = plain_rows(model.hf_model, [ids[:-1], ids])
    allowed = [i for i in range(len(spelled)) if spelled[i].startswith(spelled[ids[-1]])]
    given = dict(zip(allowed, before[allowed].double().softmax(0).tolist(), strict=True))
    odds = {(i,): p for i, p in given.items() if i != ids[-1]}
    return odds | {(ids[-1], i): given[ids[-1]] * p for i, p in enumerate(after.double().softmax(0).tolist())}


@pytest.mark.parametrize("text", ["the old keep", "watched the s", "He saw the ship"])
@pytest.mark.parametrize("options", [{}, {"temperature": 0}, {"temperature": 2.0}, {"temperature": 0.6, "top_p": 0.5}])
def test_the_first_tokens_of_a_healed_lookahead_are_the_likeliest_at_every_temperature(
    tiny_model: Model, text: str, options: dict[str, float]
) -> None:
    typed_id, odds = Document(tiny_model, text).token_ids[-1], ways_on(tiny_model, text)
    result = Document(tiny_model, text).lookahead(k=6, depth=4, heal=True, **options)
    begun = [branch.token_ids[: 1 + (branch.token_ids[0] == typed_id)] for branch in result.branches]
    assert begun == sorted(odds, key=lambda path: -odds[path])[:6]
    assert result.typed is not None and result.typed.token_id == typed_id
    kept = math.fsum(p for path, p in odds.items() if path[0] == typed_id)
    assert math.exp(result.typed.logprob) == pytest.approx(kept, rel=1e-3)
    plain = Document(tiny_model, text).lookahead(k=6, depth=4)
    assert plain.typed is None


def test_a_row_that_begins_with_a_control_token_has_its_first_piece_after_it(byte_tokenizer: Any) -> None:
    """A start token that comes up as a continuation is no end and no text: the piece that follows takes it along."""
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    start, (letter,) = byte_tokenizer.bos_token_id, byte_tokenizer("k", add_special_tokens=False).input_ids
    document = Document(model, "the sea")
    banned = set(range(len(byte_tokenizer))) - {start, letter}
    result = document.lookahead(mode="every_level", k=2, branch_levels=2, depth=2, banned=banned)
    branches = {branch.token_ids: branch for branch in result.branches}
    assert len(branches) == 4
    (piece,) = branches[start, letter].pieces
    assert (piece.text, piece.token_ids, piece.tokens) == ("k", (start, letter), 2)
    assert branches[start, start].pieces == () and not branches[start, start].ended
    assert document.accept(branches[start, letter], piece.tokens) == "k"
    assert document.text == "the seak" and document.token_ids[-2:] == [start, letter]


@pytest.mark.parametrize("heal", [False, True])
def test_pieces_are_runs_of_tokens_on_whole_characters_with_the_odds_of_their_tokens(
    tiny_model: Model, heal: bool
) -> None:
    document = Document(tiny_model, "naïve 🙂 and the old keep")
    several = 0
    for seed in range(6):
        requested = {"mode": "sampled", "k": 6, "depth": 8, "seed": seed, "temperature": 2, "heal": heal}
        for branch in document.lookahead(**requested).branches:
            spelled, begun = tokens_as_bytes(tiny_model.tokenizer), 0
            typed = len(spelled[document.token_ids[-1]]) if branch.healed else 0
            shown = codecs.getincrementaldecoder("utf-8")("replace")
            for piece in branch.pieces:
                assert piece.token_ids == branch.token_ids[begun : piece.tokens]
                odds = math.exp(math.fsum(branch.logprobs[begun : piece.tokens]))
                assert piece.probability == pytest.approx(odds)
                held = b"".join(spelled[token_id] for token_id in piece.token_ids)
                assert shown.decode(held[typed if not begun else 0 :]) == piece.text != ""
                several += len(piece.token_ids) > 1
                begun = piece.tokens
            left = branch.token_ids[begun:]
            assert shown.decode(b"".join(spelled[token_id] for token_id in left)) == "", (
                "no whole character is left out"
            )
            assert branch.text == "".join(piece.text for piece in branch.pieces)
    assert several > 5


def test_an_end_token_completes_a_branch_in_every_unit_of_text(byte_tokenizer: Any) -> None:
    (letter,) = byte_tokenizer("k", add_special_tokens=False).input_ids
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    banned = set(range(len(byte_tokenizer))) - {letter, 0}
    requested = {"mode": "every_level", "k": 2, "branch_levels": 2, "depth": 2, "banned": banned}
    for until in ("tokens", "word", "line"):
        branches = {b.token_ids: b for b in Document(model, "the sea").lookahead(until=until, **requested).branches}
        assert set(branches) == {(0,), (letter, 0), (letter, letter)}
        assert branches[letter, 0].ended and [piece.ends for piece in branches[letter, 0].pieces] == [4]
        assert [piece.ends for piece in branches[letter, letter].pieces] == [0, 0]


def test_a_branch_keeps_no_tree_alive(tiny_model: Model) -> None:
    document = Document(tiny_model, "the sea")
    result = document.lookahead(k=2, depth=3)
    head = weakref.ref(document.head)
    assert result.branches[0].origin is document.head
    del document
    gc.collect()
    assert head() is None and result.branches[0].origin is None
