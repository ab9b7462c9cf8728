"""What a newcomer meets in the Write tab: nothing jumps, and each choice and figure is explained where it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.browser import Visit, accept_grey_text, expect, importing, middle_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TOP = "element => element.getBoundingClientRect().top + scrollY"
LONG = " ".join(f"The keeper saw ship {number} and slept." for number in range(120))
GHOST_LINES = """() => {
  const bottom = document.querySelector('#document textarea').getBoundingClientRect().bottom;
  const bottoms = [...document.querySelector('.mirror .ghost').getClientRects()].map(line => line.bottom);
  return [...new Set(bottoms.map(Math.round))].map(line => line <= bottom + 1);
}"""


@pytest.fixture
def visit(tiny: Visit) -> Visit:
    return tiny


def top(visit: Visit, selector: str) -> float:
    return float(visit.page.locator(selector).first.evaluate(TOP))


def resize(visit: Visit, width: int) -> None:
    visit.page.set_viewport_size({"width": width, "height": 844})


@pytest.fixture(autouse=True)
def _usual_size(tiny: Visit) -> Iterator[None]:
    yield
    tiny.page.set_viewport_size({"width": 1280, "height": 720})


def test_the_controls_stay_where_they_are_in_every_view_and_before_a_guess(visit: Visit) -> None:
    visit.type("The old keeper ")
    visit.wait_until_settled()
    before = top(visit, "#k")
    for view in ("compare", "tree", "rows"):
        visit.choose("view", view)
        visit.wait_until_asked()
        assert top(visit, "#k") == before, view
    visit.wait_until_settled()
    visit.control("guess-first").check()
    assert top(visit, "#k") == before
    visit.page.locator("#guess-skip").click()
    assert visit.rows > 0
    assert top(visit, "#k") == before


@pytest.mark.parametrize("width", [1280, 390])
def test_the_rows_stay_where_they_are_at_the_first_key_and_within_a_word(visit: Visit, width: int) -> None:
    resize(visit, width)
    expect(visit.page.locator(".cover .stored")).to_be_visible()
    before = top(visit, "#branches .rows")
    for letters in ("T", "he", " ", "kee"):
        visit.type(letters)
        visit.wait_until_settled()
        assert top(visit, "#branches .rows") == before, letters
    expect(visit.page.locator(".cover .stored")).to_be_hidden()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_line_under_the_rows_is_no_lower_while_a_word_is_pointed_at(visit: Visit, width: int) -> None:
    resize(visit, width)
    note = visit.page.locator("#branches .note")
    before = note.bounding_box()["height"]
    example = note.locator(".words").inner_text()
    visit.token(0, 0).hover()
    expect(note.locator(".words")).to_contain_text("whole row")
    assert note.bounding_box()["height"] >= before
    visit.page.mouse.move(0, 0)
    expect(note.locator(".words")).to_have_text(example)
    assert note.bounding_box()["height"] == before


def test_beside_settings_without_effect_on_the_example_stands_that_they_need_a_text(visit: Visit) -> None:
    visit.page.locator("#controls summary").click()
    hint = visit.page.locator("#controls .example-hint")
    expect(hint).to_be_visible()
    assert hint.inner_text() == "Show, Odds of, Steer by a word and Guess first can be used once you write."
    note = visit.page.locator("#branches .note .words")
    expect(note).to_contain_text("Choose a token to begin")
    before = top(visit, "#mode")
    visit.type("T")
    expect(hint).to_be_hidden()
    assert top(visit, "#mode") == before


UNDER_HINT = """() => {
  const settings = document.querySelector('#controls .more-settings');
  const hint = settings.querySelector('.example-hint').getBoundingClientRect();
  return [...settings.querySelectorAll('summary, label, select, input')].filter(one => {
    const {left, right, top, bottom} = one.getBoundingClientRect();
    return left < hint.right && right > hint.left && top < hint.bottom && bottom > hint.top;
  }).map(({id, localName}) => id || localName);
}"""


@pytest.mark.parametrize("width", [390, 911, 1280, 1366])
def test_what_needs_a_text_is_said_over_no_setting(visit: Visit, width: int) -> None:
    resize(visit, width)
    visit.page.locator("#controls summary").click()
    expect(visit.page.locator("#controls .example-hint")).to_be_visible()
    assert visit.page.evaluate(UNDER_HINT) == []


def test_one_export_button_opens_the_dialog_with_all_formats(visit: Visit) -> None:
    page = visit.page
    visit.fill("The old lighthouse keeper climbed the stairs for the last time, and then he slept.")
    assert page.locator(".sheet .bar button").filter(has_text="Export").count() == 1
    assert page.get_by_role("button", name="Export as plain text").count() == 0
    for kind, ending in {"all": ".json", "text": ".txt", "replay-html": ".replay.html"}.items():
        page.locator("#export").click()
        expect(page.locator("#formats-dialog")).to_be_visible()
        with page.expect_download() as download:
            page.locator(f"#formats-dialog [data-format='{kind}']").click()
        name = download.value.suggested_filename
        assert name.startswith("The old lighthouse keeper") and "…" not in name, name
        assert name.rpartition(".")[2] == ending.rpartition(".")[2]
        expect(page.locator("#formats-dialog")).to_be_hidden()


def test_each_export_button_is_described_by_what_its_file_holds(visit: Visit) -> None:
    buttons = visit.page.locator("#formats-dialog [data-format]")
    described = buttons.evaluate_all("all => all.map(({title, textContent}) => [textContent, title])")
    assert len(described) == 7 and all(title and title != name for name, title in described), described
    assert len({title for _, title in described}) == 7


def test_footer_and_help_say_the_same_about_what_is_stored(visit: Visit) -> None:
    page = visit.page
    page.locator("#help").click()
    said = page.locator("#help-dialog .privacy").inner_text()
    assert "in memory" in said and "disk" in said
    page.keyboard.press("Escape")
    footers = page.locator(".colophon").all_text_contents()
    assert footers
    assert all(footer.startswith(said) for footer in footers)


def test_the_list_of_documents_says_what_is_stored_and_what_is_sent(visit: Visit) -> None:
    visit.page.locator("#documents").click()
    said = visit.page.locator("#documents-dialog > p.soft").inner_text()
    assert said.startswith("Documents are stored in this browser only. The text before the caret is sent to")
    assert "nowhere else" not in said and "in memory" in said and "disk" in said


def test_the_help_and_a_tip_say_what_an_ellipsis_means(visit: Visit) -> None:
    page = visit.page
    page.locator("#help").click()
    meaning = page.locator("#help-dialog dt", has_text="everything else").locator("+ dd")
    expect(meaning).to_contain_text("its word may be longer")
    page.keyboard.press("Escape")
    assert "its word may be longer" in page.locator("#rest .more").get_attribute("data-tip")


def test_the_help_says_where_controls_are_in_one_size(visit: Visit) -> None:
    page = visit.page
    page.locator("#help").click()
    dialog = page.locator("#help-dialog")
    expect(dialog.locator("dt", has_text="share").locator("+ dd")).to_contain_text("Odds of (under More settings)")
    expect(dialog.locator("h3", has_text="What Show")).to_have_text("What Show offers (under More settings)")
    size = "element => getComputedStyle(element).fontSize"
    assert dialog.locator(".modes li").first.evaluate(size) == dialog.locator("dd").first.evaluate(size)


def test_the_longest_seed_is_seen_whole(visit: Visit) -> None:
    visit.control("mode").select_option("sampled")
    seed = visit.control("seed")
    seed.fill("716974174")
    inner = "field => [field.scrollWidth, field.clientWidth]"
    wanted, has = seed.evaluate(inner)
    assert wanted <= has
    text = seed.evaluate(
        """field => {
          const style = getComputedStyle(field), brush = document.createElement('canvas').getContext('2d');
          brush.font = style.font;
          const inner = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
          return [brush.measureText(field.value).width, inner];
        }"""
    )
    assert text[0] + 16 <= text[1], "with its arrows"


def test_a_document_without_a_history_offers_no_replay(visit: Visit) -> None:
    page = visit.page
    visit.type("The sea")
    page.locator("#history").click()
    expect(page.locator("#replay")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("#import input").set_input_files({"name": "sea.txt", "mimeType": "text/plain", "buffer": b"The sea"})
    expect(page.locator("#documents .name")).to_have_text("sea")
    assert visit.text == "The sea"
    page.locator("#history").click()
    expect(page.locator("#history-dialog .none")).to_be_visible()
    expect(page.locator("#replay")).to_be_hidden()
    page.keyboard.press("Escape")
    page.locator("#export").click()
    expect(page.locator("[data-format='authorship-md']")).to_be_visible()
    expect(page.locator("[data-format='replay-html']")).to_be_hidden()


def test_beside_the_text_stands_that_it_is_continued_and_where_instructions_go(visit: Visit) -> None:
    page = visit.page
    hint, box = page.locator("#continues"), page.locator("#document textarea")
    expect(hint).to_be_visible()
    assert "does not obey" in hint.inner_text() and "with an instruction" in hint.inner_text()
    assert box.get_attribute("aria-describedby") == "continues tab-key"
    page.locator("#instruction-toggle").click()
    expect(hint).to_be_hidden()
    assert box.get_attribute("aria-describedby") == "tab-key"
    page.locator("#as-is").click()
    expect(hint).to_be_visible()
    assert box.get_attribute("aria-describedby") == "continues tab-key"


def test_the_sign_of_an_ending_is_explained_and_looks_like_no_button(visit: Visit) -> None:
    visit.type("The")
    visit.wait_until_settled()
    page = visit.page
    page.evaluate("""() => {
      const sign = Object.assign(document.createElement('span'), {className: 'end', textContent: 'end 12 %'});
      sign.dataset.tip = 'What it means.';
      document.querySelector('#branches .rows .tokens').prepend(sign);
    }""")
    sign = page.locator("#branches .end").first
    assert sign.evaluate("one => getComputedStyle(one).borderTopWidth") == "0px"
    sign.hover()
    expect(page.locator(".tip")).to_be_visible()
    expect(page.locator(".tip")).to_have_text("What it means.")


def test_all_lines_of_the_grey_text_are_visible_behind_a_long_text(visit: Visit) -> None:
    visit.page.add_style_tag(content=".mirror .ghost { line-height: 4; }")  # more than the box has below its text
    visit.control("depth").fill("30")
    visit.fill(LONG)
    visit.type(".")
    visit.wait_until_settled()
    visit.page.wait_for_selector("#document textarea[data-ghost=shown]")
    visit.page.wait_for_function(f"() => ({GHOST_LINES})().length >= 2")
    visit.page.wait_for_function(f"() => ({GHOST_LINES})().every(Boolean)", timeout=10_000)
    visit.fill(LONG + "\n")
    visit.page.wait_for_timeout(300)
    room = "box => parseFloat(getComputedStyle(box).paddingBottom)"
    assert visit.page.locator("#document textarea").evaluate(room) == 48, "the room for it is taken back"


def test_a_text_that_was_scrolled_away_from_its_end_stays_there(visit: Visit) -> None:
    visit.control("depth").fill("30")
    visit.fill(LONG)
    visit.wait_until_settled()
    box = visit.page.locator("#document textarea")
    box.evaluate("box => { box.scrollTop = 0; }")
    visit.control("length").select_option("word")
    visit.control("length").select_option("tokens")
    visit.wait_until_settled()
    visit.wait_until_asked()
    assert box.evaluate("box => box.scrollTop") == 0


def test_an_empty_temperature_of_a_column_shows_the_one_in_force(visit: Visit) -> None:
    visit.type("The old keeper")
    visit.choose("view", "compare")
    heat = visit.page.locator("#compare .column-head input").first
    expect(heat).to_have_attribute("placeholder", "1")
    assert "More settings”, now 1." in heat.get_attribute("aria-description")
    visit.control("temperature").fill("0.7")
    expect(heat).to_have_attribute("placeholder", "0.7")
    assert "More settings”, now 0.7." in heat.get_attribute("aria-description")
    assert "The field is empty: it is the one" in heat.get_attribute("aria-description")
    expect(heat).to_have_attribute("aria-valuenow", "0.7")
    heat.fill("x")
    assert heat.get_attribute("aria-valuenow") is None
    heat.fill("0.5")
    expect(heat).to_have_attribute("aria-valuenow", "0.5")
    assert "Empty the field for the one under “More settings”, now 0.7." in heat.get_attribute("aria-description")


def test_a_guess_takes_the_focus_and_the_result_before_it_goes(visit: Visit) -> None:
    page = visit.page
    visit.type("Once upon a")
    visit.wait_until_settled()
    said, field = page.locator(".guess-said"), page.locator("#guess")
    visit.control("guess-first").check()
    expect(field).to_be_focused()
    page.keyboard.type("time")
    page.keyboard.press("Enter")
    expect(said).to_contain_text("bits of surprise")
    expect(page.locator(".guess-total")).to_contain_text("fewer is better")
    page.keyboard.press("Alt+ArrowDown")
    page.keyboard.press("1")
    expect(field).to_be_visible()
    expect(said).to_have_text("The rows are hidden: guess the next word first, or skip the guess.")
    visit.page.locator("#guess-done").click()
    expect(said).to_have_text("Type the word that you expect next.")
    field.press_sequentially("k")
    expect(said).to_be_empty()


def test_a_guess_that_a_longer_word_begins_with_is_said_to_be_that(visit: Visit) -> None:
    visit.control("length").select_option("word")
    visit.type("Once upon a ")
    visit.wait_until_settled()
    words = ["".join(visit.pieces(row)).strip() for row in range(visit.rows)]
    word = next(word for word in words if len(word) > 1 and word.isalpha() and word[:-1] not in words)
    visit.control("guess-first").check()
    visit.page.locator("#guess").fill(word[:-1])
    visit.page.locator("#guess-done").click()
    expect(visit.page.locator(".guess-said")).to_contain_text("only as the beginning of “")


def test_the_choice_of_forks_says_what_a_fork_is(visit: Visit) -> None:
    visit.type("The old keeper ")
    visit.control("mode").select_option("forks")
    visit.wait_until_settled()
    why = "rows also fork later, wherever another token has a chance of 5 % or more, before temperature and top-p."
    expect(visit.page.locator("#branches .note .words")).to_contain_text(why)
    if visit.rows < 5:
        expect(visit.page.locator("#branches .note .words")).to_contain_text(f"{visit.rows} of 5 rows:")
    assert "rows also fork later" in visit.page.locator(".shows").get_attribute("data-tip")
    choices = visit.page.locator("#help-dialog .modes li").all_text_contents()
    names = visit.control("mode").locator("option").all_text_contents()
    assert [choice.split(":")[0].lower() for choice in choices] == names, "the help explains all choices beforehand"


def test_arrow_keys_move_between_the_tabs_and_no_hidden_copy_of_them_takes_the_focus(visit: Visit) -> None:
    page = visit.page
    selected = page.locator("[role=tablist] [role=tab][aria-selected=true]")
    for width in (1280, 390):
        resize(visit, width)
        page.locator("[role=tab]", has_text="Write").first.focus()
        for key, name in (("ArrowRight", "Rewrite"), ("ArrowRight", "Highlights"), ("ArrowLeft", "Rewrite")):
            page.keyboard.press(key)
            expect(selected).to_have_text(name)
            assert page.evaluate("document.activeElement.textContent") == name
        page.keyboard.press("Home")
        expect(selected).to_have_text("Write")
        page.keyboard.press("Shift+Tab")
        assert page.evaluate("document.activeElement.closest('.tabs-bar') === null"), "nothing stands before the tabs"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Write"
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('[role=tablist]') === null"), "one stop, not six"
    expect(page.locator("#document textarea")).to_be_visible()


HEAR = """() => {
  const [said, words] = ['.announcement', '.note .words'].map(one => document.querySelector(`#branches ${one}`));
  window.heard = [];
  new MutationObserver(() => window.heard.push([said.textContent, words.checkVisibility() ? words.textContent : '']))
    .observe(said, {childList: true, characterData: true, subtree: true});
}"""


DRAG = """(slider, values) => values.map(value => {
  slider.value = value;
  slider.dispatchEvent(new Event('input', {bubbles: true}));
  return document.querySelector('#branches .announcement').textContent;
})"""


@pytest.mark.parametrize(
    ("name", "values"), [("temperature", ["1.2", "1.4"]), ("top-p", ["0.8", "0.5"]), ("k", ["4", "3"])]
)
def test_other_figures_of_a_slider_are_announced_once_when_it_rests(visit: Visit, name: str, values: list[str]) -> None:
    page, said = visit.page, visit.page.locator("#branches .announcement")
    visit.type("The old keeper ")
    visit.wait_until_settled()
    held = page.locator("#coverage .held")
    before, control = held.inner_text(), visit.control(name)
    expect(said).to_contain_text(f"hold {before}: ")
    control.focus()
    visit.listen()
    assert control.evaluate(DRAG, values) == [""] * len(values), "what is said of the rows before, at each step"
    assert held.inner_text() != before
    under = "" if name == "k" else f" {page.locator('#coverage .of').inner_text()}"
    expect(said).to_contain_text(f"hold {held.inner_text()}{under}: ")
    visit.wait_until_asked()
    assert page.evaluate("spoken") == [said.text_content()]


def test_another_choice_of_odds_is_announced_once_when_its_rows_are_complete(visit: Visit) -> None:
    page, said = visit.page, visit.page.locator("#branches .announcement")
    visit.type("The old keeper ")
    visit.wait_until_settled()
    control = visit.control("odds")
    control.focus()
    visit.listen()
    for odds in ("words", "tokens"):
        control.select_option(odds)
        visit.wait_until_asked()
        visit.wait_until_settled()
        expect(said).to_contain_text(f" {page.locator('#coverage .held').inner_text()}: ")
        assert page.evaluate("spoken.splice(0)") == [said.text_content()]


def test_alt_and_down_say_why_they_lead_nowhere(visit: Visit) -> None:
    page = visit.page
    page.evaluate(HEAR)
    visit.type("The old keeper")
    visit.wait_until_settled()
    page.locator("#documents").click()
    page.locator("#new-document").click()
    expect(page.locator("#branches[data-state=empty]")).to_be_attached()
    page.locator("#document textarea").press("Alt+ArrowDown")
    empty = "There are no rows yet: write something first."
    page.wait_for_function("why => heard.some(([said, seen]) => said === why && seen === why)", arg=empty)
    page.keyboard.press("Alt+p")
    visit.type("Once")  # of a beginning of the first text rows may be known
    expect(page.locator("#branches[data-state=paused]")).to_be_attached()
    page.locator("#document textarea").press("Alt+ArrowDown")
    paused = "There are no rows: branching is paused. “Go on”, or Alt+P, continues it."
    page.wait_for_function("why => heard.some(([said, seen]) => said === why && seen === why)", arg=paused)
    page.keyboard.press("Alt+p")


def test_a_fork_is_shown_where_a_row_leaves_one_above_it(visit: Visit) -> None:
    visit.type("The old keeper saw")
    visit.wait_until_settled()
    assert visit.page.locator("#branches .rows .fork").count() == 0, "rows of the likeliest tokens begin differently"
    legend, both, plain = (visit.page.locator(f"#branches .marks .{name}") for name in ("forked", "both", "unforked"))
    for hidden in (legend, both):
        expect(hidden).to_be_hidden()
    expect(plain).to_be_visible()
    expect(plain).to_have_text("Bracket: a fork; each row is one way on.")
    visit.page.locator("#branches .terms").evaluate("details => { details.open = true; }")
    meaning = visit.page.locator("#branches .terms div", has_text="Fork").locator("dd")
    several = "a place where a text can go on in more than one way: here at the bracket"
    spoken = "where your text ends"
    expect(meaning).to_have_text(re.compile(rf"{several}\s*{spoken}\s*, and each row takes one\."), use_inner_text=True)
    expect(meaning.locator("[aria-hidden]").first).to_have_text("at the bracket")
    visit.control("mode").select_option("every_level")
    expect(visit.page.locator("#branches .branch")).to_have_count(5)
    visit.wait_until_settled()
    rows = visit.page.evaluate("""() => [...document.querySelectorAll('#branches .branch')].map(row =>
      [...row.querySelectorAll('.token')].map(token => token.dataset.ids))""")
    for index, ids in enumerate(rows):
        sign = visit.page.locator(f"#branches [data-branch='{index}'] .fork")
        begins = [above for above in rows[:index] if above[0] == ids[0]]
        assert sign.count() == bool(begins), index
        if begins:
            assert sign.evaluate("one => getComputedStyle(one).maskImage").startswith('url("data:image/svg+xml')
            assert sign.get_attribute("data-tip").startswith("Fork: up to here this row is the same as row ")
            own = sign.locator("xpath=following-sibling::button").first.get_attribute("aria-label")
            (other,) = re.findall(r", a fork: here it parts from branch (\d)$", own)
            name = visit.page.locator(f"#branches [data-branch='{index}']").get_attribute("aria-label")
            shared = "".join(visit.pieces(index)[: sign.locator("xpath=preceding-sibling::button").count()])
            (last,) = re.findall(rf"^Branch {index + 1}, parts from branch {other} after “(.+?)”, ", name)
            assert last in shared or last.endswith(shared.strip()), name
    expect(legend).to_have_text(": a fork, where a row leaves one above it.")
    expect(both).to_have_text(" and bracket: forks, where rows part.", use_inner_text=False)
    within = "and within a row where a line forks"
    expect(meaning).to_have_text(re.compile(rf"{several}\s*{spoken}\s*, {within}\s*\."), use_inner_text=True)
    expect(meaning.locator(".both .fork")).to_be_visible()
    expect(plain).to_be_hidden()
    # The bracket joins the rows without a sign, if there are several.
    bracket = visit.page.locator("#branches .branch:not(:has(.fork))").count() > 1
    expect(both if bracket else legend).to_be_visible()
    expect(legend if bracket else both).to_be_hidden()
    visit.token(0, 0).hover()
    expect(visit.page.locator("#branches .note .words")).to_contain_text("oken “")


def test_an_empty_document_has_no_player_and_its_history_says_why(visit: Visit) -> None:
    page = visit.page
    page.locator("#history").click()
    expect(page.locator("#history-dialog .none")).to_be_visible()
    for part in (".choosing", "#replay"):
        expect(page.locator(f"#history-dialog {part}")).to_be_hidden()
    page.keyboard.press("Escape")
    visit.type("The sea")
    page.locator("#history").click()
    page.locator("#replay").click()
    expect(page.locator("#replay-dialog .replay-bar")).to_be_visible()
    expect(page.locator("#replay-dialog .none")).to_be_hidden()


COVERED = """() => [...document.querySelectorAll('#branches .branch, #rest .more')].filter(row => {
  const {left, right, top, bottom} = row.getBoundingClientRect();
  const seen = [top + 2, (top + bottom) / 2, bottom - 2].filter(y => y > 0 && y < innerHeight);
  const across = [left + 60, (left + right) / 2, right - 60];
  return seen.some(y => across.some(x => !row.contains(document.elementFromPoint(x, y))));
}).map(row => row.textContent)"""


@pytest.mark.parametrize("rows", [5, 20])
@pytest.mark.parametrize("scrolled", [0, 90])
def test_nothing_covers_a_row_of_a_laptops_window_with_more_settings_open(
    visit: Visit, rows: int, scrolled: int
) -> None:
    visit.type("The old keeper ")
    visit.control("k").fill(str(rows))
    visit.wait_until_settled()
    visit.control("mode")
    visit.page.evaluate("y => scrollTo(0, y)", scrolled)
    assert visit.page.evaluate(COVERED) == []


def test_the_figures_of_a_token_are_seen_also_above_the_end_of_a_long_list(visit: Visit) -> None:
    page, note = visit.page, visit.page.locator("#branches .note")
    visit.type("The old keeper ")
    visit.control("k").fill("20")
    visit.wait_until_settled()
    page.evaluate("scrollTo(0, 0)")
    assert note.bounding_box()["y"] > 720
    visit.token(1, 0).hover()
    expect(note.locator(".words")).to_contain_text("whole row")
    box = note.bounding_box()
    assert box["y"] + box["height"] <= 720
    assert visit.token(1, 0).evaluate(TOPMOST)
    lowest = max(row for row in range(20) if visit.token(row, 0).bounding_box()["y"] < 690)
    page.mouse.move(0, 0)
    expect(note.locator(".words")).not_to_contain_text("whole row")
    assert page.evaluate(COVERED) == []
    visit.token(lowest, 0).hover()
    expect(note.locator(".words")).to_contain_text("whole row")
    assert visit.token(lowest, 0).evaluate(TOPMOST), "a click must find the token"
    page.mouse.move(0, 0)
    page.evaluate("""() => document.querySelector('#branches')
      .dispatchEvent(new CustomEvent('refuse', {detail: {because: 'Refused.'}}))""")
    expect(note.locator(".words")).to_have_text("Refused.")
    box = note.bounding_box()
    assert box["y"] + box["height"] <= 720


@pytest.mark.parametrize("view", ["rows", "compare"])
def test_in_a_low_window_the_note_on_a_token_is_whole_and_covers_and_moves_no_row(visit: Visit, view: str) -> None:
    page = visit.page
    page.set_viewport_size({"width": 911, "height": 512})
    visit.type("The old keeper ")
    visit.wait_until_settled()
    shown = page.locator("#branches")
    if view == "compare":
        visit.choose("view", "compare")
        shown = page.locator("#compare .branch-view[data-state=settled]").last
        page.wait_for_timeout(700)
        shown.locator(".rows").scroll_into_view_if_needed()  # four of its rows are in sight at first
    rows, note, words = shown.locator(".rows"), shown.locator(".note"), shown.locator(".note .words")
    expect(rows.locator(".branch")).to_have_count(5)
    before = rows.bounding_box()
    for row in range(5):
        page.mouse.move(0, 0)
        expect(words).not_to_contain_text("whole row")
        token = rows.locator(f"[data-branch='{row}'] .token").first
        token.hover()
        expect(words).to_contain_text("whole row")
        assert token.evaluate(TOPMOST) and rows.bounding_box() == before
        for part in (note, note.locator(".ban")):
            box = part.bounding_box()
            assert box["y"] >= 0 and box["y"] + box["height"] <= before["y"] + 1, row
        assert words.evaluate("words => words.scrollHeight <= words.clientHeight + 1"), words.inner_text()
    assert page.locator("#coverage .held").evaluate(TOPMOST) or view == "compare", "the coverage can still be read"
    visit.move_slowly(middle_of(token), middle_of(note.locator(".ban")))  # over the rows between
    expect(words).to_contain_text("whole row")
    name = words.inner_text().split("”")[0].split("“")[1]
    assert name in note.locator(".ban").inner_text() and name == token.inner_text().strip()


def test_each_panel_has_the_name_of_its_tab(visit: Visit) -> None:
    page = visit.page
    outer = ["Write", "Rewrite", "Highlights", "Type assistant", "Internals", "Lab"]
    for name in (*outer, "Lesson", "Cache", "Decoding", "Masks", "Speculation", "Write"):
        visit.open_tab(name)
        expect(page.get_by_role("tabpanel", name=name, exact=True)).to_be_visible()
        if name in outer and name != "Lab":
            expect(page.locator("[role=tabpanel]:visible")).to_have_count(1)
    names = page.locator("[role=tabpanel]").evaluate_all("panels => panels.map(panel => panel.ariaLabel)")
    assert sorted(names) == sorted([*outer, "Lesson", "Cache", "Decoding", "Masks", "Speculation"])


TOPMOST = """token => {
  const {left, right, top, bottom} = token.getBoundingClientRect();
  return document.elementFromPoint((left + right) / 2, (top + bottom) / 2) === token;
}"""


@pytest.mark.parametrize("width", [1280, 390])
def test_under_the_rows_stands_what_lines_and_dots_mean(visit: Visit, width: int) -> None:
    visit.page.set_viewport_size({"width": width, "height": 720 if width == 1280 else 844})
    visit.type("The old keeper ")
    visit.wait_until_settled()
    marks = visit.page.locator("#branches .marks")
    said = "Thicker line: likelier. Dot: computed ahead. Bracket: a fork; each row is one way on."
    assert marks.inner_text() == said
    rows, last = visit.page.locator("#branches .branch"), visit.page.locator("#rest").bounding_box()
    box = marks.bounding_box()
    assert box["y"] >= last["y"] + last["height"]
    if width == 1280:
        assert box["height"] <= 32 and box["y"] + box["height"] <= 720, "one line, in the window"
        assert rows.first.bounding_box()["y"] < 360
    visit.choose("view", "tree")
    expect(marks).to_be_hidden()
    visit.choose("view", "compare")
    expect(visit.page.locator(".compare-foot .legend")).to_contain_text(
        "Thicker line: likelier token. Dot: what follows it is computed already."
    )
    expect(visit.page.locator("#compare .marks:visible")).to_have_count(0)


def test_a_row_that_was_drawn_twice_says_which_row_it_is_the_same_as(real: Visit) -> None:
    real.type("The Statue of")
    real.control("depth").fill("2")
    real.control("temperature").fill("0.3")
    real.control("mode").select_option("sampled")
    real.control("seed").fill("7")
    real.wait_until_asked()
    real.wait_until_settled()
    texts = ["".join(real.pieces(index)) for index in range(5)]
    assert len(set(texts)) < 5
    for index, text in enumerate(texts):
        row = real.page.locator(f"#branches [data-branch='{index}']")
        note = row.locator(".stopped")
        if (above := texts.index(text)) < index:
            expect(note).to_have_text(f"same as row {above + 1}")
            assert f", same as row {above + 1}" in (row.get_attribute("aria-label") or "")
            assert row.get_attribute("data-bracket") in (None, "passes")
        else:
            expect(note).to_have_count(0)


def test_settings_with_a_word_to_steer_by_are_open_after_a_reload(visit: Visit) -> None:
    visit.type("The old keeper")
    visit.control("steer-word").fill("the")
    visit.wait_until_asked()
    visit.wait_until_settled()
    visit.page.wait_for_selector(".kept[data-state=saved]")
    visit.page.reload()
    expect(visit.page.locator("#steer-word")).to_be_visible()
    expect(visit.page.locator("#steer-word")).to_have_value("the")


def test_the_bracket_of_a_fork_has_a_sentence_where_it_is_pointed_at(visit: Visit) -> None:
    visit.type("The old keeper")
    visit.wait_until_settled()
    row = visit.page.locator("#branches .branch[data-bracket=arm]").first
    box, line = row.bounding_box(), row.evaluate("row => getComputedStyle(row, '::before').insetInlineStart")
    visit.page.mouse.move(box["x"] + float(line.removesuffix("px")) + 1, box["y"] + box["height"] / 2)
    expect(visit.page.locator(".tip")).to_have_text(
        "A fork: here, where your text ends, it can go on in more than one way. Each row takes one."
    )


def test_the_tree_has_no_sentence_about_rows_below_it(visit: Visit) -> None:
    visit.type("The old keeper")
    visit.wait_until_settled()
    note = visit.page.locator("#branches .note")
    expect(note).to_contain_text("Each button is a token")
    visit.choose("view", "tree")
    expect(note).to_be_hidden()


def test_tab_passes_the_text_and_accepts_the_grey_text_only_while_it_is_written(visit: Visit) -> None:
    page, box = visit.page, visit.page.locator("#document textarea")
    visit.type("The old keeper ")
    visit.wait_until_settled()
    text = box.input_value()
    page.keyboard.press("Shift+Tab")
    assert not box.evaluate("box => box === document.activeElement")
    page.keyboard.press("Tab")
    expect(box).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#to-branches")).to_be_focused()
    assert box.input_value() == text, "who passes through the page writes nothing"
    page.keyboard.press("Shift+Tab")
    expect(box).to_be_focused()
    page.keyboard.type("s")
    visit.wait_until_settled()
    accept_grey_text(page)
    expect(box).to_be_focused()
    assert len(box.input_value()) > len(text + "s")
    hint = page.locator("#tab-key")
    writing = "While you write, Tab accepts the grey text; Esc, then Tab leaves the box."
    expect(hint).to_have_text(writing, use_inner_text=True)
    assert "tab-key" in (box.get_attribute("aria-describedby") or "")


def test_after_escape_the_line_on_tab_says_how_the_grey_text_comes_back(visit: Visit) -> None:
    page, hint, ghost = visit.page, visit.page.locator("#tab-key"), visit.page.locator(".mirror .ghost")
    writing, height = hint.inner_text(), hint.bounding_box()["height"]
    visit.type("The old keeper")
    visit.wait_until_settled()
    expect(ghost).not_to_be_empty()
    page.keyboard.press("Escape")
    expect(ghost).to_be_empty()
    expect(hint).to_have_text("The grey text comes back when the text changes. Tab now leaves the box.")
    assert hint.bounding_box()["height"] == height, "nothing moves"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    visit.wait_until_settled()
    expect(ghost).to_be_empty()
    expect(hint).to_contain_text("comes back")
    page.keyboard.type("s")
    expect(hint).to_have_text(writing)
    visit.wait_until_settled()
    expect(ghost).not_to_be_empty()


def test_up_and_down_go_by_entries_in_the_list_of_everything_else_and_names_say_their_positions(visit: Visit) -> None:
    page = visit.page
    visit.type("The old keeper ")
    visit.wait_until_settled()
    page.locator("#rest .more").click()
    entries = page.locator("#rest .others button")
    number = entries.count()
    entries.first.focus()
    for key, place in [("ArrowDown", 2), ("ArrowDown", 3), ("ArrowUp", 2), ("ArrowUp", 1)]:
        page.keyboard.press(key)
        expect(page.locator(":focus")).to_have_attribute("aria-label", re.compile(f", {place} of {number}$"))
    page.keyboard.press("ArrowUp")
    expect(page.locator("#rest .more")).to_be_focused()


SPACED = """async pieces => {
  const {paintRows} = await import('/lookahead/branch_view/paint_rows.js');
  const odds = {p: 0.5}, shown = document.querySelector('#branches .rows'), rows = shown.cloneNode(false);
  shown.before(rows);  // the page goes on painting its own rows
  const row = {
    share: odds, path: odds, apart: 1, branch: {ids: [], text: ''}, ids: [], revision: 0,
    pieces: pieces.map((text, index) => ({text, ids: [index], odds, upTo: odds, tokens: index + 1, ends: 1})),
  };
  paintRows(rows, {rows: [row], growing: false}, '');
  rows.firstElementChild.scrollIntoView({block: 'center'});
  const buttons = [...rows.querySelectorAll('.token')];
  const glyphs = buttons.map(button => {
    const range = document.createRange(), node = button.firstChild, {data} = node;
    range.setStart(node, data.length - data.trimStart().length);
    range.setEnd(node, data.length);
    return range.getBoundingClientRect();
  });
  const widths = new Map(buttons.map(button => [button, 0]));
  const {left, right, top, bottom} = rows.querySelector('.tokens').getBoundingClientRect();
  for (let x = left; x < right; x += 1) {
    const found = document.elementFromPoint(x, (top + bottom) / 2 - 4)?.closest('.token');
    if (found) widths.set(found, widths.get(found) + 1);
  }
  rows.remove();
  return {gaps: glyphs.slice(1).map((box, index) => box.left - glyphs[index].right), widths: [...widths.values()]};
}"""


@pytest.mark.parametrize("width", [1280, 390])
def test_tokens_without_a_space_between_them_stand_close_together(tiny: Visit, width: int) -> None:
    """On a phone each is as wide as a finger: a narrow one within a word lies over the room of its neighbour."""
    tiny.page.set_viewport_size({"width": width, "height": 800})
    tiny.type("The")
    tiny.wait_until_settled()
    found = tiny.page.evaluate(importing(SPACED), [" E", "leanor", " didn", "’", "t", " know", " fulcr", "um", ","])
    first, word, within, end, after, *_ = found["gaps"]
    assert max(first, within) < 4 < 6 < min(word, after), found
    assert end < after, found
    seen = [each for each in found["widths"] if each]  # on a phone the last ones are out of sight
    assert min(seen[:-1]) >= (8 if width > 760 else 23), found


def test_a_word_of_tokens_with_a_letter_each_looks_like_a_word(tiny: Visit) -> None:
    tiny.type("The")
    tiny.wait_until_settled()
    found = tiny.page.evaluate(importing(SPACED), [" in", " ", "2", "0", "2", "4", " f", "i", "l", "l", " it"])
    gaps = found["gaps"]
    assert max([*gaps[2:5], *gaps[6:9]]) < 6 < 8 < min(gaps[5], gaps[9]), found
    assert min(found["widths"]) >= 8, found
