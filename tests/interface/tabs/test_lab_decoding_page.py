"""The Lab's decoding page in a browser, and its requests on the server."""

from __future__ import annotations

import csv
import io
import math
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageStat

from interface.tabs.lab.decoding_session import DRAWS, DecodingRequest, DecodingSession, odds_as_json
from interface.tabs.lab.experiment_request import MOST_PROMPT
from lookahead_core import Document, Model, load_model
from lookahead_core.experiments.decoding_experiment import OddsOfToken, decoding_experiment
from tests.conftest import tiny_llama
from tests.support import browser as browsers
from tests.support.browser import CLICK_ONCE_SHOWN, PATIENCE, START_AND_STOP, Visit
from tests.support.requests_to_pages import news_from

PROMPT = "The keeper watched"
OPTIONS = {"tokens": 6, "samples": 2, "beams": 3, "temperature": 0.8, "top_k": 20, "seed": 5}


@pytest.fixture(scope="module")
def model(byte_tokenizer: Any) -> Model:
    return load_model(tiny_llama(len(byte_tokenizer), seed=3), tokenizer=byte_tokenizer, dtype="float32")


def news_of(model: Model, part: str = "texts", **fields: Any) -> list[Any]:
    return news_from(
        model,
        DecodingRequest.from_json,
        DecodingSession,
        **{"text": PROMPT, "experiment": OPTIONS | {"part": part}} | fields,
    )


def last_view(news: list[Any]) -> Any:
    assert news[-1]["state"] == "settled", news[-1]
    return [one["view"] for one in news if "view" in one][-1]


def test_a_request_is_answered_with_the_experiment_of_the_library(model: Model) -> None:
    view = last_view(news_of(model))
    found = decoding_experiment(model, PROMPT, **OPTIONS)
    assert [(one["method"], one["number"], one["token_ids"]) for one in view["texts"]] == [
        (one.method, one.number, list(one.token_ids)) for one in found.texts
    ]
    for one, text in zip(view["texts"], found.texts, strict=True):
        assert one["total"] == pytest.approx(text.total) and one["average"] == pytest.approx(text.average)
        assert (one["repetition"], one["texts"]) == (text.repetition, list(text.texts))
    assert [(node["parent"], node["token_id"], node["fate"]) for node in view["tree"]] == [
        (node.parent, node.token_id, node.fate) for node in found.beam_tree
    ]
    assert {node["reason"] for node in view["tree"]} == {node.reason for node in found.beam_tree}
    assert view["draws"] is None


def test_odds_are_answered_alone_where_only_they_are_asked_for(model: Model) -> None:
    view, document = last_view(news_of(model, "odds")), Document(model, PROMPT)
    processed = document.odds(temperature=0.8, top_k=20).exp()
    assert (view["texts"], view["tree"], view["draws"]) == ([], [], None)
    assert [one["processed"] for one in view["odds"]] == pytest.approx(
        [float(processed[one["id"]]) for one in view["odds"]]
    )
    for name, others in zip(("raw", "processed"), view["others"], strict=True):
        assert math.fsum(one[name] for one in view["odds"]) + others == pytest.approx(1)


def test_rounding_gives_excluded_tokens_no_probability() -> None:
    odds = [OddsOfToken(0, "a", 0.5, 0.99999994), OddsOfToken(1, "b", 0.25, 0.0)]
    assert odds_as_json(odds, None)["others"] == [0.25, 0.0]


@pytest.mark.slow
def test_ten_thousand_draws_come_as_often_as_the_odds_say(model: Model) -> None:
    view = last_view(news_of(model, "draws"))
    assert view["draws"]["number"] == DRAWS == 10_000
    for odds, count in zip(view["odds"], view["draws"]["counts"], strict=True):
        spread = math.sqrt(DRAWS * odds["processed"] * (1 - odds["processed"]))
        assert abs(count - DRAWS * odds["processed"]) <= 4 * spread


@pytest.mark.parametrize(
    ("fields", "because"),
    [
        ({"text": ""}, "Write a prompt"),
        ({"text": "x" * (MOST_PROMPT + 1)}, "The prompt has 2,001 characters"),
        ({"experiment": None}, "part is None, and must be one of"),
        ({"experiment": {"part": "all"}}, "part is 'all', and must be one of"),
        ({"experiment": {"part": "texts", "tokens": 41}}, "tokens is 41, and must be a whole number from 1 to 40."),
        ({"experiment": {"part": "texts", "beams": 7}}, "beams is 7, and must be a whole number from 0 to 6."),
        ({"experiment": {"part": "texts", "top_p": 0}}, "top_p is 0, and must be"),
        ({"experiment": {"part": "texts", "depth": 3}}, "depth is not an option of the experiment"),
    ],
)
def test_what_cannot_be_run_gets_a_sentence(model: Model, fields: dict[str, Any], because: str) -> None:
    *_, last = news_of(model, **fields)
    assert last["state"] == "error"
    assert because in last["sentence"]


def in_a_browser(test: Any) -> Any:
    return pytest.mark.browser(pytest.mark.slow(test))


def run(visit: Visit, address: str, query: str) -> Any:
    """Open a link to the page, wait for the end of its run, and return the page."""
    page = visit.page
    page.goto("about:blank")
    page.goto(f"{address}#lab-decoding?{query}")
    page.wait_for_selector("#lab-decoding[data-state=settled]", timeout=PATIENCE)
    return page


def odds(page: Any) -> list[list[str]]:
    """The rows of the table of odds."""
    page.locator("#lab-decoding .odds").evaluate("details => { details.open = true; }")
    return [row.split("\t") for row in page.locator("#lab-decoding .odds tbody").inner_text().splitlines()]


GAP = """svg => {
  const {x, width} = svg.querySelector('g[data-key=""] text').getBBox();
  return Math.min(...[...svg.querySelectorAll('path')].map(path => path.getPointAtLength(0).x)) - x - width;
}"""


@in_a_browser
def test_the_lines_of_the_tree_begin_right_after_a_long_prompt(tiny: Visit, tiny_page: str) -> None:
    page = run(tiny, tiny_page, "prompt=The+old+lighthouse+keeper+climbed+slowly&tokens=2&samples=1&beams=2&seed=4")
    assert 0 <= page.locator("#lab-decoding .tree svg").evaluate(GAP) <= 12


@in_a_browser
def test_a_link_runs_all_methods_and_shows_them_as_a_tree_and_a_table(
    tiny: Visit, tiny_page: str, tmp_path: Path
) -> None:
    page = run(tiny, tiny_page, "prompt=The+old+keeper&tokens=5&samples=2&beams=3&seed=4")
    assert page.get_by_role("tab", name="Decoding").get_attribute("aria-selected") == "true"
    names = page.locator("#lab-decoding .texts th[scope=row]").all_inner_texts()
    assert names == ["greedy", "sample 1", "sample 2", "beam 1", "beam 2", "beam 3"]
    pointed = page.locator("#lab-decoding .pointed")
    browsers.expect(pointed).to_have_text(re.compile("With keys: Tab leads into the tree"))
    groups = page.locator("#lab-decoding .tree svg g[data-key]")
    kept = groups.count()
    page.locator("#lab-decoding .shown input[value=dropped]").check()
    assert kept < groups.count()
    page.locator("#lab-decoding .shown input[value=dropped]").uncheck()
    assert groups.count() == kept, "dropped paths are drawn only where they are wanted"
    for name in ("sample", "beam"):
        page.locator(f"#lab-decoding .shown input[value={name}]").uncheck()
    assert groups.count() == 6 < kept, "the prompt and the five tokens of the greedy text"
    groups.nth(2).click()
    browsers.expect(pointed).to_have_text(re.compile("has a chance of .* on the path of greedy"))
    page.locator("#lab-decoding details.dropped summary").click()
    reasons = page.locator("#lab-decoding .dropped tbody tr td:last-child").all_inner_texts()
    assert len(reasons) >= 3 and "better candidates were chosen at the same level" in reasons
    with page.expect_download() as saved:
        page.locator("#lab-decoding .csv").click()
    saved.value.save_as(tmp_path / "texts.csv")
    with (tmp_path / "texts.csv").open() as file:
        assert [row["method"] for row in csv.DictReader(file)] == ["greedy", "sample", "sample", "beam", "beam", "beam"]
    for kind, head in (("svg", b"<svg"), ("png", b"\x89PNG")):
        with page.expect_download() as saved:
            page.locator(f"#lab-decoding .{kind}").click()
        saved.value.save_as(tmp_path / f"tree.{kind}")
        assert (tmp_path / f"tree.{kind}").read_bytes().startswith(head)


FARTHEST_RIGHT = """wide => Math.max(...[...wide.querySelectorAll('th, td')].map(cell => {
  const content = document.createRange();
  content.selectNodeContents(cell);
  return content.getBoundingClientRect().right - wide.getBoundingClientRect().left - wide.clientWidth;
}))"""
"""How far the contents of a table reach beyond the right edge of what is seen; negative if all is inside."""


@in_a_browser
@pytest.mark.parametrize("width", [390, 360])
def test_every_figure_of_the_texts_is_seen_on_a_phone(tiny: Visit, tiny_page: str, width: int) -> None:
    tiny.page.set_viewport_size({"width": width, "height": 844})
    page = run(tiny, tiny_page, "prompt=The+old+keeper&tokens=12&samples=1&beams=1&seed=4")
    assert page.locator("#lab-decoding .texts").evaluate(FARTHEST_RIGHT) <= -4, "the mark of the edge has 4 pixels"


@in_a_browser
@pytest.mark.parametrize(
    ("query", "methods"),
    [
        ("tokens=3&samples=2&beams=2", ["greedy", "sample", "beam", "dropped"]),
        ("tokens=3&samples=1&beams=0", ["greedy", "sample"]),
        ("tokens=3&greedy=false&samples=0&beams=2", ["beam", "dropped"]),
    ],
)
def test_only_the_methods_of_a_run_have_a_box_above_its_tree(
    tiny: Visit, tiny_page: str, query: str, methods: list[str]
) -> None:
    page = run(tiny, tiny_page, f"prompt=The+keeper&{query}")
    boxes = page.locator("#lab-decoding .shown input:visible")
    assert boxes.evaluate_all("boxes => boxes.map(({value}) => value)") == methods


@in_a_browser
def test_the_tree_is_read_by_keyboard(tiny: Visit, tiny_page: str) -> None:
    page = run(tiny, tiny_page, "prompt=The+old+keeper&tokens=5&samples=2&beams=3&seed=4")
    page.locator("#lab-decoding .zoom-in").focus()
    page.keyboard.press("Tab")
    node = page.locator("#lab-decoding .tree [role=treeitem]:focus")
    browsers.expect(node).to_have_accessible_name("the prompt, The old keeper")
    page.keyboard.press("ArrowRight")
    browsers.expect(node).to_have_accessible_name(re.compile("%, on the path of .*greedy"))
    browsers.expect(node).to_have_attribute("aria-level", "2")
    pointed = page.locator("#lab-decoding .pointed")
    browsers.expect(pointed).to_have_text(re.compile("has a chance of"))
    browsers.expect(pointed).to_have_attribute("aria-live", "off")
    first = node.get_attribute("data-key")
    page.keyboard.press("ArrowDown")
    assert node.get_attribute("data-key") != first and node.get_attribute("aria-level") == "2"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    deeper = node.get_attribute("data-key") or ""
    assert deeper.startswith(f"{first} ") and page.locator("#lab-decoding .tree [tabindex='0']").count() == 1
    page.evaluate("scrollTo(0, 0)")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    inner, note = node.bounding_box(), pointed.bounding_box()
    assert inner["y"] + inner["height"] <= note["y"], "the note does not cover it"
    page.evaluate("document.body.classList.toggle('dark')")
    browsers.expect(node).to_have_attribute("data-key", deeper)
    page.keyboard.press("Home")
    page.keyboard.press("Tab")
    browsers.expect(page.locator("#lab-decoding .csv")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    browsers.expect(node).to_have_attribute("data-key", "")


def luminance(page: Any, area: dict[str, float]) -> float:
    """The relative luminance of WCAG of the median grey of an area of the page."""
    picture = Image.open(io.BytesIO(page.screenshot(clip=area))).convert("L")
    grey = ImageStat.Stat(picture).median[0] / 255
    return grey / 12.92 if grey <= 0.04 else ((grey + 0.055) / 1.055) ** 2.4


@in_a_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_edge_at_which_a_tree_goes_on_is_marked(tiny: Visit, tiny_page: str, scheme: str) -> None:
    page = run(tiny, f"{tiny_page}?__theme={scheme}", "prompt=The+old+keeper&tokens=20&samples=2&beams=3&seed=4")
    tree = page.locator("#lab-decoding .tree")
    tree.evaluate("one => one.scrollIntoView()")
    assert tree.evaluate("one => one.scrollWidth > one.clientWidth + 100")
    right, top = tree.evaluate(
        "one => [one.getBoundingClientRect().left + one.clientWidth, one.getBoundingClientRect().top]"
    )

    def contrast(inside: int = 3) -> float:
        """Between the paper and the tree so many pixels inside its edge, as the browser has painted them last."""
        areas = [{"x": x, "y": top + 20, "width": 2, "height": 300} for x in (right - 40, right - inside)]
        paper, edge = (luminance(page, area) for area in areas)
        return (max(paper, edge) + 0.05) / (min(paper, edge) + 0.05)

    assert until(lambda: contrast() >= 1.8)
    assert contrast(8) < 1.1, "a thin line, no shadow on the words"
    tree.evaluate("one => one.scrollTo(one.scrollWidth, one.scrollTop)")
    assert until(lambda: contrast() < 1.1), "here it ends"


SMALLEST_LETTERS = """tree => Math.min(...[...tree.querySelectorAll('text')].map(
  text => text.getScreenCTM().a * parseFloat(getComputedStyle(text).fontSize)))"""


@in_a_browser
def test_fit_shows_as_much_of_the_tree_as_can_be_read_and_plus_makes_it_larger(tiny: Visit, tiny_page: str) -> None:
    page = run(tiny, tiny_page, "prompt=The+old+keeper&tokens=20&samples=2&beams=3&seed=4")
    tree = page.locator("#lab-decoding .tree")
    overflow = "one => Math.max(one.scrollWidth - one.clientWidth, one.scrollHeight - one.clientHeight)"
    readable = tree.evaluate("one => one.firstElementChild.getScreenCTM().a")
    assert readable >= 0.92 and tree.evaluate(overflow) > 100
    note = page.locator("#lab-decoding .cropped-note")
    said = "Only a part is in view: drag it, scroll, or choose Fit."
    browsers.expect(note).to_have_text(said, use_inner_text=True)
    top = note.bounding_box()["y"] - tree.bounding_box()["y"] - tree.bounding_box()["height"]
    height = page.locator("#lab-decoding .drawing").bounding_box()["height"]
    page.locator("#lab-decoding .fit").click()
    browsers.expect(note).to_be_hidden()
    assert page.locator("#lab-decoding .drawing").bounding_box()["height"] == pytest.approx(height, abs=1)
    assert tree.evaluate(SMALLEST_LETTERS) >= 11.99
    least = page.locator("#lab-decoding .smallest-note")
    said = "Only a part is in view: smaller letters could not be read. Drag it, or scroll."
    browsers.expect(least).to_have_text(said, use_inner_text=True)
    browsers.expect(least).to_be_visible()
    box = tree.bounding_box()
    assert least.bounding_box()["y"] - box["y"] - box["height"] == pytest.approx(top, abs=1), "where the other note was"
    page.locator("#lab-decoding .shown input[value=dropped]").check()
    assert tree.evaluate(SMALLEST_LETTERS) >= 11.99, "also after another choice of paths"
    while tree.evaluate("one => one.firstElementChild.getScreenCTM().a") < readable:
        page.locator("#lab-decoding .zoom-in").click()
    browsers.expect(least).to_be_hidden()
    page.locator("#decoding-form .run").click()
    page.wait_for_selector("#lab-decoding[data-state=settled]", timeout=PATIENCE)
    assert tree.evaluate("one => one.firstElementChild.getScreenCTM().a") == pytest.approx(readable, abs=0.01)


@in_a_browser
def test_a_tree_begins_with_the_prompt_and_the_first_token_of_the_greedy_text_in_sight(
    tiny: Visit, tiny_page: str
) -> None:
    page = run(tiny, tiny_page, "prompt=The+old+keeper&tokens=20&samples=2&beams=3&seed=4")
    page.locator("#lab-decoding .shown input[value=dropped]").check()
    tree = page.locator("#lab-decoding .tree")
    seen = tree.evaluate(
        """tree => {
          const outer = tree.getBoundingClientRect();
          const [root, ...others] = tree.querySelectorAll('[data-key]');
          const first = others.find(({dataset}) => !dataset.key.includes(' '));
          const inside = one => {
            const {top, bottom} = one.getBoundingClientRect();
            return top >= outer.top && bottom <= outer.bottom;
          };
          return [root.dataset.key, inside(root), inside(first), tree.scrollHeight > tree.clientHeight];
        }"""
    )
    assert seen == ["", True, True, True]


IN_SIGHT = """tree => {
  const {left, right, top} = tree.getBoundingClientRect();
  for (let y = Math.max(0, top) + 20; y < innerHeight - 140; y += 6)
    for (let x = left + 20; x < Math.min(right, innerWidth) - 20; x += 6)
      if (document.elementFromPoint(x, y)?.closest('[data-key]')?.dataset.key) return [x, y];
}"""
"""A point of a token of a tree that the window shows, far above the window's bottom."""


@in_a_browser
@pytest.mark.parametrize("width", [1366, 390])
def test_the_note_below_the_tree_covers_a_part_of_it_only_while_a_token_is_pointed_at(
    tiny: Visit, tiny_page: str, width: int
) -> None:
    page = run(tiny, tiny_page, "prompt=The+old+keeper&tokens=20&samples=8&beams=6&seed=4")
    page.set_viewport_size({"width": width, "height": 480})
    tree, note = page.locator("#lab-decoding .tree"), page.locator("#lab-decoding .pointed")

    def edges() -> tuple[float, float, float]:
        """The bottom of the tree, and the top and the bottom of the note, from the window's top."""
        shown, said = tree.bounding_box(), note.bounding_box()
        return shown["y"] + shown["height"], said["y"], said["y"] + said["height"]

    tree.evaluate("one => scrollBy(0, one.getBoundingClientRect().top)")
    bottom, top, _ = edges()
    assert top >= bottom > 480, "no token is pointed at: the note is below the tree, and the window's bottom"
    x, y = tree.evaluate(IN_SIGHT)
    page.mouse.move(x, y)
    browsers.expect(note).to_have_text(re.compile("has a chance of"))
    assert edges()[2] == pytest.approx(480, abs=1), "it stays in sight"
    assert note.evaluate("one => getComputedStyle(one).boxShadow").endswith("0px -1px 0px 0px"), "it has a border"
    page.mouse.move(x, 470)
    assert edges()[2] == pytest.approx(480, abs=1), "and does not flicker under the pointer"
    tree.evaluate("one => scrollBy(0, one.getBoundingClientRect().top - innerHeight + 20)")
    assert edges()[1] >= tree.bounding_box()["y"] - 1, "it covers nothing above the tree"
    page.mouse.move(x, 5)
    assert edges()[1] >= edges()[0] > 480, "the pointer has left"


@in_a_browser
def test_on_a_phone_the_sentence_on_a_tapped_token_covers_no_token_and_is_in_sight(
    phone: Visit, tiny_page: str
) -> None:
    page = run(phone, tiny_page, "prompt=The+old+keeper&tokens=20&samples=8&beams=6&seed=4")
    tree, note = page.locator("#lab-decoding .tree"), page.locator("#lab-decoding .pointed")
    tree.evaluate("one => scrollBy(0, one.getBoundingClientRect().top - innerHeight / 2)")
    x, y = tree.evaluate(IN_SIGHT)
    page.touchscreen.tap(x, y)
    browsers.expect(note).to_have_text(re.compile("has a chance of"))
    browsers.expect(note).to_be_in_viewport(ratio=0.95)
    drawn, said = tree.bounding_box(), note.bounding_box()
    assert drawn["y"] + drawn["height"] <= said["y"]
    assert drawn["y"] >= 0, "all of the drawing is in sight"


@in_a_browser
def test_on_a_phone_a_link_leads_to_the_result_and_a_finger_scrolls_the_page_over_a_plot(
    phone: Visit, tiny_page: str
) -> None:
    page = run(phone, tiny_page, "prompt=The+old+keeper&tokens=4&samples=2&beams=2&seed=4")
    page.wait_for_function("document.querySelector('#lab-decoding').getBoundingClientRect().top < innerHeight / 2")
    page.wait_for_function("document.querySelector('#lab-decoding .plot')?._fullLayout")
    assert page.evaluate("document.querySelector('#lab-decoding .plot')._fullLayout.dragmode") is False


PLOT_FITS = """[...document.querySelectorAll('#lab-decoding .plot')].every(plot => {
  const drawn = plot.querySelector('.main-svg').getBoundingClientRect().width;
  return drawn > 0 && Math.abs(drawn - plot.clientWidth) <= 1;
})"""


def until(holds: Callable[[], bool]) -> bool:
    """Whether it holds within five seconds: a screenshot may be taken before the last paint."""
    return any(holds() or time.sleep(0.2) for _ in range(25))


@in_a_browser
def test_options_change_the_row_of_odds_at_once_and_draws_come_as_often(tiny: Visit, tiny_page: str) -> None:
    page = run(tiny, tiny_page, "prompt=The+old+keeper&tokens=2&samples=1&beams=0")
    effect = page.locator("#lab-decoding .options")
    browsers.expect(effect).to_have_text("The options leave the chances as the model gives them.")
    texts = page.locator("#lab-decoding .texts").inner_text()
    page.locator("#decoding-top-k").fill("3")
    browsers.expect(effect).to_have_text(re.compile("9 of the 12 tokens shown cannot be drawn"), timeout=PATIENCE)
    assert [row[2] != "0\u00a0%" for row in odds(page)] == [True] * 3 + [False] * 10
    assert page.locator("#lab-decoding .texts").inner_text() == texts, "texts change when they are run again"
    says = page.locator("#lab-decoding > .says")
    browsers.expect(says).to_have_text(
        re.compile("The tree and the texts are of the run before; the plot has what the")
    )
    page.locator("#decoding-prompt").fill("The new keeper")
    browsers.expect(says).to_have_text(re.compile("and the plot is of what the form had after it: run again"))
    page.locator("#decoding-prompt").fill("The old keeper")
    browsers.expect(says).to_have_text(re.compile("the plot has what the form has now"))
    drawn, spread = page.locator("#lab-decoding .next .says .sentence"), page.locator("#lab-decoding .spread")
    browsers.expect(spread).to_be_hidden()
    assert page.locator("#lab-decoding .draw").evaluate(START_AND_STOP) == ["Stop drawing", "Draw 10,000 tokens"]
    browsers.expect(drawn).to_have_text("Stopped.")
    page.locator("#lab-decoding .draw").click()
    browsers.expect(drawn).to_have_text(re.compile("of 3 frequencies lie within"), timeout=PATIENCE)
    browsers.expect(spread).to_have_text(re.compile("Line through it: two standard deviations"))
    for _, _, chance, frequency in odds(page):
        assert float(frequency.rstrip("\u00a0%")) == pytest.approx(float(chance.rstrip("\u00a0%")), abs=2.5)
    page.wait_for_function("() => document.querySelectorAll('#lab-decoding .plot .barlayer .trace').length === 2")
    page.set_viewport_size({"width": 1600, "height": 900})
    page.wait_for_function(f"() => {PLOT_FITS}")
    tiny.open_tab("Write")
    page.set_viewport_size({"width": 900, "height": 900})
    page.wait_for_timeout(500)
    tiny.open_tab("Lab")
    page.wait_for_function(f"() => {PLOT_FITS}")


@in_a_browser
def test_each_draw_is_announced_with_its_result_and_a_changed_option_once(tiny: Visit, tiny_page: str) -> None:
    page = run(tiny, tiny_page, "prompt=The+old+keeper&tokens=2&samples=1&beams=0")
    tiny.listen("#lab-decoding [aria-live=polite]")
    draw, option = page.locator("#lab-decoding .draw"), page.locator("#decoding-top-k")
    begins = "10,000 tokens are being drawn."

    def spoken() -> list[str]:
        return list(page.evaluate("spoken.splice(0)"))

    for _ in range(2):
        draw.press("Enter")
        page.wait_for_function("spoken.some(one => one.includes('lie within'))", timeout=PATIENCE)
        first, last = spoken()
        assert first == begins and "lie within" in last
    draw.press("Enter")
    option.fill("3")
    browsers.expect(page.locator("#lab-decoding .options")).to_have_text(re.compile("cannot be drawn"))
    begun, *_, changed = spoken()  # the draws may be done before the option changes
    assert begun == begins and "the plot has what the form has now" in changed
    draw.press("Enter")
    page.wait_for_function("spoken.some(one => one.includes('lie within'))", timeout=PATIENCE)
    assert spoken()[0] == begins, "also after draws that the option has ended"


@in_a_browser
def test_what_the_form_does_not_allow_gets_a_sentence_and_a_run_can_be_stopped(real: Visit) -> None:
    page = real.page
    real.open_tab("Lab")
    page.get_by_role("tab", name="Decoding").click()
    says = page.locator("#lab-decoding > .says .sentence")
    browsers.expect(says).to_have_text(re.compile("^Press Run, or change the prompt first"))
    for field, value, sentence in (
        ("tokens", "41", "Tokens is a whole number from 1 to 40."),
        ("temperature", "3", "Temperature is a number from 0 to 2."),
    ):
        before = page.locator(f"#decoding-{field}").input_value()
        page.locator(f"#decoding-{field}").fill(value)
        page.locator("#decoding-form .run").click()
        browsers.expect(says).to_have_text(sentence)
        page.locator(f"#decoding-{field}").fill(before)
    page.locator("#decoding-tokens").fill("40")
    page.evaluate(CLICK_ONCE_SHOWN, ["#lab-decoding .tree svg g[data-key]", "#decoding-form .halt"])
    page.locator("#decoding-form .run").click()
    browsers.expect(says).to_have_text(re.compile("^Stopped"), timeout=PATIENCE)
    count = page.locator("#lab-decoding .tree g[data-key]").count()
    page.wait_for_timeout(700)
    assert page.locator("#lab-decoding .tree g[data-key]").count() == count
