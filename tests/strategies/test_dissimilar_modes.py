"""The modes "diverse" and "surprising" equal a slow search over plain forwards with its own measure of likeness."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model, load_model
from lookahead_core.text.word_sets import words_in
from tests.support.families import make
from tests.support.scripted_model import parrot

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]
END = 7
Path = tuple[int, ...]


@pytest.fixture(scope="module")
def model() -> Any:
    hf_model = make("llama")
    hf_model.generation_config.eos_token_id = END
    return load_model(hf_model, tokenizer=None)


class Search:
    """Candidates and the choice among them, by plain forward passes and written for clarity alone."""

    def __init__(self, model: Any, k: int, depth: int, banned: Any = ()) -> None:
        self.hf_model, self.k, self.depth, self.banned = model.hf_model, k, depth, banned
        self.known: dict[Path, tuple[list[tuple[float, int]], list[float]]] = {}

    def after(self, path: Path) -> list[tuple[float, int]]:
        """Log-probability and id of each token after the prompt and a path, likeliest first."""
        return self._forward(path)[0]

    def _forward(self, path: Path) -> tuple[list[tuple[float, int]], list[float]]:
        if path not in self.known:
            with torch.inference_mode():
                out = self.hf_model(torch.tensor([[*PROMPT, *path]]), output_hidden_states=True)
            logits = out.logits[0, -1].double()
            logits[list(self.banned)] = -math.inf
            law = logits.log_softmax(-1).tolist()
            ranked = sorted(((p, i) for i, p in enumerate(law) if p > -math.inf), reverse=True)
            self.known[path] = ranked, out.hidden_states[-1][0, -1].tolist()
        return self.known[path]

    def logprobs(self, path: Path) -> list[float]:
        return [next(p for p, i in self.after(path[:at]) if i == path[at]) for at in range(len(path))]

    def worth(self, path: Path, apart: int) -> float:
        own, best = self.logprobs(path), [self.after(path[:at])[0][0] for at in range(len(path))]
        return sum(own[:apart]) + sum(own[at] - best[at] for at in range(apart, len(path)))

    def candidates(self) -> list[Path]:
        count = min(4 * self.k, 64)
        paths: list[Path] = [(i,) for _, i in self.after(())[:count]]
        for level in range(1, min(self.depth, 8)):
            grown = []
            for path in paths:
                width = 4 if level < 3 else 1
                grown += [path] if path[-1] == END else [(*path, i) for _, i in self.after(path)[:width]]
            ranked = sorted(grown, key=lambda path: -self.worth(path, 1)) if level < 3 else grown
            few = [path for at, path in enumerate(ranked) if sum(other[0] == path[0] for other in ranked[:at]) < 4]
            paths = few[:count] if level < 3 else grown
        return paths

    def alike(self, paths: list[Path], by_vectors: bool) -> list[list[float]]:
        vectors = []
        for path in paths:
            states = [self._forward(path[:size])[1] for size in range(1, max(2, len(path)))]
            vectors.append([math.fsum(column) / len(states) for column in zip(*states, strict=True)])
        middle = [math.fsum(column) / len(vectors) for column in zip(*vectors, strict=True)]
        arrows = [[x - m for x, m in zip(vector, middle, strict=True)] for vector in vectors]

        def cosine(one: list[float], other: list[float]) -> float:
            return math.fsum(x * y for x, y in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))

        def words(one: Path, other: Path) -> float:
            return len(set(one) & set(other)) / len(set(one) | set(other))

        return [
            [
                2 / 3 * words(one, other) + max(0.0, cosine(arrow, others)) / 3 if by_vectors else words(one, other)
                for other, others in zip(paths, arrows, strict=True)
            ]
            for one, arrow in zip(paths, arrows, strict=True)
        ]

    def apart(self, path: Path, others: list[Path]) -> int:
        sizes = range(1, len(path) + 1)
        return next((size for size in sizes if all(other[:size] != path[:size] for other in others)), len(path))

    def total(self, chosen: list[Path]) -> float:
        return sum(self.worth(path, self.apart(path, [o for o in chosen if o != path])) for path in chosen)

    def choose(self, *, contrast: float | None = None, floor: float = 0.0, by_vectors: bool = True) -> list[Path]:
        """The rows of "diverse" for a contrast, of "surprising" for a floor."""
        paths = self.candidates()
        table = self.alike(paths, by_vectors)
        alike = {(one, other): table[i][j] for i, one in enumerate(paths) for j, other in enumerate(paths)}
        chosen = paths[:1]
        while len(chosen) < self.k:
            left = [path for path in paths if path not in chosen]
            closest = {path: max(alike[path, other] for other in chosen) for path in left}
            if contrast is not None:
                scores = {path: self.total([*chosen, path]) - contrast * closest[path] for path in left}
            else:
                shown = [i for _, i in self.after(())[: self.k]]
                unlike = {path: -(alike[path, chosen[0]] + closest[path]) / 2 for path in left}
                scores = {path: (path[0] not in shown, unlike[path]) for path in left}
                for path in left:
                    rows = [*chosen, path]
                    likely = [self.worth(row, self.apart(row, [o for o in rows if o != row])) for row in rows[1:]]
                    if min(likely) < math.log(floor or 1e-300):
                        del scores[path]
            if not scores:
                break
            chosen.append(max(scores, key=lambda path: scores[path]))
        return [self.greedy(path) for path in chosen]

    def greedy(self, path: Path) -> Path:
        while len(path) < self.depth and path[-1] != END:
            path = (*path, self.after(path)[0][1])
        return path


def rows(result: Any) -> list[Path]:
    return [branch.token_ids for branch in result.branches]


@pytest.mark.slow
@pytest.mark.parametrize("contrast", [0.0, 2.0, 10.0, 100.0])
@pytest.mark.parametrize(("k", "depth"), [(4, 5), (3, 11), (5, 1), (1, 3)])
def test_diverse_chooses_by_probability_minus_similarity(model: Any, contrast: float, k: int, depth: int) -> None:
    result = Document(model, token_ids=PROMPT).lookahead(mode="diverse", k=k, depth=depth, contrast=contrast)
    assert rows(result) == Search(model, k, depth).choose(contrast=contrast)
    assert result.compared_by == "hidden states and words"


@pytest.mark.slow
@pytest.mark.parametrize("floor", [0.0, 0.001, 0.01, 0.03, 0.5])
@pytest.mark.parametrize(("k", "depth"), [(4, 5), (3, 11), (5, 1)])
def test_surprising_chooses_likely_enough_rows_unlike_the_first(model: Any, floor: float, k: int, depth: int) -> None:
    result = Document(model, token_ids=PROMPT).lookahead(mode="surprising", k=k, depth=depth, floor=floor)
    assert rows(result) == Search(model, k, depth).choose(floor=floor)
    assert all(branch.share >= floor * 0.999 for branch in result.branches[1:])
    likely = Document(model, token_ids=PROMPT).lookahead(k=1, depth=depth)
    assert rows(result)[0] == rows(likely)[0]
    assert len(rows(result)) == (1 if floor == 0.5 else len(rows(result)))


@pytest.mark.parametrize("requested", [{"mode": "diverse"}, {"mode": "surprising"}])
def test_predictions_of_an_earlier_lookahead_change_no_row(model: Any, requested: dict[str, Any]) -> None:
    """Predictions of an earlier lookahead have no hidden states: computing these takes one pass more at most."""
    fresh = Document(model, token_ids=PROMPT)
    first = fresh.lookahead(k=4, depth=6, **requested)
    likely = Document(model, token_ids=PROMPT).lookahead(k=4, depth=6)
    assert first.cost.passes == likely.cost.passes, "as many passes as the mode likely, with more nodes in each"
    again = fresh.lookahead(k=4, depth=6, **requested)
    assert again.branches == first.branches and again.cost.passes == 0
    for earlier in ({"mode": "best_first", "budget": 100}, {"k": 20, "depth": 9}, {"mode": "every_level", "k": 7}):
        document = Document(model, token_ids=PROMPT)
        document.lookahead(**earlier)
        result = document.lookahead(k=4, depth=6, **requested)
        assert rows(result) == rows(first) and result.cost.passes <= first.cost.passes
    *_, last = fresh.lookahead_steps(k=4, depth=6, **requested)
    assert last.result.branches == first.branches


@pytest.mark.parametrize("requested", [{"mode": "diverse"}, {"mode": "surprising"}])
def test_without_hidden_states_rows_are_compared_by_words_alone_and_the_result_says_so(
    model: Any, requested: dict[str, Any]
) -> None:
    uncached = load_model(model.hf_model, tokenizer=None, engine="uncached")
    result = Document(uncached, token_ids=PROMPT).lookahead(k=4, depth=5, **requested)
    assert result.compared_by == "words"
    choice = {"contrast": 10.0} if requested["mode"] == "diverse" else {"floor": 0.003}
    assert rows(result) == Search(model, 4, 5).choose(**choice, by_vectors=False)
    assert Document(uncached, token_ids=PROMPT).lookahead().compared_by == ""


@pytest.mark.parametrize("count", [1, 5, 60])
def test_banned_tokens_are_in_no_dissimilar_row(model: Any, count: int) -> None:
    banned = [i for _, i in Search(model, 4, 5).after(())[:count] if i != END]
    document = Document(model, token_ids=PROMPT)
    document.lookahead(mode="diverse", k=4)
    result = document.lookahead(mode="diverse", k=4, depth=5, banned=banned)
    assert rows(result) == Search(model, 4, 5, banned).choose(contrast=10.0)


def test_every_step_shows_rows_that_differ_and_the_last_are_the_result(model: Any) -> None:
    for mode in ("diverse", "surprising"):
        steps = list(Document(model, token_ids=PROMPT).lookahead_steps(mode=mode, k=4, depth=11, floor=0.001))
        shown = [rows(step.result) for step in steps if step.result.branches]
        assert all(1 <= len(found) <= 4 and len(set(found)) == len(found) for found in shown)
        assert all(step.result.coverage <= 1 + 1e-6 for step in steps)
        assert len(steps) >= 11


TALES = ["The old keeper saw the sea, and the old keeper saw the ship.", "A small ship saw the old keeper and the sea."]


@pytest.fixture(scope="module")
def teller() -> Model:
    return parrot(TALES)


@pytest.mark.parametrize("mode", ["diverse", "surprising"])
@pytest.mark.parametrize("text", ["The old kee", "The ", "The old keeper saw", "A small ship saw the o"])
def test_a_dissimilar_row_continues_the_typed_word(teller: Model, mode: str, text: str) -> None:
    document = Document(teller, text)
    result = document.lookahead(mode=mode, k=4, depth=8, heal=True, floor=1e-6)
    assert result.branches and len(set(rows(result))) == len(rows(result))
    likely = {first for first, *_ in rows(Document(teller, text).lookahead(k=16, heal=True))}
    assert {row[0] for row in rows(result)} <= likely
    assert all(branch.healed == bool(result.given) for branch in result.branches)
    assert result.coverage <= 1 + 1e-6


def test_rows_that_end_at_a_boundary_are_compared_as_they_are(teller: Model) -> None:
    for until in ("word", "sentence"):
        result = Document(teller, "The").lookahead(mode="diverse", k=5, depth=20, until=until)
        assert 1 <= len(set(rows(result))) == len(rows(result)) <= 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" The sea, the SEA!", {"the", "sea"}),
        ("in 1984_x", {"in", "1984", "x"}),
        (" ... ,\n", set()),
        ("", set()),
        ("Straße", {"strasse"}),
        ("海を見た", {"海", "を", "見", "た"}),
        ("don't", {"don", "t"}),
    ],
)
def test_words_are_compared_without_signs_and_capitals(text: str, words: set[str]) -> None:
    assert words_in(text) == words
