"""The branch view by itself, in a real browser: odds, what is cut and what it holds, rows, keys, presses and notes."""

from __future__ import annotations

import base64
import json
import math
import random
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from interface.branch_view import branch_view
from interface.web.theme import COLOURS
from tests.support.browser import LISTEN, expect, importing
from tests.support.workbench import workbench

pytestmark = [pytest.mark.browser, pytest.mark.slow]

Ids = tuple[int, ...]
VOCABULARY = 300
WORDS = ["the", "a", "sea", "ship", "keeper", "saw", "he", "lamp", "said", "down", "by", "old", "stairs", "light"]
END = 299


# A made-up model, and views of it packed by other code than the app's.


@cache
def row_after(ids: Ids, spread: float = 2.5, vocabulary: int = VOCABULARY) -> tuple[float, ...]:
    """The log-probabilities of all tokens after these."""
    dice = random.Random(f"{ids} {spread} {vocabulary}")
    logits = [dice.gauss(0, spread) for _ in range(vocabulary)]
    total = math.log(math.fsum(map(math.exp, logits)))
    return tuple(logit - total for logit in logits)


def packed(row: Sequence[float]) -> str:
    most = max(row)
    heats = [math.log(math.fsum(math.exp((one - most) / (tenth / 10)) for one in row)) for tenth in range(1, 21)]
    drops = [most - one for one in sorted(row, reverse=True)[:64]]
    numbers = [round(heat * 5000) for heat in heats] + [min(65535, round(drop * 2000)) for drop in drops]
    return base64.b64encode(struct.pack(f"<{len(numbers)}H", *numbers)).decode()


@cache
def packed_after(ids: Ids) -> str:
    return packed(row_after(ids))


def heated(row: Sequence[float], temperature: float) -> list[float]:
    """The probabilities of all tokens at this temperature."""
    most = max(row)
    if temperature == 0:
        return [float(one == most) for one in row]
    weights = [math.exp((one - most) / temperature) for one in row]
    return [weight / math.fsum(weights) for weight in weights]


def odds(row: Sequence[float], temperature: float = 1.0, top_p: float = 1.0) -> list[float]:
    """After temperature and nucleus, from the whole vocabulary."""
    probabilities = heated(row, temperature)
    kept, mass = set(), 0.0
    for token in sorted(range(len(row)), key=lambda token: -row[token]):
        if mass >= top_p and top_p < 1:
            break
        kept.add(token)
        mass += probabilities[token]
    return [probability / mass if token in kept else 0.0 for token, probability in enumerate(probabilities)]


def likeliest(row: Sequence[float], count: int) -> list[int]:
    return sorted(range(len(row)), key=lambda token: -row[token])[:count]


def text_of(token: int) -> str:
    return f" {WORDS[token % len(WORDS)]}{token // len(WORDS) or ''}"


def path_of(first: Ids, depth: int) -> Ids:
    """These tokens and the likeliest ones after them."""
    ids = first
    while len(ids) < depth:
        ids += (likeliest(row_after(ids), 1)[0],)
    return ids


def view_of(paths: Sequence[Ids], texts: dict[int, str] | None = None, **asked: Any) -> dict[str, Any]:
    """A view of these paths, with all of its odds; every token is a word of its own."""
    nodes: dict[Ids, int] = {(): 0}
    for ids in paths:
        for length in range(len(ids)):
            nodes.setdefault(ids[:length], len(nodes))
    branches = [
        {
            "ids": list(ids),
            "logprobs": [row_after(ids[:index])[token] for index, token in enumerate(ids)],
            "at": [nodes[ids[:index]] for index in range(len(ids))],
            "pieces": [
                {"text": (texts or {}).get(token, text_of(token)), "tokens": index + 1, "ends": 1}
                for index, token in enumerate(ids)
                if token != END
            ],
            "ended": ids[-1] == END,
            "healed": False,
        }
        for ids in paths
    ]
    firsts = {ids[0] for ids in paths}
    rest = [token for token in likeliest(row_after(()), len(firsts) + 15) if token not in firsts]
    return {
        "branches": branches,
        "nodes": [packed_after(ids) for ids in nodes],
        "rest": [
            {"ids": [one], "logprobs": [row_after(())[one]], "at": [0], "text": text_of(one), "end": False}
            for one in rest
        ],
        "given": "",
        "seen_from": 0,
        "cost": {"passes": 4, "tokens": 19, "seconds": 0.061, "live_slots": 24, "cache_bytes": 1},
        "alone": 611,
        "asked": ASKED | asked,
    }


ASKED = {
    "k": 5,
    "depth": 5,
    "mode": "likely",
    "until": "tokens",
    "temperature": 1,
    "top_p": 1,
    "seed": 0,
}


def likely(k: int = 5, depth: int = 5, **asked: Any) -> dict[str, Any]:
    paths = [path_of((token,), depth) for token in likeliest(row_after(()), k)]
    return view_of(paths, k=k, depth=depth, **asked)


def probability(ids: Ids, temperature: float, top_p: float) -> float:
    """Of this path, by full rows."""
    found = 1.0
    for index, token in enumerate(ids):
        found *= odds(row_after(ids[:index]), temperature, top_p)[token]
    return found


def beginnings(paths: Sequence[Ids]) -> list[Ids]:
    """For each path the shortest beginning that no other has; all of it where another has all of it."""
    found = []
    for index, ids in enumerate(paths):
        others = [other for place, other in enumerate(paths) if place != index]
        lengths = (n for n in range(1, len(ids) + 1) if all(other[:n] != ids[:n] for other in others))
        found.append(ids[: next(lengths, len(ids))])
    return found


def mass(found: Sequence[Ids], temperature: float, top_p: float) -> float:
    """Of the union of these beginnings."""
    own = {ids for ids in found if not any(ids[:length] in found for length in range(1, len(ids)))}
    return math.fsum(probability(ids, temperature, top_p) for ids in own)


# The page.


STYLE = branch_view._read("style.css")
TEMPLATE = branch_view._read("template.html").replace("{prefix}", "").replace("{hint}", branch_view.HINT)
TEMPLATE = TEMPLATE.replace("{keys}", branch_view.KEYS)


def page_body(dark: bool = False) -> str:
    """The real template and style as Gradio would set them in, with the theme's colours."""
    colours = {name.replace("_", "-"): both[dark] for name, both in COLOURS.items()}
    colours["color-accent"] = "#e58e62" if dark else "#b4552d"
    variables = "".join(f"--{name}: {value};" for name, value in colours.items())
    before, after = TEMPLATE.split("@children")
    page = "body { margin: 0; padding: 24px; font: 16px/1.5 system-ui; background: var(--body-background-fill) }"
    card = (
        "#card { max-width: 656px; margin: auto; overflow: hidden; border: 1px solid var(--border-color-primary);"
        "border-radius: 14px; background: var(--background-fill-primary) }"
        "@media (max-width: 760px) { body { padding: 12px } }"
    )
    return (
        f"<style>:root {{ {variables} }} {page} {card} .scope {{ {STYLE} }}</style>"
        f"<textarea id=box style='display:block;width:240px;height:30px'></textarea><main id=card><div class=scope>"
        f"<div>{before}</div><div class=inside></div><div>{after}</div></div></main>"
    )


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with workbench(page_body()) as url:
        yield url


@dataclass
class Bench:
    """A branch view on a bare page, and what it told."""

    page: Any
    revision: int = 0
    complaints: list[str] = field(default_factory=list)

    def mount(self, value: Any = None) -> None:
        self.page.evaluate(
            importing("""async value => {
                window.told = [];
                window.cancel = false;
                window.root = document.querySelector('#branches');
                for (const name of ['accept', 'ban', 'point'])
                    document.addEventListener(name, event => {
                        told.push({name, ...event.detail});
                        if (name === 'accept' && cancel) event.preventDefault();
                    });
                const {mount} = await import('/lookahead/branch_view/branch_view.js');
                mount({element: document.querySelector('.scope'), props: {prefix: '', value}, watch: () => {}});
            }"""),
            value,
        )

    def send(self, name: str, **detail: Any) -> None:
        self.page.evaluate("([name, detail]) => root.dispatchEvent(new CustomEvent(name, {detail}))", [name, detail])

    def show(self, view: Any, **detail: Any) -> None:
        self.revision = detail.setdefault("revision", self.revision + 1)
        self.send("show", **{"state": "settled", "note": None, "reading": None, "pinned": None, "view": view} | detail)

    def set(self, **settings: Any) -> None:
        self.send("settings", **settings)

    def told(self, name: str) -> list[dict[str, Any]]:
        return [one for one in self.page.evaluate("told") if one["name"] == name]

    def all(self, selector: str, what: str = "textContent") -> list[Any]:
        return list(self.page.locator(selector).evaluate_all(f"nodes => nodes.map(node => node.{what})"))

    def row(self, branch: int) -> Any:
        return self.page.locator(f"#branches [data-branch='{branch}']")

    def token(self, branch: int, token: int) -> Any:
        return self.row(branch).locator(f"[data-token='{token}']")

    def texts(self, branch: int) -> list[str]:
        return self.all(f"[data-branch='{branch}'] [data-token]", "dataset.text")

    @property
    def count(self) -> int:
        return int(self.page.locator("#branches [data-branch]").count())

    @property
    def note(self) -> str:
        return str(self.page.locator("#branches .note").inner_text())

    @property
    def coverage(self) -> float:
        return float(self.page.locator("#coverage").get_attribute("data-coverage"))

    def focused(self) -> list[str | None]:
        """Row, token and place among the others of what has focus."""
        return list(
            self.page.evaluate(
                """() => { const node = document.activeElement;
                return [node.closest('.branch')?.dataset.branch, node.dataset.token, node.dataset.rest]; }"""
            )
        )

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)


@pytest.fixture
def bench(page: Any, address: str) -> Iterator[Bench]:
    page.mouse.move(0, 0)
    with unharmed(Bench(page), address) as mounted:
        yield mounted


@pytest.fixture(scope="module")
def modules(browser: Any, address: str) -> Iterator[Bench]:
    """A page for what has no state: the modules by themselves."""
    with opened(browser, address) as made:
        yield made


@contextmanager
def opened(browser: Any, address: str, **options: Any) -> Iterator[Bench]:
    """A page of one's own, with this look."""
    page = browser.new_page(**options)
    with unharmed(Bench(page), address) as made:
        yield made
    page.close()


@contextmanager
def unharmed(bench: Bench, address: str) -> Iterator[Bench]:
    """The page is loaded; whatever is done there, no script complains and no dialog opens."""
    hear = {
        "console": lambda message: bench.complaints.append(message.text) if message.type == "error" else None,
        "pageerror": lambda error: bench.complaints.append(str(error)),
        "dialog": lambda dialog: bench.complaints.append("a dialog opened"),
    }
    for event, heard in hear.items():
        bench.page.on(event, heard)
    bench.page.goto(address)
    bench.mount()
    yield bench
    for event, heard in hear.items():
        bench.page.remove_listener(event, heard)
    assert not [one for one in bench.complaints if "favicon" not in one and "404" not in one]


def figures(bench: Bench, row: Sequence[float], temperature: float, top_p: float) -> list[dict[str, Any]]:
    return list(
        bench.page.evaluate(
            importing("""async ([packed, row, temperature, topP]) => {
                const {unpackNode, oddsAfter} = await import('/lookahead/web/core/reheated_odds.js');
                return row.map(oddsAfter(unpackNode(packed), temperature, topP));
            }"""),
            [packed(row), list(row), temperature, top_p],
        )
    )


def shaped(bench: Bench, view: Any, settings: Any = None, pinned: Any = None) -> Any:
    return bench.page.evaluate(
        importing("""async ([view, settings, pinned]) => {
            const {shapeRows} = await import('/lookahead/web/core/branch_rows.js');
            return shapeRows(view, settings, pinned);
        }"""),
        [view, settings or {}, pinned],
    )


def covers(bench: Bench, view: Any, **settings: Any) -> bool:
    return bool(
        bench.page.evaluate(
            importing("""async ([view, settings]) =>
                (await import('/lookahead/web/core/branch_rows.js')).coversSettings(view, settings)"""),
            [view, settings],
        )
    )


# Odds.


@pytest.mark.parametrize("temperature", [tenth / 10 for tenth in range(21)])
def test_odds_at_a_temperature_are_those_of_the_whole_vocabulary(modules: Bench, temperature: float) -> None:
    for spread in (0.3, 2.5, 6.0):
        row = row_after((1, 2), spread)
        found = [figure["p"] for figure in figures(modules, row, temperature, 1)]
        assert found == pytest.approx(heated(row, temperature), rel=5e-3, abs=1e-9)


@pytest.mark.parametrize("temperature", [0.55, 0.72, 0.999, 1.05, 1.37, 1.99])
def test_odds_between_the_kept_temperatures_are_close_to_those_of_the_whole_vocabulary(
    modules: Bench, temperature: float
) -> None:
    row = row_after((3,))
    found = [figure["p"] for figure in figures(modules, row, temperature, 1)]
    assert found == pytest.approx(heated(row, temperature), rel=0.02)


def test_between_two_kept_temperatures_the_sum_is_interpolated(bench: Bench) -> None:
    row, most = row_after((3,)), max(row_after((3,)))

    def sum_at(temperature: float) -> float:
        return math.log(math.fsum(math.exp((one - most) / temperature) for one in row))

    expected = [math.exp((one - most) / 0.33 - (0.7 * sum_at(0.3) + 0.3 * sum_at(0.4))) for one in row]
    assert [figure["p"] for figure in figures(bench, row, 0.33, 1)] == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("top_p", [0.05, 0.4, 0.7, 0.9, 0.95])
@pytest.mark.parametrize("temperature", [0, 0.3, 0.7, 1, 1.3])
def test_a_nucleus_that_is_known_to_its_edge_gives_exact_odds(modules: Bench, temperature: float, top_p: float) -> None:
    row = row_after((4,), 4.0)
    expected = odds(row, temperature, top_p)
    assert sum(p > 0 for p in expected) < 64
    found = figures(modules, row, temperature, top_p)
    assert [figure["p"] for figure in found] == pytest.approx(expected, rel=5e-3, abs=1e-9)
    assert not any(figure["bound"] for figure in found)


def test_a_nucleus_past_what_is_kept_gives_the_most_that_the_odds_can_be(bench: Bench) -> None:
    row = row_after((5,), 0.3)
    expected = odds(row, 1.2, 0.9)
    assert sum(p > 0 for p in expected) > 64
    found = figures(bench, row, 1.2, 0.9)
    assert all(exact * 0.999 <= figure["p"] and figure["bound"] for exact, figure in zip(expected, found, strict=True))
    most = [min(1, p / 0.9) for p in heated(row, 1.2)]
    assert [figure["p"] for figure in found] == pytest.approx(most, rel=5e-3)


def test_of_a_small_vocabulary_everything_is_known(bench: Bench) -> None:
    row = row_after((6,), 0.2, 20)
    found = figures(bench, row, 2, 0.999)
    assert not any(figure["bound"] for figure in found)
    assert math.fsum(figure["p"] for figure in found) == pytest.approx(1, rel=2e-3)


def test_equally_likely_tokens_share_the_probability_at_temperature_zero(bench: Bench) -> None:
    row = [math.log(0.3), math.log(0.3), math.log(0.4) - 1e-9, math.log(0.4)]
    normal = [one - math.log(1.4) for one in row]
    assert [figure["p"] for figure in figures(bench, normal, 0, 1)] == [0, 0, 0.5, 0.5]


# What is drawn of a view.


@pytest.mark.parametrize(("temperature", "top_p"), [(1, 1), (0.7, 1), (1, 0.6), (1.4, 0.5)])
@pytest.mark.parametrize("mode", ["likely", "tree", "sampled"])
def test_shares_and_coverage_are_those_of_an_enumeration(
    modules: Bench, mode: str, temperature: float, top_p: float
) -> None:
    firsts = likeliest(row_after(()), 3)
    paths = {
        "likely": [path_of((one,), 4) for one in firsts],
        "tree": [path_of((one, two), 4) for one in firsts for two in likeliest(row_after((one,)), 2)],
        # Twice the same, one that goes on where another ends, and two that part late.
        "sampled": [
            *[path_of((firsts[0],), 3)] * 2,
            *[path_of((firsts[1],), length) for length in (2, 3)],
            *[
                path_of((*path_of((firsts[2],), 2), two), 4)
                for two in likeliest(row_after(path_of((firsts[2],), 2)), 2)
            ],
        ],
    }[mode]
    view = view_of(paths, k=len(paths), depth=4, mode="sampled" if mode == "sampled" else "forks")
    drawn = shaped(modules, view, {"temperature": temperature, "top_p": top_p})
    expected = {ids: probability(own, temperature, top_p) for ids, own in zip(paths, beginnings(paths), strict=True)}
    assert len(drawn["rows"]) == len(paths)
    for row in drawn["rows"]:
        ids = tuple(row["ids"])
        assert row["share"]["p"] == pytest.approx(expected[ids], rel=0.01, abs=1e-12)
        assert row["path"]["p"] == pytest.approx(probability(ids, temperature, top_p), rel=0.01, abs=1e-12)
        for index, piece in enumerate(row["pieces"]):
            assert piece["ids"] == [ids[index]]
            assert piece["upTo"]["p"] == pytest.approx(probability(ids[: index + 1], temperature, top_p), rel=0.01)
    held = mass(beginnings(paths), temperature, top_p)
    assert drawn["coverage"]["p"] == pytest.approx(held, rel=0.01)
    assert drawn["rest"]["p"] == pytest.approx(1 - held, abs=0.01)
    shares = [row["share"]["p"] for row in drawn["rows"]]
    assert shares == sorted(shares, reverse=True)


def test_coverage_is_never_more_than_everything(bench: Bench) -> None:
    first = likeliest(row_after(()), 5)
    drawn = shaped(bench, likely(), {"temperature": 0.1, "top_p": 0.2})
    assert drawn["coverage"]["p"] <= 1
    assert drawn["rows"][0]["ids"][0] == first[0]
    greedy = shaped(bench, likely(), {"temperature": 0})
    assert [row["share"]["p"] for row in greedy["rows"]] == [1, 0, 0, 0, 0]
    assert [row["cut"] for row in greedy["rows"]] == [False, True, True, True, True]
    assert greedy["coverage"]["p"] == 1 and greedy["rest"]["p"] == 0


def test_rows_stand_in_the_order_that_was_chosen(bench: Bench) -> None:
    def texts(order: str) -> list[str]:
        return ["".join(one["text"] for one in row["pieces"]) for row in shaped(bench, view, {"order": order})["rows"]]

    view = likely()
    assert texts("alphabet") == sorted(texts("share"))
    paths = sorted(
        (tuple(one["ids"]) for one in view["branches"]), key=lambda ids: probability(ids, 1, 1), reverse=True
    )
    assert [tuple(row["ids"]) for row in shaped(bench, view, {"order": "path"})["rows"]] == paths


def test_fewer_and_shorter_rows_are_cut_and_what_was_cut_is_among_the_rest(bench: Bench) -> None:
    view = likely()
    drawn = shaped(bench, view, {"k": 3, "depth": 2})
    assert [row["ids"] for row in drawn["rows"]] == [branch["ids"][:2] for branch in view["branches"][:3]]
    assert [one["ids"][0] for one in drawn["others"][:2]] == [branch["ids"][0] for branch in view["branches"][3:]]
    assert [one["raw"] for one in drawn["others"]] == sorted((one["raw"] for one in drawn["others"]), reverse=True)
    assert drawn["coverage"]["p"] == pytest.approx(
        mass(beginnings([(b["ids"][0],) for b in view["branches"][:3]]), 1, 1)
    )


def test_rows_end_where_a_word_a_clause_a_sentence_or_a_line_does(bench: Bench) -> None:
    view = likely(1, 5)
    pieces = view["branches"][0]["pieces"]
    for piece, ends in zip(pieces, (0, 1, 0, 2, 3), strict=True):
        piece["ends"] = ends
    for until, length in {"word": 2, "clause": 4, "sentence": 5, "line": 5}.items():
        drawn = shaped(bench, view, {"until": until, "depth": 1})
        assert len(drawn["rows"][0]["pieces"]) == length, until


def test_a_cut_never_falls_inside_a_character(bench: Bench) -> None:
    view = likely(1, 4)
    view["branches"][0]["pieces"] = [
        {"text": " a", "tokens": 1, "ends": 0},
        {"text": "🙂", "tokens": 3, "ends": 1},
        {"text": "!", "tokens": 4, "ends": 3},
    ]
    ids = view["branches"][0]["ids"]
    row = shaped(bench, view, {"depth": 2})["rows"][0]
    assert [piece["text"] for piece in row["pieces"]] == [" a"]
    assert row["unsaid"] == 1
    row = shaped(bench, view)["rows"][0]
    assert [piece["ids"] for piece in row["pieces"]] == [ids[:1], ids[1:3], ids[3:]]
    two = row_after(tuple(ids[:1]))[ids[1]] + row_after(tuple(ids[:2]))[ids[2]]
    assert row["pieces"][1]["odds"]["p"] == pytest.approx(math.exp(two))


def test_a_healed_row_has_the_reopened_token_on_top_of_its_depth_where_that_inserts_nothing(bench: Bench) -> None:
    view = likely(2, 5)
    for branch in view["branches"]:
        branch["healed"] = True
    view["branches"][1]["pieces"].pop(0)
    rows = shaped(bench, view, {"depth": 3})["rows"]
    assert [(len(row["ids"]), len(row["pieces"])) for row in rows] == [(3, 3), (4, 3)]


def test_which_settings_a_view_has_the_data_for(bench: Bench) -> None:
    view = likely()
    assert covers(bench, view, k=3, depth=2, temperature=0.3, top_p=0.5, order="path", mode="likely")
    assert not covers(bench, view, k=6)
    assert not covers(bench, view, depth=6)
    assert not covers(bench, view, mode="sampled")
    assert covers(bench, view, until="word")
    assert not covers(bench, view, until="sentence")
    sampled = likely(mode="sampled", temperature=0.8, seed=3)
    assert covers(bench, sampled, k=2, depth=3)
    for other in ({"temperature": 1}, {"top_p": 0.9}, {"seed": 4}):
        assert not covers(bench, sampled, **other)
    firsts = likeliest(row_after(()), 2)
    tree = view_of([path_of((one, two), 5) for one in firsts for two in (1, 2)], k=2, mode="every_level")
    assert covers(bench, tree, depth=3) and covers(bench, tree, depth=5)
    assert not covers(bench, tree, depth=2), "shorter than its branching"
    assert not covers(bench, tree, k=1)
    for mode in ("forks", "best_first"):
        assert not covers(bench, likely(mode=mode), depth=3)
        assert not covers(bench, likely(mode=mode), k=3)
        assert covers(bench, likely(mode=mode), temperature=0.2, order="alphabet")


# What is pinned.


def left_of(branch: dict[str, Any], tokens: int) -> dict[str, Any]:
    return {
        "ids": branch["ids"][tokens:],
        "logprobs": branch["logprobs"][tokens:],
        "pieces": [one | {"tokens": one["tokens"] - tokens} for one in branch["pieces"] if one["tokens"] > tokens],
        "ended": branch["ended"],
        "healed": False,
    }


def test_what_is_pinned_stands_on_top_and_counts_only_where_the_mode_has_it_too(bench: Bench) -> None:
    view = likely()
    plain = shaped(bench, view)
    strange = left_of(view_of([path_of((17, 18), 4)])["branches"][0], 0)
    drawn = shaped(bench, view, {}, strange)
    assert [row["pinned"] for row in drawn["rows"]] == [True] + [False] * 5
    assert drawn["rows"][0]["ids"] == strange["ids"]
    assert drawn["coverage"] == plain["coverage"] and drawn["count"] == 5
    known = left_of(view["branches"][3], 0)
    known["ids"], known["pieces"] = known["ids"][:3], known["pieces"][:3]
    drawn = shaped(bench, view, {}, known)
    assert [row["ids"] for row in drawn["rows"]] == [view["branches"][index]["ids"] for index in (3, 0, 1, 2, 4)]
    assert drawn["coverage"] == plain["coverage"]


def test_a_pinned_row_has_the_same_name_in_sight_and_for_screen_readers(bench: Bench) -> None:
    bench.show(likely(), pinned=left_of(view_of([path_of((17, 18), 4)])["branches"][0], 0))
    assert "The other 5 hold" in bench.page.locator("#coverage").inner_text(), "the pinned row is none of the five"
    assert "the rest of your choice" in bench.row(0).locator(".stopped").all_inner_texts()
    assert "the rest of your choice" in bench.row(0).get_attribute("aria-label").split(", ")


def test_while_rows_grow_what_is_pinned_is_not_shown_twice(bench: Bench) -> None:
    view, full = likely(5, 1), likely()
    view["asked"]["depth"] = 5
    bench.show(view, state="thinking", pinned=left_of(full["branches"][2], 0))
    assert bench.count == 5
    assert bench.texts(0) == [piece["text"] for piece in full["branches"][2]["pieces"]]
    bench.show(full, pinned=left_of(full["branches"][2], 0), revision=bench.revision)
    assert bench.count == 5 and bench.texts(0) == [piece["text"] for piece in full["branches"][2]["pieces"]]


def test_until_the_next_view_the_pinned_row_lives_above_old_ones_that_do_not(bench: Bench) -> None:
    view = likely()
    bench.show(view)
    bench.token(1, 1).click()
    (choice,) = bench.told("accept")
    bench.send("expect", revision=2)
    bench.show(None, state="thinking", pinned=choice["rest"])
    assert bench.count == 5, "nothing below the rows moves"
    assert bench.texts(0) == [piece["text"] for piece in view["branches"][1]["pieces"][2:]]
    assert bench.all("[data-branch]", "dataset.inert") == [None, *["true"] * 4]
    assert bench.page.get_attribute("#branches", "data-revision") == "2"
    expect(bench.row(1).locator(".share")).to_be_hidden()  # the share of another text, beside one of the present text
    expect(bench.row(0).locator(".share")).to_be_visible()
    bench.token(2, 0).click()
    assert len(bench.told("accept")) == 1
    assert bench.page.locator("#branches[data-refused]").count() == 1
    bench.token(0, 0).click()
    assert bench.told("accept")[1]["revision"] == 2
    assert bench.told("accept")[1]["ids"] == view["branches"][1]["ids"][2:3]


def test_while_others_are_computed_the_rows_take_as_much_room_as_before(bench: Bench) -> None:
    height = "document.querySelector('.rows').getBoundingClientRect().height"
    bench.show(likely(), revision=1)
    before = bench.page.evaluate(height)
    bench.send("expect", revision=2)
    bench.show(likely(1), revision=2, state="thinking")
    assert bench.page.evaluate(height) == before
    bench.show(likely(1), revision=2, state="settled")
    assert bench.page.evaluate(height) < before / 2


def test_when_nothing_is_left_the_old_rows_stay_marked_until_the_next_view(bench: Bench) -> None:
    bench.show(likely())
    bench.token(0, 4).click()
    assert bench.told("accept")[0]["rest"] is None
    bench.show(None, state="thinking")
    assert bench.all("[data-branch]", "dataset.inert") == ["true"] * 5
    bench.show(likely(3), revision=bench.revision)
    assert bench.count == 3
    assert bench.all("[data-branch]", "dataset.inert") == [None] * 3


def test_the_names_of_rows_say_that_they_are_of_an_older_text_or_from_before_a_change(bench: Bench) -> None:
    def ages() -> list[str]:
        """What stands after the number in the name of each row, where that is its age; else empty."""
        parts = [name.split(", ")[1] for name in bench.all("[data-branch]", "ariaLabel")]
        return [part if part in ("of an older text", "from before your change") else "" for part in parts]

    bench.show(likely(), state="paused")
    assert ages() == [""] * 5
    bench.send("expect", revision=2)
    bench.send("state", state="paused", note=None)
    assert ages() == ["of an older text"] * 5
    rest = left_of(view_of([path_of((17, 18), 4)])["branches"][0], 0)
    bench.show(None, revision=3, state="thinking", pinned=rest)
    assert ages() == ["", *["of an older text"] * 4]
    bench.show(likely(3))
    assert ages() == [""] * 3
    bench.send("expect", revision=bench.revision + 1, textChanged=False)
    assert ages() == ["from before your change"] * 3


def test_the_coverage_of_rows_from_before_another_setting_says_so_until_the_new_rows_are_there(bench: Bench) -> None:
    cover, earlier = bench.page.locator("#coverage"), bench.page.locator("#coverage .earlier")
    bench.show(likely())
    bench.set(towards="sea")
    bench.send("state", state="thinking", note=None)
    expect(cover).to_have_attribute("data-earlier", "true")
    expect(earlier).to_be_visible()
    assert earlier.inner_text() == "Before the change"
    assert bench.page.locator("#branches[data-earlier]").count() == 1, "the odds of the rows are grey too"
    bench.set(towards="")
    assert bench.page.locator("#branches[data-earlier]").count() == 0
    assert cover.get_attribute("data-earlier") is None, "the rows are those that are wanted"
    bench.set(temperature=0.5)
    assert cover.get_attribute("data-earlier") is None, "the odds of the same rows are known"


def test_what_is_left_carries_its_odds_along(bench: Bench) -> None:
    view = likely()
    bench.show(view)
    bench.token(1, 1).click()
    left = bench.told("accept")[0]["rest"]
    bench.set(temperature=0.5)
    bench.show(None, state="thinking", pinned=left)
    ids = tuple(view["branches"][1]["ids"])
    expected = odds(row_after(ids[:2]), 0.5)[ids[2]]
    assert float(bench.token(0, 0).get_attribute("data-p")) == pytest.approx(expected, rel=0.01)


# Rows, as they stand on the page.


def test_rows_and_tokens_carry_what_they_are(bench: Bench) -> None:
    view = likely()
    bench.show(view)
    for index, branch in enumerate(view["branches"]):
        row = bench.row(index)
        assert float(row.get_attribute("data-share")) == pytest.approx(math.exp(branch["logprobs"][0]))
        assert float(row.get_attribute("data-path-probability")) == pytest.approx(math.exp(sum(branch["logprobs"])))
        assert row.get_attribute("data-end") == "false"
        assert bench.texts(index) == [piece["text"] for piece in branch["pieces"]]
        ids = bench.all(f"[data-branch='{index}'] [data-token]", "dataset.ids")
        assert ids == [str(one) for one in branch["ids"]]
        shown = [float(p) for p in bench.all(f"[data-branch='{index}'] [data-token]", "dataset.p")]
        assert shown == pytest.approx([math.exp(one) for one in branch["logprobs"]])
    assert bench.coverage == pytest.approx(sum(math.exp(branch["logprobs"][0]) for branch in view["branches"]))
    assert "These 5 hold" in bench.page.locator("#coverage").inner_text()
    assert bench.all("#branches .branch kbd") == ["1", "2", "3", "4", "5"]
    widths = bench.all("#coverage .stack i", "style.width")
    assert [float(width[:-1]) / 100 for width in widths] == pytest.approx(
        [math.exp(branch["logprobs"][0]) for branch in view["branches"]], rel=1e-3
    )


def test_a_row_that_was_drawn_twice_has_one_part_of_the_bar_of_coverage(bench: Bench) -> None:
    view = likely()
    view["asked"]["mode"] = "sampled"
    first, last = view["branches"][0], view["branches"][-1]
    view["branches"][1] = first
    view["branches"][2] = {**last, **{name: last[name][:2] for name in ("ids", "logprobs", "pieces")}}
    bench.show(view)
    parts = "all => all.map(one => (one.hidden ? 0 : parseFloat(one.style.width) / 100))"
    widths = bench.page.locator("#coverage .stack i").evaluate_all(parts)
    assert sum(widths) == pytest.approx(bench.coverage, rel=1e-3)
    assert sum(width > 0 for width in widths) == 3


def test_rows_from_the_tenth_on_have_no_number(bench: Bench) -> None:
    bench.show(likely(12, 2))
    assert bench.all("#branches .branch kbd") == [*map(str, range(1, 10)), "", "", ""]


def test_a_click_tells_all_up_to_the_token_and_what_is_left(bench: Bench) -> None:
    view = likely()
    bench.show(view)
    bench.token(2, 1).click()
    branch = view["branches"][2]
    (told,) = bench.told("accept")
    assert told["text"] == "".join(piece["text"] for piece in branch["pieces"][:2])
    assert (told["revision"], told["branch"], told["token"]) == (1, 2, 1)
    assert told["ids"] == branch["ids"][:2] and told["logprobs"] == branch["logprobs"][:2]
    assert told["healed"] is False and told["byKeyboard"] is False and told["pointer"] == "mouse"
    expected = left_of(branch, 2)
    assert {name: told["rest"][name] for name in expected} == expected


def test_a_choice_that_a_listener_cancels_is_refused_visibly(bench: Bench) -> None:
    bench.show(likely())
    bench.page.evaluate("window.cancel = true")
    bench.token(0, 0).click()
    assert bench.page.locator("#branches[data-refused]").count() == 1
    assert "not inserted" in bench.note
    assert "not inserted" in bench.page.locator("#branches .announcement").text_content()


def test_rows_of_an_older_text_refuse_visibly_and_tell_nothing(bench: Bench) -> None:
    bench.show(likely())
    bench.send("expect", revision=2)
    assert bench.page.get_attribute("#branches", "data-state") == "thinking"
    assert bench.page.get_attribute("#branches", "data-stale") == "true"
    bench.token(0, 0).click()
    assert not bench.told("accept")
    assert bench.page.locator("#branches[data-refused]").count() == 1
    bench.show(likely(), revision=1)
    assert bench.page.get_attribute("#branches", "data-stale") == "true", "an older view is overtaken"
    bench.show(likely(), revision=2)
    assert bench.page.get_attribute("#branches", "data-stale") == "false"
    assert bench.page.get_attribute("#branches", "data-revision") == "2"


def test_what_a_click_means_is_decided_when_the_pointer_goes_down(bench: Bench) -> None:
    view = likely()
    bench.show(view, state="thinking")
    box = bench.token(1, 0).bounding_box()
    bench.page.mouse.move(box["x"] + 12, box["y"] + 12)
    bench.page.mouse.down()
    shorter = likely(3)
    shorter["branches"].reverse()
    bench.show(shorter, state="settled", revision=1)
    bench.page.mouse.up()
    (told,) = bench.told("accept")
    assert told["ids"] == view["branches"][1]["ids"][:1]
    bench.page.mouse.down()
    bench.show(view, revision=2)
    bench.page.mouse.up()
    assert len(bench.told("accept")) == 1
    assert bench.page.locator("#branches[data-refused]").count() == 1


def test_a_press_leaves_the_caret_where_it_is(bench: Bench) -> None:
    bench.show(likely())
    bench.page.locator("#box").fill("abc")
    for selector in ("[data-token='1']", ".more", "#branches .note"):
        bench.page.locator(selector).first.click()
        assert bench.page.evaluate("document.activeElement.id") == "box"


def test_touch_chooses_and_focuses_nothing(browser: Any, address: str) -> None:
    with opened(browser, address, has_touch=True, viewport={"width": 360, "height": 740}) as bench:
        bench.show(likely())
        bench.token(1, 0).tap()
        assert bench.told("accept")[0]["pointer"] == "touch"
        assert bench.page.evaluate("document.activeElement === document.body")


LETTERS = """row => [...row.querySelectorAll('.token')].map(token => {
  const letters = document.createRange();
  letters.selectNodeContents(token);
  const {left, right} = letters.getBoundingClientRect();
  return [left, right];
})"""


def test_on_a_touch_screen_the_tokens_of_one_word_touch_where_their_neighbours_have_room(
    browser: Any, address: str
) -> None:
    with opened(browser, address, has_touch=True, is_mobile=True, viewport={"width": 390, "height": 740}) as bench:
        bench.show(view_of([(1, 2, 3)], texts={1: "**", 2: "sp", 3: "aghetti"}, k=1, depth=3))
        row = bench.page.locator(".branch").first
        _, (_, end), (start, _) = row.evaluate(LETTERS)
        assert start - end < 4, "a wider gap would look like a space"
        widths = row.locator(".token").evaluate_all("tokens => tokens.map(one => one.getBoundingClientRect().width)")
        assert min(widths) >= 24, "each is wide enough for a finger"


def test_sliders_redraw_from_known_data_and_send_no_request(bench: Bench) -> None:
    view = likely()
    bench.show(view)
    bench.set(k=3, depth=2, temperature=1, top_p=1, order="share", until="tokens")
    assert bench.count == 3 and len(bench.texts(0)) == 2
    assert "These 3 hold" in bench.page.locator("#coverage").inner_text()
    bench.set(k=5, depth=5, temperature=0, top_p=1, order="share", until="tokens")
    assert bench.count == 5 and len(bench.texts(0)) == 5
    assert bench.all("[data-branch]", "dataset.share") == ["1", "0", "0", "0", "0"]
    assert bench.all("[data-branch]", "dataset.cut") == [None, "true", "true", "true", "true"]
    assert not bench.told("accept") and not bench.told("ban")


def test_a_figure_that_is_only_a_bound_says_so(bench: Bench) -> None:
    view = likely()
    flat = row_after((), 0.3)
    view["nodes"][0] = packed(flat)
    for token, branch in zip(likeliest(flat, 5), view["branches"], strict=True):
        branch["logprobs"][0] = flat[token]
    bench.show(view)
    bench.set(**ASKED | {"top_p": 0.9})
    assert all(figure.startswith("≤") for figure in bench.all(".branch .share .figure"))
    row = bench.page.locator(".branch").first
    assert "at most\u00a0" in str(row.get_attribute("aria-label"))
    assert "≤ means at most." in str(row.locator(".share").get_attribute("data-tip"))
    assert "≤ means at most." in bench.page.locator(".note .words").inner_text()
    assert bench.page.locator("#coverage .held").inner_text().startswith("≤")
    assert bench.page.locator("#rest .figure").inner_text().startswith("≥")


def test_captions_say_which_figure_it_is(bench: Bench) -> None:
    bench.show(likely())
    assert "A row’s share is the chance that its part in bold comes next: a token, as the model gives it" in bench.note
    bench.set(**ASKED | {"temperature": 0.7, "top_p": 0.9})
    assert "at temperature 0.7, top-p 0.9" in bench.note
    tree = view_of([path_of((1, two), 4) for two in (1, 2)], mode="forks") | {"given": "lighth"}
    bench.set(**ASKED)
    bench.show(tree)
    bold = "all up to where it differs from the other rows"
    assert f"A row’s share is the chance that its part in bold comes next: {bold}, as the model gives it" in bench.note


def test_coverage_and_share_are_explained_by_one_caption_that_takes_the_focus(bench: Bench) -> None:
    bench.show(likely())
    total = bench.page.locator("#coverage .sum")
    bench.page.locator("#box").focus()
    bench.press("Tab")
    expect(total).to_be_focused()
    assert "Coverage: the shares of these rows together" in str(total.get_attribute("data-tip"))
    assert "Share, the figure of each row" in str(total.get_attribute("data-tip"))
    expect(total).to_have_accessible_description(re.compile("the chance of the row’s beginning"))
    bench.press("Tab")
    assert bench.focused() == ["0", "0", None], "no figure of a row is a tab stop"


def test_no_explanation_of_a_figure_is_a_title_alone(bench: Bench) -> None:
    paths = [path_of((first,), 4) for first in likeliest(row_after(()), 3)]
    view = view_of(paths, k=3, depth=4, until="sentence")
    view["branches"][0]["repeats"] = True
    bench.show(view)
    titled = bench.page.locator("#coverage [title], .rows [title]")
    assert titled.count() == 0
    assert "not how good it is" in str(bench.row(0).locator(".share").get_attribute("data-tip"))
    assert "would repeat itself" in str(bench.row(0).locator(".stopped").get_attribute("data-tip"))


SCROLLED = """async selector => {
  const element = document.querySelector(selector);
  for (let still = 0, last = NaN; still < 10; last = element.scrollLeft) {
    await new Promise(done => requestAnimationFrame(done));
    still = element.scrollLeft === last ? still + 1 : 0;
  }
}"""  # waits until a smooth scroll has ended: a click in its last frames would lead back to the beginning


def test_a_row_that_is_longer_than_its_room_says_so_and_reads_on_and_back(bench: Bench) -> None:
    bench.show(likely(3, 40))
    row, sign = bench.row(1), bench.row(1).locator(".onward")
    expect(row).to_have_attribute("data-reads", "on")
    expect(sign).to_be_visible()
    expect(sign).to_have_attribute("data-tip", re.compile("press here to read on"))
    assert sign.evaluate("one => one.closest('[aria-hidden=true]') !== null && one.tabIndex === -1")
    position = "() => document.querySelector('[data-branch=\"1\"] .tokens').scrollLeft"
    sign.click()
    bench.page.wait_for_function(f"({position})() > 0")
    for _ in range(60):
        if row.get_attribute("data-reads") == "back":
            break
        sign.click()
        bench.page.evaluate(SCROLLED, '[data-branch="1"] .tokens')
    expect(row).to_have_attribute("data-reads", "back")
    expect(sign).to_have_attribute("data-tip", re.compile("go back to its beginning"))
    sign.click()
    bench.page.wait_for_function(f"({position})() === 0")
    expect(row).to_have_attribute("data-reads", "on")
    assert bench.told("accept") == []
    bench.show(likely(3, 1))
    expect(bench.row(1)).not_to_have_attribute("data-reads", re.compile(""))
    expect(bench.row(1).locator(".onward")).to_be_hidden()


def test_the_bar_of_a_share_has_the_scale_of_the_coverage(bench: Bench) -> None:
    bench.show(likely())
    shares = [float(share) for share in bench.all(".branch", "dataset.share")]
    widths = [float(width.removesuffix("%")) for width in bench.all(".branch .fill", "style.width")]
    assert widths == pytest.approx([100 * share for share in shares], abs=0.01)
    assert max(shares) < 1


def test_pointing_at_a_token_tells_its_odds_and_the_text_up_to_it(bench: Bench) -> None:
    view = likely()
    bench.show(view)
    bench.token(1, 2).hover()
    expect(bench.page.locator("#branches .note")).to_contain_text("after the text before it · up to here")
    assert "whole row" in bench.note
    assert bench.told("point")[-1]["text"] == "".join(piece["text"] for piece in view["branches"][1]["pieces"][:3])
    bench.page.locator("#box").hover()
    bench.page.wait_for_function("told.at(-1).name === 'point' && told.at(-1).text === null")


def test_a_token_can_be_banned_by_pointer_or_key(bench: Bench) -> None:
    view = likely()
    bench.show(view)
    bench.token(1, 1).hover()
    bench.page.locator(".ban").click()
    bench.token(2, 0).focus()
    bench.press("ArrowRight", "Delete")
    bans = [(one["id"], one["text"]) for one in bench.told("ban")]
    expected = [(view["branches"][row]["ids"][1], view["branches"][row]["pieces"][1]["text"]) for row in (1, 2)]
    assert bans == expected
    assert not bench.told("accept")


def test_an_ending_is_a_chip_with_its_odds_that_inserts_nothing(bench: Bench) -> None:
    view = view_of([(1, 2, END), (END,)])
    bench.show(view)
    ended = {tuple(row["ids"]): index for index, row in enumerate(bench.page.evaluate("root.branchView.rows()"))}
    row = bench.row(ended[(1, 2, END)])
    assert row.get_attribute("data-end") == "true"
    assert row.locator(".end").inner_text().startswith("end ")
    row.locator(".end").click()
    bench.row(ended[(END,)]).locator(".end").click()
    assert not bench.told("accept")
    assert bench.row(ended[(END,)]).locator("button").count() == 0


def test_a_row_that_only_ends_the_text_says_so_as_readably_as_other_rows(bench: Bench) -> None:
    bench.show(view_of([(1, 2, END), (END,), (3, 4)]))
    rows = [tuple(row["ids"]) for row in bench.page.evaluate("root.branchView.rows()")]
    alone, after = (bench.row(rows.index(ids)).locator(".end") for ids in ((END,), (1, 2, END)))
    look = "one => [getComputedStyle(one).fontSize, getComputedStyle(one).color, getComputedStyle(one).fontStyle]"
    assert alone.evaluate(look) == bench.token(rows.index((3, 4)), 0).evaluate(look) != after.evaluate(look)
    assert re.fullmatch(r"end \S+ %: the text ends here", alone.inner_text().replace("\u00a0", " "))
    sentence = re.compile("^The text ends here, with a chance of")
    expect(alone).to_have_attribute("data-tip", sentence)
    expect(alone).to_have_accessible_name(sentence)
    assert "the text" not in after.inner_text()


def test_the_arrows_reach_a_row_that_ends_at_once(bench: Bench) -> None:
    bench.show(view_of([(1, 2), (END,), (3, 4)]))
    rows = [tuple(row["ids"]) for row in bench.page.evaluate("root.branchView.rows()")]
    ended = rows.index((END,))
    chip = bench.row(ended).locator(".end")
    expect(bench.row(ended)).to_have_attribute("aria-label", re.compile(r"% chance that the text ends here$"))
    if ended:
        bench.token(ended - 1, 0).focus()
        bench.press("ArrowDown")
    else:
        bench.token(1, 0).focus()
        bench.press("ArrowUp")
    expect(chip).to_be_focused()
    expect(chip).to_have_attribute("tabindex", "0")
    bench.press("Enter")
    sentence = f"Branch {ended + 1} ends the text here: it inserts nothing."
    expect(bench.page.locator(".branch-view > .announcement")).to_have_text(sentence)
    bench.press("Delete", "e")
    assert not bench.told("accept") and not bench.told("ban")
    bench.show(view_of([(1, 2), (END,), (3, 4)]))
    expect(chip).to_be_focused()
    bench.press("ArrowDown" if ended < 2 else "ArrowUp")
    expect(bench.token(ended + 1 if ended < 2 else 1, 0)).to_be_focused()


def test_tokens_without_whole_characters_are_signs_with_nothing_to_click(bench: Bench) -> None:
    view = likely(3, 3)
    view["branches"][0]["pieces"] = []
    view["branches"][1]["pieces"] = [{"text": " a", "tokens": 2, "ends": 1}, {"text": " b", "tokens": 3, "ends": 1}]
    view["branches"][2]["pieces"] = view["branches"][2]["pieces"][:1]
    bench.show(view)
    assert [bench.row(index).locator(".sign").count() for index in range(3)] == [1, 1, 1]
    assert [bench.row(index).locator("button").count() for index in range(3)] == [0, 2, 1]
    assert bench.all("[data-branch='1'] .tokens > *", "className") == ["sign", "token", "token"]
    bench.row(0).locator(".sign").click()
    bench.press("1")
    assert not bench.told("accept")


MARKUP = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "${alert(1)}",
    "{{value}}",
    "`${alert(1)}`",
    "\u202eabc\u200f",
    "<b>bold</b>",
]


def test_markup_in_tokens_is_text(bench: Bench) -> None:
    first = likeliest(row_after(()), 8)
    texts = dict(zip(first, MARKUP, strict=False))
    view = view_of([(one,) for one in first[:7]], texts, k=7, depth=1)
    view["rest"][0]["text"] = MARKUP[0]
    view["given"] = MARKUP[0]
    bench.show(view, note=MARKUP[0])
    bench.page.locator(".more").click()
    assert [bench.texts(index)[0] for index in range(7)] == MARKUP
    assert bench.all("[data-branch] [data-token]") == MARKUP
    assert bench.page.locator("#branches img, #branches script, #branches b.bold").count() == 0
    assert bench.page.locator("#branches .token > *, #branches .word > *, .note .words > *").count() == 0
    bench.token(0, 0).hover()
    expect(bench.page.locator("#branches .note .words")).to_contain_text("after the text before it")
    assert MARKUP[0] in bench.note


def test_what_cannot_be_seen_is_shown_as_a_sign_and_inserted_as_it_is(bench: Bench) -> None:
    texts = dict(zip(likeliest(row_after(()), 5), ["\n", "\t", "  ", "\u200b", " ok"], strict=True))
    bench.show(view_of([(one,) for one in texts], texts, depth=1))
    assert bench.all("[data-branch] [data-token]") == ["↵", "⇥", "␣␣", "U+200B", " ok"]
    assert bench.all("[data-branch] [data-token]", "dataset.text") == list(texts.values())


def test_the_note_names_a_line_break_to_a_screen_reader(bench: Bench) -> None:
    first = likeliest(row_after(()), 1)[0]
    bench.show(view_of([(first,)], {first: "\n"}, k=1, depth=1))
    bench.token(0, 0).hover()
    words = bench.page.locator("#branches .note .words")
    expect(words.locator("[aria-hidden=true]")).to_contain_text("“↵”")
    expect(words.locator(".spoken-only")).to_contain_text("“line break”")
    assert "↵" not in words.locator(".spoken-only").inner_text()


def test_right_to_left_rows_read_and_scroll_from_the_right(bench: Bench) -> None:
    first = likeliest(row_after(()), 1)[0]
    ids = path_of((first,), 3)
    view = view_of([ids], dict(zip(ids, [" كان", " هناك", "."], strict=True)), k=1)
    bench.show(view)
    left = bench.all("[data-token]", "getBoundingClientRect().left")
    assert left == sorted(left, reverse=True)
    bench.token(0, 0).focus()
    bench.press("ArrowLeft")
    assert bench.focused()[:2] == ["0", "1"], "the left key goes left"


# Everything else.


def test_a_row_that_repeats_itself_or_reaches_the_limit_says_so(bench: Bench) -> None:
    paths = [path_of((first,), 4) for first in likeliest(row_after(()), 3)]
    view = view_of(paths, k=3, depth=4, until="sentence")
    view["branches"][0]["repeats"] = True
    view["branches"][1]["pieces"][-1]["ends"] = 3
    bench.show(view)
    repeats, complete, limited = (bench.row(index) for index in range(3))
    expect(repeats.locator(".stopped")).to_have_text("repeats")
    expect(repeats).to_have_accessible_name(re.compile(r"^Branch 1, .* chance of this next token, .+, repeats$"))
    expect(repeats.locator(".stopped")).to_have_role("note")
    expect(repeats.locator(".stopped")).to_have_accessible_name(re.compile("would repeat itself"))
    expect(complete.locator(".stopped, .sign")).to_have_count(0)
    expect(limited.locator(".stopped")).to_have_text("limit of 4 tokens")
    expect(limited).to_have_accessible_name(re.compile("limit of 4 tokens$"))
    expect(limited.locator(".sign")).to_have_count(0)
    repeats.locator(".stopped").click()
    assert not bench.told("accept"), "nothing is inserted"


def test_everything_else_opens_and_its_tokens_are_chosen_like_any_other(bench: Bench) -> None:
    view = likely()
    view["rest"][1] |= {"text": None}
    view["rest"][2] |= {"text": None, "end": True}
    bench.show(view)
    more, rest = bench.page.locator("#rest .more"), bench.page.locator("#rest")
    assert float(rest.get_attribute("data-share")) == pytest.approx(1 - bench.coverage)
    assert more.get_attribute("aria-expanded") == "false"
    assert view["rest"][0]["text"].strip() in more.inner_text()
    more.click()
    assert more.get_attribute("aria-expanded") == "true"
    assert bench.page.locator("#rest [data-rest]").count() == len(view["rest"])
    assert bench.page.locator("#rest span[data-rest]").count() == 2
    for inert in ("1", "2"):
        bench.page.locator(f"[data-rest='{inert}']").click()
    assert not bench.told("accept")
    entry = bench.page.locator("button[data-rest='3']")
    assert entry.get_attribute("data-ids") == str(view["rest"][3]["ids"][0])
    assert float(entry.get_attribute("data-p")) == pytest.approx(math.exp(view["rest"][3]["logprobs"][0]))
    entry.click()
    (told,) = bench.told("accept")
    assert told["text"] == view["rest"][3]["text"] and told["ids"] == view["rest"][3]["ids"]
    assert told["branch"] is None and told["rest"] is None and told["revision"] == 1
    bench.set(**ASKED | {"temperature": 0.5})
    expected = odds(row_after(()), 0.5)[view["rest"][3]["ids"][0]]
    assert float(entry.get_attribute("data-p")) == pytest.approx(expected, rel=0.01)


def test_a_screen_reader_hears_the_names_of_signs_beside_the_rows(bench: Bench) -> None:
    view = likely()
    view["rest"][0]["text"] = ","
    bench.show(view)
    more = bench.page.locator("#rest .more")
    name = re.compile(r"^[\d.]+\s% everything else: comma; .*, or a longer word; .* and more$")
    expect(more).to_have_accessible_name(name)
    assert more.locator(".likely").inner_text().startswith("“,”")
    bench.set(**ASKED | {"banned": 1, "banned_texts": ["."]})
    without = bench.page.locator("#coverage .without")
    expect(without.locator("[aria-hidden]")).to_have_text("without “.”")
    expect(without.locator(".spoken-only")).to_have_text("without “full stop”")
    bench.set(**ASKED | {"banned": 1, "banned_texts": [" sea"]})
    expect(without).to_have_text("without “sea”")


def test_where_everything_else_has_no_list_it_says_so_and_promises_no_click(bench: Bench) -> None:
    view = likely()
    bench.show(view)
    more = bench.page.locator("#rest .more")
    assert "Choose it to list the likeliest of them." in str(more.get_attribute("data-tip"))
    bench.show(view | {"rest": []})
    expect(more.locator(".summary")).to_have_text("everything else: none of it is likely enough to be listed")
    tip = str(more.get_attribute("data-tip"))
    assert more.is_disabled() and "click" not in tip and "Choose" not in tip


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_the_sentence_of_an_everything_else_without_a_list_is_seen_whole(
    browser: Any, address: str, width: int
) -> None:
    with opened(browser, address, viewport={"width": width, "height": 844}) as bench:
        bench.show(likely() | {"rest": []})
        more = bench.page.locator("#rest .more")
        assert more.evaluate(
            """more => {
              const [line, words] = more.querySelectorAll('.likely, .likely span'), text = document.createRange();
              const outer = more.getBoundingClientRect(), clips = node => getComputedStyle(node).display !== 'inline';
              text.selectNodeContents(words);
              const {right, bottom} = text.getBoundingClientRect();
              const isCut = [line, words].some(node => clips(node) && node.scrollWidth > node.clientWidth);
              return right <= outer.right && bottom <= outer.bottom && !isCut;
            }"""
        )
        assert more.bounding_box()["height"] >= bench.page.locator(".branch").first.bounding_box()["height"]


@pytest.mark.parametrize("width", [700, 379, 260])
def test_in_a_narrow_view_the_first_words_of_everything_else_are_seen_whole(bench: Bench, width: int) -> None:
    bench.show(likely())
    bench.page.locator("#branches").evaluate(f"one => (one.style.width = '{width}px')")
    found = bench.page.locator("#rest .likely").evaluate(
        """line => [...line.children].filter(word => word.offsetTop - line.offsetTop < line.offsetHeight)
          .map(word => [word.clientWidth, word.scrollWidth])"""
    )
    assert found and all(seen == whole for seen, whole in found), found


# Keys.


def test_there_is_one_tab_stop_and_arrows_move_it(bench: Bench) -> None:
    stops = bench.page.locator("#branches [tabindex='0']:not(.others)")
    bench.show(likely())
    bench.page.locator("#rest .more").click()
    assert stops.count() == 1
    bench.page.locator("#box").focus()
    bench.press("Tab", "Tab")
    assert bench.focused() == ["0", "0", None]
    bench.press("ArrowDown", "ArrowRight", "ArrowRight")
    assert bench.focused() == ["1", "2", None]
    bench.press("End")
    assert bench.focused() == ["1", "4", None]
    bench.press("ArrowRight", "Home", "ArrowLeft")
    assert bench.focused() == ["1", "0", None]
    bench.press(*["ArrowDown"] * 4)
    assert bench.page.evaluate("document.activeElement.className") == "more"
    bench.press("ArrowDown", "ArrowRight")
    assert bench.focused() == [None, None, "1"]
    bench.press("ArrowDown", "ArrowDown")
    assert bench.focused() == [None, None, "3"], "the list goes on by entries, and not by lines"
    bench.press("ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp")
    assert bench.focused()[0] == "4"
    assert stops.count() == 1
    bench.press("Tab")
    assert bench.focused() == [None, None, "0"], "Tab leads into the list, which scrolls"
    assert stops.count() == 1
    for name in ("terms", "costs"):
        bench.press("Tab")
        assert bench.page.evaluate("name => document.activeElement.matches(`.${name} summary`)", name)
    bench.press("Tab")
    assert not bench.page.evaluate("root.contains(document.activeElement)")


def test_tab_leads_to_the_rows_again_after_the_list_of_everything_else(bench: Bench) -> None:
    bench.show(likely())
    bench.page.locator("#rest .more").click()
    bench.page.locator("#others button").nth(2).focus()
    bench.page.locator("#box").focus()
    bench.press("Tab", "Tab")
    assert bench.focused() == ["0", "0", None]


def test_an_entry_of_everything_else_says_its_position_in_the_list(bench: Bench) -> None:
    bench.show(likely())
    bench.page.locator("#rest .more").click()
    entries = bench.page.locator("#others button")
    for index in (0, 2, entries.count() - 1):
        name = str(entries.nth(index).get_attribute("aria-label"))
        assert name.endswith(f"%, {index + 1} of {entries.count()}"), name


def test_rows_that_scroll_are_no_tab_stops(bench: Bench) -> None:
    bench.show(likely(3, 40))
    bench.token(1, 0).hover()
    bench.page.locator("#box").focus()
    bench.press("Tab", "Tab")
    assert bench.focused() == ["0", "0", None]
    bench.press("Tab")
    assert bench.page.evaluate("document.activeElement.matches('.terms summary')")
    bench.press("Tab", "Tab")
    assert not bench.page.evaluate("root.contains(document.activeElement)")
    bench.page.mouse.wheel(200, 0)
    bench.page.wait_for_selector("[data-branch='1'] [data-scrolled]")


def test_enter_accepts_a_row_and_the_focus_goes_to_the_first_token_of_the_next_rows(bench: Bench) -> None:
    view = likely()
    bench.show(view)
    bench.token(4, 4).focus()
    bench.press("Enter")
    (told,) = bench.told("accept")
    assert told["byKeyboard"] is True and told["pointer"] is None
    assert told["ids"] == view["branches"][4]["ids"]
    bench.show(None, state="thinking")
    assert bench.focused()[:2] == ["4", "4"]
    bench.show(likely(3, 2), revision=bench.revision)
    assert bench.focused()[:2] == ["0", "0"]


HEAR_FOCUS = """() => {
  window.focused = [];
  root.addEventListener('focusin', ({target}) => {
    focused.push([target.closest('.branch')?.dataset.branch ?? target.className, target.dataset.token ?? null]);
  });
}"""


def test_the_focus_stays_on_its_token_while_an_unfinished_view_lacks_it(bench: Bench) -> None:
    """As after a ban: the first views of the new rows may have one row, or short ones."""
    bench.show(likely(), revision=1)
    bench.token(3, 2).focus()
    bench.page.evaluate(HEAR_FOCUS)
    bench.send("expect", revision=2, textChanged=False)
    for rows, depth in [(1, 1), (5, 2)]:
        bench.show(likely(rows, depth), revision=2, state="thinking")
        assert bench.focused()[:2] == ["3", "2"]
        assert bench.count == 5 and bench.page.locator("#branches").get_attribute("data-earlier") is not None
    bench.press("Delete", "1")
    assert not bench.told("ban") and not bench.told("accept"), "the rows before take no key"
    bench.show(likely(5, 3), revision=2, state="thinking")
    assert bench.page.locator("#branches").get_attribute("data-earlier") is None, "the rows that have it are drawn"
    bench.show(likely(), revision=2, state="settled")
    assert bench.page.evaluate("focused") == [] and bench.focused()[:2] == ["3", "2"]


@pytest.mark.parametrize("last", ["settled", "stopped"])
def test_the_focus_goes_once_to_the_nearest_token_where_its_own_does_not_return(bench: Bench, last: str) -> None:
    bench.show(likely(), revision=1)
    bench.token(3, 2).focus()
    bench.page.evaluate(HEAR_FOCUS)
    bench.send("expect", revision=2, textChanged=False)
    bench.show(likely(2), revision=2, state="thinking")
    if last == "settled":
        bench.show(likely(2), revision=2, state="settled")
    else:
        bench.send("state", state="settled", note=None)
    assert bench.count == 2
    assert bench.page.evaluate("focused") == [["1", "2"]]


@pytest.mark.parametrize("away", [False, True])
def test_rows_that_lack_a_token_are_drawn_when_the_focus_leaves_it(bench: Bench, away: bool) -> None:
    bench.show(likely(), revision=1)
    bench.token(3, 0).focus()
    bench.send("expect", revision=2, textChanged=False)
    bench.show(likely(3), revision=2, state="thinking")
    assert bench.count == 5
    if away:
        bench.page.locator("#box").focus()
    else:
        bench.press("ArrowUp")
    expect(bench.page.locator("#branches [data-branch]")).to_have_count(3)
    assert bench.focused()[:2] == ([None, None] if away else ["2", "0"])


def test_a_mouse_that_rests_marks_no_token_beside_the_one_with_the_focus(bench: Bench) -> None:
    bench.show(likely())
    frame = '() => getComputedStyle(root.querySelector(\'[data-branch="2"] [data-token="1"]\')).boxShadow'
    bench.token(2, 1).hover()
    bench.page.wait_for_function(f"({frame})() !== 'none'")
    bench.page.locator("#box").focus()
    bench.press("Tab", "Tab")
    assert bench.focused()[:2] == ["0", "0"]
    bench.page.wait_for_timeout(400)
    assert bench.page.evaluate(frame) == "none"
    assert bench.told("point")[-1]["text"] == bench.texts(0)[0]
    bench.token(2, 2).hover()
    bench.token(2, 1).hover()
    bench.page.wait_for_function(f"({frame})() !== 'none'")


def test_a_digit_takes_that_rows_next_word_only_with_focus_among_the_branches(bench: Bench) -> None:
    view = likely()
    view["branches"][1]["pieces"][0]["ends"] = 0
    bench.show(view)
    bench.page.locator("#box").focus()
    bench.press("2")
    assert not bench.told("accept")
    bench.token(0, 0).focus()
    bench.press("2", "9")
    (told,) = bench.told("accept")
    assert (told["branch"], told["token"], told["byKeyboard"]) == (1, 1, True)
    assert bench.page.evaluate("root.branchView.nextWord(1)") == 1


def test_a_whole_row_that_was_awaited_and_does_not_come_is_refused(bench: Bench) -> None:
    bench.set(k=5, depth=5)
    bench.send("expect", revision=1)
    assert bench.page.evaluate("root.branchView.chooseWhole(3)") is True
    bench.show(likely(3))
    bench.page.evaluate("root.branchView.acceptAwaited()")
    assert bench.told("accept") == [] and "That branch is not among these rows" in bench.note


def test_a_choice_can_be_made_by_the_page(bench: Bench) -> None:
    bench.show(likely())
    assert bench.page.evaluate("root.branchView.choose(3, 1, {byKeyboard: true})")
    assert bench.told("accept")[0]["branch"] == 3
    assert bench.page.evaluate("root.branchView.choose(9, 0)") is False


def test_focus_on_a_token_far_to_the_right_brings_it_into_sight(bench: Bench) -> None:
    bench.show(likely(2, 40))
    bench.token(0, 0).focus()
    bench.press("End")
    inside = bench.page.evaluate(
        """() => { const token = document.activeElement.getBoundingClientRect();
        const row = document.activeElement.parentElement.getBoundingClientRect();
        return token.left >= row.left && token.right <= row.right; }"""
    )
    assert inside
    bench.page.wait_for_function("document.activeElement.parentElement.dataset.scrolled === 'true'")


# States.


HEAR = """() => { window.announced = []; new MutationObserver(() => announced.push(
    document.querySelector('.announcement').textContent)
).observe(document.querySelector('.announcement'), {childList: true, characterData: true, subtree: true}); }"""


def test_a_settled_view_is_announced_once(bench: Bench) -> None:
    bench.page.evaluate(HEAR)
    for depth in range(1, 6):
        bench.show(likely(5, depth) | {"asked": ASKED}, state="thinking", revision=1)
    bench.show(likely(), revision=1)
    bench.show(likely(), revision=1)
    # Observers are told before anything else is run.
    announced = bench.page.evaluate("announced")
    assert len(announced) == 1 and announced[0].startswith("These 5 hold")


def test_a_growing_view_without_rows_leaves_the_rows_and_the_focus(bench: Bench) -> None:
    bench.show(likely())
    bench.token(1, 0).focus()
    focused, rows = bench.focused(), bench.count
    bench.send("expect", revision=2)
    bench.show(likely() | {"branches": []}, revision=2, state="thinking")
    assert (bench.focused(), bench.count) == (focused, rows)
    assert bench.page.evaluate("root.contains(document.activeElement)")


@pytest.mark.parametrize("late", [True, False])
def test_an_action_is_announced_alone_only_where_the_rows_are_late(bench: Bench, late: bool) -> None:
    bench.show(likely())
    bench.page.evaluate(LISTEN, ".announcement")
    rows = bench.page.locator(".announcement").text_content()
    bench.send("confirm", kind="banned", text=" sea")
    bench.send("expect", revision=2)
    if late:
        expect(bench.page.locator(".announcement")).to_have_text("Banning “sea”: the rows follow.")
    bench.show(likely())
    bench.page.wait_for_timeout(2000)
    heard = ["Banning “sea”: the rows follow.", rows] if late else [f"Banned: “sea”. {rows}"]
    assert bench.page.evaluate("spoken") == heard


def test_rows_that_take_long_are_announced_once_as_still_computed_and_when_they_come(bench: Bench) -> None:
    bench.show(likely())
    bench.page.evaluate(LISTEN, ".announcement")
    rows = bench.page.locator(".announcement").text_content()
    bench.send("confirm", kind="banned", text=" sea")
    bench.send("expect", revision=2)
    expect(bench.page.locator(".announcement")).to_have_text("Banning “sea”: the rows follow.")
    bench.show(likely() | {"branches": []}, revision=2, state="thinking")
    expect(bench.page.locator(".announcement")).to_have_text("The rows are still being computed.")
    bench.show(likely(), revision=2)
    expect(bench.page.locator(".announcement")).to_have_text(rows)
    heard = ["Banning “sea”: the rows follow.", "The rows are still being computed.", rows]
    assert bench.page.evaluate("spoken") == heard


DRAG_TEMPERATURE = """settings => [9, 8, 7, 6, 5, 4, 3, 2, 1].map(tenth => {
  root.dispatchEvent(new CustomEvent('settings', {detail: {...settings, temperature: tenth / 10}}));
  return document.querySelector('.announcement').textContent;
})"""
"""Sets the temperature from 0.9 down to 0.1 without a pause, and returns the announcement after each step."""


def test_a_dragged_slider_is_announced_once_and_what_is_said_is_what_is_seen(bench: Bench) -> None:
    bench.show(likely(), revision=1)
    bench.page.evaluate(HEAR)
    said = bench.page.evaluate(DRAG_TEMPERATURE, ASKED)
    assert said == [""] * 9, "the rows before are seen no more"
    seen = bench.page.locator("#coverage .held").inner_text()
    expect(bench.page.locator(".announcement")).to_contain_text(
        f"These 5 hold {seen} of what comes next at temperature 0.1, in tokens: "
    )
    bench.page.wait_for_timeout(700)
    assert [said[:5] for said in bench.page.evaluate("announced") if said] == ["These"]


def test_each_state_of_the_branch_view_has_a_sentence(bench: Bench) -> None:
    bench.show(None, state="thinking", reading=[512, 2000])
    assert "Reading: 512 of 2,000 tokens" in bench.note
    bench.show(likely(5, 3) | {"asked": ASKED | {"depth": 7}}, state="thinking")
    assert "Growing: 3 of 7 tokens" in bench.note
    bench.send("state", state="paused", note=None)
    assert bench.page.get_attribute("#branches", "data-state") == "paused" and "Paused" in bench.note
    bench.show(None, state="error", note="The model has gone.")
    assert bench.note == "The model has gone." and bench.count == 5
    bench.show(likely() | {"seen_from": 1234}, stored=True)
    assert "character 1,235" in bench.note
    assert "Recorded example" in bench.page.locator("#coverage").inner_text()
    bench.show(None, state="empty")
    assert bench.count == 0 and bench.page.locator("#rest, #coverage, #meter").locator("visible=true").count() == 0
    assert "Write something" in bench.page.locator("#branches").inner_text()


def test_tokens_whose_next_view_is_there_have_a_mark(bench: Bench) -> None:
    view = likely()
    bench.show(view)
    keys = [str(view["branches"][0]["ids"][0]), " ".join(map(str, view["branches"][2]["ids"][:2]))]
    bench.send("ahead", ready=2, keys=keys, tokens=88)
    marked = bench.page.locator("[data-ahead='true']")
    assert marked.count() == 2
    assert bench.token(0, 0).get_attribute("data-ahead") == bench.token(2, 1).get_attribute("data-ahead") == "true"
    assert bench.page.get_attribute("#branches", "data-ahead-ready") == "2"
    assert bench.page.get_attribute("#meter", "data-ahead") == "88"
    bench.set(**ASKED | {"order": "alphabet"})
    assert marked.count() == 2
    bench.show(view)
    assert marked.count() == 0 and bench.page.get_attribute("#branches", "data-ahead-ready") == "0"


def test_the_meter_says_what_the_view_cost(bench: Bench) -> None:
    bench.show(likely())
    meter = bench.page.locator("#meter")
    assert (meter.get_attribute("data-passes"), meter.get_attribute("data-tokens")) == ("4", "19")
    assert "a request of its own for each row would compute 611" in meter.text_content()
    assert "61 ms" in meter.text_content()
    view = likely()
    view["cost"] |= {"passes": 0, "tokens": 0}
    bench.show(view)
    assert "0 passes through the model: these rows were computed before" in meter.text_content()


def test_a_value_from_python_is_shown(browser: Any, address: str) -> None:
    with opened(browser, address) as bench:
        bench.page.goto(address)
        bench.mount({"revision": 0, "state": "settled", "view": likely(), "stored": True})
        assert bench.count == 5 and bench.page.get_attribute("#branches", "data-state") == "settled"


def test_the_component_has_ids_of_its_own_and_nothing_that_a_template_would_run() -> None:
    view = branch_view.BranchView(prefix="other-")
    for name in ("branches", "rest", "coverage", "meter"):
        assert f'id="other-{name}"' in view.html_template
    assert view.elem_id is None
    for template in (view.html_template, view.css_template):
        assert not any(sign in template for sign in ("`", "${", "{{", "\\", "{prefix}"))
    assert "branch_view/branch_view.js" in view.js_on_load
    json.dumps(view.get_config())


def test_the_rows_are_described_by_the_keys_that_work_there() -> None:
    for read_only, keys in ((False, branch_view.KEYS), (True, branch_view.READ_ONLY_KEYS)):
        template = branch_view.BranchView(prefix="other-", read_only=read_only).html_template
        assert f'<p class="keys" id="other-keys">{keys}</p>' in template
    assert "Enter" not in branch_view.READ_ONLY_KEYS, "Enter writes nothing there"


def test_a_sign_in_bold_is_told_from_one_that_is_not(bench: Bench) -> None:
    bench.show(view_of([(1, 2, 3)], texts={1: "\n", 2: "\n", 3: " sea"}, k=1, depth=3))
    stroke = "token => getComputedStyle(token).webkitTextStrokeWidth"
    assert [bench.token(0, index).evaluate(stroke) for index in range(3)] == ["0.75px", "0px", "0px"]


# Room and speed.


def test_on_a_narrow_phone_everything_can_be_reached_and_nothing_overlaps(browser: Any, address: str) -> None:
    with opened(browser, address, viewport={"width": 360, "height": 740}) as bench:
        bench.show(likely(20, 40))
        bench.page.locator("#rest .more").click()
        assert bench.page.evaluate("document.documentElement.scrollWidth") == 360
        sizes = bench.page.locator("#branches button:visible").evaluate_all(
            "buttons => buttons.map(button => [button.offsetWidth, button.offsetHeight])"
        )
        assert all(width >= 24 and height >= 24 for width, height in sizes)
        heights = {round(height) for height in bench.all(".branch", "offsetHeight")}
        assert len(heights) == 1
        bench.token(0, 39).click()
        bench.token(19, 39).click()
        assert [len(one["ids"]) for one in bench.told("accept")] == [40, 40]


@pytest.mark.parametrize(("width", "height"), [(390, 740), (844, 390)])
@pytest.mark.parametrize("length", [3, 24])
def test_on_a_phone_no_note_at_the_end_of_a_row_covers_a_token(
    browser: Any, address: str, length: int, width: int, height: int
) -> None:
    with opened(browser, address, has_touch=True, viewport={"width": width, "height": height}) as bench:
        view = view_of([tuple([*range(1, 13)] * 2)[:length]], k=1, depth=length)
        view["branches"][0]["repeats"] = True
        bench.show(view)
        row = bench.row(0)
        token, note = row.locator(".token").last.bounding_box(), row.locator(".stopped").bounding_box()
        assert token["x"] + token["width"] <= note["x"]
        assert row.get_attribute("data-reads") == (None if length == 3 else "on"), "a row that fits is shown whole"


def test_the_height_of_a_row_does_not_depend_on_what_is_in_it(bench: Bench) -> None:
    tall = {
        one: text for one, text in zip(likeliest(row_after(()), 5), ["ก็้็้็้", "中文", "🙂", "x" * 200, "."], strict=True)
    }
    bench.show(view_of([(one,) for one in tall], tall, depth=1))
    assert len({round(height) for height in bench.all(".branch", "offsetHeight")}) == 1


def test_a_slider_repaints_the_elements_that_are_there_and_makes_none(bench: Bench) -> None:
    bench.show(likely())
    made = bench.page.evaluate(
        """settings => {
            const changes = [], observer = new MutationObserver(found => changes.push(...found));
            observer.observe(root, {childList: true, subtree: true});
            const elements = () => observer.takeRecords().concat(changes)
                .flatMap(change => [...change.addedNodes]).filter(node => node.nodeType === Node.ELEMENT_NODE).length;
            for (const detail of settings) root.dispatchEvent(new CustomEvent('settings', {detail}));
            return elements();
        }""",
        [ASKED | {"temperature": tenth / 10} for tenth in range(1, 20)],
    )
    assert made == 0


def test_a_row_that_does_not_reach_the_requested_boundary_says_so(bench: Bench) -> None:
    view = likely()
    for branch in view["branches"]:
        for piece in branch["pieces"]:
            piece["ends"] = 1
    view["branches"][0]["pieces"][2]["ends"] = 3
    bench.show(view | {"asked": view["asked"] | {"until": "sentence"}})
    bench.set(**ASKED | {"until": "sentence"})
    signs = [row.locator(".sign, .stopped").count() for row in bench.page.locator(".branch").all()]
    assert signs[0] == 0
    assert all(count == 1 for count in signs[1:])


def test_the_least_share_that_is_written_stays_in_its_column(bench: Bench) -> None:
    view = likely(1, 2)
    view["branches"][0]["logprobs"][0] = -30.0
    bench.show(view)
    figure = bench.page.locator(".branch .figure").first
    assert figure.inner_text() == "<\u00a00.0001\u00a0%"
    assert figure.evaluate("element => element.scrollWidth <= element.clientWidth")
