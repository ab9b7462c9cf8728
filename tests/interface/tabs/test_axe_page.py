"""No tab, in any state, has a serious violation that axe finds, with texts of 1,500 words."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Iterator
from multiprocessing.synchronize import Event
from typing import Any

import pytest

from lookahead_core import Model
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, Visit
from tests.support.witness import around

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WORDS = 1500
COMMON = "the old keeper of the lighthouse climbed and lit a lamp because it was cold every night while grey waves sang"
RARE = "to nobody in particular about harbours spoons thursdays and naïve foxes 🦊 中文 who never answered"
SERIOUS = ("serious", "critical")
LOOKS = {
    "light": {"viewport": {"width": 1280, "height": 800}},
    "dark phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}


def long_text(vocabulary: str = f"{COMMON} {RARE}") -> str:
    """Sentences and paragraphs of 1,500 words, with blank lines and tabs."""
    dice, words = random.Random(3), []
    for place in range(WORDS):
        end = dice.choice(["."] * 8 + [".\n\n"] * 2 + ["!\n\n\n", ":\n\t"]) if place % 12 == 11 else ""
        words.append(dice.choice(vocabulary.split()) + end)
    return " ".join(words)


@pytest.fixture(scope="module")
def may_go_on() -> Event:
    """While this is cleared, the model waits before its next pass, in forked workers too."""
    event = multiprocessing.Event()
    event.set()
    return event


@pytest.fixture(scope="module")
def url(browser: Any, small_model: Model, may_go_on: Event) -> Iterator[str]:
    with browsers.page_of(lambda report: around(small_model, lambda: may_go_on.wait(60) and None)) as started:
        yield started


EVERY_LOOK = LOOKS | {
    "dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "light phone": {"viewport": {"width": 390, "height": 844}},
}


@pytest.fixture(params=EVERY_LOOK)
def writing(request: Any, browser: Any, tiny_page: str) -> Iterator[Visit]:
    """The Write tab with a tiny model and a short text."""
    with browsers.visit(browser, tiny_page, **EVERY_LOOK[request.param]) as visit:
        visit.wait_for_status("ready")
        visit.fill("The old lighthouse keeper")
        visit.wait_until_settled()
        yield visit


@pytest.fixture(params=LOOKS)
def opened(request: Any, page: Any, url: str, may_go_on: Event) -> Iterator[Visit]:
    with browsers.visit_again(page, url, odds="words", **LOOKS[request.param]) as visit:
        visit.wait_for_status("ready")
        yield visit
        may_go_on.set()


def check(visit: Visit, state: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"]}
    found = Axe().run(visit.page, options=options).response["violations"]
    serious = [(one["id"], node["html"][:160]) for one in found if one["impact"] in SERIOUS for node in one["nodes"]]
    assert serious == [], f"{state}: {len(serious)} violations"


def settle(visit: Visit, branches: str) -> None:
    visit.page.wait_for_selector(f"#{branches}[data-state=settled][data-stale=false]", timeout=PATIENCE)


def test_the_write_tab(opened: Visit) -> None:
    page = opened.page
    page.wait_for_selector(".cover[data-stored=true]", timeout=PATIENCE)
    check(opened, "a first visit")
    opened.fill(long_text())
    settle(opened, "branches")
    page.locator("#rest .more").click()
    opened.control("temperature").fill("1.4")
    check(opened, "1,500 words, all lists open")
    opened.token(0, 0).click()
    settle(opened, "branches")
    if page.locator("#more").is_visible():
        page.locator("#more").click()
    for button in ("#history", "#documents", "#share", "#help"):
        page.locator(button).click()
        page.locator("dialog[open]").wait_for()
        check(opened, button)
        page.keyboard.press("Escape")
    opened.page.locator("#pause").click()
    check(opened, "paused")


def test_the_rewrite_tab(opened: Visit, may_go_on: Event) -> None:
    page = opened.page
    opened.open_tab("Rewrite")
    page.locator("#rewrite-branches .needs").wait_for()
    check(opened, "a ready instruction without a source")
    page.locator("#rewrite-instruction").fill("Name a colour.")
    settle(opened, "rewrite-branches")
    check(opened, "an instruction alone")
    may_go_on.clear()
    page.locator("#rewrite-source").fill(long_text())
    page.wait_for_selector("#rewrite-branches[data-state=thinking]")
    check(opened, "reading 1,500 words")
    may_go_on.set()
    settle(opened, "rewrite-branches")
    page.locator("#rewrite-branches [data-token]").first.click()
    page.locator("#rewrite-rest .more").click()
    check(opened, "1,500 words and a new text")
    page.locator("#rewrite-source").fill("")
    page.locator("#rewrite-instruction").fill("")
    page.locator("#rewrite-text").fill("")
    page.wait_for_selector("#rewrite-branches[data-state=empty]", timeout=PATIENCE)
    check(opened, "nothing at all")
    page.locator(".help:visible").click()
    page.locator(".help-dialog[open]").wait_for()
    check(opened, "the help")
    page.keyboard.press("Escape")


def test_the_highlights_tab(opened: Visit, may_go_on: Event) -> None:
    page = opened.page
    opened.open_tab("Highlights")
    check(opened, "empty")
    may_go_on.clear()
    page.locator("#highlights-text").fill(long_text())
    page.wait_for_selector(".read .says[data-state=thinking]", timeout=PATIENCE)
    check(opened, "reading")
    assert page.locator(".read .says[data-state=thinking]").count(), "it still reads"
    may_go_on.set()
    page.wait_for_selector("#highlights[data-state=settled]:not([data-stale])", timeout=PATIENCE)
    check(opened, "ten highlights")
    slider = page.locator("#highlights-count")
    slider.fill(slider.get_attribute("max"))
    check(opened, "all highlights")
    page.locator("#highlights [data-marked]").nth(7).focus()
    page.locator("#highlights-about").wait_for(state="visible")
    page.locator("#highlights-with-figures").check()
    page.locator("#highlights [data-marked]").nth(6).focus()
    page.keyboard.press("ArrowDown")
    check(opened, "a word with its figures")
    page.keyboard.press("Enter")
    settle(opened, "highlights-branches")
    page.locator("#highlights-rest .more").click()
    check(opened, "branches at a word")
    page.locator(".read .figures summary").click()
    page.locator(".read tbody tr").first.wait_for()
    check(opened, "the table")
    page.locator(".replaced button").click()
    page.locator("#highlights-text").fill("a" * 60_001)
    page.wait_for_selector(".read .says[data-state=error]", timeout=PATIENCE)
    check(opened, "an error")


def test_the_type_assistant_tab(opened: Visit) -> None:
    page = opened.page
    opened.open_tab("Type assistant")
    settle(opened, "chat-branches")
    check(opened, "no messages")
    for text in (long_text(), "Yes."):
        page.locator("#chat-text").fill(text)
        page.locator("#send").click()
    settle(opened, "chat-branches")
    page.locator("#chat-branches [data-token]").first.click()
    page.locator("#chat .edit").last.click()
    page.locator(".talking summary").click()
    page.locator(".talking .moment").first.wait_for()
    page.locator("#chat-rest .more").click()
    check(opened, "messages of 1,500 words, an earlier one again")


def test_the_internals_tab(opened: Visit) -> None:
    page = opened.page
    opened.open_tab("Internals")
    check(opened, "empty")
    page.locator("#internals-text").fill(f"{long_text(COMMON)} 🦊")  # at most 2,000 tokens are shown
    page.wait_for_selector("#internals[data-state=settled]", timeout=PATIENCE)
    page.locator("#internals .character .box").first.click()
    check(opened, "1,500 words")
    page.get_by_label("A conversation").check()
    page.wait_for_selector("#internals[data-state=empty]", timeout=PATIENCE)
    page.get_by_label("Message 1", exact=True).fill("Who lights the lamp?")
    page.get_by_label("Message 2", exact=True).fill("The keeper 🦊")
    page.wait_for_selector("#internals[data-state=settled]", timeout=PATIENCE)
    check(opened, "a conversation")


@pytest.mark.parametrize("name", ["cache", "decoding", "masks", "speculation"])
def test_a_page_of_the_lab(opened: Visit, name: str) -> None:
    page, result = opened.page, opened.page.locator(f"#lab-{name}")
    opened.open_tab("Lab")
    page.get_by_role("tab", name=name.capitalize()).click()
    check(opened, "before a run")
    page.locator(f"#{name}-form .run").click()
    page.wait_for_selector(f"#lab-{name}[data-state=settled]", timeout=PATIENCE)
    if name == "speculation":
        result.locator(".draw").click()
        result.locator(".outcome .plot .barlayer").wait_for(state="attached", timeout=PATIENCE)
    if name != "masks":
        result.locator(".plot .plotly, .plot .main-svg").last.wait_for(state="attached", timeout=PATIENCE)
    for summary in result.locator("summary").all():
        summary.click()
    if name in ("masks", "speculation"):
        result.locator(".wide[aria-label*='arrow keys']").focus()
        page.keyboard.press("ArrowDown")
    check(opened, "after a run, all lists open")


def test_the_lesson_of_the_lab(opened: Visit) -> None:
    page = opened.page
    opened.open_tab("Lab")
    part = page.locator("#lab-lesson .part.current")
    part.locator("h3").wait_for()
    check(opened, "before the lesson")
    for fields in part.locator("fieldset").all():
        fields.locator("input").last.check()
    part.locator(".hand-in").click()
    check(opened, "answered before the lesson")
    part.locator(".next").click()
    part.locator(".reveal").wait_for()
    check(opened, "an open question")
    part.locator("input").first.check()
    part.locator(".check").click()
    check(opened, "a wrong answer")
    for name, state in (("after", "the questions after the lesson"), ("teacher", "the sheet")):
        page.locator(f"#lesson-outline [data-part={name}]").click()
        page.wait_for_selector(f"#lab-lesson[data-part={name}]")
        check(opened, state)
    page.locator("#lesson-outline [data-part=after]").click()
    for fields in part.locator("fieldset").all():
        fields.locator("input").first.check()
    part.locator(".hand-in").click()
    check(opened, "both scores")


def show(visit: Visit, view: str) -> None:
    visit.choose("view", view)
    visit.page.wait_for_timeout(300)


def settle_columns(visit: Visit) -> None:
    visit.page.wait_for_function(
        """() => [...document.querySelectorAll('#compare .branch-view')]
            .every(({dataset: {state, stale}}) => state === 'settled' && stale === 'false')""",
        timeout=PATIENCE,
    )


def test_the_tree_and_the_columns(writing: Visit) -> None:
    page = writing.page
    show(writing, "tree")
    page.locator("#tree .node[data-state=ahead]").first.wait_for()
    check(writing, "a tree")
    page.locator("#tree .node[data-state=ahead]").first.click()
    writing.wait_until_settled()
    page.keyboard.press("Control+z")
    writing.wait_until_settled()
    writing.choose("tree-shape", "river")
    page.locator("#tree-session").check()
    page.locator("#tree .node[data-state=left]").first.wait_for()
    page.locator("#tree .node[data-state=left]").first.focus()
    check(writing, "a river of the session")
    show(writing, "compare")
    settle_columns(writing)
    check(writing, "two columns")
    for count in (3, 4):
        page.get_by_role("button", name="Add a column").click()
        page.keyboard.type("Write a poem.")
        writing.wait_until_asked()
        settle_columns(writing)
        check(writing, f"{count} columns")
    page.locator("#compare .more").first.click()
    page.locator("#compare [data-token]").first.hover()
    check(writing, "a list of other beginnings in a column")


def test_guess_first_in_each_of_its_states(writing: Visit) -> None:
    page = writing.page
    writing.control("guess-first").check()
    page.locator("#guess").wait_for()
    check(writing, "before the guess")
    page.locator("#guess-done").click()
    check(writing, "an empty guess")
    page.locator("#guess").fill("time")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('.guess-said').textContent.includes('surprise')", timeout=PATIENCE)
    check(writing, "after a guess")
    writing.type(" saw")
    page.locator("#document textarea").focus()
    page.keyboard.press("Alt+Digit1")
    check(writing, "a refused key")
    for view in ("tree", "compare"):
        show(writing, view)
        check(writing, f"hidden in the view {view}")
    page.locator("#guess-skip").click()
    check(writing, "after a skipped guess")


def test_a_word_a_change_and_the_dialogs_of_exports_and_of_the_replay(writing: Visit) -> None:
    page = writing.page
    writing.control("steer-word").fill("sea")
    writing.wait_until_asked()
    writing.wait_until_settled()
    check(writing, "towards a word")
    page.locator("#steer").select_option("avoid")
    writing.wait_until_settled()
    check(writing, "a word to avoid")
    page.locator("#depth").hover()
    check(writing, "the sentence of a control")
    writing.token(1, 0).focus()
    page.keyboard.press("F2")
    page.locator(".row-editor").fill("zebra")
    check(writing, "a token that is changed")
    page.keyboard.press("Enter")
    page.locator("#branches .token[data-edited]").first.wait_for()
    writing.wait_until_settled()
    check(writing, "a changed row")
    writing.token(0, 0).click()
    writing.wait_until_settled()
    if page.locator("#more").is_visible():
        page.locator("#more").click()
    page.locator("#export").click()
    check(writing, "the formats of exports")
    page.keyboard.press("Escape")
    page.locator("#history").click()
    page.locator("#replay").click()
    check(writing, "the replay")
    page.locator("#replay-dialog .chief").first.click()
    page.wait_for_timeout(200)
    check(writing, "the replay while it plays")
