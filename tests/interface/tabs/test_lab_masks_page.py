"""The Lab's mask page in a browser, and its requests on the server."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from interface.tabs.lab.masks_session import MasksRequest, MasksSession
from lookahead_core import Model, load_model
from lookahead_core.experiments.attention_record import attention_record
from tests.conftest import tiny_llama
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, Visit
from tests.support.requests_to_pages import news_from

PROMPT = "The keeper watched"


@pytest.fixture(scope="module")
def model(byte_tokenizer: Any) -> Model:
    return load_model(tiny_llama(len(byte_tokenizer), seed=3), tokenizer=byte_tokenizer, dtype="float32")


def news_of(model: Model, **fields: Any) -> list[Any]:
    return news_from(
        model, MasksRequest.from_json, MasksSession, **{"text": PROMPT, "experiment": {"k": 3, "depth": 3}} | fields
    )


def test_a_request_is_answered_with_the_record_of_the_library(model: Model) -> None:
    news = news_of(model)
    view = [one["view"] for one in news if "view" in one][-1]
    record = asdict(attention_record(model, PROMPT, k=3, depth=3))
    assert news[-1]["state"] == "settled"
    assert view["nodes"] == [node | {"attends": list(node["attends"])} for node in record["nodes"]]
    assert (view["leaves"], view["passes"]) == (list(record["leaves"]), record["passes"])


@pytest.mark.parametrize(
    ("fields", "because"),
    [
        ({"text": ""}, "Write a prompt"),
        ({"text": "the sea " * 40}, "at most 40 are allowed here"),
        ({"experiment": {"k": 7, "depth": 3}}, "k is 7, and must be a whole number from 1 to 6."),
        ({"experiment": {"k": 3, "depth": 3, "mode": "forks"}}, "mode is not an option of the experiment"),
    ],
)
def test_what_cannot_be_run_gets_a_sentence(model: Model, fields: dict[str, Any], because: str) -> None:
    *_, last = news_of(model, **fields)
    assert last["state"] == "error"
    assert because in last["sentence"]


def run(visit: Visit, address: str, prompt: str) -> Any:
    """Open the link of a run with two branches of depth 3, wait for its end, and return the page."""
    page = visit.page
    page.goto("about:blank")
    page.goto(f"{address}#lab-masks?prompt={prompt}&k=2&depth=3")
    page.wait_for_selector("#lab-masks[data-state=settled]", timeout=PATIENCE)
    return page


@pytest.mark.browser
@pytest.mark.slow
def test_the_figure_is_walked_through_pass_by_pass_and_token_by_token(
    tiny: Visit, tiny_page: str, tmp_path: Path
) -> None:
    page = run(tiny, tiny_page, "The+old+keeper")
    rows = page.locator("#lab-masks .slots tbody tr")
    slots = rows.count()
    figure, said, sentence = (page.locator(f"#lab-masks .{name}") for name in ("figure", "pointed", "pass"))
    dots = figure.locator("circle")
    browsers.expect(page.locator("#lab-masks .passes output")).to_have_text("3 of 3")
    page.locator("#lab-masks .passes input").fill("1")
    tiny.listen("#lab-masks [aria-live=polite]")
    page.locator("#lab-masks .next").click()
    page.wait_for_function("spoken.some(one => one.startsWith('Pass 2 computes'))", timeout=PATIENCE)
    page.locator("#lab-masks .next").click()
    cells = rows.evaluate_all("rows => rows.map(row => row.lastElementChild.textContent.split(', ').length)")
    assert dots.count() == sum(cells)
    browsers.expect(page.locator("#lab-masks .passes output")).to_have_text("3 of 3")
    page.locator("#lab-masks .next").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("spoken.at(-1) === 'This is the last pass.'", timeout=PATIENCE)
    browsers.expect(page.locator("#lab-masks .next")).to_be_focused()
    browsers.expect(page.locator("#lab-masks .next")).to_have_attribute("aria-disabled", "true")
    browsers.expect(page.locator("#lab-masks .back")).to_have_attribute("aria-disabled", "false")
    page.locator("#lab-masks .back").click()
    browsers.expect(sentence).to_have_text(re.compile("^Pass 2 computes 2 tokens at once, one of each branch"))
    page.locator("#lab-masks .passes input").fill("1")
    browsers.expect(sentence).to_have_text(re.compile("^Pass 1 computes the prompt"))
    page.locator("#lab-masks .back").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("spoken.at(-1) === 'This is the first pass.'", timeout=PATIENCE)
    assert dots.count() == sum(range(slots - 4 + 1)), "each token of the prompt attends to those before it"
    page.evaluate("window.spoken = []")
    page.locator("#lab-masks .play").click()
    browsers.expect(page.locator("#lab-masks .passes output")).to_have_text("3 of 3", timeout=PATIENCE)
    assert page.evaluate("spoken.map(one => one.slice(0, 15))") == ["Pass 2 computes", "Pass 3 computes"]
    browsers.expect(page.locator("#lab-masks .play")).to_have_text("Play", timeout=PATIENCE)
    figure.locator(f"g[data-slot='{slots - 1}']").first.hover()
    browsers.expect(said).to_have_text(re.compile(f"slot {slots - 1}, .* attends to {cells[-1]} of {slots} slots"))
    figure.focus()
    page.keyboard.press("ArrowUp")
    browsers.expect(said).to_have_text(re.compile(f"slot {slots - 2}, "))
    page.keyboard.press("Escape")
    browsers.expect(said).to_have_text(re.compile("^Point at a token.* or tap it"))
    page.set_viewport_size({"width": 320, "height": 500})
    browsers.expect(page.locator("#lab-masks .cropped-note")).to_be_visible()
    for kind, head in (("svg", b"<svg"), ("png", b"\x89PNG")):
        with page.expect_download() as saved:
            page.locator(f"#lab-masks .{kind}").click()
        saved.value.save_as(tmp_path / f"mask.{kind}")
        assert (tmp_path / f"mask.{kind}").read_bytes().startswith(head)


@pytest.mark.browser
@pytest.mark.slow
def test_the_figure_is_enlarged_as_far_as_its_last_pass_fits_the_card_and_the_window(
    tiny: Visit, tiny_page: str
) -> None:
    page = run(tiny, tiny_page, "The")
    figure = page.locator("#lab-masks .figure")
    scale = "one => one.firstElementChild.getScreenCTM().a"
    first = figure.evaluate(scale)
    assert first > 1.2
    page.locator("#lab-masks .passes input").fill("1")
    assert figure.evaluate(scale) == pytest.approx(first, rel=0.001), "the figure keeps its scale from pass to pass"
    width, height = figure.evaluate(
        "({clientWidth, clientHeight, scrollWidth, scrollHeight}) => "
        "[scrollWidth - clientWidth, scrollHeight - clientHeight]"
    )
    assert (width, height) == (0, 0)
    assert figure.bounding_box()["height"] <= 800 - 40
    page.set_viewport_size({"width": 1280, "height": 500})
    page.wait_for_function("document.querySelector('#lab-masks .figure').clientHeight < 500")
    assert figure.evaluate("one => [one.scrollWidth - one.clientWidth, one.scrollHeight - one.clientHeight]") == [0, 0]


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize(("width", "height", "has_touch"), [(911, 512, False), (390, 844, True)])
def test_a_run_leads_to_the_figure_which_is_in_one_window_with_its_sentences_and_is_not_moved(
    browser: Any, real_page: str, width: int, height: int, has_touch: bool
) -> None:
    context = browser.new_context(viewport={"width": width, "height": height}, has_touch=has_touch, is_mobile=has_touch)
    with browsers.visit(context, real_page) as visit:
        visit.wait_for_status("ready")
        show_the_example_pass_by_pass(visit)
        page, run_button = visit.page, visit.page.locator("#masks-form .run")
        run_button.evaluate("button => { button.click(); scrollTo({top: 0, behavior: 'instant'}); }")
        page.wait_for_selector("#lab-masks[data-state=settled]", timeout=PATIENCE)
        page.evaluate(browsers.REST)
        assert page.evaluate("scrollY") == 0, "the page is scrolled at the click, not again at the result"
    context.close()


def show_the_example_pass_by_pass(visit: Visit) -> None:
    """Run the example, step through its passes, and choose a token: nothing moves, and all is in the window."""
    page = visit.page
    visit.open_tab("Lab")
    visit.open_tab("Masks")
    page.locator("#masks-form .run").click()
    page.wait_for_selector("#lab-masks[data-state=settled]", timeout=PATIENCE)
    page.wait_for_function("Math.abs(document.querySelector('#lab-masks').getBoundingClientRect().top) < 1")
    parts = [page.locator(f"#lab-masks {part}") for part in (".pass", ".figure", ".pointed")]
    passes = page.locator("#lab-masks .passes output")
    first = [part.bounding_box() for part in parts]
    browsers.expect(passes).to_have_text("4 of 4")
    for number, button in ((3, "back"), (2, "back"), (1, "back"), (2, "next"), (3, "next"), (4, "next")):
        page.locator(f"#lab-masks .{button}").click()
        browsers.expect(passes).to_have_text(f"{number} of 4")
        assert [part.bounding_box() for part in parts] == first, "no pass moves anything"
    page.locator("#lab-masks g[data-slot]:has(circle)").last.click()
    browsers.expect(parts[2]).to_contain_text("attends to")
    assert [part.bounding_box() for part in parts] == first, "nor does the sentence on a token"
    assert first[0]["y"] > 0 and first[2]["y"] + first[2]["height"] <= page.viewport_size["height"]
    browsers.expect(page.locator("#lab-masks .cropped-note")).to_be_hidden()
    if page.viewport_size["width"] > 760:
        size = "text => text.ownerSVGElement.getScreenCTM().a * parseFloat(getComputedStyle(text).fontSize)"
        assert min(text.evaluate(size) for text in page.locator("#lab-masks svg text").all()) >= 13
