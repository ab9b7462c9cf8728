"""The Write tab in a browser: clicks, keys, prefetched views, controls, and texts of any script."""

from __future__ import annotations

import itertools
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lookahead_core import Document, Model
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, Visit, expect
from tests.support.scripted_model import parrot

pytestmark = pytest.mark.browser

PROMPT = "The old lighthouse keeper"


@pytest.fixture
def visit(small: Visit) -> Visit:
    return small


@pytest.fixture
def default_visit(real: Visit) -> Visit:
    """The page with the default model, for what depends on what the model says."""
    return real


def accept(visit: Visit, branch: int, token: int) -> str:
    """Click a token of settled branches; what it inserts."""
    visit.wait_until_settled()
    pieces = visit.pieces(branch)
    token = min(token, len(pieces) - 1)
    visit.token(branch, token).click()
    return "".join(pieces[: token + 1])


def press(visit: Visit, *keys: str) -> None:
    for key in keys:
        visit.page.keyboard.press(key)


def put_caret(visit: Visit, place: int) -> None:
    """Put it there, and wait until the page counts it as put: a caret on its way does not count yet.

    The page's own timer began when the browser told of the caret, and is shorter.
    """
    visit.page.evaluate(
        """async place => {
            const box = document.querySelector('#document textarea');
            const told = new Promise(done => document.addEventListener('selectionchange', done, {once: true}));
            box.focus();
            if (box.selectionStart === place && box.selectionEnd === place) return;
            box.setSelectionRange(place, place);
            await told;
            await new Promise(done => setTimeout(done, 250));
        }""",
        place,
    )


def wait_for_ghost(visit: Visit) -> str:
    """What stands in grey after the caret, once it is what the first row says, and is announced if Tab inserts it."""
    visit.page.wait_for_function(
        """() => {
            const {pieces} = document.querySelector('#branches').branchView.rows()[0];
            const isShown = document.querySelector('.ghost').textContent === pieces.map(({text}) => text).join('');
            const hasFocus = document.activeElement.matches('#document textarea');
            return isShown && (!hasFocus || document.querySelector('#branches').branchView.announcedTab() !== '');
        }"""
    )
    return str(visit.page.locator(".ghost").inner_text())


def ghost_after_prompt(visit: Visit) -> str:
    """Fill in PROMPT, in one step, and return the grey text of its settled rows."""
    visit.fill(PROMPT)
    visit.wait_until_settled()
    return wait_for_ghost(visit)


def slide(visit: Visit, name: str, value: str) -> None:
    visit.control(name).fill(value)


@pytest.mark.slow
def test_a_click_inserts_exactly_the_tokens_up_to_it_and_new_branches_follow(page: Any, real_page: str) -> None:
    with browsers.visit_again(page, real_page, odds="words") as opened:
        opened.wait_for_status("ready")
        click_inserts_and_branches_follow(opened)


@pytest.mark.slow
def test_python_app_py_starts_this_page(page: Any, tmp_path: Path) -> None:
    with browsers.app(tmp_path / "log", *browsers.model_arguments()) as running:
        running.wait_for("Ready")
        with browsers.visit_again(page, running.url) as opened:
            opened.wait_for_status("ready")
            click_inserts_and_branches_follow(opened)
        assert "warning" not in running.said.lower(), "torch and torchao warn at their import"


@pytest.mark.slow
def test_python_app_py_starts_this_page_on_shared_gpus(
    page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPACES_ZERO_GPU", "true")
    monkeypatch.setenv("PYTHONPATH", str(Path(browsers.__file__).parent / "shared_gpu_package"))
    with browsers.app(tmp_path / "log", *browsers.model_arguments()) as running:
        running.wait_for("Ready")
        with browsers.visit_again(page, running.url) as opened:
            opened.wait_for_status("ready")
            click_inserts_and_branches_follow(opened)


def click_inserts_and_branches_follow(visit: Visit) -> None:
    visit.type(PROMPT)
    before = visit.wait_until_settled()
    pieces = visit.pieces(1)
    assert len(pieces) >= 3
    visit.token(1, 2).click()
    assert visit.text == PROMPT + "".join(pieces[:3])
    assert visit.wait_until_settled() > before
    assert visit.rows == 5
    assert visit.text == PROMPT + "".join(pieces[:3])


@pytest.mark.slow
def test_each_undo_takes_back_exactly_one_accept_and_redo_gives_it_back(visit: Visit) -> None:
    visit.type(PROMPT)
    texts = [PROMPT]
    for branch, token in ((1, 2), (0, 0), (2, 1)):
        texts.append(texts[-1] + accept(visit, branch, token))
        assert visit.text == texts[-1]
    visit.page.locator("#document textarea").focus()
    for text in texts[-2::-1]:
        press(visit, "Control+z")
        assert visit.text == text
    for text in texts[1:]:
        press(visit, "Control+y")
        assert visit.text == text
    press(visit, *["Control+z"] * 3)
    typed = "Chapter 12, 1984!"
    visit.type(typed, delay=10)
    assert visit.text == PROMPT + typed
    visit.wait_until_settled()
    assert visit.text == PROMPT + typed


LEAVE_RIGHT_AFTER_MOVING = """async place => {
  const box = document.querySelector('#document textarea');
  box.setSelectionRange(place, place);
  box.blur();
  await new Promise(done => setTimeout(done, 400));
}"""
GREY_AFTER_MOVING = """async place => {
  const box = document.querySelector('#document textarea'), told = new Promise(done =>
    document.addEventListener('selectionchange', done, {once: true}));
  box.setSelectionRange(place, place);
  await told;
  await new Promise(requestAnimationFrame);
  return document.querySelector('.ghost').textContent;
}"""


@pytest.mark.slow
def test_tab_stays_in_the_box_and_the_rows_follow_the_caret_right_after_it_moved(visit: Visit) -> None:
    ghost_after_prompt(visit)
    box, middle = visit.page.locator("#document textarea"), len(PROMPT.split()[0])
    for known in (False, True):
        put_caret(visit, middle)
        visit.wait_until_settled()
        if known:
            visit.wait_until_prefetched()
        press(visit, "Control+End", "Tab")
        expect(box).to_be_focused()
        visit.wait_until_settled()
        assert visit.text.startswith(PROMPT)
    visit.fill(PROMPT)
    wait_for_ghost(visit)
    put_caret(visit, middle)
    visit.wait_until_settled()
    assert visit.page.evaluate(GREY_AFTER_MOVING, len(PROMPT)) == "", "the rows are those of the caret before"
    put_caret(visit, middle)
    old = visit.wait_until_settled()
    visit.page.evaluate(LEAVE_RIGHT_AFTER_MOVING, len(PROMPT))
    assert visit.wait_until_settled() > old, "the rows are those of the caret also after the focus has left"


@pytest.mark.slow
def test_the_same_session_with_the_keyboard_only(visit: Visit) -> None:
    visit.page.locator("#document textarea").focus()
    visit.page.keyboard.type(PROMPT, delay=5)
    visit.wait_until_settled()
    words = visit.pieces(1)
    press(visit, "Alt+2")
    text = visit.text
    assert text.startswith(PROMPT) and (PROMPT + "".join(words)).startswith(text) and text != PROMPT
    visit.wait_until_settled()
    whole = "".join(visit.pieces(0))
    press(visit, "Alt+Shift+1")
    assert visit.text == text + whole
    visit.wait_until_settled()
    ghost = wait_for_ghost(visit)
    press(visit, "Tab")
    assert visit.text == text + whole + ghost
    for shorter in (text + whole, text, PROMPT):
        press(visit, "Control+z")
        assert visit.text == shorter
    visit.wait_until_settled()
    wait_for_ghost(visit)
    press(visit, "Escape", "Tab")
    assert visit.text == PROMPT, "without ghost text, Tab leaves the box as everywhere"
    press(visit, "Escape")
    visit.page.locator("#branches [data-token][tabindex='0']").focus()
    press(visit, "ArrowDown", "ArrowRight")
    pieces = visit.pieces(1)
    press(visit, "Enter")
    assert visit.text == PROMPT + "".join(pieces[:2])
    assert visit.page.evaluate("document.activeElement.matches('#branches [data-token]')")


@pytest.mark.slow
def test_one_key_leads_from_the_text_to_the_branches_and_back(tiny: Visit) -> None:
    tiny.type(PROMPT)
    tiny.wait_until_settled()
    press(tiny, "Alt+ArrowDown")
    assert tiny.page.evaluate('document.activeElement.matches(\'#branches [data-branch="0"] [data-token="0"]\')')
    pieces = tiny.pieces(1)
    press(tiny, "ArrowDown", "Enter")
    assert tiny.text == PROMPT + pieces[0]
    press(tiny, "Alt+ArrowUp")
    assert tiny.page.evaluate("document.activeElement.matches('#document textarea')")
    tiny.page.locator("#to-branches").focus()
    assert tiny.page.locator("#to-branches").is_visible()
    press(tiny, "Enter")
    assert tiny.page.evaluate("document.activeElement.matches('#branches [data-token]')")


@pytest.mark.slow
def test_fifty_words_are_written_with_the_keyboard_alone(tiny: Visit) -> None:
    """Each word is chosen in the rows, in turn from the first, the second and the third."""
    tiny.type("The")
    for word in range(50):
        tiny.wait_until_settled()
        if word == 0:
            press(tiny, "Alt+ArrowDown")
        row = word % 3
        before, offered = tiny.text, "".join(tiny.pieces(row))
        press(tiny, str(row + 1))
        inserted = tiny.text.removeprefix(before)
        assert inserted
        assert offered.startswith(inserted)
        assert tiny.page.evaluate("document.activeElement.matches('#branches button')"), "the focus stays"
    press(tiny, "Alt+ArrowUp", "End")
    assert tiny.page.evaluate("document.activeElement.matches('#document textarea')")


@pytest.mark.slow
def test_what_tab_inserts_is_announced_before_it_is_inserted(tiny: Visit) -> None:
    # In one step: a pause between two keys would have a shorter text's grey text announced first.
    tiny.listen("#branches .tab-announcement")
    ghost = ghost_after_prompt(tiny)
    announced = tiny.page.locator("#branches .tab-announcement")
    tiny.wait_until_prefetched()
    said = f"Tab inserts “{ghost.strip()}”; Esc, then Tab, leaves the text box."
    assert tiny.page.evaluate("spoken") == [said], "once, whatever is prefetched afterwards"
    press(tiny, "Tab")
    assert tiny.text == PROMPT + ghost
    tiny.wait_until_settled()
    press(tiny, "Alt+ArrowDown", "Enter")
    tiny.wait_until_settled()
    tiny.page.wait_for_timeout(300)
    assert announced.text_content() == "", "Tab inserts nothing while the focus is in the branches"
    press(tiny, "Alt+ArrowUp")
    ghost = wait_for_ghost(tiny)
    browsers.expect(announced).to_have_text(f"Tab inserts “{ghost.strip()}”.")


@pytest.mark.slow
def test_tab_announces_grey_text_that_was_not_announced_yet_and_inserts_it_when_pressed_again(tiny: Visit) -> None:
    tiny.page.evaluate(
        """() => new MutationObserver((changes, observer) => {
            if (!document.querySelector('.ghost').textContent) return;
            observer.disconnect();
            const box = document.querySelector('#document textarea'), before = box.value;
            const announced = document.querySelector('#branches .tab-announcement').textContent;
            box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Tab', bubbles: true, cancelable: true}));
            window.pressedAtOnce = {before, announced, after: box.value};
        }).observe(document.querySelector('.mirror'), {subtree: true, childList: true, characterData: true})"""
    )
    tiny.fill(PROMPT)
    tiny.wait_until_settled()
    pressed = tiny.page.evaluate("window.pressedAtOnce")
    assert pressed == {"before": PROMPT, "announced": "", "after": PROMPT}
    assert tiny.text == PROMPT
    ghost = wait_for_ghost(tiny)
    press(tiny, "Tab")
    assert tiny.text == PROMPT + ghost


@pytest.mark.slow
def test_a_tab_pressed_before_the_announcement_is_painted_inserts_nothing(tiny: Visit) -> None:
    tiny.page.evaluate(
        """() => {
            const said = document.querySelector('#branches .tab-announcement');
            new MutationObserver((changes, observer) => {
                if (!said.textContent) return;
                observer.disconnect();
                const box = document.querySelector('#document textarea');
                box.dispatchEvent(new KeyboardEvent('keydown', {key: 'Tab', bubbles: true, cancelable: true}));
                window.afterTab = box.value;
            }).observe(said, {subtree: true, childList: true, characterData: true});
        }"""
    )
    ghost = ghost_after_prompt(tiny)
    assert tiny.page.evaluate("window.afterTab") == tiny.text == PROMPT
    press(tiny, "Tab")
    assert tiny.text == PROMPT + ghost


@pytest.mark.slow
def test_tab_inserts_what_is_pointed_at_once_it_is_announced(tiny: Visit) -> None:
    ghost_after_prompt(tiny)
    tiny.token(1, 1).hover()
    pointed = "".join(tiny.pieces(1)[:2])
    announced = tiny.page.locator("#branches .tab-announcement")
    expect(announced).to_contain_text(f"Tab inserts “{pointed.strip()}”")
    browsers.accept_grey_text(tiny.page, pointed)
    assert tiny.text == PROMPT + pointed


@pytest.mark.slow
@pytest.mark.parametrize("paused", [False, True])
def test_one_tab_inserts_grey_text_after_the_focus_was_elsewhere(tiny: Visit, paused: bool) -> None:
    ghost_after_prompt(tiny)
    if paused:
        press(tiny, "Alt+p")
    tiny.page.locator(".masthead h1").click()
    assert not tiny.page.evaluate("document.activeElement.matches('#document textarea')")
    box = tiny.page.locator("#document textarea").bounding_box()
    assert box is not None
    tiny.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    ghost = wait_for_ghost(tiny)
    press(tiny, "Tab")
    assert tiny.text == PROMPT + ghost


@pytest.mark.slow
def test_below_the_last_line_of_a_long_text_there_is_room_wherever_the_caret_came_from(tiny: Visit) -> None:
    box = tiny.page.locator("#document textarea")
    below = "box => box.scrollHeight - box.clientHeight - box.scrollTop"
    tiny.fill("\n".join(f"Line {number}" for number in range(60)))
    for keys in (["Control+Home", "Control+End"], ["Enter", "x"]):
        press(tiny, *keys)
        tiny.page.wait_for_timeout(300)
        assert box.evaluate(below) <= 1
    press(tiny, "Control+Home")
    tiny.page.wait_for_timeout(300)
    assert box.evaluate("box => box.scrollTop") < 30, "the room above the first line"


@pytest.mark.slow
def test_grey_text_is_announced_again_after_the_text_has_changed(tiny: Visit) -> None:
    ghost = ghost_after_prompt(tiny)
    tiny.page.keyboard.type("x")
    tiny.wait_until_settled()
    press(tiny, "Backspace")
    tiny.wait_until_settled()
    assert wait_for_ghost(tiny) == ghost
    press(tiny, "Tab")
    assert tiny.text == PROMPT + ghost


@pytest.mark.slow
def test_what_tab_inserts_is_announced_also_while_branching_is_paused(tiny: Visit) -> None:
    ghost = ghost_after_prompt(tiny)
    press(tiny, "Tab")
    tiny.wait_until_settled()
    press(tiny, "Alt+p", "Control+z")
    assert wait_for_ghost(tiny) == ghost
    announced = tiny.page.locator("#branches .tab-announcement")
    browsers.expect(announced).to_contain_text(f"Tab inserts “{ghost.strip()}”")
    browsers.accept_grey_text(tiny.page, ghost)
    assert tiny.text == PROMPT + ghost


@pytest.mark.slow
def test_the_undo_key_in_another_field_leaves_the_text_alone(tiny: Visit) -> None:
    tiny.page.locator("#document textarea").click()
    tiny.page.keyboard.type("The keeper")
    tiny.wait_until_settled()
    tiny.control("steer-word").click()
    tiny.page.keyboard.type("sea")
    press(tiny, *["Control+z"] * 6)
    expect(tiny.control("steer-word")).to_have_value("")
    assert tiny.text == "The keeper"
    tiny.page.locator("#document textarea").click()
    press(tiny, "Control+z")
    assert tiny.text != "The keeper"


@pytest.mark.slow
def test_the_undo_key_changes_the_text_also_on_controls_and_rows_and_not_on_fields_of_text_or_other_tabs(
    tiny: Visit,
) -> None:
    page = tiny.page
    tiny.type(PROMPT)
    tiny.wait_until_settled()
    tiny.control("seed")
    page.locator("#mode").select_option("sampled")
    page.locator("#seed").focus()
    press(tiny, "Control+z")
    tiny.wait_until_asked()
    assert tiny.text == PROMPT
    tiny.wait_until_settled()
    buttons = ("#instruction-toggle", "#controls summary", "#controls .views input:checked")
    for place in ("#k", "#temperature", "#mode", *buttons, "#branches [data-token]"):
        page.locator(place).first.focus()
        press(tiny, "Control+z")
        page.wait_for_function("text => document.querySelector('#document textarea').value !== text", arg=PROMPT)
        press(tiny, "Control+Shift+z")
        assert tiny.text == PROMPT, place
        tiny.wait_until_settled()
    page.evaluate("document.activeElement.blur()")
    press(tiny, "Control+z")
    assert tiny.text != PROMPT, "as from the browser's menu"
    page.evaluate("document.activeElement.blur()")
    press(tiny, "Control+Shift+z")
    assert tiny.text == PROMPT, "after a click beside all controls"
    tiny.open_tab("Lab")
    tiny.page.get_by_role("tab", name="Cache", exact=True).click()
    for place in ("#cache-k", "#cache-levels", "#cache-k"):
        page.locator(place).focus()
        press(tiny, "Control+z", "Control+z")
    page.get_by_role("tab", name="Lab", exact=True).focus()
    press(tiny, "Control+z")
    page.evaluate("document.activeElement.blur()")
    press(tiny, "Control+z")
    page.locator("#cache-k").focus()
    press(tiny, "7", "Control+z")
    expect(page.locator("#cache-k")).to_have_value("5")
    tiny.wait_until_asked()
    assert tiny.text == PROMPT


@pytest.mark.slow
def test_what_tab_inserts_is_not_announced_where_tab_leads_on(tiny: Visit) -> None:
    tiny.fill(PROMPT)
    tiny.wait_until_settled()
    announced = tiny.page.locator("#branches .tab-announcement")
    press(tiny, "Escape", "Tab", "Shift+Tab")
    expect(tiny.page.locator("#document textarea")).to_be_focused()
    tiny.page.wait_for_timeout(300)
    assert announced.text_content() == ""
    press(tiny, "Tab", "Shift+Tab")
    assert tiny.text == PROMPT
    tiny.page.keyboard.type(" x")
    tiny.wait_until_settled()
    ghost = wait_for_ghost(tiny)
    expect(announced).to_contain_text("Tab inserts “")
    press(tiny, "Tab")
    assert tiny.text == PROMPT + " x" + ghost


@pytest.mark.slow
def test_a_row_that_continues_a_word_shows_the_letters_that_were_typed(default_visit: Visit) -> None:
    default_visit.type("The old lighth")
    default_visit.wait_until_settled()
    rows = default_visit.page.locator("#branches [data-branch]")
    for index in range(rows.count()):
        first = default_visit.pieces(index)[0]
        typed = rows.nth(index).locator(".typed")
        if first[0].isalnum():
            assert typed.inner_text() == "lighth·"
            assert len(default_visit.pieces(index)) == 5, "as many buttons as the depth says"
            assert (
                rows.nth(index).locator("button").first.get_attribute("aria-label").startswith("lighth, continued by ")
            )
        else:
            assert typed.count() == 0
    assert default_visit.page.locator("#branches .typed").count()
    default_visit.token(0, 0).click()
    default_visit.wait_until_settled()
    assert "·" not in default_visit.text


@pytest.mark.slow
def test_grey_text_never_breaks_inside_a_word(default_visit: Visit) -> None:
    """The grey text would continue a word on the next line at some of these widths; it is not shown there."""
    default_visit.type("The old lighth")
    default_visit.wait_until_settled()
    assert not wait_for_ghost(default_visit)[0].isspace()
    shown = hidden = 0
    for width in range(60, 130, 6):
        default_visit.page.add_style_tag(content=f"#document textarea {{ width: {width + 60}px !important; }}")
        default_visit.page.wait_for_timeout(60)
        top = default_visit.page.evaluate(GHOST_TOP)
        if top is None:
            hidden += 1
        else:
            shown += 1
            assert top <= 0, width
    assert shown
    assert hidden


GHOST_TOP = """() => {
  const ghost = document.querySelector('.mirror .ghost');
  const [rect] = ghost.textContent ? ghost.getClientRects() : [];
  return rect ? rect.top - ghost.parentElement.querySelector('span:empty').getBoundingClientRect().bottom + 1 : null;
}"""


@pytest.mark.slow
def test_ctrl_right_takes_the_first_branchs_next_word_only_at_the_end(tiny: Visit) -> None:
    tiny.type("The sea and")
    tiny.wait_until_settled()
    first = "".join(tiny.pieces(0))
    put_caret(tiny, 3)
    press(tiny, "Control+ArrowRight")
    assert tiny.text == "The sea and"
    put_caret(tiny, len("The sea and"))
    tiny.wait_until_settled()
    press(tiny, "Control+ArrowRight")
    assert tiny.text != "The sea and"
    assert ("The sea and" + first).startswith(tiny.text)


@pytest.mark.slow
def test_only_the_clicked_tokens_are_evaluated(visit: Visit) -> None:
    visit.type(PROMPT)
    visit.wait_until_settled()
    visit.token(0, 2).click()
    visit.wait_until_settled()
    meter = visit.page.locator("#meter")
    assert int(meter.get_attribute("data-tokens")) <= 5 * 5, "the prompt is not read again"
    assert int(meter.get_attribute("data-passes")) <= 5


@pytest.mark.slow
def test_typing_and_clicking_in_turns_keeps_every_character(visit: Visit) -> None:
    expected = ""
    for words in (PROMPT, " and", " so", ", they"):
        visit.type(words)
        expected += words
        expected += accept(visit, 0, 1)
        assert visit.text == expected
    visit.wait_until_settled()
    assert visit.text == expected


@pytest.mark.slow
def test_a_stale_branch_refuses_the_click_and_says_so(visit: Visit) -> None:
    visit.type(PROMPT)
    visit.wait_until_settled()
    # All in one turn of the page's script, so that no answer can come between, and no refusal is over yet.
    refused, note = visit.page.evaluate(
        """() => {
            const branches = document.querySelector('#branches');
            document.querySelector('#document textarea').focus();
            document.execCommand('insertText', false, ' long ago');
            branches.querySelector('[data-token]').click();
            return [branches.matches('[data-refused]'), branches.querySelector('.note').innerText];
        }"""
    )
    assert visit.text == PROMPT + " long ago"
    assert refused and "not inserted" in note
    visit.wait_until_settled()
    assert visit.text == PROMPT + " long ago"


@pytest.mark.slow
def test_a_request_that_is_due_while_the_caret_moves_to_the_start_is_not_sent(visit: Visit) -> None:
    asked: list[Any] = []
    visit.page.on("request", lambda request: asked.append(request.post_data_json) if request.post_data else None)
    # The browser reports a moved caret in a task of its own; here that report comes after the request was due.
    visit.page.evaluate(
        """text => {
            const late = event => event.stopImmediatePropagation();
            addEventListener('selectionchange', late, true);
            const box = document.querySelector('#document textarea');
            box.focus();
            document.execCommand('insertText', false, text);
            box.setSelectionRange(0, 0);
            return new Promise(done => setTimeout(() => {
                removeEventListener('selectionchange', late, true);
                document.dispatchEvent(new Event('selectionchange'));
                done();
            }, 300));
        }""",
        PROMPT,
    )
    visit.wait_for_view("empty")
    put_caret(visit, len(PROMPT))
    visit.wait_until_settled()
    texts = [call["data"]["text"] for call in asked if call["fn_name"] == "ask"]
    assert texts and set(texts) == {PROMPT}


@pytest.mark.slow
def test_the_text_behind_the_caret_is_never_changed(visit: Visit) -> None:
    after = ". The end, and 🙂 nothing more."
    visit.fill(PROMPT + after)
    visit.wait_until_settled()
    put_caret(visit, len(PROMPT))
    first = accept(visit, 0, 0)
    assert visit.text == PROMPT + first + after
    second = accept(visit, 1, 1)
    assert visit.text == PROMPT + first + second + after
    visit.page.locator("#document textarea").focus()
    press(visit, "Control+z")
    assert visit.text == PROMPT + first + after
    press(visit, "Control+z")
    assert visit.text == PROMPT + after
    assert visit.page.evaluate("document.querySelector('#document textarea').selectionStart") == len(PROMPT)


@pytest.mark.slow
def test_a_word_that_is_chosen_before_another_one_is_kept_apart_by_a_space(visit: Visit) -> None:
    visit.fill(PROMPT + " walked home.")
    visit.wait_until_settled()
    put_caret(visit, len(PROMPT) + 1)
    first = accept(visit, 0, 0)
    assert first and not first.isspace()
    gap = "" if first.endswith(" ") else " "
    assert visit.text == f"{PROMPT} {first}{gap}walked home."
    second = accept(visit, 0, 0)
    assert visit.text == f"{PROMPT} {first}{second}{gap}walked home.", "the next token goes before the space"
    visit.page.locator("#document textarea").focus()
    for _ in range(2):
        press(visit, "Control+z")
    assert visit.text == PROMPT + " walked home."


@pytest.mark.slow
def test_it_is_said_where_the_rows_continue_if_the_caret_is_within_the_text(tiny: Visit) -> None:
    tiny.type("The sea and the wind")
    said = tiny.page.locator(".caret-note")
    tiny.wait_until_settled()
    expect(said).to_be_hidden()
    put_caret(tiny, len("The sea"))
    expect(said).to_have_text("The rows continue at the caret, after “The sea”. What follows it stays.")
    tiny.page.locator("#depth").focus()
    expect(said).to_be_visible()
    tiny.page.locator("#document textarea").focus()
    press(tiny, "Shift+ArrowRight")
    expect(said).to_have_text("While text is selected, no rows are computed.")
    put_caret(tiny, len("The sea and the wind"))
    expect(said).to_be_hidden()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["The old lighthouse ", "The old lighth", "The  old  "])
def test_a_partly_typed_word_or_spaces_stay_and_the_probabilities_say_so(default_visit: Visit, text: str) -> None:
    default_visit.type(text)
    default_visit.wait_until_settled()
    told = default_visit.page.locator("#branches .note .words").inner_text()
    assert ("with the unfinished word at its end" in told) == (not text.endswith(" "))
    inserted = accept(default_visit, 0, 0)
    assert default_visit.text == text + inserted
    # After several spaces between words, the model predicts more spaces.
    assert "  " not in default_visit.text or "  " in text


@pytest.mark.slow
def test_a_selection_pauses_branching_and_is_never_overwritten_by_a_click(tiny: Visit) -> None:
    tiny.fill(PROMPT)
    tiny.wait_until_settled()
    tiny.page.locator("#document textarea").select_text()
    tiny.wait_for_view("paused")
    tiny.token(0, 0).click()
    assert tiny.text == PROMPT
    put_caret(tiny, len(PROMPT))
    tiny.wait_until_settled()


@pytest.mark.slow
def test_a_selection_before_there_are_rows_has_one_sentence(tiny: Visit) -> None:
    sentence = "While text is selected, no rows are computed."
    with browsers.requests_held(tiny.page):
        tiny.fill(PROMPT)
        tiny.page.locator("#document textarea").select_text()
        tiny.wait_for_view("paused")
        expect(tiny.page.locator("#branches .note .words")).to_have_text(sentence)
        expect(tiny.page.locator(".caret-note")).to_have_text(sentence)


@pytest.mark.slow
def test_pausing_takes_one_key_and_stops_requests(tiny: Visit) -> None:
    tiny.type(PROMPT)
    tiny.wait_until_settled()
    press(tiny, "Alt+p")
    tiny.wait_for_view("paused")
    tiny.wait_until_asked()
    asked = len(tiny.asked)
    tiny.type(" and")
    tiny.wait_until_asked()
    assert len(tiny.asked) == asked
    assert tiny.text == PROMPT + " and"
    tiny.page.locator("#pause").click()
    tiny.wait_until_settled()
    assert tiny.text == PROMPT + " and"


class Passes:
    """When the engine itself ran its passes, by the clock that pages have too."""

    def __init__(self, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times: list[float] = []
        plain = model.engine._pass  # type: ignore[attr-defined]

        def counted(*arguments: Any) -> Any:
            self.times.append(time.time() * 1000)
            return plain(*arguments)

        monkeypatch.setattr(model.engine, "_pass", counted)

    def between(self, start: float, end: float) -> int:
        return sum(start <= when <= end for when in self.times)


CLICK = """branch => new Promise(resolve => {
    const root = document.getElementById('branches'), before = root.dataset.revision;
    const painted = () => root.dataset.revision !== before && root.dataset.stale === 'false'
        && root.querySelectorAll('[data-branch]:not([data-inert])').length;
    const start = performance.timeOrigin + performance.now();
    root.querySelector(`[data-branch="${branch}"] [data-token="0"]`).click();
    const look = () => painted()
        ? resolve({start, end: performance.timeOrigin + performance.now(), rows: painted()})
        : requestAnimationFrame(look);
    look();
})"""


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 150])
def test_a_prefetched_click_paints_all_rows_without_a_pass(
    page: Any, tiny_model: Model, monkeypatch: pytest.MonkeyPatch, delay: int
) -> None:
    passes, k = Passes(tiny_model, monkeypatch), 5
    with (
        browsers.page_of(lambda report: tiny_model) as url,
        browsers.visit_again(page, url) as opened,
        slow_network(page, delay),
    ):
        opened.wait_for_status("ready")
        for branch in range(k):
            opened.fill("")
            opened.wait_for_view("empty")
            opened.fill("The old keeper said, and")
            opened.wait_until_prefetched(k)
            click = opened.page.evaluate(CLICK, branch)
            assert click["rows"] == k
            assert passes.between(click["start"], click["end"]) == 0
            assert opened.page.locator("#branches").get_attribute("data-state") == "settled"


@contextmanager
def slow_network(page: Any, delay: int) -> Iterator[None]:
    """Everything takes so many milliseconds longer to come."""
    network = page.context.new_cdp_session(page)
    conditions = {"offline": False, "latency": delay, "downloadThroughput": -1, "uploadThroughput": -1}
    network.send("Network.emulateNetworkConditions", conditions)
    try:
        yield
    finally:
        network.detach()


@pytest.mark.slow
def test_prefetched_views_are_discarded_at_the_next_key(tiny: Visit) -> None:
    tiny.type(PROMPT)
    tiny.page.wait_for_selector("#branches[data-ahead-ready='5']", timeout=PATIENCE)
    ready, text = tiny.page.evaluate(
        """() => {
            document.querySelector('#document textarea').focus();
            document.execCommand('insertText', false, 's');
            const ready = document.querySelector('#branches').dataset.aheadReady;
            document.querySelector('#branches [data-token]').click();
            return [ready, document.querySelector('#document textarea').value];
        }"""
    )
    assert (ready, text) == ("0", PROMPT + "s")


@pytest.mark.slow
@pytest.mark.parametrize(("k", "depth"), [("10", "10"), ("20", "40"), ("5", "40")])
def test_the_first_words_of_many_or_long_branches_are_prefetched_too(
    page: Any, tiny_model: Model, monkeypatch: pytest.MonkeyPatch, k: str, depth: str
) -> None:
    passes = Passes(tiny_model, monkeypatch)
    with browsers.page_of(lambda report: tiny_model) as url, browsers.visit_again(page, url) as opened:
        opened.wait_for_status("ready")
        slide(opened, "k", k)
        slide(opened, "depth", depth)
        opened.fill("The old keeper said, and")
        opened.wait_until_prefetched(int(k))
        click = opened.page.evaluate(CLICK, 1)
        assert click["rows"] == int(k)
        assert passes.between(click["start"], click["end"]) == 0
        opened.wait_until_settled()
        longest = max(len(opened.pieces(branch)) for branch in range(opened.rows))
        assert longest > int(depth) // 2, "what was there at once has grown since"


@pytest.mark.slow
def test_prefetched_views_follow_the_current_settings(tiny: Visit) -> None:
    tiny.type(PROMPT)
    tiny.page.wait_for_selector("#branches[data-ahead-ready='5']", timeout=PATIENCE)
    # In one turn of the page's script, so that no answer can come between.
    ready = tiny.page.locator("#k").evaluate(
        """slider => {
            slider.value = 9;
            slider.dispatchEvent(new Event('input', {bubbles: true}));
            return document.querySelector('#branches').dataset.aheadReady;
        }"""
    )
    assert int(ready) <= 5
    tiny.page.wait_for_selector("#branches[data-ahead-ready='9']", timeout=PATIENCE)
    assert tiny.rows == 9


@pytest.mark.slow
def test_a_slider_under_a_selection_leaves_the_page_paused_with_its_reason(tiny: Visit) -> None:
    tiny.type(PROMPT)
    tiny.wait_until_settled()
    press(tiny, "Shift+ArrowLeft")
    tiny.wait_for_view("paused")
    slide(tiny, "k", "12")
    tiny.wait_for_view("paused")
    assert "selected" in tiny.page.locator("#branches .note").inner_text()
    tiny.page.locator("#document textarea").focus()
    press(tiny, "ArrowRight")
    tiny.wait_until_settled()
    assert tiny.rows == 12


@pytest.mark.slow
def test_text_in_an_input_method_composition_is_not_sent(tiny: Visit) -> None:
    tiny.type("The old")
    tiny.wait_until_settled()
    keyboard = tiny.page.context.new_cdp_session(tiny.page)
    keyboard.send("Input.imeSetComposition", {"text": "qqz", "selectionStart": 3, "selectionEnd": 3})
    asked = len(tiny.asked)
    # Without taking the focus, which would end the composition.
    tiny.page.evaluate(
        "() => { const k = document.querySelector('#k'); k.value = 9; "
        "k.dispatchEvent(new Event('input', {bubbles: true})); }"
    )
    tiny.wait_until_asked()
    assert len(tiny.asked) == asked
    keyboard.send("Input.imeSetComposition", {"text": "", "selectionStart": 0, "selectionEnd": 0})
    tiny.page.evaluate(
        "document.querySelector('#document textarea').dispatchEvent(new CompositionEvent('compositionend'))"
    )
    tiny.page.wait_for_function("document.querySelectorAll('#branches [data-branch]').length === 9", timeout=PATIENCE)
    assert "qqz" not in tiny.text


@pytest.mark.slow
def test_stopping_before_there_are_branches_says_how_to_continue(
    page: Any, tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, going = tiny_model.engine._pass, multiprocessing.Event()  # type: ignore[attr-defined]
    with browsers.page_of(lambda report: tiny_model) as url, browsers.visit_again(page, url) as opened:
        opened.wait_for_status("ready")
        monkeypatch.setattr(tiny_model.engine, "_pass", lambda *given: going.wait(60) and plain(*given))
        opened.fill(PROMPT)
        opened.page.locator("#stop:enabled").click()
        opened.wait_for_view("paused")
        assert "to look again" in opened.page.locator("#branches .note").inner_text()
        going.set()
        opened.type(" and")
        opened.wait_until_settled()
        assert opened.text == PROMPT + " and"


@pytest.mark.slow
def test_sliders_use_the_data_in_the_page_and_send_no_request(tiny: Visit) -> None:
    tiny.type(PROMPT + ".")  # in the middle of a word another temperature has other rows
    tiny.page.wait_for_selector("#branches[data-ahead-ready='5']", timeout=PATIENCE)
    asked = len(tiny.asked)
    rows = tiny.page.locator("#branches [data-branch]")
    raw = float(rows.first.get_attribute("data-share"))
    slide(tiny, "k", "3")
    assert tiny.rows == 3
    slide(tiny, "depth", "2")
    assert max(len(tiny.pieces(branch)) for branch in range(3)) <= 2
    slide(tiny, "temperature", "0.5")
    assert float(rows.first.get_attribute("data-share")) > raw
    slide(tiny, "temperature", "2")
    assert float(rows.first.get_attribute("data-share")) < raw
    slide(tiny, "temperature", "1")
    slide(tiny, "top-p", "0.5")
    assert float(rows.first.get_attribute("data-share")) > raw
    slide(tiny, "top-p", "1")
    tiny.control("order").select_option("alphabet")
    texts = ["".join(tiny.pieces(branch)).strip() for branch in range(3)]
    tiny.control("order").select_option("share")
    slide(tiny, "depth", "5")
    slide(tiny, "k", "5")
    assert tiny.rows == 5
    assert float(rows.first.get_attribute("data-share")) == pytest.approx(raw)
    assert len(texts) == 3
    tiny.wait_until_asked()
    assert len(tiny.asked) == asked


@pytest.mark.slow
def test_sliders_send_a_request_where_data_is_missing(tiny: Visit) -> None:
    tiny.type(PROMPT)
    tiny.wait_until_settled()
    slide(tiny, "k", "8")
    tiny.page.wait_for_function("document.querySelectorAll('#branches [data-branch]').length === 8", timeout=PATIENCE)
    slide(tiny, "depth", "12")
    tiny.page.wait_for_function(
        "[...document.querySelectorAll('#branches .tokens')].some(row => row.querySelectorAll('button').length > 6)",
        timeout=PATIENCE,
    )
    tiny.wait_until_settled()
    assert tiny.text == PROMPT


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["every_level", "forks", "best_first", "sampled", "diverse", "surprising"])
def test_every_mode_shows_the_librarys_branches(tiny: Visit, tiny_model: Model, mode: str) -> None:
    text = "The old keeper said and saw."
    tiny.control("mode").select_option(mode)
    if mode == "sampled":
        tiny.control("seed").fill("7")
    slide(tiny, "k", "3")
    tiny.fill(text)
    tiny.wait_until_settled()
    options = {"sampled": {"seed": 7}, "every_level": {"branch_total": 3}}.get(mode, {})
    expected = Document(tiny_model, text).lookahead(k=3, depth=5, mode=mode, **options)
    shown = sorted("".join(tiny.pieces(branch)) for branch in range(tiny.rows))
    assert shown == sorted(branch.text for branch in expected.branches)


@pytest.mark.slow
def test_again_draws_with_another_seed_and_the_same_seed_draws_the_same(tiny: Visit) -> None:
    def rows() -> list[str]:
        tiny.wait_until_settled()
        return ["".join(tiny.pieces(branch)) for branch in range(tiny.rows)]

    tiny.control("mode").select_option("sampled")
    tiny.control("seed").fill("7")
    tiny.fill("The old keeper said and saw.")
    first = rows()
    tiny.control("again").click()
    assert tiny.control("seed").input_value() != "7"
    assert rows() != first
    tiny.control("seed").fill("7")
    assert rows() == first


@pytest.mark.slow
def test_branches_end_where_a_word_or_a_sentence_does(default_visit: Visit) -> None:
    default_visit.page.locator("#length").select_option("sentence")
    default_visit.type(PROMPT)
    default_visit.wait_until_settled()
    rows = ["".join(default_visit.pieces(branch)) for branch in range(default_visit.rows)]
    assert sum(row.rstrip('"”’')[-1:] in ".!?" for row in rows) >= 3
    asked = len(default_visit.asked)
    default_visit.page.locator("#length").select_option("word")
    words = ["".join(default_visit.pieces(branch)) for branch in range(default_visit.rows)]
    assert all(len(word.split()) <= 1 for word in words)
    assert all(row.startswith(word) for row, word in zip(sorted(rows), sorted(words), strict=True))
    default_visit.wait_until_asked()
    assert len(default_visit.asked) == asked


@pytest.mark.slow
def test_a_row_without_an_end_stops_at_a_limit_that_the_control_names(tiny: Visit, tiny_model: Model) -> None:
    depth, length = tiny.page.locator("label:has(#depth) output"), tiny.page.locator("#length")
    expect(depth).to_have_text("5")
    length.select_option("line")
    expect(depth).to_have_text("≤ 40")
    assert "40 tokens at the latest" in length.get_attribute("aria-description")
    text = "The old keeper said and saw."
    tiny.fill(text)
    tiny.wait_until_settled()
    found = Document(tiny_model, text).lookahead(k=5, depth=40, until="line", stop_at_repetition=True).branches
    whole = [branch for branch in found if len(branch.token_ids) == 40 and not branch.ended]
    stopped = ["repeats" for branch in found if branch.repeats] + ["limit of 40 tokens" for _ in whole]
    assert stopped and sorted(tiny.page.locator("#branches .stopped").all_inner_texts()) == sorted(stopped)


HAS = """([id, wanted]) => wanted === [...document.querySelectorAll('#branches [data-token]')]
    .some(one => one.dataset.ids.split(' ').includes(id))"""


@pytest.mark.slow
def test_a_banned_token_is_not_offered_until_it_is_allowed(tiny: Visit) -> None:
    tiny.type(PROMPT)
    tiny.wait_until_settled()
    tiny.token(0, 0).focus()
    banned = tiny.token(0, 0).get_attribute("data-ids").split()[-1]
    text = tiny.token(0, 0).get_attribute("data-text").strip()
    share = tiny.page.locator("#branches .branch .figure").first.inner_text()
    press(tiny, "Delete")
    tiny.page.wait_for_selector(".never button", timeout=PATIENCE)
    tiny.page.wait_for_function(HAS, arg=[banned, False], timeout=PATIENCE)
    tiny.wait_until_settled()
    assert f"without “{text}” ({share})" in tiny.page.locator("#coverage .without").inner_text()
    slide(tiny, "temperature", "0")
    rows = tiny.page.locator("#branches [data-branch]")
    assert rows.evaluate_all("rows => rows.map(row => Number(row.dataset.share))") == [1, 0, 0, 0, 0]
    assert float(tiny.page.locator("#rest").get_attribute("data-share")) == 0
    expect(tiny.page.locator("#branches .note")).to_contain_text(f"without “{text}”")
    tiny.page.locator(".never button").click()
    tiny.page.wait_for_function(HAS, arg=[banned, True], timeout=PATIENCE)


@pytest.mark.slow
def test_after_a_ban_is_lifted_by_keys_the_focus_is_on_the_next_one_or_on_the_settings(tiny: Visit) -> None:
    tiny.type(PROMPT)
    for count in (1, 2):
        tiny.wait_until_settled()
        tiny.token(0, 0).focus()
        press(tiny, "Delete")
        expect(tiny.page.locator(".never button")).to_have_count(count)
    last = tiny.page.locator(".never button").last.inner_text()
    tiny.page.locator(".never button").first.focus()
    press(tiny, "Enter")
    expect(tiny.page.locator(".never button")).to_have_count(1)
    expect(tiny.page.locator(".never button")).to_be_focused()
    assert tiny.page.locator(".never button").inner_text() == last
    press(tiny, "Enter")
    expect(tiny.page.locator("#controls summary")).to_be_focused()
    press(tiny, "Tab")
    assert tiny.text == PROMPT, "in the text box, Tab would have written"
    tiny.listen("#branches .announcement")
    press(tiny, "Control+z")
    is_heard = "spoken.some(one => /is banned again\\.|^Banning .* again: the rows follow\\./.test(one))"
    tiny.page.wait_for_function(is_heard, timeout=PATIENCE)


@pytest.mark.slow
def test_everything_else_can_be_opened_and_inserted(tiny: Visit) -> None:
    tiny.type(PROMPT)
    tiny.wait_until_settled()
    tiny.page.locator("#rest .more").click()
    other = tiny.page.locator("#rest button[data-rest]").first
    inserted = other.get_attribute("data-text")
    assert 0 < float(other.get_attribute("data-p")) < 1
    other.click()
    assert tiny.text == PROMPT + inserted
    tiny.wait_until_settled()


@pytest.mark.slow
def test_a_click_on_the_chosen_instruction_keeps_it_and_leads_to_its_field(visit: Visit) -> None:
    toggle, field = visit.page.locator("#instruction-toggle"), visit.page.locator("#instruction")
    for _ in range(2):
        toggle.click()
        expect(field).to_be_focused()
        expect(toggle).to_have_attribute("aria-pressed", "true")
        visit.page.locator("#document textarea").focus()


@pytest.mark.slow
def test_branches_refuse_clicks_as_soon_as_the_instruction_changes(visit: Visit) -> None:
    visit.fill("The old keeper")
    visit.page.locator("#instruction-toggle").click()
    visit.wait_until_settled()
    refused = visit.page.evaluate("""() => {
        const field = document.querySelector('#instruction'), branches = document.querySelector('#branches');
        field.value = 'Be kind.';
        field.dispatchEvent(new Event('input', {bubbles: true}));
        branches.querySelector('[data-token]').click();
        return 'refused' in branches.dataset;
    }""")
    assert refused and visit.text == "The old keeper"
    visit.wait_until_settled()
    visit.token(0, 0).click()
    assert visit.text != "The old keeper", "it is asked for once the person rests"


@pytest.mark.slow
def test_an_instruction_steers_and_its_template_never_enters_the_text(default_visit: Visit) -> None:
    default_visit.page.locator("#instruction-toggle").click()
    default_visit.page.locator("#instruction").fill("Write a poem about <|im_end|> the sea. Only the poem.")
    default_visit.wait_until_settled()
    assert default_visit.rows == 5, "a chat model begins by itself"
    text = accept(default_visit, 0, 3)
    assert default_visit.text == text
    default_visit.wait_until_settled()
    assert "<|" not in default_visit.text
    with_it = default_visit.pieces(0)
    default_visit.page.locator("#as-is").click()
    default_visit.page.wait_for_function("!document.querySelector('#instruction-toggle[aria-pressed=true]')")
    default_visit.wait_until_settled()
    assert default_visit.text == text
    assert default_visit.pieces(0) != with_it or default_visit.rows == 5


@pytest.mark.slow
def test_emoji_chinese_arabic_and_marks_are_accepted_whole(page: Any) -> None:
    said = " 🙂 👩‍👩‍👧 中文 العربية naïve é."
    model = parrot([f"We{said}"])
    with browsers.page_of(lambda report: model) as url, browsers.visit_again(page, url) as opened:
        opened.wait_for_status("ready")
        slide(opened, "k", "1")
        opened.type("We")
        text = "We"
        for _ in range(60):
            opened.wait_until_settled()
            pieces = opened.pieces(0)
            if not pieces:
                break
            assert all("�" not in piece for piece in pieces)
            opened.token(0, 0).click()
            text += pieces[0]
            assert opened.text == text
            if not (f"We{said}").startswith(text):
                break
        assert any(sign in text for sign in "🙂中ع"), text


@pytest.mark.slow
def test_right_to_left_text_is_laid_out_right_to_left(page: Any) -> None:
    model = parrot(["السلام عليكم."])
    with browsers.page_of(lambda report: model) as url, browsers.visit_again(page, url) as opened:
        opened.wait_for_status("ready")
        opened.type("السلام")
        opened.wait_until_settled()
        direction = "one => getComputedStyle(one).direction"
        assert opened.page.locator("#document textarea").evaluate(direction) == "rtl"
        row = opened.page.locator("#branches [data-branch='0'] .tokens")
        assert row.evaluate(direction) == "rtl"
        places = row.locator("[data-token]").evaluate_all("all => all.map(one => one.getBoundingClientRect().x)")
        assert places == sorted(places, reverse=True)


OURS = ["#branches", "#coverage", ".sheet", ".controls", "#status", ".masthead", "#rest"]


@pytest.mark.slow
@pytest.mark.parametrize("look", [{}, {"color_scheme": "dark"}, {"viewport": {"width": 360, "height": 740}}])
def test_axe_finds_no_serious_violation_in_our_markup(page: Any, tiny_page: str, look: dict[str, Any]) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with browsers.visit_again(page, tiny_page, **look) as opened:
        opened.wait_for_status("ready")
        opened.fill(PROMPT)
        opened.wait_until_settled()
        opened.page.locator("#rest .more").click()
        assert all(opened.page.locator(place).count() for place in OURS)
        found = Axe().run(opened.page, context={"include": [[place] for place in OURS]}).response["violations"]
        serious = [
            (problem["id"], node["html"][:120])
            for problem in found
            if problem["impact"] in ("serious", "critical")
            for node in problem["nodes"]
        ]
        assert serious == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "look",
    [
        {"viewport": {"width": 360, "height": 740}},
        {"viewport": {"width": 640, "height": 430}, "device_scale_factor": 2, "color_scheme": "dark"},
    ],
    ids=["a phone", "zoomed to 200 %, dark"],
)
def test_on_narrow_pages_every_token_can_be_reached_and_nothing_overlaps(
    browser: Any, tiny_page: str, look: dict[str, Any]
) -> None:
    with browsers.visit(browser, tiny_page, **look) as opened:
        opened.wait_for_status("ready")
        slide(opened, "depth", "40")
        opened.fill(PROMPT)
        opened.wait_until_settled()
        assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        boxes = opened.page.locator("#branches [data-branch]").evaluate_all(
            "rows => rows.map(row => { const {top, bottom} = row.getBoundingClientRect(); return [top, bottom]; })"
        )
        assert all(above[1] <= below[0] + 1 for above, below in itertools.pairwise(boxes))
        sizes = opened.page.locator("#branches [data-token]").evaluate_all(
            "tokens => tokens.map(token => [token.offsetWidth, token.offsetHeight])"
        )
        assert all(width >= 24 and height >= 24 for width, height in sizes), "a finger can meet every token"
        last = len(opened.pieces(0)) - 1
        assert last > 10
        inserted = "".join(opened.pieces(0))
        opened.token(0, last).click()
        assert opened.text == PROMPT + inserted


@pytest.mark.slow
def test_accepting_by_touch_does_not_open_the_keyboard(browser: Any, tiny_page: str) -> None:
    look = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}
    with browsers.visit(browser, tiny_page, **look) as opened:
        opened.wait_for_status("ready")
        opened.type(PROMPT)
        opened.wait_until_settled()
        opened.page.evaluate("document.activeElement.blur()")
        piece = opened.pieces(0)[0]
        opened.token(0, 0).tap()
        assert opened.text == PROMPT + piece
        assert opened.page.evaluate("document.activeElement === document.body"), "nothing to type into has the focus"
        opened.wait_until_settled()


@pytest.mark.slow
def test_an_ending_is_a_chip_with_its_odds_and_inserts_nothing(tiny: Visit, tiny_model: Model) -> None:
    text, ended = text_that_may_end(tiny_model)
    for slider, value in (("k", "20"), ("depth", "40")):
        slide(tiny, slider, value)
    tiny.fill(text)
    tiny.wait_until_settled()
    row = tiny.page.locator(f"#branches [data-branch='{ended}']")
    chip = row.locator(".end")
    assert row.get_attribute("data-end") == "true"
    assert chip.inner_text().startswith("end ")
    chip.click()
    assert tiny.text == text
    others = tiny.page.locator("#branches [data-branch]:not([data-end=true]) .end")
    assert others.count() == 0


def text_that_may_end(model: Model) -> tuple[str, int]:
    """A text after which the model sees an ending, and in which branch."""
    words = ["sea", "sky", "stairs", "keeper", "again", "time", "old", "risks", "careful", "small"]
    for text in (f"The {one} {other}." for one in words for other in words):
        for index, branch in enumerate(Document(model, text).lookahead(k=20, depth=40, heal=True).branches):
            if branch.ended and branch.pieces:
                return text, index
    raise AssertionError("The tiny model never ends.")


@pytest.mark.slow
def test_an_emptied_box_shows_no_branches(tiny: Visit) -> None:
    tiny.fill(PROMPT)
    tiny.wait_until_settled()
    tiny.fill("")
    tiny.wait_for_view("empty")
    tiny.page.wait_for_function("!document.querySelector('#branches [data-branch]')", timeout=PATIENCE)


@pytest.mark.slow
def test_a_text_longer_than_the_context_shows_where_the_context_begins(tiny: Visit) -> None:
    tiny.fill("The old keeper climbed the stairs again. " * 100)
    tiny.wait_until_settled()
    assert "The model reads from character" in tiny.page.locator("#branches .note").inner_text()


@pytest.mark.slow
def test_a_ban_belongs_to_its_document(tiny: Visit) -> None:
    tiny.type(PROMPT)
    tiny.wait_until_settled()
    tiny.token(0, 0).focus()
    press(tiny, "Delete")
    tiny.page.wait_for_selector(".never button", timeout=PATIENCE)
    tiny.wait_until_settled()
    assert tiny.page.evaluate("document.activeElement.matches('#branches [data-token]')"), "the focus stays in the rows"
    tiny.page.wait_for_selector(".kept[data-state=saved]")
    tiny.page.locator("#documents").click()
    tiny.page.locator("#new-document").click()
    tiny.page.wait_for_function("!document.querySelector('.never button')", timeout=PATIENCE)
    assert tiny.text == ""
