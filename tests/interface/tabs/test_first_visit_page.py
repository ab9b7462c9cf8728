"""A first visit: a text box at once, an example marked as one, and a model that loads meanwhile."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interface.tabs.writer import example
from lookahead_core import Model, ModelError
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, Visit, expect
from tests.support.witness import rows_of, talker

pytestmark = pytest.mark.browser

MISSING = "There is no model of that name; choose another."


class Arriving:
    """A model on its way: it comes as far as the test says."""

    def __init__(self) -> None:
        self.steps = [threading.Event() for _ in range(3)]
        self.model = talker()
        self.mistake: Exception | None = None

    def load(self, report: Callable[[str, float | None], None]) -> Model:
        report("Downloading Talker, 12 of 50 MB", 0.24)
        self.steps[0].wait()
        report("Downloading Talker, 38 of 50 MB", 0.76)
        self.steps[1].wait()
        report("Reading the weights", None)
        self.steps[2].wait()
        if self.mistake is not None:
            raise self.mistake
        return self.model

    def arrive(self) -> None:
        for step in self.steps:
            step.set()


@pytest.fixture
def arriving() -> Iterator[Arriving]:
    made = Arriving()
    yield made
    made.arrive()


@pytest.fixture
def first(page: Any, arriving: Arriving) -> Iterator[Visit]:
    """Somebody's first visit, while the model is on its way."""
    with browsers.page_of(arriving.load) as url, browsers.visit_again(page, url) as opened:
        opened.page.wait_for_selector(".cover[data-stored=true]", timeout=PATIENCE)
        yield opened
        arriving.arrive()


def test_the_text_field_takes_keys_as_soon_as_it_is_drawn(page: Any, arriving: Arriving) -> None:
    field, typed = page.locator("#document textarea"), "All of these words are typed at the start. "
    with browsers.page_of(arriving.load) as url:
        browsers.forget(page, url)
        for _ in range(2):  # the second time with a stored text
            page.goto("about:blank")
            page.goto(url, wait_until="commit")
            page.wait_for_selector("#document textarea:focus", timeout=20_000)
            page.keyboard.type(typed)
            page.wait_for_function(browsers.STARTED)
            page.keyboard.type("The end.")
            assert field.input_value().endswith(f"{typed}The end.")
            expect(page.locator(".kept")).to_have_text("saved in this browser")
        arriving.arrive()


@pytest.mark.parametrize("case", ["another field", "a tab's address", "a phone"])
def test_the_text_field_leaves_the_focus_where_it_is(browser: Any, tiny_page: str, case: str) -> None:
    options = {"has_touch": True, "is_mobile": True, "viewport": {"width": 390, "height": 844}}
    context = browser.new_context(**(options if case == "a phone" else {}))
    opened = context.new_page()
    if case == "another field":
        opened.add_init_script("""addEventListener('DOMContentLoaded', () => {
          document.body.insertAdjacentHTML('afterbegin', '<input id="other">');
          document.getElementById('other').focus();
        })""")
    opened.goto(f"{tiny_page}#lab-cache" if case == "a tab's address" else tiny_page)
    opened.wait_for_function(browsers.STARTED)
    assert opened.evaluate("document.activeElement.id") == ("other" if case == "another field" else "")
    assert not opened.evaluate("document.activeElement.matches('textarea')")
    context.close()


@pytest.mark.slow
def test_the_box_is_empty_and_usable_and_the_example_says_that_it_is_stored(first: Visit) -> None:
    assert first.text == ""
    assert first.page.locator("#document textarea").is_editable()
    assert first.page.locator(".cover .stored").inner_text() == "Recorded example"
    assert first.page.locator(".cover .stored").is_visible()
    first.page.locator(".cover .stored").hover()
    expect(first.page.locator(".tip")).to_contain_text("computed earlier, as an example")
    said = first.page.locator("#branches .note .words").inner_text()
    assert "Choose a token to begin." in said and "SmolLM2-135M-Instruct" in said
    assert first.rows == 5
    assert first.pieces(1) == stored_pieces(1)[:5]
    assert first.page.locator("#branches").get_attribute("data-state") == "empty"
    first.token(0, 0).focus()
    expect(first.page.locator("#branches .keys")).to_be_hidden()  # the example's tokens are neither changed nor banned


@pytest.mark.slow
def test_the_example_says_that_it_is_for_the_text_before_once_the_person_writes(first: Visit) -> None:
    expect(first.page.locator(".cover .earlier")).to_be_hidden()
    first.type("The old keeper ")
    expect(first.page.locator(".cover .earlier")).to_have_text("For the text before")
    expect(first.page.locator(".cover .earlier")).to_be_visible()
    expect(first.page.locator(".cover .stored")).to_be_hidden()
    assert first.rows == 5


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1366, 768), (390, 800)])
def test_the_words_of_the_page_are_explained_below_the_example_and_on_demand_afterwards(
    first: Visit, arriving: Arriving, width: int, height: int
) -> None:
    first.page.set_viewport_size({"width": width, "height": height})
    words = first.page.locator("#branches .terms dt:visible")
    assert words.all_inner_texts() == ["Token", "Share", "Coverage", "Depth", "Temperature", "Fork"]
    expect(words.last).to_be_visible()
    if width > 760:
        for meaning in first.page.locator("#branches .terms dd:visible").all():
            expect(meaning).to_be_in_viewport(ratio=1)
    arriving.arrive()
    first.wait_for_status("ready")
    first.token(0, 0).click()
    first.wait_until_settled()
    expect(words).to_have_count(0)
    first.page.locator("#branches .terms summary").click()
    expect(words.last).to_be_visible()
    expect(first.page.locator("#branches .terms .signs")).to_be_visible()
    first.type(first.text + " there")
    first.wait_until_settled()
    expect(words.last).to_be_visible()


RECORD_LOST_FOCUS = """() => {
  window.lost = 0;
  const look = () => { window.lost += document.activeElement === document.body; requestAnimationFrame(look); };
  look();
}"""


@pytest.mark.slow
@pytest.mark.parametrize("piece", [0, 4])
@pytest.mark.parametrize("ready", [False, True])
def test_a_choice_from_the_example_by_key_never_leaves_the_focus_nowhere(
    first: Visit, arriving: Arriving, ready: bool, piece: int
) -> None:
    if ready:
        arriving.arrive()
        first.wait_for_status("ready")
    first.token(4, piece).focus()
    first.page.evaluate(RECORD_LOST_FOCUS)
    first.page.keyboard.press("Enter")
    first.page.wait_for_timeout(500)
    arriving.arrive()
    first.wait_until_settled()
    assert first.page.evaluate("lost") == 0
    assert first.page.evaluate("document.activeElement.matches('#branches .token, #document textarea')")


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 1100, 900, 390])
def test_the_mark_of_the_example_covers_no_word_of_the_sentence(first: Visit, width: int) -> None:
    first.page.set_viewport_size({"width": width, "height": 800})
    over = first.page.evaluate(
        """() => {
          const mark = document.querySelector('.cover .stored').getBoundingClientRect(), words = document.createRange();
          return [...document.querySelectorAll('.cover .sum > *')].filter(part => {
            words.selectNodeContents(part);
            const text = words.getBoundingClientRect(), shown = part.getBoundingClientRect();
            return Math.min(text.right, shown.right) > mark.left && text.top < mark.bottom && text.bottom > mark.top;
          }).map(part => part.textContent);
        }"""
    )
    assert over == []
    cut = first.page.locator(".cover .of").evaluate("one => one.scrollWidth > one.clientWidth")
    assert not cut


def stored_pieces(branch: int) -> list[str]:
    stored = json.loads(example.FILE.read_text(encoding="utf-8"))["view"]["branches"]
    return [piece["text"] for piece in stored[branch]["pieces"]]


@pytest.mark.slow
def test_the_page_shows_the_models_progress(first: Visit, arriving: Arriving) -> None:
    progress = first.page.locator("#status progress")
    assert "12 of 50 MB" in first.wait_for_status("downloading")
    assert float(progress.get_attribute("value")) == pytest.approx(0.24)
    arriving.steps[0].set()
    first.page.locator("#status").get_by_text("38 of 50 MB").wait_for()
    assert float(progress.get_attribute("value")) == pytest.approx(0.76)
    arriving.steps[1].set()
    assert "Reading the weights" in first.wait_for_status("loading")
    assert progress.is_hidden()
    arriving.steps[2].set()
    assert "LlamaForCausalLM" in first.wait_for_status("ready")


@pytest.mark.slow
def test_a_click_on_the_example_inserts_it_and_the_token_as_one_step(first: Visit, arriving: Arriving) -> None:
    chosen = "".join(first.pieces(2)[:3])
    first.token(2, 2).click()
    assert first.text == example.TEXT + chosen
    announced = first.page.locator("#branches .announcement")
    whole = f"Inserted: “{example.TEXT}{chosen}”.".replace(". At", ", full stop, At")
    expect(announced).to_contain_text(whole)  # all that has come into the text
    assert chosen_texts(first) == [chosen.strip()], "nobody has chosen the example's own words"
    first.page.locator("#history").click()
    assert first.page.locator("#history-dialog .moment b").all_text_contents() == [chosen.strip()]
    first.page.locator("#replay").click()
    quoted = re.escape(chosen.strip())
    expect(first.page.locator(".replay-caption")).to_have_text(re.compile(f"^Step 1 of 1: chosen “{quoted}” · "))
    first.page.keyboard.press("Escape")
    first.page.locator("#export").click()
    with first.page.expect_download() as download:
        first.page.locator("#formats-dialog [data-format='authorship-json']").click()
    pieces = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))["pieces"]
    assert [(one["text"], one["model"]) for one in pieces if one["author"] == "chosen"] == [
        (chosen, "SmolLM2-135M-Instruct")
    ]
    first.page.keyboard.press("Escape")
    assert first.page.locator("#branches [data-branch]:not([data-inert])").count() == 0, "the rows were the example's"
    first.page.locator("#undo").click()
    assert first.text == ""
    assert first.page.locator("#undo").get_attribute("aria-disabled") == "true"
    first.page.locator("#redo").click()
    assert first.text == example.TEXT + chosen
    arriving.arrive()
    first.wait_until_settled()
    assert first.text == example.TEXT + chosen
    assert [said(first, branch) for branch in range(5)] == rows_of(talker(), first.text)


def said(visit: Visit, branch: int) -> str:
    return "".join(visit.pieces(branch))


def chosen_texts(visit: Visit) -> list[str]:
    """The stretches of the text that are marked as chosen."""
    return list(visit.page.locator(".mirror .chosen").all_text_contents())


@pytest.mark.slow
def test_text_typed_while_the_model_loads_gets_branches_afterwards(first: Visit, arriving: Arriving) -> None:
    first.type("The old keeper")
    assert first.text == "The old keeper"
    assert first.page.locator("#branches [data-branch]:not([data-inert])").count() == 0, (
        "the example's are not for this"
    )
    expect(first.page.locator(".cover .earlier")).to_be_visible()
    first.token(0, 0).click()
    assert first.page.locator("#branches[data-refused]").count() == 1
    assert first.text == "The old keeper"
    first.page.wait_for_selector("#branches:not([data-refused])")
    browsers.expect(first.page.locator("#branches .note")).to_contain_text("when the model is ready")
    assert first.page.locator("#branches").get_attribute("data-state") == "thinking"
    arriving.arrive()
    first.wait_for_status("ready")
    first.wait_until_settled()
    assert first.page.locator(".cover .stored").is_hidden()
    assert first.text == "The old keeper"
    assert [said(first, branch) for branch in range(first.rows)] == rows_of(talker(), "The old keeper")


@pytest.mark.slow
def test_typing_while_the_model_loads_loses_no_key(first: Visit, arriving: Arriving) -> None:
    text = "The old keeper climbed the stairs again, and again, "
    first.type(text[:20], delay=5)
    arriving.arrive()
    first.type(text[20:], delay=15)
    first.wait_until_settled()
    assert first.text == text


@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_gets_a_sentence_and_the_text_stays(first: Visit, arriving: Arriving) -> None:
    first.type("My text")
    arriving.mistake = ModelError(MISSING)
    arriving.arrive()
    assert first.wait_for_status("error").strip() == MISSING
    first.type(" stays")
    first.wait_for_view("error")
    assert first.wait_for_status("error").strip() == MISSING
    assert first.text == "My text stays"
    first.page.locator("#undo").click()
    assert first.text != "My text stays"


@pytest.mark.slow
def test_an_unexpected_error_is_a_sentence_without_details(first: Visit, arriving: Arriving) -> None:
    arriving.mistake = RuntimeError("inner workings")
    arriving.arrive()
    sentence = first.wait_for_status("error")
    assert "could not be loaded" in sentence
    assert "inner workings" not in sentence
    first.token(0, 0).click()
    assert first.text.startswith(example.TEXT)
