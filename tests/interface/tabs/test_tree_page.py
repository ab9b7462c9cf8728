"""The tree view of the Write tab in a browser: clicks, keys, the session, exports, speed."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import browser as browsers
from tests.support.browser import Visit, expect, requests_held
from tests.support.witness import EngineWithHook, talker

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PROMPT = "The old lighthouse keeper"
ROUNDING = 1e-4
OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll('#tree text')].map(text => text.getBBox()).filter(({width}) => width);
  const meet = (one, other) => one.x < other.x + other.width && other.x < one.x + one.width
    && one.y < other.y + other.height && other.y < one.y + one.height;
  return boxes.flatMap((one, index) => boxes.slice(index + 1).filter(other => meet(one, other))).length;
}"""
FRAMES = """async ([selector, milliseconds]) => {
  const area = document.querySelector(selector), began = performance.now();
  let frames = 0;
  while (performance.now() - began < milliseconds) {
    await new Promise(done => requestAnimationFrame(done));
    frames += 1;
    if (area) area.scrollTo(200 + 200 * Math.sin(frames / 20), 200 + 200 * Math.cos(frames / 20));
  }
  return 1000 * frames / (performance.now() - began);
}"""


@pytest.fixture
def tree(tiny: Visit) -> Visit:
    """The page with settled branches, shown as a tree."""
    tiny.type(PROMPT, delay=1)
    tiny.wait_until_settled()
    tiny.choose("view", "tree")
    expect(nodes(tiny, "ahead").first).to_be_visible()
    return tiny


def nodes(visit: Visit, state: str) -> Any:
    return visit.page.locator(f"#tree .node[data-state={state}]")


def path_to(visit: Visit, node: Any) -> str:
    """The text of a node of the present branches with that of the nodes before it."""
    key = str(node.get_attribute("data-key"))
    parts = key.split("/")[1:]
    keys = ["/".join(["here", *parts[: count + 1]]) for count in range(len(parts))]
    return "".join(str(visit.page.locator(f'#tree [data-key="{one}"]').get_attribute("data-text")) for one in keys)


def write_a_session(visit: Visit) -> list[str]:
    """Three accepted pieces, the last of which is undone and replaced by another; the texts in their order."""
    texts = [PROMPT]
    for piece in (0, 1, 2):
        visit.wait_until_settled()
        visit.wait_for_two_frames()
        nodes(visit, "ahead").nth(piece).click()
        texts.append(visit.text)
    visit.wait_until_settled()
    visit.page.locator("#document textarea").focus()
    visit.page.keyboard.press("Control+z")
    visit.wait_until_settled()
    visit.wait_for_two_frames()
    others = [node for node in nodes(visit, "ahead").all() if texts[2] + path_to(visit, node) != texts[3]]
    others[0].click()
    visit.wait_until_settled()
    texts.append(visit.text)
    visit.page.locator("#tree-session").check()
    expect(nodes(visit, "left").first).to_be_attached()
    return texts


def test_rows_are_the_default_and_the_choice_is_kept_with_the_other_settings(tiny: Visit) -> None:
    tiny.type(PROMPT, delay=1)
    tiny.wait_until_settled()
    assert tiny.page.locator("#branches .rows").is_visible()
    assert tiny.page.locator("#tree").is_hidden()
    asked = len(tiny.asked)
    tiny.choose("view", "tree")
    tiny.choose("tree-shape", "river")
    tiny.page.locator("#tree-session").check()
    assert tiny.page.locator("#branches .rows").is_hidden()
    tiny.wait_until_asked()
    assert len(tiny.asked) == asked, "a view of the same branches asks nothing of the server"
    tiny.page.wait_for_selector(".kept[data-state=saved]")
    tiny.page.reload()
    tiny.wait_for_status("ready")
    expect(tiny.page.locator("#tree")).to_be_visible()
    assert tiny.page.locator("input[value=river]").is_checked()
    assert tiny.page.locator("#tree-session").is_checked()
    tiny.choose("view", "rows")
    expect(tiny.page.locator("#branches .rows")).to_be_visible()
    assert tiny.page.locator("#tree").is_hidden()


def test_a_click_on_a_node_inserts_the_text_up_to_it_and_the_branches_follow(tree: Visit) -> None:
    last = nodes(tree, "ahead").nth(2)
    text = path_to(tree, last)
    assert last.get_attribute("aria-level") == "4"
    last.click()
    assert tree.text == PROMPT + text
    tree.wait_until_settled()
    assert tree.text == PROMPT + text
    expect(tree.page.locator("#document textarea")).to_be_focused()


def test_the_tree_has_each_beginning_of_a_row_once_with_its_odds(tree: Visit) -> None:
    rows = tree.page.evaluate(
        "document.querySelector('#branches').branchView.rows()"
        ".map(({pieces}) => pieces.map(({ids, odds}) => [ids.join(' '), odds.p]))"
    )
    wanted = {
        "/".join(["here", *(ids for ids, _ in row[: count + 1])]): row[count][1]
        for row in rows
        for count in range(len(row))
    }
    found = nodes(tree, "ahead").evaluate_all("all => all.map(({dataset: {key, p}}) => [key, Number(p)])")
    assert dict(found) == pytest.approx(wanted)
    assert len(found) == len(wanted)


def test_coverage_and_rows_have_the_figures_of_the_tree_though_words_were_chosen(tiny: Visit) -> None:
    def figures() -> list[float]:
        tiny.wait_until_settled()
        tiny.page.evaluate(browsers.REST)
        shares = tiny.page.locator("#branches [data-share]").evaluate_all("all => all.map(one => one.dataset.share)")
        return [float(figure) for figure in [coverage.get_attribute("data-coverage"), *shares]]

    tiny.type(PROMPT, delay=1)
    coverage = tiny.page.locator("#coverage")
    tokens = figures()
    shown = coverage.get_attribute("data-coverage")
    tiny.control("odds").select_option("words")
    expect(coverage).not_to_have_attribute("data-coverage", shown)
    words = figures()
    assert words != pytest.approx(tokens, rel=ROUNDING)
    for view, expected, said in (
        ("tree", tokens, "here: tokens"),
        ("rows", words, "words"),
        ("tree", tokens, "here: tokens"),
    ):
        shown = coverage.get_attribute("data-coverage")
        tiny.choose("view", view)
        expect(tiny.page.locator("#odds option:checked")).to_have_text(said)
        expect(coverage).not_to_have_attribute("data-coverage", shown)
        # Rows computed in another batch may differ in their last digits.
        assert figures() == pytest.approx(expected, rel=ROUNDING)


def test_at_a_zoom_of_150_per_cent_the_whole_height_of_five_branches_is_drawn_and_nothing_covers_it(
    tree: Visit,
) -> None:
    tree.page.set_viewport_size({"width": 911, "height": 512})
    expect(tree.page.locator("#tree .tree-foot")).to_have_css("position", "static")
    # The tree is drawn again for the smaller area one or two frames after the window has changed.
    tree.page.wait_for_function(
        """() => {
          const area = document.querySelector('#tree .tree-scroll');
          const {height} = area.firstElementChild.getBoundingClientRect();
          return height > 0 && area.clientHeight >= height;
        }"""
    )


def test_a_click_on_a_tree_of_an_older_text_is_refused_visibly(tree: Visit) -> None:
    tree.page.locator("#pause").click()
    tree.type(" x", delay=1)
    expect(nodes(tree, "ahead").first).to_have_attribute("data-inert", "true")
    text = tree.text
    nodes(tree, "ahead").first.click()
    assert tree.text == text
    assert tree.page.locator("#branches").get_attribute("data-refused") is not None
    assert tree.page.locator("#branches .note .words").is_visible()


@pytest.mark.parametrize("shape", ["tree", "river"])
@pytest.mark.parametrize("size", [(911, 512), (1366, 768)])
def test_what_stands_below_the_drawing_stays_there_while_a_node_is_described(
    tree: Visit, shape: str, size: tuple[int, int]
) -> None:
    tree.page.set_viewport_size({"width": size[0], "height": size[1]})
    tree.choose("tree-shape", shape)
    foot = tree.page.locator("#tree .tree-foot")
    at_rest = foot.bounding_box()["height"]
    nodes(tree, "ahead").nth(2).hover()
    expect(tree.page.locator("#tree .tree-says")).to_contain_text("Choose it to insert")
    expect(tree.page.locator("#tree .tree-ban")).to_be_visible()
    assert foot.bounding_box()["height"] == at_rest


@pytest.mark.parametrize("shape", ["tree", "river"])
def test_on_a_projector_the_sentence_of_a_node_and_the_note_on_a_part_are_above_the_drawing(
    tiny: Visit, shape: str
) -> None:
    page, area, ban = tiny.page, tiny.page.locator("#tree .tree-scroll"), tiny.page.locator("#tree .tree-ban")
    page.set_viewport_size({"width": 911, "height": 512})
    page.locator("#depth").fill("10")
    tiny.fill(PROMPT)
    tiny.wait_until_settled()
    page.locator("#controls .views label:has(input[value=tree])").click()
    page.wait_for_function("one => one.getBoundingClientRect().bottom <= innerHeight + 1", arg=area.element_handle())
    tiny.choose("tree-shape", shape)
    tiny.wait_for_two_frames()
    note, says = page.locator("#tree .cropped-note"), page.locator("#tree .tree-says")
    expect(note).to_be_in_viewport(ratio=1)
    drawing = area.bounding_box()
    node = nodes(tiny, "ahead").nth(32)
    node.hover()
    expect(says).to_contain_text("Choose it to insert")
    expect(says).to_be_in_viewport(ratio=1)
    expect(note).to_be_hidden()
    assert area.bounding_box() == drawing
    assert says.evaluate("one => one.scrollHeight <= one.clientHeight"), says.inner_text()
    named = ban.inner_text()
    tiny.move_slowly(browsers.middle_of(node), browsers.middle_of(ban), steps=60)
    assert ban.inner_text() == named, "nodes on the way up to the button do not count"


def test_a_node_can_be_banned_with_the_mouse_and_nothing_moves(tree: Visit) -> None:
    mouse, chosen = tree.page.mouse, nodes(tree, "ahead").nth(2)
    below = tree.page.locator("#rest").bounding_box()
    mouse.move(*browsers.middle_of(chosen))
    ban = tree.page.locator("#tree .tree-ban")
    expect(ban).to_be_visible()
    named = ban.inner_text()
    assert tree.page.locator("#rest").bounding_box() == below
    target = browsers.middle_of(ban)
    tree.move_slowly(browsers.middle_of(chosen), target, steps=60)
    assert ban.inner_text() == named
    mouse.move(*target)
    tree.page.wait_for_timeout(1200)
    assert ban.inner_text() == named
    mouse.click(*target)
    expect(tree.page.locator("#controls .never button")).to_have_count(1)


def test_a_second_press_of_the_button_does_not_ban_the_node_that_has_the_focus_then(tree: Visit) -> None:
    page, ban, chips = tree.page, tree.page.locator("#tree .tree-ban"), tree.page.locator("#controls .never button")
    page.locator("#document textarea").focus()
    page.keyboard.press("Alt+ArrowDown")
    page.keyboard.press("ArrowRight")
    target = ban.bounding_box()
    x, y = target["x"] + target["width"] / 2, target["y"] + target["height"] / 2
    page.mouse.click(x, y)
    expect(chips).to_have_count(1)
    tree.wait_until_settled()
    tree.wait_for_two_frames()
    expect(page.locator("#tree .node:focus")).to_have_count(1)
    page.mouse.click(x, y)
    expect(ban).to_be_hidden()
    page.wait_for_timeout(300)
    expect(chips).to_have_count(1)
    expect(page.locator("#tree .node:focus")).to_have_count(1)
    page.keyboard.press("ArrowRight")
    expect(ban).to_be_visible()


def test_a_node_can_be_banned_by_the_delete_key(tree: Visit) -> None:
    tree.page.locator("#document textarea").focus()
    tree.page.keyboard.press("Alt+ArrowDown")
    expect(nodes(tree, "ahead").first).to_be_focused()
    named = tree.page.locator("#tree .tree-ban").inner_text()
    name = tree.page.locator("#branches .token").first.get_attribute("aria-label") or ""
    part = "the part " if "a part of" in name else ""
    tree.page.keyboard.press("Delete")
    expect(tree.page.locator("#controls .never button")).to_have_count(1)
    chip = tree.page.locator("#controls .never button .word").inner_text()
    assert named == f"Never {part}“{chip}”"
    tree.wait_until_settled()
    expect(tree.page.locator("#tree .node:focus")).to_have_count(1)


def test_after_a_ban_the_focus_is_on_the_node_that_takes_the_place_of_the_banned_one(tree: Visit) -> None:
    keys = nodes(tree, "ahead").evaluate_all("all => all.map(({dataset: {key}}) => key)")
    last = [key for key in keys if key.count("/") == 3][-1]
    banned = tree.page.locator(f'#tree [data-key="{last}"]')
    assert banned.get_attribute("aria-level") == "4"
    banned.focus()
    tree.page.keyboard.press("Delete")
    expect(tree.page.locator("#controls .never button")).to_have_count(1)
    expect(banned).to_have_count(0)
    tree.wait_until_settled()
    tree.wait_for_two_frames()
    focused = tree.page.locator("#tree .node:focus")
    parent = last.rpartition("/")[0]
    expect(focused).to_have_attribute("data-key", re.compile(rf"^{parent}/[^/]+$"))
    tree.page.keyboard.press("ArrowRight")
    expect(focused).to_have_attribute("data-key", re.compile(rf"^{parent}/[^/]+/[^/]+$"))


def test_after_a_ban_the_focus_moves_once_also_while_new_rows_grow_slowly(page: Any) -> None:
    model = talker()
    hooked = replace(model, engine=EngineWithHook(model.engine, lambda: time.sleep(0.3)))
    with browsers.page_of(lambda report: hooked) as url, browsers.visit_again(page, url) as opened:
        opened.wait_for_status("ready")
        opened.fill("The old keeper")
        opened.choose("view", "tree")
        opened.wait_until_settled()
        opened.wait_for_two_frames()
        keys = nodes(opened, "ahead").evaluate_all("all => all.map(({dataset: {key}}) => key)")
        last = [key for key in keys if key.count("/") == 3][-1]
        page.locator(f'#tree [data-key="{last}"]').focus()
        page.evaluate(
            """() => {
              window.focused = [];
              const tree = document.querySelector('#tree');
              tree.addEventListener('focusin', ({target}) => window.focused.push(target.dataset.key));
            }"""
        )
        page.keyboard.press("Delete")
        expect(page.locator("#controls .never button")).to_have_count(1)
        page.wait_for_selector("#branches[data-state=thinking][data-stale=false]")
        opened.wait_for_two_frames()
        assert page.evaluate("window.focused") == []
        page.keyboard.press("F2")
        page.keyboard.press("Delete")
        opened.wait_until_settled()
        opened.wait_for_two_frames()
        focused = page.evaluate("window.focused")
        assert len(focused) == 1
        assert focused[0].rpartition("/")[0] == last.rpartition("/")[0]
        expect(page.locator("#tree .node:focus")).to_have_attribute("data-key", focused[0])
        expect(page.locator("#controls .never button")).to_have_count(1)
        page.keyboard.press("Delete")
        expect(page.locator("#controls .never button")).to_have_count(2)


def test_what_a_screen_reader_is_told_of_the_tree_is_what_it_shows(tree: Visit) -> None:
    said, shown = tree.page.locator(".tree-announcement"), tree.page.locator(".tree-says")
    expect(shown).to_have_text(f"{said.inner_text()} The thicker a line, the likelier.")
    tree.choose("view", "compare")
    expect(said).to_have_text("")
    tree.choose("view", "tree")
    tree.wait_until_settled()
    expect(said).to_have_text(re.compile(r"^\d+ branches"))
    assert shown.inner_text().startswith(said.inner_text())


def test_the_name_of_a_node_contains_its_visible_words_and_odds(tree: Visit) -> None:
    write_a_session(tree)
    named = tree.page.locator("#tree .node").evaluate_all(
        "all => all.map(one => [one.textContent.trim().replace('·', ''), one.getAttribute('aria-label')])"
    )
    words = [(seen, name) for seen, name in named if re.match(r"[a-zA-Z]", seen)]
    assert len(words) > 5
    assert [(seen, name) for seen, name in words if seen not in name] == []


def test_by_keyboard_alone(tree: Visit) -> None:
    tree.page.locator("#document textarea").focus()
    tree.page.keyboard.press("Alt+ArrowDown")
    first = nodes(tree, "ahead").first
    expect(first).to_be_focused()
    assert tree.page.locator("#tree [tabindex='0']").count() == 1
    tree.page.keyboard.press("ArrowRight")
    second = tree.page.locator("#tree .node:focus")
    assert second.get_attribute("aria-level") == "3"
    label, before = str(second.get_attribute("aria-label")), str(first.get_attribute("data-text")).strip()
    assert "%" in label
    assert label.endswith(f", after “{before}”"), "it says where one is"
    assert str(first.get_attribute("aria-label")).endswith(", after your text")
    text = path_to(tree, second)
    scale = "document.querySelector('.tree-drawing').style.width"
    width = tree.page.evaluate(scale)
    tree.page.keyboard.press("+")
    assert tree.page.evaluate(scale) != width
    tree.page.keyboard.press("0")
    expect(second).to_be_focused()
    tree.page.keyboard.press("Enter")
    assert tree.text == PROMPT + text
    tree.wait_until_settled()
    expect(tree.page.locator("#tree .node:focus")).to_have_count(1)
    tree.page.keyboard.press("Control+z")
    assert tree.text == PROMPT
    tree.page.keyboard.press("Alt+ArrowUp")
    expect(tree.page.locator("#document textarea")).to_be_focused()


def test_enter_on_the_end_of_the_text_says_that_it_inserts_nothing(tree: Visit) -> None:
    tree.page.locator("#document textarea").focus()
    tree.page.keyboard.press("Alt+ArrowDown")
    tree.page.keyboard.press("ArrowLeft")
    assert "the end of your text" in tree.page.evaluate("document.activeElement.ariaLabel")
    tree.page.keyboard.press("Enter")
    expect(tree.page.locator("#branches .announcement")).to_have_text("This node inserts nothing.")
    assert tree.text == PROMPT


def test_tab_leads_from_the_buttons_to_a_node_of_the_drawing(tree: Visit) -> None:
    tree.page.locator("#tree .save-png").focus()
    tree.page.keyboard.press("Tab")
    assert tree.page.evaluate("document.activeElement.getAttribute('class')") == "node"


def test_tab_leads_from_the_drawing_to_everything_else_and_back_in_the_rows_to_their_first_token(tree: Visit) -> None:
    page, more = tree.page, tree.page.locator("#rest .more")
    page.locator("#tree .node[tabindex='0']").focus()
    for _ in range(3):  # a drawing that is scrolled has a tab stop of its own
        page.keyboard.press("Tab")
        if more.evaluate("one => one === document.activeElement"):
            break
    expect(more).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#rest .others")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#rest .others button").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(more).to_be_focused()
    expect(page.locator("#rest .others")).to_be_hidden()
    tree.choose("view", "rows")
    expect(tree.token(0, 0)).to_have_attribute("tabindex", "0")


def test_the_session_shows_seen_chosen_and_undone_texts_and_a_click_returns_to_them(tree: Visit) -> None:
    texts = write_a_session(tree)
    assert nodes(tree, "seen").count() > 5
    assert nodes(tree, "chosen").count() == 3
    goals = {f"={text}" for text in texts} | {"="}
    keys = tree.page.locator("#tree .node").evaluate_all("all => all.map(({dataset: {key}}) => key)")
    assert goals <= set(keys)
    left = tree.page.locator("#tree .node[data-state=left]")
    assert left.get_attribute("data-key") == f"={texts[3]}"
    left.click()
    assert tree.text == texts[3]
    tree.wait_until_settled()
    tree.wait_for_two_frames()
    assert tree.page.locator("#tree .node[data-here]").get_attribute("data-key") == f"={texts[3]}"
    tree.page.locator(f'#tree [data-key="={texts[1]}"]').click()
    assert tree.text == texts[1]
    tree.wait_until_settled()
    for text in (texts[4], texts[3], PROMPT, texts[4]):
        tree.wait_for_two_frames()
        tree.page.locator(f'#tree [data-key="={text}"]').dispatch_event("click")
        assert tree.text == text, "nothing is lost: each text can be gone to from each other"
        tree.wait_until_settled()
    seen = nodes(tree, "seen").first
    after = str(seen.get_attribute("data-key"))[1:].rpartition("+")[0]
    seen.dispatch_event("click")
    assert tree.text == after


LABELS = """() => Object.fromEntries([...document.querySelectorAll('#tree .node[data-state=ahead]')].map(one => [
  one.dataset.key, [one.dataset.text, one.querySelector('.node-label').textContent, one.getAttribute('aria-label')],
]))"""


@pytest.mark.parametrize("shape", ["tree", "river"])
def test_a_token_that_continues_a_word_has_a_dot_which_is_not_inserted(tree: Visit, shape: str, tmp_path: Path) -> None:
    tree.choose("tree-shape", shape)
    tree.wait_until_settled()
    tree.wait_for_two_frames()
    found = tree.page.evaluate(LABELS)
    before = {key: found.get(key.rpartition("/")[0], [PROMPT])[0] for key in found}
    joined = [
        key for key, (text, *_) in found.items() if re.search(r"[A-Za-z0-9]$", before[key]) and re.match(r"[a-z]", text)
    ]
    assert joined
    for key, (text, label, name) in found.items():
        if re.match(r" ?[a-z]", text):
            assert label == ("·" if key in joined else "") + text.strip()
            assert (", continued by " in name) == (key in joined)
    with tree.page.expect_download() as download:
        tree.page.locator("#tree .save-svg").click()
    expect(tree.page.locator("#tree .tree-announcement")).to_contain_text("Exported: ")
    path = tmp_path / "tree.svg"
    download.value.save_as(path)
    saved = path.read_text(encoding="utf-8")
    assert all(f">{found[key][1]}<" in saved for key in joined)
    tree.page.locator(f'#tree [data-key="{joined[0]}"]').dispatch_event("click")
    tree.wait_until_settled()
    assert "·" not in tree.text and tree.text.endswith(found[joined[0]][0])


STANDING = """() => [
  document.querySelector('#document textarea').value, document.querySelector('#document textarea').selectionStart,
  [...document.querySelectorAll('.mirror .chosen')].map(one => one.textContent),
  [...document.querySelectorAll('#branches .branch')].map(one => [one.hasAttribute('data-pinned'), one.textContent]),
]"""


def test_undo_after_a_click_in_the_session_brings_back_the_text_its_marks_and_its_rows(tree: Visit) -> None:
    texts = write_a_session(tree)

    def standing() -> Any:
        tree.wait_until_settled()
        tree.wait_for_two_frames()
        return tree.page.evaluate(STANDING)

    before = standing()
    assert before[0] == texts[4]
    for text in (texts[3], texts[1], ""):
        tree.page.locator(f'#tree [data-key="={text}"]').dispatch_event("click")
        assert tree.text == text
        if text:
            standing()
            said = "Taken out of the text: " if texts[4].startswith(text) else "Put into the text: "
            expect(tree.page.locator("#branches .announcement")).to_contain_text(said)
        tree.page.locator("#document textarea").focus()
        tree.page.keyboard.press("Control+z")
        assert standing() == before, f"after a click on {text!r}"
        tree.page.keyboard.press("Control+Shift+z")
        assert tree.text == text, "redo goes there again"
        tree.page.locator("#undo").click()
        assert standing() == before


def test_an_undone_beginning_lies_beside_the_piece_that_was_taken_instead(tree: Visit) -> None:
    box = tree.page.locator("#document textarea")
    first, longer = (f"Alt+{'Shift+' * shift}Digit1" for shift in (0, 1))
    box.focus()
    tree.page.keyboard.press(first)
    short = tree.text
    assert short != PROMPT
    tree.page.keyboard.press("Control+z")
    tree.wait_until_settled()
    tree.page.keyboard.press(longer)
    expect(box).not_to_have_value(PROMPT)
    whole = tree.text
    assert whole.startswith(short) and whole != short
    tree.wait_until_settled()
    tree.page.locator("#tree-session").check()
    expect(nodes(tree, "left")).to_have_count(1)
    expect(nodes(tree, "left")).to_have_attribute("data-key", f"={short}")
    expect(nodes(tree, "chosen")).to_have_count(1)
    expect(nodes(tree, "chosen")).to_have_attribute("data-text", whole[len(PROMPT) :])
    nodes(tree, "left").dispatch_event("click")
    assert tree.text == short


DRAWN = "all => all.map(({dataset: {key, state}}) => `${state} ${key}`).sort()"


def test_the_session_is_the_same_after_a_reload(tree: Visit) -> None:
    write_a_session(tree)
    expect(tree.page.locator(".kept")).to_have_attribute("data-state", "saved")
    tree.wait_until_asked()
    tree.wait_for_two_frames()
    drawn = tree.page.locator("#tree .node").evaluate_all(DRAWN)
    place = tree.page.locator("#tree .node[data-here]").bounding_box()
    assert sum(one.startswith("seen") for one in drawn) > 5
    tree.page.reload()
    tree.wait_for_status("ready")
    tree.wait_until_settled()
    tree.wait_for_two_frames()
    assert tree.page.locator("#tree .node").evaluate_all(DRAWN) == drawn
    assert tree.page.locator("#tree .node[data-here]").bounding_box() == pytest.approx(place, abs=2)


def test_words_and_odds_of_a_session_can_be_read_before_fit_shows_all_of_it(tree: Visit) -> None:
    write_a_session(tree)
    area = tree.page.locator("#tree .tree-scroll")
    overflow = "area => Math.max(area.scrollWidth - area.clientWidth, area.scrollHeight - area.clientHeight)"
    for shape in ("tree", "river"):
        tree.choose("tree-shape", shape)
        tree.wait_for_two_frames()
        assert min(min(sizes) for sizes in tree.page.evaluate(SIZES)) >= 12
        expect(tree.page.locator("#tree .node[data-here] .node-label")).to_be_in_viewport()
    expect(tree.page.locator("#tree .tree-figures")).to_contain_text("the river has its full width again")
    assert area.evaluate(overflow) > 1
    tree.page.locator("#tree .fit").click()
    tree.wait_for_two_frames()
    assert area.evaluate(overflow) <= 1


def test_fit_brings_all_of_the_tree_into_the_window(tree: Visit) -> None:
    tree.page.set_viewport_size({"width": 1280, "height": 800})
    tree.page.locator("summary:visible", has_text="More settings").click()
    tree.page.evaluate("scrollTo(0, 0)")
    tree.page.locator("#tree .fit").click()
    tree.page.wait_for_timeout(300)
    foot = tree.page.locator("#tree .tree-foot").bounding_box()["y"]
    for node in tree.page.locator("#tree .node").all():
        box = node.bounding_box()
        assert box["y"] + box["height"] <= foot + 1, "no line covers it, and the window does not end above it"


IS_DRAWING = "([x, y]) => document.elementFromPoint(x, y).closest('#tree .tree-scroll') !== null"


@pytest.mark.parametrize("shape", ["tree", "river"])
def test_where_fit_scrolls_the_page_a_second_click_inserts_nothing(tree: Visit, shape: str) -> None:
    page, fit = tree.page, tree.page.locator("#tree .fit")
    page.set_viewport_size({"width": 911, "height": 620})
    tree.choose("tree-shape", shape)
    tree.wait_for_two_frames()
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    place = browsers.middle_of(fit)
    page.mouse.dblclick(*place)
    assert page.evaluate("scrollY") > 0
    tree.wait_for_two_frames()
    assert not page.evaluate(IS_DRAWING, place), "the pointer is on no token"
    page.mouse.click(*place)
    page.wait_for_timeout(300)
    assert tree.text == PROMPT
    boxes = [node.bounding_box() for node in page.locator("#tree .node").all()]
    assert all(box["y"] >= 0 and box["y"] + box["height"] <= 620 for box in boxes), "also that of the other tokens"
    node = nodes(tree, "ahead").first
    page.mouse.move(*browsers.middle_of(node))
    page.mouse.move(*place)
    assert page.evaluate(IS_DRAWING, place), "a pointer that has been elsewhere can click again"
    place = browsers.middle_of(fit)
    page.mouse.click(*place)
    assert page.evaluate("([x, y]) => document.elementFromPoint(x, y).className", place) == "fit"
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    page.mouse.click(*browsers.middle_of(fit))
    expect(page.locator(".click-cover")).to_be_visible()
    page.mouse.wheel(0, 10)
    page.wait_for_function("() => !document.querySelector('.click-cover')")
    node.click()
    assert tree.text != PROMPT


def test_where_fit_scrolls_the_page_of_a_phone_a_second_tap_inserts_nothing(phone: Visit) -> None:
    draw_on_a_phone(phone, depth=5)
    page, fit = phone.page, phone.page.locator("#tree .fit")
    page.set_viewport_size({"width": 390, "height": 640})
    fit.evaluate("one => scrollBy({top: one.getBoundingClientRect().top - 450, behavior: 'instant'})")
    phone.wait_for_two_frames()
    place = browsers.middle_of(fit)
    page.touchscreen.tap(*place)
    page.wait_for_timeout(300)  # the browser may move a mouse after the tap
    assert browsers.middle_of(fit) != place
    assert not page.evaluate(IS_DRAWING, place)
    page.touchscreen.tap(*place)
    page.wait_for_timeout(300)
    assert phone.text == PROMPT
    assert page.evaluate(IS_DRAWING, place), "a third tap means what is there"


ROOM = """() => {
  const area = document.querySelector('#tree .tree-scroll').getBoundingClientRect();
  const first = document.querySelector('#tree .node[data-state=ahead] .node-label').getBoundingClientRect();
  return [first.left - area.left, first.top - area.top, area.right - first.right, area.bottom - first.bottom];
}"""


@pytest.mark.parametrize("shape", ["tree", "river"])
@pytest.mark.parametrize("size", [(911, 512), (1366, 768)])
def test_the_first_token_of_the_first_row_stays_in_sight_while_the_buttons_zoom(
    tree: Visit, shape: str, size: tuple[int, int]
) -> None:
    page = tree.page
    page.set_viewport_size({"width": size[0], "height": size[1]})
    tree.choose("tree-shape", shape)
    page.locator("#tree .fit").click()
    tree.wait_for_two_frames()
    nodes(tree, "ahead").last.hover()  # the mouse passes tokens on its way to the button
    width = page.locator(".tree-drawing").bounding_box()["width"]
    for _ in range(4):
        page.locator("#tree .zoom-in").click()
        tree.wait_for_two_frames()
        assert min(page.evaluate(ROOM)) >= -1
    assert page.locator(".tree-drawing").bounding_box()["width"] > 2 * width


def test_a_drawing_too_small_for_words_has_boxes_that_are_read_by_pointing(tree: Visit) -> None:
    tree.page.locator("#depth").fill("40")
    tree.wait_until_settled()
    tree.wait_for_two_frames()
    said, label = tree.page.locator("#tree .too-small"), tree.page.locator("#tree .node-label").nth(20)
    box = nodes(tree, "ahead").nth(20)
    colour = "node => getComputedStyle(node.querySelector('.hit')).fill"
    clear = box.evaluate(colour)
    expect(said).to_be_hidden()
    expect(label).to_be_visible()
    tree.page.locator("#tree .fit").click()
    expect(said).to_contain_text("Too small for words")
    expect(label).to_be_hidden()
    assert box.evaluate(colour) != clear
    box.hover()
    expect(tree.page.locator("#tree .tree-says")).to_contain_text("Choose it to insert the text up to here.")
    tree.page.locator("#tree .zoom-in").click()
    expect(said).to_be_hidden()
    expect(label).to_be_visible()


def test_the_sentence_of_a_node_is_in_sight_also_with_the_settings_open(tree: Visit) -> None:
    tree.page.set_viewport_size({"width": 1280, "height": 800})
    tree.control("top-p")
    tree.page.evaluate("scrollTo(0, 0)")
    tree.wait_for_two_frames()
    says = tree.page.locator("#tree .tree-says")
    nodes(tree, "ahead").first.hover()
    expect(says).to_contain_text("Choose it to insert the text up to here.")
    tree.page.evaluate("scrollTo(0, 0)")
    box = says.bounding_box()
    assert box["y"] > 0 and box["y"] + box["height"] <= 800
    expect(tree.page.locator(".more-settings[open]")).to_be_visible()
    drawing = tree.page.locator("#tree .tree-scroll").bounding_box()
    assert drawing["y"] + drawing["height"] <= box["y"], "nothing lies over the last rows of the drawing"


def test_a_finger_that_rests_on_a_node_reads_it_and_inserts_nothing(phone: Visit) -> None:
    phone.fill(PROMPT)
    phone.wait_until_settled()
    phone.choose("view", "tree")
    node = nodes(phone, "ahead").first
    said, ban = phone.page.locator("#tree .tree-says"), phone.page.locator("#tree .tree-ban")
    node.scroll_into_view_if_needed()
    summary = str(said.text_content())
    for _ in range(2):
        phone.hold(node)
        phone.page.wait_for_timeout(1500)
        expect(said).to_contain_text("insert the text up to here.")
        expect(ban).to_be_visible()
        assert phone.text == PROMPT
        phone.page.locator("#tree .tree-figures").tap()
        expect(said).to_have_text(summary)
        expect(ban).to_be_hidden()
    phone.hold(node)
    ban.tap()
    expect(phone.page.locator("#controls .never button")).to_have_count(1)
    phone.wait_until_settled()
    phone.hold(node)
    expect(ban).to_be_visible()
    phone.page.locator("#tree .fit").tap()
    expect(ban).to_be_hidden()
    assert phone.text == PROMPT
    node.tap()
    phone.page.wait_for_function("text => document.querySelector('#document textarea').value !== text", arg=PROMPT)


def draw_on_a_phone(phone: Visit, depth: int) -> None:
    """Write the prompt, wait for its branches of so many tokens, and show the tree."""
    phone.fill(PROMPT)
    phone.control("depth").fill(str(depth))
    phone.wait_until_settled()
    phone.choose("view", "tree")


def test_on_a_phone_the_words_are_explained_below_the_tree_and_more_settings_say_temperature(phone: Visit) -> None:
    phone.control("odds").select_option("words")
    draw_on_a_phone(phone, depth=3)
    terms = phone.page.locator("#branches .terms")
    terms.locator("summary").tap()
    assert terms.locator("dt:visible").all_inner_texts() == [
        "Token",
        "Odds",
        "Coverage",
        "Depth",
        "Temperature",
        "Fork",
    ]
    assert not re.search(r"\brows?\b", terms.inner_text())
    phone.page.locator("#controls .more-settings summary").tap()
    assert phone.page.locator("#controls .settings-remark").inner_text() == "For odds of words: choose Rows."
    expect(phone.page.locator("#controls .such")).to_be_visible()


WATCH_THE_CONTROLS = """() => {
  const controls = document.querySelector('#controls');
  Object.assign(window, {places: [], sentences: []});
  const watch = () => {
    window.places.push(Math.round(controls.getBoundingClientRect().top + scrollY));
    window.sentences.push(document.querySelector('#tree .tree-says').innerText);
    requestAnimationFrame(watch);
  };
  watch();
}"""


def test_on_a_phone_the_controls_stay_where_they_are_while_a_tree_is_computed(phone: Visit) -> None:
    draw_on_a_phone(phone, depth=12)
    phone.wait_until_settled()
    phone.page.evaluate(WATCH_THE_CONTROLS)
    phone.control("temperature").fill("0.5")
    phone.control("k").fill("6")
    phone.type(" and")
    phone.wait_until_asked()
    phone.wait_until_settled()
    assert len(set(phone.page.evaluate("places"))) == 1
    assert any("Growing" in one or "Computing" in one for one in phone.page.evaluate("sentences"))


WATCH_THE_LINE_BELOW = """() => {
  window.bannable = [];
  const foot = document.querySelector('#tree .tree-foot'), ban = foot.querySelector('.tree-ban');
  const watch = () => {
    window.bannable.push([foot.matches('[data-described]'), !ban.hidden]);
    requestAnimationFrame(watch);
  };
  watch();
}"""


def test_the_button_that_bans_stands_only_beside_the_sentence_of_a_node(tree: Visit) -> None:
    node = nodes(tree, "ahead").first
    node.hover()
    expect(tree.page.locator("#tree .tree-ban")).to_be_visible()
    tree.page.evaluate(WATCH_THE_LINE_BELOW)
    for key in " and then":
        tree.page.locator("#document textarea").press("Space" if key == " " else key)
        tree.wait_until_settled()
        node.hover()
    seen = [tuple(one) for one in tree.page.evaluate("bannable")]
    assert (True, True) in seen, "the sentence is that of the node"
    assert (False, True) not in seen, "the sentence is that of the whole tree"


def zoom_out_until_too_small(phone: Visit) -> None:
    while phone.page.locator("#tree .too-small").is_hidden():
        phone.page.locator("#tree .zoom-out").tap()


def test_a_drawing_that_is_larger_than_its_area_says_so_until_all_of_it_is_seen(phone: Visit) -> None:
    note = phone.page.locator("#tree .cropped-note")
    draw_on_a_phone(phone, depth=20)
    said = "Only a part is in view: swipe, or choose Fit."
    expect(note).to_have_text(said, use_inner_text=True)
    while note.is_visible():
        phone.page.locator("#tree .zoom-out").tap()
    phone.page.locator("#tree .zoom-in").tap()
    expect(note).to_be_visible()


@pytest.mark.parametrize("session", [False, True])
def test_fit_shows_a_finger_all_of_a_drawing_also_where_that_is_too_small_for_words(
    phone: Visit, session: bool
) -> None:
    page = phone.page
    draw_on_a_phone(phone, depth=6 if session else 20)
    if session:
        nodes(phone, "ahead").nth(5).tap()
        phone.wait_until_settled()
        page.locator("label:has(#tree-session)").tap()
        phone.wait_for_two_frames()
    expect(page.locator("#tree .cropped-note")).to_be_visible()
    page.locator("#tree .fit").tap()
    expect(page.locator("#tree .cropped-note")).to_be_hidden()
    expect(page.locator("#tree .too-small")).to_be_visible()


def test_fit_shows_a_finger_the_words_of_a_drawing_where_all_of_it_is_legible(phone: Visit) -> None:
    page = phone.page
    draw_on_a_phone(phone, depth=4)
    while page.locator("#tree .cropped-note").is_hidden():
        page.locator("#tree .zoom-in").tap()
    page.locator("#tree .fit").tap()
    expect(page.locator("#tree .cropped-note")).to_be_hidden()
    expect(page.locator("#tree .too-small")).to_be_hidden()


def test_on_a_phone_a_drawing_too_small_for_words_says_what_a_finger_does(phone: Visit) -> None:
    said = phone.page.locator("#tree .too-small")
    draw_on_a_phone(phone, depth=40)
    zoom_out_until_too_small(phone)
    assert said.inner_text().endswith("Tap one to read it, or zoom in with +.")


def test_a_tap_on_a_box_too_small_for_words_reads_it_and_inserts_nothing(phone: Visit) -> None:
    said = phone.page.locator("#tree .tree-says")
    draw_on_a_phone(phone, depth=40)
    zoom_out_until_too_small(phone)
    for node in (nodes(phone, "ahead").first, nodes(phone, "ahead").nth(1)):
        node.tap()
        expect(said).to_contain_text("Zoom in with “+”, then tap it to insert the text up to here.")
        phone.page.wait_for_timeout(500)
        expect(said).to_contain_text("Zoom in with “+”, then tap it to insert the text up to here.")
        assert phone.text == PROMPT
    phone.page.locator("#tree .zoom-in").tap()
    node.tap()
    phone.page.wait_for_function("text => document.querySelector('#document textarea').value !== text", arg=PROMPT)


IS_SEEN = """node => {
  const {left, right, top, bottom} = node.getBoundingClientRect();
  const area = node.closest('.tree-scroll').getBoundingClientRect();
  return left < area.right && right > area.left && top < area.bottom && bottom > area.top;
}"""


def test_the_buttons_zoom_around_the_beginning_of_the_tree_or_the_box_that_was_tapped(phone: Visit) -> None:
    draw_on_a_phone(phone, depth=40)
    page, zoom_in = phone.page, phone.page.locator("#tree .zoom-in")
    zoom_out_until_too_small(phone)
    for _ in range(3):
        zoom_in.tap()
        assert phone.page.locator("#tree .node").first.evaluate(IS_SEEN), "the tree begins in sight"
    zoom_out_until_too_small(phone)
    last = nodes(phone, "ahead").last
    last.tap()
    expect(page.locator("#tree .tree-says")).to_contain_text("Zoom in")
    zoom_in.tap()
    assert last.evaluate(IS_SEEN)


@pytest.mark.parametrize("shape", ["tree", "river"])
@pytest.mark.parametrize("session", [False, True])
def test_no_two_labels_overlap_on_the_page(tree: Visit, shape: str, session: bool) -> None:
    tree.choose("tree-shape", shape)
    if session:
        write_a_session(tree)
    tree.wait_for_two_frames()
    assert tree.page.evaluate(OVERLAPS) == 0
    assert tree.page.locator("#tree text").count() > 10


SIZES = """() => {
  const scale = document.querySelector('.tree-drawing').getScreenCTM().a;
  const size = element => scale * parseFloat(getComputedStyle(element).fontSize);
  const texts = [...document.querySelectorAll('#tree text')];
  return texts.map(text => ['.node-label', '.node-odds'].map(one => text.querySelector(one)))
    .filter(([, odds]) => odds.textContent).map(([label, odds]) => [size(label), size(odds)]);
}"""
THROUGH_FIGURES = """() => {
  const shapes = [...document.querySelectorAll('#tree .stream')].map(one => one.getBBox()).filter(({height}) => height);
  const texts = [...document.querySelectorAll('#tree tspan')].filter(one => one.textContent).map(one => {
    const first = one.getExtentOfChar(0), last = one.getExtentOfChar(one.getNumberOfChars() - 1);
    const base = one.getStartPositionOfChar(0).y, size = parseFloat(getComputedStyle(one).fontSize);
    return {x: first.x, width: last.x + last.width - first.x, y: base - 0.75 * size, height: 0.95 * size};
  });
  return texts.filter(text => shapes.some(one => one.x < text.x + text.width && text.x < one.x + one.width
    && one.y < text.y + text.height && text.y < one.y + one.height)).length;
}"""
HIT = """all => all.filter(node => {
  const [text, hit] = ['text', '.hit'].map(one => node.querySelector(one).getBBox());
  return text.x < hit.x || text.x + text.width > hit.x + hit.width;
}).length"""


def test_words_and_odds_are_large_at_the_size_of_a_projector(tree: Visit) -> None:
    tree.page.set_viewport_size({"width": 1280, "height": 720})
    for shape, label, figure in (("tree", 18, 15), ("river", 15, 13)):
        tree.choose("tree-shape", shape)
        tree.wait_for_two_frames()
        sizes = tree.page.evaluate(SIZES)
        assert len(sizes) > 10
        assert min(size for size, _ in sizes) >= label and min(size for _, size in sizes) >= figure, (shape, sizes[0])
        area = tree.page.locator("#tree .tree-scroll")
        assert area.evaluate("area => area.scrollWidth <= area.clientWidth && area.scrollHeight <= area.clientHeight")


def test_no_river_runs_through_words_or_odds_and_each_box_holds_its_own(tree: Visit) -> None:
    tree.choose("tree-shape", "river")
    tree.wait_for_two_frames()
    assert tree.page.evaluate(THROUGH_FIGURES) == 0
    assert tree.page.locator("#tree .node").evaluate_all(HIT) == 0
    expect(tree.page.locator("#tree .tree-says")).to_contain_text("tokens in all.")
    expect(tree.page.locator("#tree .tree-figures")).to_have_text("All figures are of tokens, not of words.")


def test_the_drawing_is_fitted_again_when_the_session_is_added_until_a_scale_is_chosen(tree: Visit) -> None:
    area = tree.page.locator("#tree .tree-scroll")
    overflow = "area => Math.max(area.scrollWidth - area.clientWidth, area.scrollHeight - area.clientHeight)"
    tree.page.locator("#tree .zoom-in").click()
    tree.page.locator("#tree .zoom-in").click()
    tree.page.locator("#tree-session").check()
    tree.wait_for_two_frames()
    # Views of half a word may have been seen while it was typed: then the smallest scale is that of readable odds.
    scale = tree.page.evaluate("document.querySelector('.tree-drawing').getScreenCTM().a")
    assert area.evaluate(overflow) <= 1 or scale == pytest.approx(0.924, abs=0.001)
    for _ in range(3):
        tree.page.locator("#tree .zoom-in").click()
    assert area.evaluate(overflow) > 1
    tree.page.locator("#tree-session").uncheck()
    tree.wait_for_two_frames()
    assert area.evaluate(overflow) <= 1
    wide = tree.page.evaluate("document.querySelector('.tree-drawing').style.width")
    tree.page.set_viewport_size({"width": 1024, "height": 720})
    tree.page.wait_for_function(f"document.querySelector('.tree-drawing').style.width !== '{wide}'")
    tree.wait_for_two_frames()
    assert area.evaluate(overflow) <= 1


def test_fit_holds_for_the_river_too_and_the_river_opens_at_its_first_row(tree: Visit) -> None:
    area = tree.page.locator("#tree .tree-scroll")
    overflow = "area => Math.max(area.scrollWidth - area.clientWidth, area.scrollHeight - area.clientHeight)"
    tree.page.set_viewport_size({"width": 853, "height": 480})
    tree.wait_for_two_frames()
    tree.choose("tree-shape", "river")
    tree.wait_for_two_frames()
    assert area.evaluate("area => area.scrollTop") == 0
    tree.page.locator("#tree .fit").click()
    tree.choose("tree-shape", "tree")
    tree.wait_for_two_frames()
    assert area.evaluate(overflow) <= 1
    tree.page.set_viewport_size({"width": 1280, "height": 720})


NEAREST = """() => {
  const texts = [...document.querySelectorAll('#tree .node tspan')]
    .filter(one => one.textContent && getComputedStyle(one).visibility === 'visible')
    .map(one => ({node: one.closest('.node'), at: one.getBoundingClientRect()}))
    .map(({node, at}) => ({node, at: {left: at.left, right: at.right, top: at.top + 3, bottom: at.bottom - 3}}));
  return Math.min(...texts.flatMap(({node, at}, index) => texts.slice(index + 1).filter(one => one.node !== node).map(
    one => Math.max(at.left - one.at.right, one.at.left - at.right, at.top - one.at.bottom, one.at.top - at.bottom))));
}"""
"""The least distance of two shown texts of different nodes; their boxes are 3 pixels higher and lower."""


def test_on_a_projector_no_words_of_a_fitted_river_touch_and_a_larger_one_shows_all(tree: Visit) -> None:
    tree.page.set_viewport_size({"width": 911, "height": 512})
    tree.wait_for_two_frames()
    tree.choose("tree-shape", "river")
    tree.wait_for_two_frames()
    tree.page.locator("#tree .fit").click()
    assert tree.page.evaluate(NEAREST) >= 4
    labels = tree.page.locator("#tree .node-label:not([data-crowded])")
    assert labels.count() > 1
    expect(tree.page.locator("#tree [data-crowded]")).to_have_count(0)
    tree.page.locator("#tree .zoom-out").click()
    expect(tree.page.locator("#tree .left-out")).to_be_visible()
    for _ in range(4):
        tree.page.locator("#tree .zoom-in").click()
    expect(tree.page.locator("#tree [data-crowded]")).to_have_count(0)
    expect(tree.page.locator("#tree .left-out")).to_be_hidden()
    tree.choose("tree-shape", "tree")
    tree.wait_for_two_frames()
    tree.page.set_viewport_size({"width": 1280, "height": 720})


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_a_drawing_saved_twice_gives_the_same_bytes(tree: Visit, tmp_path: Path, ending: str) -> None:
    tree.choose("tree-shape", "river")
    write_a_session(tree)
    files = []
    for count in range(2):
        with tree.page.expect_download() as waiting:
            tree.page.locator(f"#tree .save-{ending}").click()
        assert waiting.value.suggested_filename.endswith(f".{ending}")
        waiting.value.save_as(tmp_path / str(count))
        files.append((tmp_path / str(count)).read_bytes())
    assert files[0] == files[1]
    if ending == "png":
        assert files[0].startswith(b"\x89PNG") and len(files[0]) > 5000
        return
    text = files[0].decode()
    assert text.count("<text ") == tree.page.locator("#tree .node").count()
    assert "var(" not in text and "NaN" not in text


def test_a_drag_pans_and_does_not_click_and_control_and_the_wheel_zoom(tree: Visit) -> None:
    tree.page.locator("#depth").fill("40")
    tree.wait_until_settled()
    area = tree.page.locator("#tree .tree-scroll")
    area.evaluate("area => area.scrollTo(300, 0)")
    box = area.bounding_box()
    x, y = box["x"] + 200, box["y"] + box["height"] / 2
    tree.page.mouse.move(x, y)
    tree.page.mouse.down()
    tree.page.mouse.move(x - 120, y, steps=5)
    tree.page.mouse.up()
    assert area.evaluate("area => area.scrollLeft") == 420
    assert tree.text == PROMPT
    width = area.evaluate("area => area.scrollWidth")
    tree.page.keyboard.down("Control")
    tree.page.mouse.wheel(0, -200)
    tree.page.keyboard.up("Control")
    tree.page.wait_for_function(f"document.querySelector('.tree-scroll').scrollWidth > {width}")
    tree.page.locator("#tree .fit").click()
    sizes = area.evaluate("area => [area.scrollWidth - area.clientWidth, area.scrollHeight - area.clientHeight]")
    assert max(sizes) <= 1


@pytest.mark.parametrize("width", [1280, 390])
def test_the_panel_stays_within_the_page(tree: Visit, width: int) -> None:
    tree.page.set_viewport_size({"width": width, "height": 844})
    tree.wait_for_two_frames()
    assert tree.page.evaluate("document.documentElement.scrollWidth") <= width
    box = tree.page.locator("#tree").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width


@pytest.mark.alone
def test_panning_over_five_hundred_nodes_drops_few_frames(tree: Visit) -> None:
    """Frames a second while a drawing of 500 nodes is panned, against a page without it, in turns in the same run.

    The best of fifteen rounds counts: other programs on the machine only take frames away.
    """
    tree.control("mode").select_option("every_level")
    tree.page.locator("#k").fill("20")
    tree.page.locator("#depth").fill("40")
    tree.wait_until_settled()
    tree.wait_for_two_frames()
    assert nodes(tree, "ahead").count() >= 500
    blank = tree.page.context.new_page()
    rates: dict[str, list[float]] = {"#tree .tree-scroll": [], "": []}
    for _ in range(15):
        for page, selector in ((tree.page, "#tree .tree-scroll"), (blank, "")):
            page.bring_to_front()
            rates[selector].append(page.evaluate(FRAMES, [selector or "#none", 500]))
    blank.close()
    drawn, empty = (max(rates[name]) for name in ("#tree .tree-scroll", ""))
    print(f"frames a second: {drawn:.1f} panning over 500 nodes, {empty:.1f} on an empty page: {drawn / empty:.2f}")
    assert drawn >= 0.9 * empty


def test_rows_are_there_at_once_where_the_tree_was_only_looked_at(tiny: Visit) -> None:
    page = tiny.page
    page.evaluate(browsers.CHOOSE_ODDS, "words")
    tiny.type("The old keeper")
    tiny.wait_until_settled()
    rows = page.locator("#branches .rows").inner_text()
    tiny.choose("view", "tree")
    tiny.wait_until_asked()
    tiny.wait_until_settled()
    with requests_held(page):
        tiny.choose("view", "rows")
        tiny.wait_until_asked()
        assert page.locator("#branches .rows").inner_text() == rows
        expect(page.locator("#branches .note .words")).not_to_contain_text("New rows")
    tiny.wait_until_settled()
