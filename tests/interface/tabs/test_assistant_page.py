"""The Type assistant tab in a browser: either side is written among branches, and no message is lost."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from lookahead_core import Model
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, counts_passes, expect, importing
from tests.support.families import greedy
from tests.support.workbench import workbench

pytestmark = [pytest.mark.browser, pytest.mark.slow]

QUESTION = "What does a lighthouse keeper do at night?"
ANSWER = "The keeper lights the lamp, and watches over the ships."
MARKUP = '<img src=x onerror="window.pwned=1"> ${window.pwned=1} {{window.pwned=1}} <|im_end|>'
Said = list[tuple[str, str]]


def in_the_template(model: Model, said: Said) -> list[int]:
    """A conversation whose last message goes on, as transformers itself lays it out."""
    messages = [{"role": role, "content": content} for role, content in said]
    if not said[-1][1]:
        # transformers finds no end of a message without any characters.
        messages[-1]["content"] = "\ue000"
    whole = model.tokenizer.apply_chat_template(messages, tokenize=False, continue_final_message=True)
    return list(model.tokenizer(whole.removesuffix("\ue000"), add_special_tokens=False).input_ids)


def rows_of(model: Model, said: Said, k: int = 5, depth: int = 5) -> list[str]:
    """The likeliest ways to go on with the last message, each greedily, by plain forward passes."""
    ids = in_the_template(model, said)
    with torch.inference_mode():
        firsts = model.hf_model(torch.tensor([ids])).logits[0, -1].topk(k).indices.tolist()
    rows = [[] if one in model.end_token_ids else [one, *greedy(model, [*ids, one], depth - 1)] for one in firsts]
    texts = [model.tokenizer.decode([one for one in row if one not in model.end_token_ids]) for row in rows]
    return [text.rstrip("\ufffd") for text in texts]  # the page shows whole characters only


@dataclass
class Talking:
    """The tab as somebody has it open."""

    page: Any

    @property
    def branches(self) -> Any:
        return self.page.locator("#chat-branches")

    @property
    def revision(self) -> int:
        return int(self.branches.get_attribute("data-revision"))

    @property
    def text(self) -> str:
        return str(self.page.locator("#chat-text").input_value())

    @property
    def role(self) -> str:
        """Whose turn it is, by the sign over the text."""
        return str(self.page.locator(".talking .whose").inner_text())

    @property
    def said(self) -> Said:
        """The messages so far."""
        script = "all => all.map(one => [one.dataset.role, one.querySelector('.content').textContent])"
        return [tuple(one) for one in self.page.locator("#chat .message").evaluate_all(script)]

    @property
    def state(self) -> tuple[Said, str, str]:
        return self.said, self.role, self.text

    @property
    def notice(self) -> str:
        return str(self.page.locator(".talking .notice .sentence").inner_text())

    def settle(self, after: int = -1) -> None:
        """Until the branches are those of the message as it stands, and newer than a revision."""
        self.page.wait_for_function(
            """after => {
                const {dataset} = document.querySelector('#chat-branches');
                return Number(dataset.revision) > after && dataset.state === 'settled' && dataset.stale === 'false';
            }""",
            arg=after,
            timeout=PATIENCE / 2,
        )

    def fill(self, text: str) -> None:
        """Another message in progress, and the branches that follow from it."""
        before, other = self.revision, self.text != text
        self.page.locator("#chat-text").fill(text)
        self.settle(before if other else -1)

    def press(self, selector: str) -> None:
        """A button after which other branches follow."""
        before = self.revision
        self.page.locator(selector).click()
        self.settle(before)

    def send(self, text: str | None = None) -> None:
        if text is not None:
            self.fill(text)
        self.press("#send")

    def edit(self, number: int) -> None:
        self.press(f"#chat .message:nth-child({number}) .edit")

    def rows(self) -> list[str]:
        """What each row inserts."""
        script = "rows => rows.map(row => [...row.querySelectorAll('button')].map(one => one.dataset.text).join(''))"
        return list(self.branches.locator("[data-branch]").evaluate_all(script))

    def click(self, branch: int = 0) -> str:
        """Take the first word of a row; what this inserts."""
        self.settle()
        token = self.page.locator(f"#chat-branches [data-branch='{branch}'] [data-token='0']")
        before, inserted = self.revision, str(token.get_attribute("data-text"))
        token.click()
        self.settle(before)
        return inserted

    def read(self) -> int:
        """How many tokens the model has read for what is shown."""
        return int(self.page.locator("#chat-meter").get_attribute("data-tokens"))


@pytest.fixture
def talking(small: browsers.Visit) -> Talking:
    return open_tab(small)


@pytest.fixture
def default_talking(real: browsers.Visit) -> Talking:
    """The tab with the default model, for what depends on what the model says."""
    return open_tab(real)


def open_tab(opened: browsers.Visit) -> Talking:
    opened.page.get_by_role("tab", name="Type assistant").click()
    opened.page.wait_for_selector("#chat-branches", timeout=PATIENCE)
    talking = Talking(opened.page)
    talking.settle()
    return talking


@pytest.mark.parametrize("width", [1280, 390])
def test_an_empty_conversation_says_the_first_step_in_one_sentence(talking: Talking, width: int) -> None:
    page = talking.page
    page.set_viewport_size({"width": width, "height": 720})
    try:
        step = page.locator(".talking .nothing")
        browsers.expect(step).to_be_in_viewport(ratio=1)
        sentence = step.inner_text().removesuffix("Try an example").strip()
        assert sentence.count(".") == 1 and sentence.startswith("First write the user’s message: ")
        for words in ("type it", "choose words", "Send then passes the turn"):
            assert words in sentence
        step.get_by_role("button", name="Try an example").click()
        browsers.expect(step).to_be_hidden()
        assert talking.role == "Assistant" and len(talking.said) == 1
    finally:
        page.set_viewport_size({"width": 1280, "height": 720})


def test_either_side_is_written_by_clicks_from_its_first_word_on(
    default_talking: Talking, default_model: Model
) -> None:
    said: Said = []
    for role in ("user", "assistant", "user"):
        assert default_talking.state == (said, role.capitalize(), "")
        written = greedy(default_model, in_the_template(default_model, [*said, (role, "")]), 10)
        expected = default_model.tokenizer.decode([one for one in written if one not in default_model.end_token_ids])
        for _ in range(3):
            default_talking.click()
            assert expected.startswith(default_talking.text) and default_talking.text
        said = [*said, (role, default_talking.text)]
        default_talking.send()
    assert default_talking.said == said


@pytest.mark.parametrize(
    "said",
    [
        [("user", "How do I light a lamp,")],
        [("user", QUESTION), ("assistant", "At night,")],
        [("user", QUESTION), ("assistant", ANSWER), ("user", "Thank you! And what,")],
        [("user", QUESTION), ("assistant", ANSWER), ("user", "")],
    ],
    ids=lambda said: f"{said[-1][0]} {len(said)}",
)
def test_an_unfinished_turn_of_either_role_is_continued_and_not_answered(
    talking: Talking, small_model: Model, said: Said
) -> None:
    for _, content in said[:-1]:
        talking.send(content)
    talking.fill(said[-1][1])
    assert talking.rows() == rows_of(small_model, said)


@counts_passes
def test_send_passes_the_turn_and_evaluates_the_new_tokens_only(talking: Talking, small_model: Model) -> None:
    talking.fill(f"{QUESTION} I have read that {ANSWER} " * 4 + "Is it so?")
    long = len(in_the_template(small_model, [("user", talking.text)]))
    talking.send()
    # Five tokens of the template, and four rows below the first words.
    assert talking.read() <= 5 + 5 * 5 < long / 2
    assert talking.role == "Assistant"
    for content in (ANSWER, QUESTION, "Yes."):
        talking.fill(content)
        talking.send()
        assert talking.read() <= 5 + 5 * 5
    talking.edit(1)
    assert talking.read() <= 5 * 5, "going back reads nothing again"


def test_a_sign_says_that_there_are_messages_above_and_moves_none(talking: Talking) -> None:
    page, messages = talking.page, talking.page.locator("#chat")
    size = page.viewport_size
    page.set_viewport_size({"width": 390, "height": 844})
    talking.send(QUESTION)
    expect(messages).not_to_have_attribute("data-scrolled", "")
    for text in (ANSWER, QUESTION, ANSWER):
        talking.send(text)
    expect(messages).to_have_attribute("data-scrolled", "")
    assert "↑" in messages.evaluate("one => getComputedStyle(one, '::before').content")
    height = messages.evaluate("one => one.scrollHeight")
    messages.evaluate("one => { one.scrollTop = 0; }")
    expect(messages).not_to_have_attribute("data-scrolled", "")
    assert messages.evaluate("one => one.scrollHeight") == height
    page.set_viewport_size(size)


def test_the_last_message_stays_in_sight_when_the_window_gets_lower(talking: Talking) -> None:
    page, messages = talking.page, talking.page.locator("#chat")
    size = page.viewport_size
    page.set_viewport_size({"width": 911, "height": 900})
    for text in (QUESTION, ANSWER, QUESTION, ANSWER):
        talking.send(text)
    from_end = "one => one.scrollHeight - one.clientHeight - one.scrollTop"
    page.set_viewport_size({"width": 911, "height": 512})
    page.wait_for_function(f"() => ({from_end})(document.querySelector('#chat')) < 2")
    assert messages.evaluate("one => one.scrollTop") > 0
    messages.evaluate("one => { one.scrollTop = 0; }")
    page.wait_for_timeout(200)
    page.set_viewport_size({"width": 911, "height": 600})
    page.wait_for_timeout(500)
    assert messages.evaluate("one => one.scrollTop") == 0, "who reads an earlier message goes on reading it"
    page.set_viewport_size(size)


def test_in_a_low_window_the_field_and_send_stay_in_sight_below_many_messages(talking: Talking) -> None:
    page = talking.page
    size = page.viewport_size
    page.set_viewport_size({"width": 911, "height": 512})
    for text in (QUESTION, ANSWER, QUESTION, ANSWER):
        talking.send(text)
        for part in ("#chat-text", "#send"):
            expect(page.locator(part)).to_be_in_viewport(ratio=1)
    talking.fill(ANSWER * 4)
    expect(page.locator("#send")).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0
    page.set_viewport_size(size)


def test_the_key_of_send_sends_from_the_branches_too(talking: Talking) -> None:
    talking.fill(QUESTION)
    talking.branches.locator(".token").first.focus()
    before = talking.revision
    talking.page.keyboard.press("Control+Enter")
    talking.settle(before)
    assert talking.role == "Assistant"
    assert [content for _, content in talking.said] == [QUESTION]


def test_going_back_to_an_earlier_message_rewinds_and_undo_restores_everything(talking: Talking) -> None:
    for content in (QUESTION, ANSWER, "Thank you."):
        talking.send(content)
    talking.click()
    states = [talking.state]
    talking.edit(2)
    assert talking.state == ([("user", QUESTION)], "Assistant", ANSWER)
    assert "kept" in talking.notice
    states.append(talking.state)
    talking.fill("He sleeps.")
    assert talking.notice == "", "its Undo would take the new words back, and not the going back"
    states.append(talking.state)
    talking.send()
    states.append(talking.state)
    assert states[-1] == ([("user", QUESTION), ("assistant", "He sleeps.")], "User", "")
    for state in states[-2::-1]:
        talking.page.locator(".talking .undo").click()
        assert talking.state == state
    talking.settle()
    for state in states[1:]:
        talking.page.locator(".talking .redo").click()
        assert talking.state == state


def test_going_back_says_that_something_is_kept_only_if_something_followed(talking: Talking) -> None:
    for content in (QUESTION, ANSWER):
        talking.send(content)
    talking.edit(2)
    assert talking.notice == "Back to message 2."
    said = talking.page.locator(".talking .notice [role=status]")
    assert said.text_content() == "Back to message 2. Button: Undo “Edit”.", "and nothing of the button that closes it"
    talking.press(".talking .undo")
    announced = talking.page.locator("#chat-branches .announcement")
    browsers.expect(announced).to_contain_text("Undone: the conversation is back.")
    talking.fill("Thank you.")
    talking.edit(2)
    assert talking.notice == "Back to message 2. What followed is kept under “Sent and abandoned messages”."
    talking.page.locator(".talking summary").click()
    assert talking.page.locator(".talking .moment").first.inner_text().startswith("2 messages, then User: Thank you.")


def test_the_two_buttons_that_undo_say_what_each_of_them_undoes(talking: Talking) -> None:
    talking.send(QUESTION)
    talking.edit(1)
    undo, other = talking.page.locator(".talking .undo"), talking.page.locator(".talking .notice .action")
    assert other.inner_text() == "Undo “Edit”"
    browsers.expect(undo).to_have_accessible_name("Undo")
    browsers.expect(undo).to_have_attribute("title", "Undo the last step (Ctrl+Z)")
    other.focus()
    talking.page.keyboard.press("Enter")
    browsers.expect(talking.page.locator(".talking textarea").first).to_be_focused()


def test_where_the_edit_key_has_led_into_the_box_it_is_announced_that_tab_leads_on(talking: Talking) -> None:
    page, box = talking.page, talking.page.locator("#chat-text")
    announced = page.locator("#chat-branches .tab-announcement")
    talking.send(QUESTION)

    def edit_by_key() -> None:
        before = talking.revision
        page.locator("#chat .edit").press("Enter")
        talking.settle(before)
        browsers.expect(announced).to_have_text(
            "Tab leads to the next control. Once you write, it inserts the grey text."
        )

    edit_by_key()
    page.keyboard.press("Tab")
    browsers.expect(box).not_to_be_focused()
    assert box.input_value() == QUESTION
    talking.press(".talking .undo")
    edit_by_key()
    page.keyboard.press("End")
    browsers.expect(announced).to_have_text(re.compile("^Tab inserts “"))
    browsers.accept_grey_text(page)
    assert box.input_value() != QUESTION


def test_it_is_said_where_the_rows_continue_if_the_caret_is_within_the_message(talking: Talking) -> None:
    talking.fill("Blue is the colour")
    box, said = talking.page.locator("#chat-text"), talking.page.locator(".talking .caret-note")
    browsers.expect(said).to_be_hidden()
    send = talking.page.locator("#send").bounding_box()
    box.evaluate("box => { box.focus(); box.setSelectionRange(4, 4); }")
    browsers.expect(said).to_have_text("The rows continue at the caret, after “Blue”. What follows it stays.")
    assert talking.page.locator("#send").bounding_box() == send
    box.press("End")
    browsers.expect(said).to_be_hidden()


@pytest.mark.parametrize("size", [(1366, 768), (390, 844)])
def test_the_first_letter_does_not_move_send(talking: Talking, size: tuple[int, int]) -> None:
    page = talking.page
    page.set_viewport_size({"width": size[0], "height": size[1]})
    try:
        box, send = page.locator("#chat-text"), page.locator("#send")
        box.focus()
        before = send.bounding_box()
        box.press("W")
        browsers.expect(page.locator(".talking .try-example")).to_be_hidden()
        assert send.bounding_box() == before
    finally:
        page.set_viewport_size({"width": 1280, "height": 720})


UNDER_POINTER = """(strip, {x, y, width, height}) => Object.assign(strip.style, {
  position: 'fixed', inset: `${y}px auto auto ${x}px`, width: `${width}px`, height: `${height}px`, margin: 0, zIndex: 9,
})"""


def test_what_comes_to_lie_under_a_resting_pointer_has_no_sentence_until_the_pointer_moves(talking: Talking) -> None:
    """Send moves the sheet, and with it the strip: here the strip is put to where the pointer rests."""
    page, tip, strip = talking.page, talking.page.locator("body .tip").first, talking.page.locator(".talking .strip")
    page.locator("#send").hover()
    send = page.locator("#send").bounding_box()
    strip.evaluate(UNDER_POINTER, send)
    page.wait_for_function("document.querySelector('.talking .strip').matches(':hover')")
    page.wait_for_timeout(100)
    browsers.expect(tip).to_be_hidden()
    page.mouse.move(send["x"] + 14, send["y"] + 12)
    browsers.expect(tip).to_contain_text("Who wrote the text")
    strip.evaluate("strip => strip.removeAttribute('style')")


def test_abandoned_messages_are_listed_and_can_be_restored(talking: Talking) -> None:
    for content in (QUESTION, ANSWER, "Thank you."):
        talking.send(content)
    whole = talking.state
    talking.edit(2)
    talking.send("He sleeps.")
    other = talking.state
    for _ in range(3):
        talking.page.locator(".talking .undo").click()
    assert talking.state == whole
    talking.send("You are welcome.")
    talking.page.locator(".talking summary").click()
    moments = talking.page.locator(".talking .moment")
    assert moments.first.inner_text().startswith("3 messages, then Assistant: You are welcome.")
    talking.press(".talking .moment[data-kind=left]")
    assert talking.state == other
    talking.press(".talking .undo")
    assert talking.said[-1] == ("assistant", "You are welcome.")
    talking.press(".talking .moment >> nth=0")
    assert talking.state == (whole[0], "Assistant", "You are welcome.")


def test_a_new_conversation_begins_with_the_user_and_can_be_undone(talking: Talking) -> None:
    talking.send(QUESTION)
    talking.fill("The keeper")
    state = talking.state
    talking.press("#chat-new")
    assert talking.state == ([], "User", "")
    assert talking.page.locator(".talking .notice .action").inner_text() == "Undo “New conversation”"
    talking.press(".talking .notice .action")
    assert talking.state == state


def test_the_undo_of_a_new_conversation_announces_what_is_back_and_leaves_no_notice(talking: Talking) -> None:
    announced, notice = talking.page.locator("#chat-branches .announcement"), talking.page.locator(".talking .notice")
    talking.fill("The keeper")
    talking.page.locator("#chat-new").click()
    browsers.expect(notice).to_contain_text("A new conversation.")
    talking.page.keyboard.press("Control+z")
    browsers.expect(announced).to_contain_text("Undone: the conversation is back, with “The keeper” in the text box.")
    assert talking.text == "The keeper"
    assert notice.inner_text().strip() == ""
    browsers.expect(notice.get_by_role("button")).to_have_count(0)
    browsers.expect(notice.locator(".action")).to_have_text("")
    talking.page.keyboard.press("Control+Shift+z")
    browsers.expect(announced).to_contain_text("Redone: “The keeper” is removed again.")
    assert talking.text == ""


def test_sending_nothing_gets_a_sentence_beside_the_text_box_until_something_is_written(talking: Talking) -> None:
    talking.page.set_viewport_size({"width": 390, "height": 844})
    label = talking.page.locator(".talking .over")
    talking.page.evaluate(browsers.LISTEN, ".talking .over")
    height = label.bounding_box()["height"]
    for nothing in ("", " ", "\n"):
        talking.page.locator("#chat-text").fill(nothing)
        talking.page.locator("#send").click()
        browsers.expect(label).to_have_text("Nothing to send yet. You write as User")
        assert label.bounding_box()["height"] == height, "nothing below it moves"
        assert talking.notice == ""
        assert (talking.said, talking.role, talking.text) == ([], "User", nothing)
        assert talking.page.evaluate("spoken.splice(0).length") >= 1, "it is announced each time"
    talking.page.locator("#chat-text").press_sequentially("A")
    browsers.expect(label).to_have_text("You write the first message as User")
    talking.page.locator("#chat-text").fill("")
    talking.page.locator("#send").click()
    browsers.expect(label).to_contain_text("Nothing to send yet.")
    for name in ("Write", "Type assistant"):
        talking.page.get_by_role("tab", name=name, exact=True).click()
    browsers.expect(label).to_have_text("You write the first message as User")


def test_an_ending_chip_inserts_nothing_and_names_send(default_talking: Talking, default_model: Model) -> None:
    ids = in_the_template(default_model, [("user", QUESTION)])
    assert not default_model.end_token_ids.isdisjoint(greedy(default_model, ids, 1))
    default_talking.fill(QUESTION)
    state, ending = default_talking.state, default_talking.branches.locator("[data-branch='0']")
    assert ending.get_attribute("data-end") == "true"
    assert ending.locator("button").count() == 0
    assert ending.locator(".tokens").inner_text().startswith("end"), "and nothing else stands there"
    ending.locator(".end").click()
    assert default_talking.state == state
    assert default_talking.notice == "The message ends here: choosing this inserts nothing. Send passes the turn."
    default_talking.page.locator("#chat-text").press("Alt+ArrowDown")
    browsers.expect(ending.locator(".end")).to_be_focused()
    browsers.expect(ending.locator(".end")).to_have_accessible_name(
        re.compile("Choosing this inserts nothing. Send, or Ctrl.Enter, passes the turn.$")
    )
    default_talking.page.locator(".talking .notice .dismiss").click()
    ending.locator(".end").focus()
    default_talking.page.keyboard.press("Enter")
    assert default_talking.state == state
    assert "Send passes the turn" in default_talking.notice


ENDED = importing("""async () => {
  const {shapeRows} = await import('/lookahead/web/core/branch_rows.js');
  const branch = {ids: [5, 0], logprobs: [0, -1], at: [0, 1], pieces: [], ended: true, healed: true};
  const asked = {k: 1, depth: 8, mode: 'likely', until: 'tokens'};
  return shapeRows({branches: [branch], nodes: [], rest: [], asked}).rows[0];
}""")


def test_after_a_typed_word_a_row_with_an_ending_shows_only_that(page: Any) -> None:
    with workbench() as url:
        page.goto(url)
        row = page.evaluate(ENDED)
    assert (row["ended"], row["pieces"], row["unsaid"]) == (True, [], 0)


def test_the_template_never_appears_in_texts_or_buttons(default_talking: Talking, default_model: Model) -> None:
    special = [token for token in default_model.tokenizer.all_special_tokens if token.strip()]
    for text in ("Hi.", "Hello there.", "Bye."):
        default_talking.fill(text)
        default_talking.page.locator("#chat-rest .more").click()
        shown = default_talking.page.locator(".assisting").inner_text()
        assert not any(token in shown for token in special)
        assert not any("assistant\n" in row for row in default_talking.rows())
        default_talking.send()


def test_markup_and_template_tokens_stay_text_in_every_message(talking: Talking) -> None:
    talking.send(MARKUP)
    talking.send(MARKUP)
    talking.fill(MARKUP)
    talking.click(next(branch for branch, row in enumerate(talking.rows()) if row))
    assert talking.said == [("user", MARKUP), ("assistant", MARKUP)]
    assert talking.text.startswith(MARKUP)
    talking.page.locator(".talking summary").click()
    browsers.expect(talking.page.locator(".talking .moments")).to_contain_text("onerror")
    assert talking.page.evaluate("window.pwned === undefined && !document.querySelector('.assisting img')")


def test_branches_of_the_previous_turn_refuse_the_click_visibly(talking: Talking) -> None:
    talking.fill(QUESTION)
    # All in one turn of the page's script, so that no answer can come between, and no refusal is over yet.
    refused = talking.page.evaluate(
        """() => {
            const token = document.querySelector('#chat-branches [data-token]');
            document.querySelector('#send').click();
            token.click();
            return document.querySelector('#chat-branches').matches('[data-refused]');
        }"""
    )
    assert talking.state == ([("user", QUESTION)], "Assistant", "")
    assert refused
    talking.settle()


def test_everything_can_be_done_with_the_keyboard(talking: Talking) -> None:
    page = talking.page
    page.locator("#chat-text").focus()
    before = talking.revision
    page.keyboard.press("Alt+1")
    talking.settle(before)
    first = talking.text
    assert first
    before = talking.revision
    page.keyboard.press("Control+Enter")
    talking.settle(before)
    assert talking.state == ([("user", first)], "Assistant", "")
    assert page.evaluate("document.activeElement.id") == "chat-text"
    before = talking.revision
    page.locator("#chat .edit").focus()
    page.keyboard.press("Enter")
    talking.settle(before)
    assert talking.state == ([], "User", first)
    before = talking.revision
    page.keyboard.press("Control+z")
    talking.settle(before)
    assert talking.state == ([("user", first)], "Assistant", "")


def test_the_conversation_survives_switching_tabs_and_leaving_the_page_asks_first(talking: Talking) -> None:
    talking.send(QUESTION)
    state, rows = talking.state, talking.rows()
    talking.page.get_by_role("tab", name="Write", exact=True).click()
    assert talking.page.locator("#document textarea").input_value() == ""
    talking.page.get_by_role("tab", name="Type assistant").click()
    assert (talking.state, talking.rows()) == (state, rows)
    asked: list[str] = []

    def hear(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.accept()

    talking.page.on("dialog", hear)
    talking.page.reload()
    assert asked == ["beforeunload"]
    talking.page.remove_listener("dialog", hear)


def test_the_conversation_and_its_history_are_there_again_after_a_reload(talking: Talking) -> None:
    talking.send(QUESTION)
    talking.fill("The keeper")
    state, rows = talking.state, talking.rows()
    talking.page.once("dialog", lambda dialog: dialog.accept())
    talking.page.reload()
    talking.page.get_by_role("tab", name="Type assistant").click()
    talking.page.wait_for_selector("#chat-branches", timeout=PATIENCE)
    talking.settle()
    assert (talking.state, talking.rows()) == (state, rows)
    for expected in (([("user", QUESTION)], "Assistant", ""), ([], "User", QUESTION)):
        talking.press(".talking .undo")
        assert talking.state == expected


def test_too_many_messages_get_a_sentence_and_nothing_is_lost(talking: Talking) -> None:
    talking.page.evaluate(
        """() => {
            for (let count = 0; count < 101; count += 1) {
                document.querySelector('#chat-text').value = 'Yes.';
                document.querySelector('#send').click();
            }
        }"""
    )
    talking.page.wait_for_selector("#chat-branches[data-state=error]", timeout=PATIENCE)
    assert "100 are allowed" in talking.page.locator("#status").inner_text()
    assert len(talking.said) == 101
    talking.press(".talking .undo")
    assert talking.page.locator("#status").get_attribute("data-state") == "ready"


LOOKS = [
    {"viewport": {"width": 390, "height": 844}},
    {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
]


@pytest.mark.parametrize("look", LOOKS, ids=["a phone", "dark"])
def test_it_fits_narrow_pages_and_axe_finds_no_serious_violation(
    page: Any, small_page: str, look: dict[str, Any]
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with browsers.visit_again(page, small_page, **look) as opened:
        opened.wait_for_status("ready")
        talking = open_tab(opened)
        for content in (QUESTION, ANSWER):
            talking.send(content)
        talking.click()
        talking.edit(2)
        talking.page.locator(".talking summary").click()
        talking.page.locator(".talking .moment").first.wait_for()  # the list is made when the browser says it is open
        assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        include = [[".talking"], ["#chat-controls"], ["#chat-branches"], ["[role=tablist]"]]
        found = Axe().run(opened.page, context={"include": include}).response["violations"]
        assert [(one["id"], node["html"][:120]) for one in found for node in one["nodes"]] == []


MOUNT = importing("""async () => {
  const {TextOwner} = await import('/lookahead/web/ui/text_owner.js');
  const blank = {messages: [], role: 'user'}, other = {user: 'assistant', assistant: 'user'};
  const draft = new TextOwner(document.querySelector('#box'), {earlier: blank});
  const earlier = () => draft.earlier;
  window.does = {
    state: () => JSON.stringify([draft.text, draft.spans, draft.selection, earlier()]),
    accept: text => draft.accept(text, {ids: [1], revision: draft.sync()}),
    send: () => draft.turn({kind: 'send', text: '', spans: [], earlier: {
      messages: [...earlier().messages, {role: earlier().role, content: draft.text, spans: draft.spans}],
      role: other[earlier().role],
    }}),
    edit: index => {
      const {messages} = earlier(), {role, content, spans} = messages[index % messages.length] ?? {};
      return role && draft.turn({kind: 'edit', text: content, spans, earlier: {
        messages: messages.slice(0, index % messages.length), role,
      }});
    },
    undo: () => draft.undo(),
    redo: () => draft.redo(),
    moments: () => draft.moments.map(({kind, earlier, text}) => [kind, earlier ?? null, text]),
    reenter: index => draft.reenter(draft.moments[index]),
  };
}""")


def test_turns_are_steps_of_one_history(page: Any) -> None:
    with workbench("<textarea id=box></textarea>") as url:
        page.goto(url)
        page.evaluate(MOUNT)

        def state() -> str:
            return str(page.evaluate("does.state()"))

        draw, states, place = random.Random(5), [state()], 0
        for _ in range(150):
            verb = draw.choice(["accept", "send", "accept", "edit", "undo", "undo", "redo", "reenter"])
            if verb in ("undo", "redo"):
                place = min(max(place + (1 if verb == "redo" else -1), 0), len(states) - 1)
                page.evaluate(f"does.{verb}()")
                assert state() == states[place]
                continue
            if verb == "reenter":
                moments = page.evaluate("does.moments()")
                kept = [index for index, (_, earlier, _) in enumerate(moments) if earlier]
                if not kept:
                    continue
                chosen = draw.choice(kept)
                page.evaluate("index => does.reenter(index)", chosen)
                text, _, _, earlier = json.loads(state())
                assert [earlier, text] == moments[chosen][1:]
            else:
                given = draw.randrange(9) if verb == "edit" else " a"
                page.evaluate("([verb, given]) => does[verb](given)", [verb, given])
            if state() != states[place]:
                states = [*states[: place + 1], state()]
                place += 1
