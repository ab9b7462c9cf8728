"""The Lab's speculation page in a browser, and its requests on the server."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interface.tabs.lab.experiment_request import MOST_PROMPT
from interface.tabs.lab.speculation_session import SpeculationRequest, SpeculationSession
from lookahead_core import Document, Model, load_model
from tests.conftest import tiny_llama
from tests.support import browser as browsers
from tests.support.browser import CLICK_ONCE_SHOWN, PATIENCE, START_AND_STOP, Visit
from tests.support.requests_to_pages import news_from

PROMPT = "One two three, one two three, one two"
OPTIONS = {"tokens": 20, "suffix": True, "recycled": True, "model": False, "temperature": 0.7, "seed": 5}


@pytest.fixture(scope="module")
def model(byte_tokenizer: Any) -> Model:
    return load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)


def news_of(model: Model, part: str = "text", draft_model: Model | None = None, **fields: Any) -> list[Any]:
    return news_from(
        model,
        SpeculationRequest.from_json,
        lambda loaded: SpeculationSession(loaded, lambda: draft_model),
        **{"text": PROMPT, "experiment": OPTIONS | {"part": part}} | fields,
    )


def last_view(news: list[Any]) -> Any:
    assert news[-1]["state"] == "settled", news[-1]
    return [one["view"] for one in news if "view" in one][-1]


@pytest.mark.slow
def test_a_request_is_answered_with_the_passes_of_the_same_text(model: Model) -> None:
    view = last_view(news_of(model))
    stream = Document(model, PROMPT).stream(max_new_tokens=20, speculate=False, temperature=0.7, seed=5)
    assert view["token_ids"] == view["plain_token_ids"] == [step.token_id for step in stream]
    assert "".join(view["texts"]) == "".join(view["plain_texts"]) == stream.text
    assert (view["equal"], view["plain_passes"], view["draft_model"]) == (True, 20, None)
    assert view["drafters"] == ["suffix", "recycled"]
    won = [sum(node["accepted"] for node in one["nodes"]) + 1 for one in view["passes"]]
    assert [one["before"] for one in view["passes"]] == [sum(won[:index]) for index in range(len(won))]
    assert sum(won) == 20


def test_a_draft_model_drafts_where_the_request_asks_for_it(model: Model, draft_model: Model) -> None:
    chosen = OPTIONS | {"part": "text", "suffix": False, "recycled": False, "model": True, "temperature": 0}
    view = last_view(news_of(model, draft_model=draft_model, experiment=chosen))
    assert (view["draft_model"], view["drafters"]) == (draft_model.name, ["model"])
    nodes = [node for one in view["passes"] for node in one["nodes"]]
    assert {tuple(node["drafters"]) for node in nodes} == {("model",)}
    assert {node["accepted"] for node in nodes} == {True, False}
    assert view["equal"] is True and len(view["passes"]) < 20


@pytest.mark.slow
def test_a_thousand_draws_come_as_often_as_the_odds_say(model: Model, draft_model: Model) -> None:
    chosen = OPTIONS | {"part": "draws", "model": True, "recycled": False}
    view = last_view(news_of(model, draft_model=draft_model, experiment=chosen))
    assert view["draws"]["number"] == 1000 == view["drafted"]
    assert 0 < view["accepted"] < 1000
    for odds, count in zip(view["odds"], view["draws"]["counts"], strict=True):
        assert abs(count - 1000 * odds["processed"]) <= 4 * math.sqrt(1000 * odds["processed"]) + 1


@pytest.mark.parametrize(
    ("fields", "because"),
    [
        ({"text": ""}, "Write a prompt"),
        ({"text": "x" * (MOST_PROMPT + 1)}, "The prompt has 2,001 characters"),
        ({"experiment": None}, "part is None, and must be one of"),
        ({"experiment": OPTIONS | {"part": "all"}}, "part is 'all', and must be one of"),
        ({"experiment": OPTIONS | {"part": "text", "tokens": 61}}, "tokens is 61, and must be a whole number from 2"),
        ({"experiment": OPTIONS | {"part": "text", "depth": 3}}, "depth is not an option of the experiment"),
        ({"experiment": OPTIONS | {"part": "text", "draft_model": "x"}}, "draft_model is not an option"),
        ({"experiment": OPTIONS | {"part": "text", "suffix": False, "recycled": 1}}, "Choose at least one drafter"),
        ({"experiment": OPTIONS | {"part": "text", "model": True}}, "No smaller model is loaded"),
        ({"experiment": OPTIONS | {"part": "draws", "temperature": 0}}, "temperature is 0, where nothing is drawn"),
    ],
)
def test_what_cannot_be_run_gets_a_sentence(model: Model, fields: dict[str, Any], because: str) -> None:
    *_, last = news_of(model, **fields)
    assert last["state"] == "error"
    assert because in last["sentence"]


def test_a_model_without_a_cache_gets_a_sentence(byte_tokenizer: Any) -> None:
    network = tiny_llama(len(byte_tokenizer))
    *_, last = news_of(load_model(network, tokenizer=byte_tokenizer, engine="uncached"))
    assert (last["state"], "runs without a cache" in last["sentence"]) == ("error", True)


def in_a_browser(test: Any) -> Any:
    return pytest.mark.browser(pytest.mark.slow(test))


@pytest.fixture(scope="module")
def drafting_page(browser: Any, tiny_model: Model, draft_model: Model) -> Iterator[str]:
    """The address of a page that has a draft model."""
    with browsers.page_of(lambda report: tiny_model, load_draft=lambda report: draft_model) as url:
        yield url


@pytest.fixture
def drafting(page: Any, drafting_page: str) -> Iterator[Visit]:
    with browsers.visit_again(page, drafting_page) as visit:
        visit.wait_for_status("ready")
        yield visit


def run(visit: Visit, address: str, query: str) -> Any:
    """Open a link to the page, wait for the end of its run, and return the page."""
    page = visit.page
    page.goto("about:blank")
    page.goto(f"{address}#lab-speculation?{query}")
    page.wait_for_selector("#lab-speculation[data-state=settled] .verdict:not([hidden])", timeout=PATIENCE)
    return page


def part(page: Any, name: str) -> Any:
    return page.locator(f"#lab-speculation {name}")


@in_a_browser
def test_a_link_plays_the_passes_of_two_models_and_both_texts_are_equal(
    drafting: Visit, drafting_page: str, tmp_path: Path
) -> None:
    page = run(drafting, drafting_page, "prompt=The+keeper&tokens=16&suffix=false&recycled=false&model=true")
    browsers.expect(part(page, ".verdict")).to_contain_text("Equal")
    browsers.expect(part(page, ".verdict span")).to_have_text("Both texts are equal, token for token.")
    saved = re.compile(r"^16 tokens in \d+ passes with drafts, in 16 without\.$")
    browsers.expect(part(page, "> .says .sentence")).to_have_text(saved)
    passes = int(part(page, ".passes input").get_attribute("max"))
    assert 1 < passes < 16
    browsers.expect(part(page, ".passes output")).to_have_text(f"{passes} of {passes}")
    sentence = part(page, ".pass").inner_text()
    browsers.expect(part(page, ".passes input")).to_have_attribute("aria-valuetext", sentence)
    assert part(page, ".drafted").inner_text() == part(page, ".plain").inner_text() != ""
    part(page, ".passes input").fill("1")
    browsers.expect(part(page, ".pass")).to_have_text(
        re.compile(r"^Pass 1: The small model wrote \d+ tokens?, the model agreed to \d+\. ")
    )
    drafting.listen("#lab-speculation [aria-live=polite]")
    part(page, ".next").click()
    page.wait_for_function("spoken.some(one => one.startsWith('Pass 2: '))", timeout=PATIENCE)
    part(page, ".back").click()
    browsers.expect(part(page, ".passes output")).to_have_text(f"1 of {passes}")
    part(page, ".play").click()
    browsers.expect(part(page, ".play")).to_have_text("Pause")
    browsers.expect(part(page, ".passes output")).not_to_have_text(f"1 of {passes}")
    part(page, ".play").click()
    browsers.expect(part(page, ".play")).to_have_text("Play")
    with page.expect_download() as saved:
        part(page, ".csv").click()
    saved.value.save_as(tmp_path / "passes.csv")
    with (tmp_path / "passes.csv").open() as file:
        rows = list(csv.DictReader(file))
    verdicts = [row["verdict"] for row in rows]
    assert len(verdicts) == verdicts.count("accepted") + verdicts.count("rejected") + passes
    assert verdicts.count("accepted") + passes == 16
    for kind, head in (("svg", b"<svg"), ("png", b"\x89PNG")):
        for button in (kind, f"plot-{kind}"):
            with page.expect_download() as saved:
                part(page, f".{button}").click()
            saved.value.save_as(tmp_path / f"{button}.{kind}")
            assert (tmp_path / f"{button}.{kind}").read_bytes().startswith(head)


@in_a_browser
def test_the_tree_of_a_pass_is_walked_through_with_the_keys_alone(tiny: Visit, tiny_page: str) -> None:
    page = run(tiny, tiny_page, "prompt=One+two+three,+one+two+three,+one+two&tokens=12&model=true")
    assert not page.locator("#speculation-model").is_checked(), "there is no smaller model"
    assert "No smaller model drafts here." in part(page, ".method").inner_text()
    part(page, ".passes input").focus()
    page.keyboard.press("Home")
    browsers.expect(part(page, ".passes output")).to_have_text(re.compile("^1 of "))
    part(page, ".tokens summary").click()
    rows = part(page, ".tokens tbody tr")
    nodes = part(page, ".tree g[data-key]")
    assert rows.count() == nodes.count() > 1
    pointed = part(page, ".pointed")
    part(page, ".tree").focus()
    page.keyboard.press("ArrowDown")
    browsers.expect(pointed).to_have_text(re.compile("token 1 of a draft, was proposed by the suffix drafter"))
    page.keyboard.press("ArrowUp")
    for _ in range(nodes.count()):
        page.keyboard.press("ArrowDown")
    browsers.expect(pointed).to_have_text(re.compile("the model’s own token"))
    page.keyboard.press("Escape")
    browsers.expect(pointed).to_have_text(re.compile("^Point at a token"))
    nodes.first.hover()
    browsers.expect(pointed).not_to_have_text(re.compile("^Point at a token"))
    signs = nodes.evaluate_all("groups => groups.map(group => group.querySelectorAll('text')[1].textContent)")
    assert all(re.match("^[✓✗] [SR]|^[+] (correction|bonus|no draft)$", sign) for sign in signs)


PLACES = """() => {
  const [play, tree, note, sentence] = ['.play', '.tree', '.cropped-note', '.pass']
    .map(name => document.querySelector(`#lab-speculation ${name}`));
  const slider = document.querySelector('#lab-speculation .passes input');
  return Array.from({length: Number(slider.max)}, (_, index) => {
    slider.value = String(index + 1);
    slider.dispatchEvent(new Event('input'));
    const [first, drawing, text] = [play, tree, sentence].map(one => one.getBoundingClientRect());
    const wide = tree.scrollWidth - 16 > tree.clientWidth;   // the edge is empty
    const said = note.checkVisibility({visibilityProperty: true});
    const {height: lines, bottom} = text;
    const after = document.querySelector("#lab-speculation .both").getBoundingClientRect().top;
    return {top: drawing.top, play: first.top, gap: text.top - drawing.bottom, wide, said, lines, bottom, after};
  });
}"""
"""Of each pass: where Play, the tree and its sentence are, and whether the tree is cut and says so."""


@in_a_browser
@pytest.mark.parametrize(("width", "height"), [(911, 512), (1366, 768), (390, 844)])
def test_the_tree_stays_in_its_place_beside_play_from_pass_to_pass(
    tiny: Visit, tiny_page: str, width: int, height: int
) -> None:
    tiny.page.set_viewport_size({"width": width, "height": height})
    page = run(tiny, tiny_page, "prompt=One+two+three,+one+two+three,+one+two&tokens=30")
    if width == 390:
        part(page, ".play").evaluate("button => button.scrollIntoView({block: 'center'})")
        page.wait_for_timeout(700)
    places = page.evaluate(PLACES)
    assert len(places) > 2
    assert len({(one["top"], one["play"], one["gap"]) for one in places}) == 1, places
    assert width == 390 or len({one["after"] for one in places}) == 1, "what is below stays in its place"
    assert all(one["said"] == one["wide"] for one in places)
    assert places[0]["play"] >= 0 and places[0]["top"] + 176 <= height
    assert width == 390 or all(one["bottom"] <= height for one in places), places
    browsers.expect(part(page, "p.legend")).to_be_in_viewport(ratio=1)
    if height == 512:
        browsers.expect(part(page, "> .says .sentence")).to_be_in_viewport(ratio=1)
        browsers.expect(part(page, ".verdict")).to_be_in_viewport(ratio=1)
        note = part(page, ".cropped-note").bounding_box()
        words = part(page, ".initials").evaluate(
            "one => { const range = new Range(); range.selectNodeContents(one);"
            " return range.getBoundingClientRect().toJSON(); }"
        )
        assert note["y"] + note["height"] <= height and note["x"] >= words["right"], "seen whole beside the key"
        part(page, ".initials").hover()
        browsers.expect(page.locator(".tip")).to_contain_text("recycled: the tokens that earlier passes found likely")


@in_a_browser
def test_draws_come_as_often_as_the_odds_and_what_cannot_be_run_gets_a_sentence(tiny: Visit, tiny_page: str) -> None:
    page = run(tiny, tiny_page, "prompt=One+two+three,+one+two+three,+one+two&tokens=4")
    assert part(page, ".draw").evaluate(START_AND_STOP) == ["Stop drawing", "Draw 1,000 first tokens"]
    browsers.expect(part(page, ".rejection .says .sentence")).to_have_text("Stopped.")
    part(page, ".draw").click()
    sentence = part(page, ".rejection .says .sentence")
    browsers.expect(sentence).to_have_text(re.compile("^1,000 tokens are drawn: .* one of them was accepted"))
    page.wait_for_function("() => document.querySelector('#lab-speculation .outcome .plot .barlayer .trace')")
    part(page, ".odds summary").click()
    for _, _, chance, drawn in (row.split("\t") for row in part(page, ".odds tbody").inner_text().splitlines()):
        assert float(drawn.rstrip("\u00a0%")) == pytest.approx(float(chance.rstrip("\u00a0%")), abs=6)
    says = part(page, "> .says .sentence")
    for name in ("suffix", "recycled"):
        page.locator(f"#speculation-{name}").uncheck()
    page.locator("#speculation-form .run").click()
    browsers.expect(says).to_have_text(re.compile("^Choose at least one drafter"))
    page.locator("#speculation-suffix").check()
    page.locator("#speculation-tokens").fill("61")
    page.locator("#speculation-form .run").click()
    browsers.expect(says).to_have_text("Tokens is a whole number from 2 to 60.")


@in_a_browser
def test_a_run_can_be_stopped_and_keeps_its_passes(real: Visit) -> None:
    page = real.page
    real.open_tab("Lab")
    page.get_by_role("tab", name="Speculation").click()
    page.locator("#speculation-tokens").fill("60")
    page.evaluate(CLICK_ONCE_SHOWN, ["#lab-speculation .tree svg", "#speculation-form .halt"])
    page.locator("#speculation-form .run").click()
    stopped = "Stopped. The passes so far are shown."
    browsers.expect(part(page, "> .says .sentence")).to_have_text(stopped, timeout=PATIENCE)
    passes = part(page, ".passes input").get_attribute("max")
    page.wait_for_timeout(700)
    assert part(page, ".passes input").get_attribute("max") == passes
    browsers.expect(part(page, ".passes output")).to_have_text(f"{passes} of {passes}")
    assert part(page, ".verdict").is_hidden()
    for tokens, sentence in (
        ("59", "This is the result of the run before: run again for what the form has now."),
        ("60", stopped),
    ):
        page.locator("#speculation-tokens").fill(tokens)
        browsers.expect(part(page, "> .says .sentence")).to_have_text(sentence)
    browsers.expect(page.locator("#lab-speculation")).to_have_attribute("data-state", "settled")
