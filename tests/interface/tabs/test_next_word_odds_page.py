"""Odds of words on the Write tab: the switch, the rows' shares, sliders without a request, prefetched views."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from lookahead_core import Document, Model
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, STARTED, Visit, counts_passes, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PROMPT = "The old lighthouse keeper climbed the stairs and looked out over the"
SHOWS_WORDS = "() => document.querySelector('#branches [data-branch][data-next-word]')"


@pytest.fixture
def visit(page: Any, real_page: str) -> Iterator[Visit]:
    """The page with a real model, and its further settings open."""
    with browsers.visit_again(page, real_page, odds="words") as opened:
        opened.wait_for_status("ready")
        opened.page.locator(".more-settings").evaluate("details => { details.open = true; }")
        yield opened


def show_words(visit: Visit, text: str = PROMPT) -> None:
    visit.control("odds").select_option("words")
    visit.fill(text)
    visit.page.wait_for_function(SHOWS_WORDS, timeout=PATIENCE)
    visit.wait_until_settled()


def rows(visit: Visit) -> list[tuple[str, float]]:
    """The word and the share of each row."""
    script = "rows => rows.map(row => [row.dataset.nextWord, Number(row.dataset.share)])"
    return [tuple(row) for row in visit.page.locator("#branches [data-branch]").evaluate_all(script)]


def test_a_first_visit_shows_words(page: Any, real_page: str) -> None:
    browsers.forget(page, real_page)
    page.goto(real_page)
    page.wait_for_function(STARTED, timeout=PATIENCE)
    assert page.locator("#odds").input_value() == "words"
    assert page.locator("#branches [data-branch][data-next-word]").count() == 5, "the example has words too"
    label = page.locator("#branches [data-branch='0']").get_attribute("aria-label")
    assert "chance of this next word, “" in label


def test_rows_show_the_likeliest_next_words_with_their_odds(visit: Visit, default_model: Model) -> None:
    for text, letters in ((PROMPT, ""), ("The old lighthouse keeper cli", "cli"), ("The old lighthouse ", "")):
        show_words(visit, text)
        expected = Document(default_model, text).next_words(k=5, heal=True)
        assert [word for word, _ in rows(visit)] == [word.text for word in expected]
        assert [share for _, share in rows(visit)] == pytest.approx([word.probability for word in expected], abs=1e-3)
        caption = visit.page.locator("#branches .note").inner_text()
        assert "A row’s share is the chance that its part in bold comes next: a word (exact to ±" in caption
        assert re.search(r"\(exact to ±0\.(1|01|001)\u00a0%", caption)
        label = visit.page.locator("#branches [data-branch='0']").get_attribute("aria-label")
        assert f"chance of this next word, “{letters}{expected[0].text.strip()}”" in label
        visit.control("odds").select_option("tokens")
        visit.page.wait_for_function(f"() => !({SHOWS_WORDS})()", timeout=PATIENCE)


def test_a_word_that_a_row_continues_is_announced_whole(visit: Visit) -> None:
    visit.listen("#branches .announcement")
    show_words(visit, "My dog likes to run in")
    visit.page.wait_for_function("spoken.length > 0", timeout=PATIENCE)
    said = visit.page.evaluate("spoken.at(-1)")
    (row,) = [index for index in range(visit.rows) if visit.pieces(index)[0] == "to"]
    assert visit.token(row, 0).get_attribute("aria-label").startswith("in, continued by to, ")
    assert said.split(": ")[1].split("; ")[row].startswith("into ")


def test_fewer_and_shorter_rows_of_words_send_no_request(visit: Visit) -> None:
    show_words(visit, PROMPT + " sea.")
    visit.wait_until_asked()
    asked, before = len(visit.asked), rows(visit)
    put(visit, "k", "3")
    assert rows(visit) == before[:3]
    put(visit, "depth", "1")
    assert rows(visit) == before[:3]
    put(visit, "k", "5")
    assert rows(visit) == before
    assert len(visit.asked) == asked


PLACES = (
    "all => all.map(one => one.getBoundingClientRect()).map(({left, right, top, bottom}) => [left, right, top, bottom])"
)

NEED = "For odds of words: temperature 1. For other rows: Show “sampled”."


@pytest.mark.parametrize("size", [(911, 512), (1280, 800), (1366, 768)])
def test_what_odds_of_words_need_is_said_once_beside_more_settings(visit: Visit, size: tuple[int, int]) -> None:
    need, around = (
        visit.page.locator("#controls .settings-remark"),
        "#controls :is(.more-settings summary, .settings-row *)",
    )
    visit.page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    try:
        show_words(visit)
        expect(need).to_be_empty()
        before = visit.page.locator(around).evaluate_all(PLACES)
        visit.listen()
        for temperature in ("0.9", "0.8", "0.7"):
            put(visit, "temperature", temperature)
        expect(need).to_have_text(NEED)
        assert visit.page.locator(around).evaluate_all(PLACES) == before, "nothing moves"
        lines = need.locator("span").evaluate_all(PLACES)
        assert lines[1][2] - lines[0][2] >= 13.5 or lines[0][1] <= lines[1][0] + 1, "the sentences do not touch"
        assert need.evaluate("one => parseFloat(getComputedStyle(one).fontSize)") >= 13
        left, right, top, bottom = need.evaluate_all(PLACES)[0]
        for at in before:
            assert at[1] <= left or at[0] >= right or at[3] <= top or at[2] >= bottom or at[0] == at[1], (
                "nothing is covered"
            )
        spoken = visit.page.evaluate("spoken")
        assert [" ".join(one.split()) for one in spoken if "odds of words" in one] == [
            "For odds of words: temperature 1."
        ]
        put(visit, "temperature", "1")
        expect(need).to_be_empty()
        visit.page.locator("#controls summary").click()
        visit.choose("view", "tree")
        expect(need).to_have_text("For odds of words: choose Rows.")
        expect(need).to_be_visible()
        expect(visit.page.locator("#controls .such")).to_be_hidden()
    finally:
        visit.page.set_viewport_size({"width": 1280, "height": 720})


@pytest.mark.parametrize("size", [(911, 512), (1366, 768)])
@pytest.mark.parametrize("bans", [1, 5])
def test_beside_banned_tokens_what_odds_of_words_need_moves_no_row(
    visit: Visit, size: tuple[int, int], bans: int
) -> None:
    page, need = visit.page, visit.page.locator("#controls .settings-remark")
    page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    try:
        show_words(visit)
        for _ in range(bans):
            page.locator("#branches .branch .token").first.focus()
            page.keyboard.press("Delete")
            visit.wait_until_asked()
            visit.wait_until_settled()
        chips = page.locator("#controls .never button")
        expect(chips).to_have_count(bans)
        around = "#controls :is(.more-settings summary, .settings-row *), #branches .branch"
        before = page.locator(around).evaluate_all(PLACES)
        put(visit, "temperature", "0.7")
        expect(need).to_have_text(NEED)
        assert page.locator(around).evaluate_all(PLACES) == before
        left, right, top, bottom = need.evaluate_all(PLACES)[0]
        for at in [*before, *page.locator("#controls .never").evaluate_all(PLACES)]:
            assert at[1] <= left or at[0] >= right or at[3] <= top or at[2] >= bottom or at[0] == at[1]
        shown = page.locator("#controls .never").evaluate("line => line.getBoundingClientRect().right")
        assert chips.first.evaluate("chip => chip.getBoundingClientRect().right") <= shown, "a whole one is in sight"
    finally:
        page.set_viewport_size({"width": 1280, "height": 720})


@pytest.mark.parametrize(("size", "views"), [((911, 512), ["tree"]), ((1280, 800), ["tree", "compare"])])
def test_two_banned_tokens_are_seen_whole_beside_what_odds_of_words_need(
    visit: Visit, size: tuple[int, int], views: list[str]
) -> None:
    page, chips = visit.page, visit.page.locator("#controls .never button")
    page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    try:
        show_words(visit)
        for _ in range(2):
            page.locator("#branches .branch .token").first.focus()
            page.keyboard.press("Delete")
            visit.wait_until_asked()
            visit.wait_until_settled()
        expect(chips).to_have_count(2)
        below, before = page.locator("#coverage"), chips.evaluate_all(PLACES)
        sides = [chip[:2] for chip in before]
        height = below.bounding_box()["y"] - before[0][2]
        for view in views:
            visit.choose("view", view)
            expect(page.locator("#controls .settings-remark")).to_have_text("For odds of words: choose Rows.")
            now = chips.evaluate_all(PLACES)
            assert [chip[:2] for chip in now] == sides
            line = page.locator("#controls .never").bounding_box()
            assert before[-1][1] <= line["x"] + line["width"], "the last one is whole"
            if view == "tree" and size[0] == 1280:
                assert below.bounding_box()["y"] - now[0][2] == height, "nothing moves"
    finally:
        page.set_viewport_size({"width": 1280, "height": 720})


@pytest.mark.parametrize("size", [(911, 512), (1280, 800)])
def test_the_chips_of_four_banned_tokens_are_in_sight_beside_what_odds_of_words_need(
    visit: Visit, size: tuple[int, int]
) -> None:
    page, chips = visit.page, visit.page.locator("#controls .never button")
    page.set_viewport_size(dict(zip(("width", "height"), size, strict=True)))
    try:
        show_words(visit)
        visit.choose("view", "tree")
        for count in range(1, 5):
            page.locator("#tree [role=treeitem]").nth(1).focus()
            page.keyboard.press("Delete")
            expect(chips).to_have_count(count)
            visit.wait_until_asked()
            visit.wait_until_settled()
        expect(page.locator("#controls .settings-remark")).to_have_text("For odds of words: choose Rows.")
        edge = page.locator("#controls .settings-remark").bounding_box()["x"]
        for _left, right, top, bottom in chips.evaluate_all(PLACES):
            assert right <= edge and bottom - top >= 24
        inside = chips.evaluate_all("all => all.map(one => one.scrollWidth - one.clientWidth)")
        assert max(inside) <= 1, "a word that lacks room ends with an ellipsis before the cross"
        assert {"ellipsis"} == set(
            chips.locator(".word").evaluate_all("all => all.map(one => getComputedStyle(one).textOverflow)")
        )
    finally:
        page.set_viewport_size({"width": 1280, "height": 720})


@pytest.mark.parametrize("text", [PROMPT + " sea.", "The captain of the ship was called "])
def test_at_another_temperature_the_rows_and_figures_are_those_of_tokens(visit: Visit, text: str) -> None:
    branches = visit.page.locator("#branches [data-branch]")
    show_words(visit, text)
    before = rows(visit)
    put(visit, "temperature", "1.4")
    assert all(word is None for word, _ in rows(visit)), "the rows that are known answer at once"
    visit.wait_until_asked()
    visit.wait_until_settled()
    cooled, shown = rows(visit), branches.all_inner_texts()
    note = visit.page.locator("#branches .note").inner_text()
    assert "Figures and order are those of tokens: word odds need temperature 1" in note
    shares = [share for _, share in cooled]
    assert shares == sorted(shares, reverse=True)
    visit.control("odds").select_option("tokens")
    visit.wait_until_settled()
    assert (rows(visit), branches.all_inner_texts()) == (cooled, shown)
    visit.control("odds").select_option("words")
    put(visit, "temperature", "1")
    visit.wait_until_settled()
    visit.page.wait_for_function(SHOWS_WORDS, timeout=PATIENCE)
    assert rows(visit) == before


def test_after_a_word_without_a_space_another_temperature_shows_the_likeliest_rows_of_tokens(
    visit: Visit, default_model: Model
) -> None:
    text, script = "he saw a", "rows => rows.map(row => row.innerText)"
    show_words(visit, text)
    before, branches = rows(visit), visit.page.locator("#branches [data-branch]")
    put(visit, "temperature", "0.5")
    visit.wait_until_asked()
    visit.wait_until_settled()
    expected = Document(default_model, text).lookahead(k=5, depth=6, heal=True, stop_at_repetition=True)
    wanted = ["".join(branch.text.split()) for branch in expected.branches]
    shown = ["".join(row.split()).split("%")[1].split("·")[-1] for row in branches.evaluate_all(script)]
    # A row that replaces the typed token is shown without its last one.
    assert all(text.startswith(row) and row for row, text in zip(shown, wanted, strict=True)), (shown, wanted)
    shares = [share for _, share in rows(visit)]
    assert shares == sorted(shares, reverse=True)
    visit.page.locator("#rest .more").click()
    other = visit.page.locator("#rest .others [data-p]").first.get_attribute("data-p")
    assert float(other) <= min(shares), "no other token is likelier"
    put(visit, "temperature", "1")
    visit.wait_until_asked()
    visit.wait_until_settled()
    assert rows(visit) == before


@counts_passes
def test_a_click_on_a_word_shows_a_prefetched_view_of_words(visit: Visit) -> None:
    show_words(visit)
    visit.wait_until_prefetched()
    visit.token(0, 0).click()
    assert all(word is not None for word, _ in rows(visit))
    visit.wait_until_settled()
    assert int(visit.page.locator("#meter").get_attribute("data-passes")) == 0


def test_the_switch_is_kept_with_the_document_and_waits_in_other_modes(visit: Visit) -> None:
    show_words(visit)
    visit.control("mode").select_option("forks")
    visit.wait_until_settled()
    assert visit.control("odds").is_disabled()
    visit.control("mode").select_option("likely")
    visit.page.wait_for_function(SHOWS_WORDS, timeout=PATIENCE)
    visit.wait_until_settled()
    visit.page.wait_for_timeout(1500)
    visit.page.reload()
    visit.wait_for_status("ready")
    assert visit.control("odds").input_value() == "words"


def put(visit: Visit, name: str, value: str) -> None:
    script = "([id, value]) => { const input = document.getElementById(id); input.value = value; "
    visit.page.evaluate(script + "input.dispatchEvent(new Event('input', {bubbles: true})); }", [name, value])
