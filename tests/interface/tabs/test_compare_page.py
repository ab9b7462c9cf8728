"""The Compare view in a browser: one text in columns, and a click in any of them continues all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import browser as browsers
from tests.support.browser import PATIENCE, Visit, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PROMPT = "The old lighthouse keeper"
PERCENT = browsers.importing(
    "p => import('/lookahead/web/core/figures_and_labels.js').then(one => one.formatPercent({p}))"
)


@pytest.fixture
def compare(tiny: Visit) -> Compare:
    return Compare(tiny)


class Compare:
    """The Compare view as a person sees it."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.page = visit.page

    def choose(self, view: str) -> None:
        self.visit.choose("view", view)

    def column(self, index: int) -> Any:
        return self.page.locator("#compare .compared").nth(index)

    def branches(self, index: int) -> Any:
        return self.column(index).locator(".branch-view")

    @property
    def count(self) -> int:
        return int(self.page.locator("#compare .compared").count())

    def settle(self) -> list[int]:
        """The revision of each column's rows, once all are those of the text as it stands."""
        self.page.wait_for_function(
            """() => {
                const found = [...document.querySelectorAll('#compare .branch-view')].map(({dataset}) => dataset);
                return found.length && found.every(({state, stale}) => state === 'settled' && stale === 'false');
            }""",
            timeout=PATIENCE,
        )
        return [int(self.branches(index).get_attribute("data-revision")) for index in range(self.count)]

    def pieces(self, column: int, row: int) -> list[str]:
        found = self.branches(column).locator(f"[data-branch='{row}'] [data-token]")
        return list(found.evaluate_all("tokens => tokens.map(token => token.dataset.text)"))

    def rows(self, column: int) -> list[list[str]]:
        count = self.branches(column).locator(".rows > .branch").count()
        return [self.pieces(column, row) for row in range(count)]

    def token(self, column: int, row: int, token: int) -> Any:
        return self.branches(column).locator(f"[data-branch='{row}'] [data-token='{token}']")

    def write(self, column: int, instruction: str) -> None:
        self.column(column).locator("textarea").fill(instruction)
        self.visit.wait_until_asked()


def test_a_piece_that_is_chosen_in_a_column_keeps_its_instruction(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.write(1, "Write a poem.")
    compare.settle()
    for column in (1, 0):
        compare.token(column, 0, 0).click()
        compare.settle()
    compare.page.locator("#export").click()
    with compare.page.expect_download() as download:
        compare.page.locator("#formats-dialog [data-format='authorship-json']").click()
    pieces = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))["pieces"]
    chosen = [piece.get("instruction") for piece in pieces if piece["author"] == "chosen"]
    assert chosen == ["Write a poem.", None], "the first column has none"


def test_the_session_shows_the_rows_of_the_column_in_which_something_was_chosen(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.write(1, "Write a poem.")
    compare.settle()
    first, second = ([row[0] for row in compare.rows(column)] for column in (0, 1))
    assert set(first) != set(second)
    compare.token(1, 0, 0).click()
    compare.settle()
    compare.choose("tree")
    compare.page.locator("#tree-session").check()
    expect(compare.page.locator("#tree .node[data-state=chosen]")).to_have_count(1)
    keys = compare.page.locator("#tree .node").evaluate_all("all => all.map(({dataset: {key}}) => key)")
    seen = {key.removeprefix(f"={PROMPT}+") for key in keys if key.startswith(f"={PROMPT}+")}
    assert set(second[1:]) <= seen
    assert not (set(first) - set(second)) <= seen


def test_two_columns_stand_side_by_side_at_a_zoom_of_150_per_cent(compare: Compare) -> None:
    compare.page.set_viewport_size({"width": 911, "height": 512})
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.settle()
    # In one call: the page may still scroll to the columns.
    edges = "all => all.map(one => one.getBoundingClientRect()).map(({top, left, right}) => ({top, left, right}))"
    one, other = compare.page.locator("#compare .compared").evaluate_all(edges)
    assert one["top"] == other["top"] and one["right"] <= other["left"] + 1
    width = compare.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 911


def test_in_a_low_window_the_beginnings_of_five_rows_in_two_columns_are_in_sight_and_the_page_stays(
    compare: Compare,
) -> None:
    page = compare.page
    page.set_viewport_size({"width": 911, "height": 512})
    compare.visit.type(PROMPT)
    page.evaluate("scrollTo(0, 0)")
    compare.choose("compare")
    compare.settle()
    page.wait_for_timeout(700)  # nothing scrolls the page
    assert page.evaluate("scrollY") == 0
    rows = """() => [...document.querySelectorAll('#compare .branch')].map(row => {
      const tokens = row.querySelector('.tokens'), sign = row.querySelector('.onward');
      return {bottom: row.getBoundingClientRect().bottom, from: tokens.getBoundingClientRect().left,
        to: sign.checkVisibility() ? sign.getBoundingClientRect().left : 911, fades: getComputedStyle(tokens).maskImage,
        reads: row.dataset.reads};
    })"""
    found = page.evaluate(rows)
    assert len(found) == 10 and all(row["bottom"] <= 512 for row in found)
    for sentence in page.locator("#compare .same-letters").all():
        expect(sentence).to_be_in_viewport(ratio=1)
    for row in found:
        assert row["to"] - row["from"] > 160, row
        assert row["reads"] != "on" or "100% - 16px" in row["fades"], row
    page.set_viewport_size({"width": 1280, "height": 720})


def test_the_second_click_of_a_double_click_on_a_view_changes_no_setting_that_moves_there(compare: Compare) -> None:
    page = compare.page
    page.set_viewport_size({"width": 911, "height": 512})
    values = (
        "() => [...document.querySelectorAll('#controls :is(input[type=range], select)')].map(field => field.value)"
    )
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.settle()
    before = page.evaluate(values)
    box = page.locator("#controls .views label", has_text="Rows").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.click(x, y)
    expect(page.locator("#branches")).to_have_attribute("data-view", "rows")
    page.mouse.click(x, y)
    assert page.evaluate(values) == before


def test_a_double_click_on_the_name_of_a_control_selects_no_text(compare: Compare) -> None:
    page = compare.page
    page.set_viewport_size({"width": 1280, "height": 720})
    compare.visit.type(PROMPT)
    for name in page.locator("#controls .views label, #k-name, #depth-name").all():
        page.mouse.dblclick(*browsers.middle_of(name))
        assert page.evaluate("getSelection().toString()") == ""
    compare.choose("rows")


def test_a_click_in_any_column_continues_all_of_them(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.write(1, "Write a poem.")
    before = compare.settle()
    assert compare.count == 2
    assert all(3 <= len(compare.rows(index)) <= 5 for index in range(2))
    assert compare.rows(0) != compare.rows(1)
    text = PROMPT
    for column, row, token in ((1, 2, 1), (0, 1, 0)):
        pieces = compare.pieces(column, row)
        ids = compare.token(column, row, token).get_attribute("data-ids")
        compare.token(column, row, token).click()
        text += "".join(pieces[: token + 1])
        assert compare.visit.text == text
        after = compare.settle()
        assert all(new > old for new, old in zip(after, before, strict=True))
        before = after
        request = [sent for name, sent in compare.visit.calls if name == "ask"][-1]
        assert len(request["columns"]) == 2
        start, sent, _ = request["accepted"][-1]
        assert " ".join(map(str, sent)).endswith(ids)
        assert start < len(text)
    press(compare, "Control+z", "Control+z")
    assert compare.visit.text == PROMPT


def press(compare: Compare, *keys: str) -> None:
    for key in keys:
        compare.page.keyboard.press(key)


def test_one_request_computes_all_columns_and_rows_come_back(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.visit.wait_until_settled()
    rows = [compare.visit.pieces(row) for row in range(compare.visit.rows)]
    browsers.wait_until_idle()
    asked = len(compare.visit.asked)
    compare.choose("compare")
    compare.settle()
    compare.visit.wait_until_asked()
    assert len([sent for sent in compare.visit.asked[asked:] if "columns" in sent]) == 1
    expect(compare.page.locator("#branches")).to_be_hidden()
    compare.choose("rows")
    compare.visit.wait_until_settled()
    expect(compare.page.locator("#compare")).to_be_hidden()
    assert [compare.visit.pieces(row) for row in range(compare.visit.rows)] == rows


def test_typing_makes_every_column_stale_and_a_stale_click_is_refused(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.settle()
    compare.page.evaluate("document.querySelector('#pause').click()")
    compare.visit.type(" and")
    for index in range(2):
        expect(compare.branches(index)).to_have_attribute("data-stale", "true")
    compare.token(1, 0, 0).click()
    assert compare.visit.text == PROMPT + " and"
    expect(compare.branches(1)).to_have_attribute("data-refused", "1")
    compare.page.evaluate("document.querySelector('#pause').click()")
    compare.settle()


def test_columns_are_added_and_removed_and_four_are_the_most(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.settle()
    expect(compare.page.get_by_role("button", name="Remove column 1")).to_be_disabled()
    add = compare.page.get_by_role("button", name="Add a column")
    add.click()
    add.click()
    expect(add).to_be_disabled()
    assert compare.count == 4
    compare.settle()
    compare.write(3, "Be short.")
    compare.write(2, "Be long.")
    compare.settle()
    third, fourth = compare.rows(2), compare.rows(3)
    assert third != fourth
    compare.page.get_by_role("button", name="Remove column 3").click()
    compare.settle()
    assert compare.count == 3
    assert compare.rows(2) == fourth
    expect(compare.column(2).locator("textarea")).to_have_value("Be short.")
    expect(compare.column(2).locator("textarea")).to_be_focused()
    last = [sent for sent in compare.visit.asked if "columns" in sent][-1]
    assert [column["instruction"] for column in last["columns"]][::2] == [None, "Be short."]


def test_no_sentence_stays_open_after_a_click_on_add_a_column(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.settle()
    tip, add = compare.page.locator("body .tip"), compare.page.locator(".compare .add")
    add.scroll_into_view_if_needed()
    compare.page.mouse.move(5, 5)
    add.hover()
    expect(tip).to_contain_text("One more way to continue")
    add.click()
    expect(compare.column(2).locator("textarea")).to_be_focused()
    expect(tip).to_be_hidden()
    compare.page.mouse.move(5, 5)
    expect(tip).to_be_hidden()
    compare.page.keyboard.press("Tab")
    compare.page.keyboard.press("Shift+Tab")
    expect(tip).to_contain_text("What this column’s text follows")


def test_temperatures_are_computed_in_the_page_and_drawn_on_the_server(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.write(1, "")
    compare.settle()
    assert compare.rows(0) == compare.rows(1)
    compare.column(1).locator("input").fill("0.3")
    compare.settle()
    shares = [float(compare.branches(index).locator(".branch").first.get_attribute("data-share")) for index in (0, 1)]
    assert shares[1] > shares[0]
    compare.visit.listen("#compare > .announcement")
    compare.column(1).locator("input").fill("0.31")
    is_heard = "window.spoken.some(sentence => sentence.startsWith('The likeliest beginnings'))"
    compare.page.wait_for_function(is_heard)  # also if the rows begin as before
    compare.column(1).locator("input").fill("0.3")
    compare.settle()
    compare.visit.control("mode").select_option("sampled")
    compare.settle()
    last = [sent for sent in compare.visit.asked if "columns" in sent][-1]
    assert [column.get("temperature") for column in last["columns"]] == [None, 0.3]


@pytest.mark.parametrize("wrong", ["5", "3", "-1", "2,5", "hot"])
def test_a_temperature_that_the_engine_does_not_take_hides_the_rows_and_is_explained(
    compare: Compare, wrong: str
) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.write(1, "")
    compare.settle()
    heat = compare.column(1).locator("input")
    heat.fill(wrong)
    expect(compare.column(1).locator(".complaint")).to_contain_text(f"“{wrong}” cannot be used")
    expect(heat).to_have_attribute("aria-invalid", "true")
    expect(compare.column(1).locator(".column-body")).to_be_hidden()
    assert compare.rows(1) == []
    assert compare.column(0).locator(".elsewhere li").count() == 0, "nothing is compared with hidden rows"
    press(compare, "Alt+Digit1")
    assert compare.visit.text == PROMPT, "no key accepts a hidden row"
    heat.fill("0.3")
    expect(compare.column(1).locator(".complaint")).to_be_empty()
    compare.settle()
    share = ".branch >> nth=0"
    shares = [float(compare.branches(index).locator(share).get_attribute("data-share")) for index in (0, 1)]
    assert shares[1] > shares[0]


def test_a_decimal_comma_is_a_decimal_point_and_arrow_keys_change_a_temperature(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.write(1, "")
    compare.settle()
    heat = compare.column(1).locator("input")
    heat.focus()
    compare.page.keyboard.type("1,5")
    compare.settle()
    comma = compare.branches(1).locator(".branch").first.get_attribute("data-share")
    heat.fill("1.5")
    compare.settle()
    point = compare.branches(1).locator(".branch").first.get_attribute("data-share")
    assert comma == point != compare.branches(0).locator(".branch").first.get_attribute("data-share")
    press(compare, "ArrowUp", "ArrowUp")
    expect(heat).to_have_value("1.7")
    expect(heat).to_have_attribute("aria-valuenow", "1.7")
    for _ in range(4):
        press(compare, "ArrowUp")
    expect(heat).to_have_value("2")
    heat.fill("")
    press(compare, "ArrowDown")
    expect(heat).to_have_value("0.9")


def test_rows_keep_their_order_at_any_temperature_where_the_last_word_may_go_on(small: Visit) -> None:
    compare = Compare(small)
    compare.visit.type("The old lighthou")
    compare.choose("compare")
    compare.write(1, "")
    compare.settle()
    for temperature in ("0.5", "2"):
        compare.column(1).locator("input").fill(temperature)
        compare.settle()
        assert compare.rows(1) == compare.rows(0)


@pytest.mark.parametrize("width", [1280, 390])
def test_why_rows_of_a_column_have_no_chance_is_seen_without_scrolling_a_row(compare: Compare, width: int) -> None:
    compare.page.set_viewport_size({"width": width, "height": 844})
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.column(1).locator("input").fill("0")
    compare.settle()
    remarks = compare.column(1).locator(".remarks")
    expect(remarks).to_contain_text("are left out by temperature 0")
    sizes = remarks.evaluate("one => [one.scrollWidth, one.clientWidth, one.clientHeight]")
    assert sizes[0] <= sizes[1] and sizes[2] > 20, sizes
    compare.page.set_viewport_size({"width": 1280, "height": 720})


def test_equal_first_tokens_have_a_letter_and_each_column_says_the_odds_of_the_others(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.write(1, "")
    compare.settle()
    letters = [
        compare.branches(index).locator(".branch").evaluate_all("rows => rows.map(row => row.dataset.same)")
        for index in (0, 1)
    ]
    assert letters[0] == letters[1] == list("abcde")
    compare.branches(1).locator(".branch .key").first.hover()
    expect(compare.page.locator("body .tip")).to_contain_text("with the same letter begin with the same token")
    first = compare.rows(0)[0][0].strip()
    figure = compare.branches(0).locator(".branch .figure").first.inner_text()
    said = compare.column(1).locator(".elsewhere li").inner_text()
    assert first in said
    assert said.startswith("Column 1 also puts")
    assert figure in said


def test_the_first_choice_of_another_column_is_named_with_the_letters_that_it_continues(compare: Compare) -> None:
    compare.visit.type("The keeper saw a bea")
    compare.choose("compare")
    compare.write(1, "")
    compare.settle()
    said = compare.column(1).locator(".elsewhere li").inner_text()
    assert said.startswith("Column 1 also puts “bea")


def test_the_columns_are_used_with_the_keyboard_alone(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.page.locator("#controls .views input[value=rows]").focus()
    press(compare, "ArrowRight")
    while compare.page.evaluate("document.querySelector('#branches').dataset.view") != "compare":
        press(compare, "ArrowRight")
    compare.settle()
    compare.page.locator("#document textarea").focus()
    press(compare, "Alt+ArrowDown")
    focused = "document.activeElement.closest('.compared')?.getAttribute('aria-label')"
    assert compare.page.evaluate(focused) == "Column 1"
    pieces = compare.pieces(0, 1)
    press(compare, "ArrowDown", "Enter")
    assert compare.visit.text == PROMPT + pieces[0]
    compare.settle()
    assert compare.page.evaluate(focused) == "Column 1"
    for _ in range(3):  # the instruction, the temperature, and the rows of the next column
        press(compare, "Tab")
    assert compare.page.evaluate("document.activeElement.matches('.compared:nth-child(2) .token')")
    text, pieces = compare.visit.text, compare.pieces(1, 0)
    press(compare, "Enter")
    assert compare.visit.text == text + pieces[0]
    press(compare, "Alt+ArrowUp")
    expect(compare.page.locator("#document textarea")).to_be_focused()


def test_alt_and_the_down_arrow_lead_to_the_rows_from_anywhere_in_compare(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.settle()
    inside = "document.activeElement.matches('.compared:nth-child({}) .token')"
    for start in (compare.column(1).locator("textarea"), compare.column(1).locator("input")):
        start.focus()
        press(compare, "Alt+ArrowDown")
        assert compare.page.evaluate(inside.format(2)), "the rows of the field's own column"
    compare.branches(0).locator("button[data-token]").first.focus()
    compare.page.get_by_role("button", name="Add a column").focus()
    press(compare, "Alt+ArrowDown")
    assert compare.page.evaluate(inside.format(1)), "the rows of the column that was used last"
    compare.column(1).locator("input").fill("5")
    press(compare, "Alt+ArrowDown")
    assert compare.page.evaluate(inside.format(1)), "a column without rows is passed over"


def test_the_names_of_rows_and_columns_have_the_letter_and_the_mark(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.write(1, "")
    compare.settle()
    for index in (0, 1):
        names = compare.branches(index).locator(".branch").evaluate_all("rows => rows.map(row => row.ariaLabel)")
        assert [name.split(", ")[-1] for name in names] == [f"letter {letter}" for letter in "abcde"]
    compare.visit.control("temperature").fill("0.5")  # rows are painted anew
    compare.settle()
    assert compare.branches(0).locator(".branch").first.get_attribute("aria-label").count("letter") == 1
    for index in (1, 0):
        compare.branches(index).locator("button[data-token]").first.focus()
        marks = [" marked" in compare.branches(one).get_attribute("aria-label") for one in (0, 1)]
        assert marks == [one == index for one in (0, 1)]


def test_columns_come_back_after_a_reload_and_wait_in_a_link_until_they_are_chosen(
    compare: Compare, browser: Any, tiny_page: str
) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.write(1, "Write a poem.")
    compare.settle()
    expect(compare.page.locator(".kept")).to_have_attribute("data-state", "saved")
    compare.page.reload()
    compare.settle()
    expect(compare.column(1).locator("textarea")).to_have_value("Write a poem.")
    compare.page.locator("#share").click()
    link = compare.page.locator("#share-link")
    compare.page.wait_for_function("document.querySelector('#share-link').value.includes('#t=')")
    address = tiny_page + "#t=" + link.input_value().split("#t=")[1]
    with browsers.visit(browser, address) as opened:
        opened.wait_for_status("ready")
        opened.wait_until_settled()
        other = Compare(opened)
        expect(other.page.locator("#compare")).to_be_hidden()
        assert not [sent for sent in opened.asked if "columns" in sent], "no instruction is used unseen"
        other.choose("compare")
        other.settle()
        expect(other.column(1).locator("textarea")).to_have_value("Write a poem.")


def test_an_instruction_can_begin_a_text(compare: Compare) -> None:
    compare.choose("compare")
    compare.page.wait_for_selector("#compare .compared:nth-child(2) .branch-view[data-state=settled]")
    expect(compare.branches(0)).to_have_attribute("data-state", "empty")
    piece = compare.pieces(1, 0)[0]
    compare.token(1, 0, 0).click()
    assert compare.visit.text == piece
    compare.settle()


@pytest.mark.parametrize(("width", "side_by_side"), [(1240, 3), (1239, 2), (390, 1)])
def test_as_many_columns_stand_side_by_side_as_the_window_has_room_for(
    compare: Compare, width: int, side_by_side: int
) -> None:
    compare.page.set_viewport_size({"width": width, "height": 844})
    compare.visit.type(PROMPT)
    compare.visit.wait_until_settled()  # on phones the controls are below the rows, and move as these appear
    compare.choose("compare")
    compare.settle()  # the button is below the rows, and moves as they appear
    compare.page.get_by_role("button", name="Add a column").click()
    expect(compare.page.locator("#compare .compared")).to_have_count(3)
    compare.settle()
    widths = compare.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths[0] <= widths[1], widths
    columns = compare.page.locator("#compare .compared")
    lefts = columns.evaluate_all("all => all.map(one => Math.round(one.getBoundingClientRect().x))")
    assert len(set(lefts)) == side_by_side, lefts
    compare.page.set_viewport_size({"width": 1280, "height": 720})


def test_a_row_of_a_column_that_is_cut_by_two_pixels_has_the_sign_too(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.settle()
    row = compare.branches(1).locator(".branch").first
    row.evaluate("""row => {
      const tokens = row.querySelector('.tokens'), last = tokens.lastElementChild;
      last.style.width = `${tokens.getBoundingClientRect().right + 1.5 - last.getBoundingClientRect().left}px`;
      row.parentElement.style.minHeight = '50rem';  // rows are measured when their size changes
    }""")
    expect(row.locator(".onward")).to_be_visible(timeout=3000)
    compare.branches(1).locator(".rows").evaluate("rows => { rows.style.minHeight = ''; }")


def test_each_column_shows_its_coverage_and_how_to_read_on_in_long_rows(compare: Compare) -> None:
    compare.page.set_viewport_size({"width": 1280, "height": 720})
    compare.page.locator("#depth").fill("20")
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.settle()
    for index in range(2):
        shown = compare.column(index).locator(".cover .sum")
        expect(shown).to_be_visible()
        rows = compare.branches(index).locator(".branch")
        shares = rows.evaluate_all("all => all.map(one => Number(one.dataset.share))")
        coverage = float(compare.column(index).locator(".cover").get_attribute("data-coverage"))
        assert coverage == pytest.approx(sum(shares), abs=1e-6)
        said = compare.page.evaluate(PERCENT, coverage)
        assert said in shown.inner_text()
        long = compare.branches(index).locator(".branch[data-reads=on]")
        expect(long.first.locator(".onward")).to_be_visible()
        long.first.locator(".onward").click()
        expect(compare.branches(index).locator(".tokens[data-scrolled]")).to_have_count(1)
    assert compare.visit.text == PROMPT
    legend = compare.page.locator(".compare-foot .legend")
    expect(legend).to_contain_text("All figures are of tokens, not of words. “These … hold” is a column’s coverage")


def test_a_click_in_any_column_shows_the_next_views_of_all_without_the_server(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.write(1, "Write a poem.")
    compare.settle()
    for index in range(2):
        compare.page.wait_for_selector(
            f".compared:nth-child({index + 1}) .branch-view:is([data-ahead-ready='3'], [data-ahead-ready='4'], "
            "[data-ahead-ready='5'])",
            timeout=PATIENCE,
        )
    browsers.wait_until_idle()
    dotted = compare.branches(1).locator(".token[data-ahead]").first
    inserted = str(dotted.get_attribute("data-text"))
    before = [compare.rows(index) for index in range(2)]
    with browsers.requests_held(compare.page):
        dotted.click()
        assert compare.visit.text == PROMPT + inserted
        for index in range(2):
            expect(compare.branches(index)).to_have_attribute("data-stale", "false")
            expect(compare.branches(index)).to_have_attribute("data-state", "thinking")
            assert compare.rows(index) != before[index]
            assert len(compare.rows(index)) >= 3
        shown = [[row[0] for row in compare.rows(index) if row] for index in range(2)]
    compare.settle()
    for index in range(2):
        own = [row[0] for row in compare.rows(index) if row]
        assert len(set(own) & set(shown[index])) >= 3, "the answer has the rows that were shown"


def test_the_keys_of_the_text_accept_rows_of_the_column_that_was_used_last(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.write(1, "Write a poem.")
    compare.settle()
    box, ghost = compare.page.locator("#document textarea"), compare.page.locator(".mirror .ghost")
    marked = compare.page.locator("#compare .compared[aria-current]")
    text = PROMPT
    for column in (0, 1):
        compare.branches(column).locator("button[data-token]").first.focus()
        box.focus()
        expect(marked).to_have_attribute("aria-label", f"Column {column + 1}")
        for key, row, whole in (
            ("Alt+Digit2", 1, False),
            ("Control+ArrowRight", 0, False),
            ("Tab", 0, True),
            ("Alt+Shift+Digit1", 0, True),
        ):
            compare.settle()
            pieces = compare.pieces(column, row)
            if not pieces:
                continue
            if key == "Tab":
                expect(ghost).to_have_text("".join(pieces))
            box.focus()
            compare.page.keyboard.press("Control+End")
            if key == "Tab":
                browsers.accept_grey_text(compare.page, "".join(pieces))
            else:
                compare.page.keyboard.press(key)
            expect(box).not_to_have_value(text)
            added = compare.visit.text[len(text) :]
            assert "".join(pieces).startswith(added), (key, column)
            assert (added == "".join(pieces)) if whole else added, (key, column)
            text += added
        compare.settle()
        token = compare.branches(column).locator("button[data-token]").first
        token.focus()
        pieces = compare.pieces(column, 0)
        press(compare, "1")
        added = compare.visit.text[len(text) :]
        assert added and "".join(pieces).startswith(added), "digits in a column count its own rows"
        text += added
        compare.settle()


def test_the_grey_text_shows_what_is_pointed_at_in_another_column(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.write(1, "Write a poem.")
    compare.settle()
    box, ghost = compare.page.locator("#document textarea"), compare.page.locator(".mirror .ghost")
    box.focus()
    press(compare, "Control+End")
    expect(ghost).to_have_text("".join(compare.pieces(1, 0)))  # that column was written in last
    compare.token(0, 1, 0).hover()
    pointed = compare.pieces(0, 1)[0]
    expect(ghost).to_have_text(pointed)
    browsers.accept_grey_text(compare.page, pointed)
    assert compare.visit.text == PROMPT + pointed


COLUMN_KEYS = "Keys: arrows move, Enter writes up to the token, Delete bans it, Alt+↑ leads back."
"""No key changes a token of a column."""


def test_the_token_by_which_the_focus_enters_a_column_is_described_by_its_keys(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.settle()
    compare.page.locator("#document textarea").focus()
    press(compare, "Alt+ArrowDown")
    expect(compare.token(0, 0, 0)).to_have_accessible_description(COLUMN_KEYS)
    press(compare, "ArrowRight")
    expect(compare.token(0, 0, 1)).to_be_focused()
    expect(compare.token(0, 0, 1)).to_have_accessible_description("")
    compare.page.locator("#compare .add").click()
    compare.settle()
    compare.page.get_by_role("button", name="Remove column 1").click()
    compare.settle()
    for column in (0, 1):
        compare.page.locator("#document textarea").focus()
        compare.token(column, 0, 0).focus()
        expect(compare.token(column, 0, 0)).to_have_accessible_description(COLUMN_KEYS)
    keys = compare.page.locator("#compare .keys").evaluate_all("all => all.map(({id}) => id)")
    assert keys == ["column-1-keys", "column-2-keys"]


def test_after_a_ban_in_a_column_the_row_with_the_focus_is_announced_as_it_is_now(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.settle()
    token = compare.token(0, 0, 2)
    banned = token.get_attribute("data-ids")
    token.focus()
    compare.visit.listen("#compare > .announcement")
    press(compare, "Delete")
    compare.page.wait_for_function("window.spoken.some(sentence => sentence.includes('The row with the focus: '))")
    row = compare.pieces(0, 0)
    assert compare.token(0, 0, 2).get_attribute("data-ids") != banned
    expect(compare.token(0, 0, 2)).to_be_focused()
    said = [sentence for sentence in compare.page.evaluate("window.spoken") if "The row with the focus: " in sentence]
    assert len(said) == 1, "not the row before the ban too"
    assert f"The row with the focus: {''.join(row).split()[0]}" in said[0]


def test_a_guess_in_columns_is_scored_by_the_first_and_shows_all(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.visit.control("guess-first").check()
    compare.choose("compare")
    compare.page.wait_for_timeout(300)
    compare.settle()
    assert compare.page.locator("#compare button[data-token], #compare .elsewhere li").count() == 0
    box = compare.page.locator("#document textarea")
    box.focus()
    press(compare, "Alt+Digit1")
    expect(compare.branches(0)).to_have_attribute("data-refused", "1")
    assert compare.visit.text == PROMPT
    compare.column(0).locator("input").fill("0.5")
    compare.page.locator("#guess").fill("saw")
    press(compare, "Enter")
    expect(compare.page.locator(".guess-said")).to_contain_text("chance of this word in column 1 at temperature 0.5")
    assert all(compare.rows(index) for index in range(2))


def test_guess_first_takes_back_what_was_announced_of_the_columns(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.settle()
    said = compare.page.locator("#compare .announcement").filter(has_text="The likeliest beginnings")
    expect(said).to_have_count(1)
    compare.visit.control("guess-first").check()
    expect(said).to_have_count(0)


def test_in_columns_the_instruction_under_the_text_gives_way_to_a_sentence(compare: Compare) -> None:
    page, said = compare.page, compare.page.locator("#continues")
    compare.visit.type(PROMPT)
    page.locator("#instruction-toggle").click()
    page.locator("#instruction").fill("Write a poem.")
    compare.choose("compare")
    expect(page.locator(".going")).to_be_hidden()
    expect(page.locator("#instruction")).to_be_hidden()
    expect(said).to_have_text(
        "While you compare, each column has its own instruction and at most 5 rows; "
        "a row that you changed is not among them."
    )
    assert page.locator("#document textarea").get_attribute("aria-describedby") == "continues tab-key"
    assert compare.column(0).locator("textarea").input_value() == "Write a poem.", "the first column begins with it"
    compare.choose("rows")
    expect(page.locator("#instruction")).to_be_visible()
    expect(page.locator("#instruction")).to_have_value("Write a poem.")
    expect(said).to_be_hidden()
    page.locator("#as-is").click()
    expect(said).to_contain_text("does not obey it")


def import_columns(compare: Compare, *instructions: str) -> None:
    """Import a document file whose view is Compare, with a column for each of these instructions."""
    columns = [{"instruction": instruction, "temperature": None} for instruction in instructions]
    settings = {"view": "compare", "columns": columns}
    document = {"format": "lookahead", "version": 1, "text": PROMPT, "settings": settings}
    given = {"name": "columns.json", "mimeType": "application/json", "buffer": json.dumps(document).encode()}
    compare.page.locator("#import input").set_input_files(given)


@pytest.mark.parametrize("answer", ["use", "leave"])
def test_instructions_of_columns_in_a_file_are_shown_before_they_are_used(compare: Compare, answer: str) -> None:
    page, dialog = compare.page, compare.page.locator("#offer-dialog")
    import_columns(compare, "", "Speak like a pirate.", "Write a poem.")
    expect(dialog).to_be_visible()
    assert dialog.locator(".offered").inner_text() == "Column 2: Speak like a pirate.\n\nColumn 3: Write a poem."
    compare.settle()
    assert compare.visit.text == PROMPT and compare.count == 3
    assert compare.visit.asked and "pirate" not in json.dumps(compare.visit.calls)
    page.locator(f"#offer-{answer}").click()
    compare.visit.wait_until_asked()
    compare.settle()
    used = ["", "Speak like a pirate.", "Write a poem."] if answer == "use" else ["", "", ""]
    assert [compare.column(index).locator("textarea").input_value() for index in range(3)] == used
    assert ("pirate" in json.dumps(compare.visit.calls)) is (answer == "use")
    import_columns(compare, "", "Speak like a pirate.")
    if answer == "use":  # this browser has it now
        expect(page.locator("#compare .compared")).to_have_count(2)
        expect(dialog).to_be_hidden()
    else:
        expect(dialog).to_be_visible()
        assert dialog.locator(".offered").inner_text() == "Speak like a pirate."


def test_while_rows_grow_the_note_of_a_column_is_as_wide_as_the_column(compare: Compare) -> None:
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.settle()
    widths = compare.branches(0).evaluate("""view => {
      const words = view.querySelector('.note .words'), progress = view.querySelector('.note .progress');
      words.textContent = 'A row’s share is the chance that its part in bold comes next, as the model gives it.';
      progress.textContent = 'Growing: at least 3 of 40 tokens';
      return [words, view].map(one => one.getBoundingClientRect().width);
    }""")
    assert widths[0] > 0.8 * widths[1]


@pytest.mark.parametrize(("width", "height"), [(911, 512), (1366, 768)])
def test_what_stands_below_the_columns_stays_there_while_rows_grow_and_are_pointed_at(
    compare: Compare, width: int, height: int
) -> None:
    page = compare.page
    page.set_viewport_size({"width": width, "height": height})
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.settle()
    heights = "all => all.map(one => Math.round(one.getBoundingClientRect().height))"
    notes = page.locator("#compare .note")
    at_rest = notes.evaluate_all(heights)
    page.evaluate("""() => {
      window.heights = new Set();
      const measure = () => {
        for (const note of document.querySelectorAll('#compare .note'))
          heights.add(`${note.getBoundingClientRect().height} ${note.textContent.includes('so far')}`);
        requestAnimationFrame(measure);
      };
      measure();
    }""")
    compare.write(1, "Write a poem.")
    compare.settle()
    compare.token(0, 1, 2).hover()
    expect(notes.first.locator(".words")).to_contain_text("Token")
    expect(notes.first.locator(".ban")).to_be_visible()
    assert notes.evaluate_all(heights) == at_rest
    seen = page.evaluate("[...heights]")
    assert len({one.split()[0] for one in seen}) == 1, seen
    page.set_viewport_size({"width": 1280, "height": 720})


def test_an_instruction_moves_no_row_of_a_column_where_a_token_is_banned(compare: Compare) -> None:
    page = compare.page
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.settle()
    page.locator(".compared .token").first.focus()
    page.keyboard.press("Delete")
    without, row = page.locator(".compared .without").first, page.locator(".compared .branch").first
    expect(without).to_be_visible()
    compare.settle()
    top = row.bounding_box()["y"]
    with browsers.requests_held(page):
        page.locator(".column-instruction").first.fill("Sad.")
        expect(without).to_be_hidden()
        assert row.bounding_box()["y"] == top
    expect(without).to_be_visible()
    compare.settle()
    assert row.bounding_box()["y"] == top


def test_what_a_person_does_in_compare_is_said_once_and_without_the_rows_before(compare: Compare) -> None:
    page = compare.page
    compare.visit.type(PROMPT)
    compare.choose("compare")
    compare.settle()
    compare.visit.listen()

    def said_after(*keys: str) -> list[str]:
        page.evaluate("window.spoken.length = 0")
        for key in keys:
            page.keyboard.press(key)
        compare.visit.wait_until_asked()
        page.wait_for_timeout(2500)
        return list(page.evaluate("window.spoken"))

    page.locator("#document textarea").focus()
    page.wait_for_function(browsers.ANNOUNCED, arg=None)
    said = said_after("Alt+1")
    assert sum("Inserted: “" in sentence for sentence in said) == 1, said
    of_action = [sentence for sentence in said if sentence.startswith(("Inserted", "Tab inserts"))]
    assert of_action[0].startswith("Inserted"), said
    assert sum("The likeliest beginnings, column 1" in sentence for sentence in said) == 1, said
    said += (missing := said_after("Alt+9"))
    assert "There is no branch 9." in missing
    token = compare.token(1, 0, 0)
    token.focus()
    said += (refused := said_after("F2"))
    assert "Rows can be changed in the view Rows, not in columns." in refused
    said += (taken := said_after("Enter"))
    assert [sentence.split()[0] for sentence in taken[:2]] == ["Inserted:", "The"], taken
    compare.settle()
    page.locator("#document textarea").focus()
    said += (undone := said_after("Control+z"))
    assert sum("Undone" in sentence for sentence in undone) == 1, undone
    said += (paused := said_after("Alt+p"))
    assert sum("Branching is paused" in sentence for sentence in paused) == 1, paused
    said += (resumed := said_after("Alt+p"))
    assert sum("Branching goes on" in sentence for sentence in resumed) == 1, resumed
    compare.settle()
    said += (hidden := said_after("Escape"))
    assert sum("Grey text hidden" in sentence for sentence in hidden) == 1, hidden
    assert not any("hold" in sentence for sentence in said), "the rows of all columns are announced together"
