"""The Rewrite tab in a browser: the features of the prototype's page, and each of the prototype's gaps as a test."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from lookahead_core import Document, Model
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, counts_passes, expect, importing
from tests.support.families import greedy
from tests.support.workbench import workbench

pytestmark = [pytest.mark.browser, pytest.mark.slow]

READY = [
    "Rewrite this document to be clear and concise.",
    "Rewrite this document to be more detailed and engaging.",
    "Rewrite this document to be more formal and professional.",
    "Rewrite this document to be more casual and conversational.",
    "Rewrite this document to be more technical and precise.",
    "Rewrite this document to be more creative and imaginative.",
    "Rewrite this document to be more persuasive and compelling.",
    "Summarize this document in one sentence.",
    "Translate this document into Spanish.",
    "Write a concise essay according to this outline.",
    "Write a detailed essay according to this outline.",
]
SOURCE = (
    "The lighthouse was old and it was very old, and the keeper who kept the lighthouse was also old, and every day he "
    "climbed up all of the many stairs that there were in order to light the lamp that was at the top. He did this "
    "because the ships needed it, and because he had always done it, and because nobody else was there."
)
MARKUP = '<img src=x onerror="window.pwned=1"> ${window.pwned=1} {{window.pwned=1}} <|im_end|>'


def conversation(model: Model, instruction: str, source: str) -> list[int]:
    """What stands before the new text, as transformers itself makes it."""
    messages = [{"role": "user", "content": f"{instruction}\n\n{source}" if source else instruction}]
    return list(model.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False))


@dataclass
class Rewriting:
    """The tab as somebody has it open."""

    visit: browsers.Visit

    @property
    def page(self) -> Any:
        return self.visit.page

    @property
    def branches(self) -> Any:
        return self.page.locator("#rewrite-branches")

    @property
    def revision(self) -> int:
        return int(self.branches.get_attribute("data-revision"))

    @property
    def text(self) -> str:
        return str(self.page.locator("#rewrite-text").input_value())

    @property
    def caret(self) -> int:
        return int(self.page.evaluate("document.querySelector('#rewrite-text').selectionStart"))

    def settle(self, after: int = -1) -> None:
        """Until the branches are those of the text as it stands, and newer than a revision; or a source is missing."""
        self.page.wait_for_function(
            """after => {
                const {dataset} = document.querySelector('#rewrite-branches');
                const ends = dataset.state === 'settled' || dataset.state === 'empty';
                return Number(dataset.revision) > after && ends && dataset.stale === 'false';
            }""",
            arg=after,
            timeout=PATIENCE / 2,
        )

    def fill(self, name: str, text: str) -> None:
        """Another source, instruction or text, and the branches that follow from it."""
        box, before = self.page.locator(f"#rewrite-{name}"), self.revision
        other = box.input_value() != text
        box.fill(text)
        self.settle(before if other else -1)

    def choose(self, instruction: str) -> None:
        """One of the ready instructions, and the branches that follow from it."""
        before = self.revision
        self.page.locator("#rewrite-ready").select_option(instruction)
        self.settle(before)

    def several_words(self, several: bool) -> None:
        self.page.locator("#rewrite-length").select_option("tokens" if several else "word")

    def token(self, branch: int, token: int = 0) -> Any:
        return self.page.locator(f"#rewrite-branches [data-branch='{branch}'] [data-token='{token}']")

    def rows(self) -> list[list[str]]:
        """What the buttons of each row insert."""
        return list(
            self.branches.locator("[data-branch]").evaluate_all(
                "rows => rows.map(row => [...row.querySelectorAll('[data-token]')].map(one => one.dataset.text))"
            )
        )

    def click(self, branch: int = 0, token: int = 0) -> str:
        """Take a token; the text that this inserts."""
        self.settle()
        before, inserted = self.revision, "".join(self.rows()[branch][: token + 1])
        self.token(branch, token).click()
        self.settle(before)
        return inserted

    def read(self) -> int:
        """How many tokens the model has read for what is shown."""
        return int(self.page.locator("#rewrite-meter").get_attribute("data-tokens"))


@pytest.fixture
def rewriting(small: browsers.Visit) -> Rewriting:
    return open_tab(small)


@pytest.fixture
def default_rewriting(real: browsers.Visit) -> Rewriting:
    """The tab with the default model, for what depends on what the model says."""
    return open_tab(real)


def open_tab(opened: browsers.Visit) -> Rewriting:
    opened.page.get_by_role("tab", name="Rewrite").click()
    opened.page.wait_for_selector("#rewrite-branches", timeout=PATIENCE)
    rewriting = Rewriting(opened)
    rewriting.settle()
    return rewriting


def test_the_new_text_equals_the_models_own_from_its_first_token_on(
    default_rewriting: Rewriting, default_model: Model
) -> None:
    default_rewriting.fill("source", SOURCE)
    expected = default_model.tokenizer.decode(greedy(default_model, conversation(default_model, READY[0], SOURCE), 12))
    while len(default_rewriting.text) < len(expected) // 2:
        default_rewriting.click()
        assert expected.startswith(default_rewriting.text)
        assert default_rewriting.text, "the first token is not lost"


@counts_passes
def test_the_source_is_evaluated_once_for_ten_clicks(rewriting: Rewriting, small_model: Model) -> None:
    rewriting.fill("source", SOURCE)
    told = len(conversation(small_model, READY[0], SOURCE))
    assert rewriting.read() > told - 40, "what is told is read, beside what a template begins with"
    read = []
    for _ in range(10):
        rewriting.click()
        read.append(rewriting.read())
    assert max(read) < told / 2, "no click reads the source again"
    assert int(rewriting.page.locator("#rewrite-meter").get_attribute("data-passes")) <= 8
    before = rewriting.text
    rewriting.fill("text", before + " and")
    assert rewriting.read() < told / 2, "nor does typing"
    rewriting.fill("source", SOURCE.replace("lighthouse", "windmill"))
    assert rewriting.read() > told / 2, "another source is read"
    assert rewriting.text == before + " and"


def test_an_ending_is_a_branch_that_says_so(default_rewriting: Rewriting, default_model: Model) -> None:
    source = "The cat sat on the mat."
    ids = conversation(default_model, READY[7], source)
    *said, end = greedy(default_model, ids, 60)
    assert end in default_model.end_token_ids
    whole = default_model.tokenizer.decode(said)
    default_rewriting.choose(READY[7])
    default_rewriting.fill("source", source)
    default_rewriting.fill("text", whole)
    first = default_rewriting.branches.locator("[data-branch='0']")
    assert first.get_attribute("data-end") == "true"
    assert first.locator(".end").inner_text().startswith("end")
    assert first.locator("button").count() == 0, "an ending inserts nothing"
    first.locator(".end").click()
    assert default_rewriting.text == whole


def test_the_template_never_appears_in_text_or_buttons(default_rewriting: Rewriting, default_model: Model) -> None:
    special = [token for token in default_model.tokenizer.all_special_tokens if token.strip()]
    assert "<|im_end|>" in special
    default_rewriting.several_words(True)
    for text in ("", "The lighthouse keeper lit the lamp.", "Yes."):
        default_rewriting.fill("source", SOURCE + text)
        default_rewriting.fill("text", text)
        default_rewriting.page.locator("#rewrite-rest .more").click()
        shown = default_rewriting.branches.inner_html()
        assert not any(token in shown or token.replace("<", "&lt;").replace(">", "&gt;") in shown for token in special)
        assert "assistant" not in "".join(map("".join, default_rewriting.rows()))
        assert default_rewriting.text == text


def test_trailing_spaces_are_kept_and_not_doubled(rewriting: Rewriting) -> None:
    rewriting.fill("source", SOURCE)
    rewriting.fill("text", "The lighthouse keeper ")
    assert all(not row[0].startswith(" ") for row in rewriting.rows() if row)
    inserted = rewriting.click()
    assert rewriting.text == "The lighthouse keeper " + inserted
    assert "  " not in rewriting.text


def test_rows_are_branches_or_words_as_length_says_and_the_choice_sends_no_request(rewriting: Rewriting) -> None:
    rewriting.fill("source", SOURCE)
    rewriting.several_words(False)
    alone = rewriting.rows()
    assert all(len(row) == 1 and re.fullmatch(r"\s?\S+", row[0]) for row in alone), alone
    asked = len(rewriting.visit.asked)
    rewriting.several_words(True)
    rewriting.page.wait_for_function("document.querySelectorAll('#rewrite-branches [data-token=\"3\"]').length >= 5")
    rewriting.visit.wait_until_asked()
    assert len(rewriting.visit.asked) == asked
    rows = rewriting.rows()
    assert ["".join(row).startswith(one[0]) for row, one in zip(rows, alone, strict=True)] == [True] * 5
    assert rewriting.click(1, 3) == "".join(rows[1][:4]) == rewriting.text
    rewriting.several_words(False)
    assert all(len(row) <= 1 for row in rewriting.rows())


WORDING = """prefix => {
  const label = id => document.querySelector(`#${prefix}${id}`).closest('label');
  const words = (id, selector) => label(id).querySelector(selector).textContent;
  const chosen = label('length').querySelector('select').selectedOptions[0].textContent;
  return [...['k', 'depth'].map(id => [words(id, 'span'), words(id, 'output')]), [words('length', 'span'), chosen]];
}"""


@pytest.mark.parametrize("tab", ["Rewrite", "Type assistant"])
def test_settings_have_the_words_and_the_values_of_the_write_tab(rewriting: Rewriting, tab: str) -> None:
    rewriting.visit.open_tab(tab)
    prefix = {"Rewrite": "rewrite-", "Type assistant": "chat-"}[tab]
    rewriting.page.wait_for_selector(f"#{prefix}length")
    assert rewriting.page.evaluate(WORDING, prefix) == rewriting.page.evaluate(WORDING, "")
    options = rewriting.page.locator(f"#{prefix}length option").all_text_contents()
    assert set(options) <= set(rewriting.page.locator("#length option").all_text_contents())


def test_a_grey_depth_says_why(rewriting: Rewriting) -> None:
    depth = rewriting.page.locator("#rewrite-depth")
    label = rewriting.page.locator("label", has=depth)
    expect(depth).to_be_enabled()
    rewriting.several_words(False)
    expect(depth).to_be_disabled()
    expect(label.locator("output")).to_have_text("1 word")
    label.hover()
    expect(rewriting.page.locator(".tip")).to_contain_text("Length is “end of the word”")
    expect(depth).to_have_attribute("aria-description", re.compile("has no effect"))
    rewriting.several_words(True)
    expect(depth).to_be_enabled()
    expect(label.locator("output")).to_have_text("5")
    assert "how many tokens long" in str(label.get_attribute("data-tip"))


def reload(rewriting: Rewriting) -> None:
    rewriting.page.once("dialog", lambda dialog: dialog.accept())
    rewriting.page.reload()
    rewriting.visit.wait_for_status("ready")
    rewriting.visit.open_tab("Rewrite")


def test_settings_survive_a_reload_and_one_word_at_a_time_still_holds(rewriting: Rewriting) -> None:
    rewriting.fill("source", SOURCE)
    rewriting.fill("text", "The keeper")
    rewriting.several_words(False)
    rewriting.page.locator("#rewrite-k").fill("3")
    reload(rewriting)
    rewriting.settle()
    assert rewriting.page.locator("#rewrite-length").input_value() == "word"
    expect(rewriting.page.locator("#rewrite-depth")).to_be_disabled()
    expect(rewriting.page.locator("label", has=rewriting.page.locator("#rewrite-k")).locator("output")).to_have_text(
        "3"
    )
    rows = rewriting.rows()
    assert len(rows) == 3 and all(" " not in "".join(row)[1:] for row in rows)


def test_line_breaks_are_arrows_on_buttons_and_breaks_in_the_text(default_rewriting: Rewriting) -> None:
    default_rewriting.choose(READY[10])
    default_rewriting.fill("source", "1. Lamps\n2. Ships\n3. Storms")
    default_rewriting.fill("text", "Title: Lamps, Ships and Storms")
    rows = default_rewriting.rows()
    branch, found = next((index, row[0]) for index, row in enumerate(rows) if row and "\n" in row[0])
    assert (
        "↵" in default_rewriting.token(branch).inner_text() and "\n" not in default_rewriting.token(branch).inner_text()
    )
    default_rewriting.click(branch)
    assert default_rewriting.text == "Title: Lamps, Ships and Storms" + found


@pytest.mark.parametrize("several", [False, True])
def test_rows_are_the_models_predictions_after_the_template(
    default_rewriting: Rewriting, default_model: Model, several: bool
) -> None:
    default_rewriting.several_words(several)
    for instruction, source in ((READY[3], SOURCE), ("Say it as a pirate would.", SOURCE), ("Name a colour.", "")):
        if instruction in READY:
            default_rewriting.choose(instruction)
            assert default_rewriting.page.locator("#rewrite-instruction").input_value() == instruction
        else:
            default_rewriting.fill("instruction", instruction)
            assert default_rewriting.page.locator("#rewrite-ready").input_value() == ""
        default_rewriting.fill("source", source)
        document = Document(default_model, token_ids=conversation(default_model, instruction, source))
        branches = sorted(document.lookahead(k=5, depth=5).branches, key=lambda one: -one.share)
        texts = [branch.text for branch in branches]
        shown = ["".join(row) for row in default_rewriting.rows()]
        assert all(text.startswith(row) for text, row in zip(texts, shown, strict=True)), (texts, shown)
        assert shown == texts or not several


def test_ready_instructions_are_offered_and_can_be_replaced(rewriting: Rewriting) -> None:
    options = rewriting.page.locator("#rewrite-ready option")
    assert [text for text in options.evaluate_all("all => all.map(({value}) => value)") if text] == READY
    assert rewriting.page.locator("#rewrite-instruction").input_value() == READY[0]
    rewriting.page.locator("#rewrite-ready").select_option("")
    assert rewriting.page.evaluate("document.activeElement.id") == "rewrite-instruction"


def test_a_ready_instruction_without_a_source_gets_a_sentence_and_the_example_instead_of_rows(
    rewriting: Rewriting,
) -> None:
    page, needs = rewriting.page, rewriting.page.locator("#rewrite-branches .needs")
    rewriting.visit.wait_until_asked()
    assert rewriting.visit.asked == [] and rewriting.rows() == []
    expect(needs).to_contain_text("This instruction is about a source")
    expect(rewriting.branches.locator(".begins")).to_be_hidden()
    rewriting.fill("text", "The keeper")
    expect(needs.get_by_role("button")).to_be_hidden()
    rewriting.visit.wait_until_asked()
    assert rewriting.visit.asked == [] and rewriting.rows() == [], "the model would go on without the source"
    page.locator("#rewrite-text").press("Alt+ArrowDown")
    expect(rewriting.branches.locator(".announcement")).to_contain_text("This instruction is about a source")
    rewriting.fill("text", "")
    needs.get_by_role("button", name="Use the example as source").click()
    expect(needs).to_be_hidden()
    rewriting.page.wait_for_selector("#rewrite-branches[data-state=settled][data-stale=false]", timeout=PATIENCE)
    assert "lighthouse" in page.locator("#rewrite-source").input_value() and len(rewriting.rows()) == 5
    expect(page.locator("#rewrite-source")).to_be_focused()
    page.locator("#rewrite-source").fill("")
    expect(needs).to_be_visible()
    assert rewriting.rows() == [], "the rows of the source go with it"


def test_ones_own_instruction_alone_gets_branches_and_no_input_gets_none(
    rewriting: Rewriting,
) -> None:
    rewriting.fill("instruction", "Name a colour.")
    assert len(rewriting.rows()) == 5
    rewriting.page.locator("#rewrite-instruction").fill("")
    rewriting.page.wait_for_selector("#rewrite-branches[data-state=empty]", timeout=PATIENCE)
    expect(rewriting.branches.locator(".begins")).to_be_visible()
    expect(rewriting.branches.locator(".needs")).to_be_hidden()
    assert rewriting.rows() == []


def test_each_undo_takes_back_one_click_and_the_caret_with_it(rewriting: Rewriting) -> None:
    rewriting.fill("source", SOURCE)
    rewriting.fill("text", "The keeper. The end.")
    box = rewriting.page.locator("#rewrite-text")
    before = rewriting.revision
    box.evaluate("box => { box.focus(); box.setSelectionRange(10, 10); }")
    rewriting.settle(before)
    states = [(rewriting.text, rewriting.caret)]
    for branch in (0, 1, 0):
        rewriting.click(branch)
        assert rewriting.text.startswith("The keeper") and rewriting.text.endswith(". The end.")
        states.append((rewriting.text, rewriting.caret))
    for state in states[-2::-1]:
        rewriting.page.keyboard.press("Control+z")
        assert (rewriting.text, rewriting.caret) == state
    for state in states[1:]:
        rewriting.page.locator(".rewritten .redo").click()
        assert (rewriting.text, rewriting.caret) == state


FOCUSED = "() => [document.activeElement.dataset.text, document.activeElement.closest('.branch').dataset.branch]"


def test_the_undo_of_a_changed_row_leads_the_focus_back_to_its_token(rewriting: Rewriting) -> None:
    rewriting.fill("source", SOURCE)
    rewriting.token(0).focus()
    before = rewriting.page.evaluate(FOCUSED)
    rewriting.page.keyboard.press("e")
    rewriting.page.locator(".row-editor").fill("never")
    rewriting.page.keyboard.press("Enter")
    edited = rewriting.branches.locator("[data-edited]")
    expect(edited.last).to_be_focused()
    rewriting.settle()
    assert rewriting.page.evaluate(FOCUSED)[1] == before[1], "the row stays in its place"
    rewriting.page.keyboard.press("Control+z")
    expect(edited).to_have_count(0)
    rewriting.settle()
    assert rewriting.page.evaluate(FOCUSED) == before


def test_branches_of_another_source_refuse_the_click_visibly(rewriting: Rewriting) -> None:
    rewriting.fill("source", SOURCE)
    rewriting.page.locator("#rewrite-source").fill("Something else.")
    # All in one turn of the page's script, so that no answer can come between, and no refusal is over yet.
    refused = rewriting.page.evaluate(
        """() => {
            const ready = document.querySelector('#rewrite-ready');
            ready.selectedIndex = 4;
            ready.dispatchEvent(new Event('change'));
            document.querySelector('#rewrite-branches [data-token]').click();
            return document.querySelector('#rewrite-branches').matches('[data-refused]');
        }"""
    )
    assert rewriting.text == ""
    assert refused
    rewriting.settle()


def test_two_tabs_have_two_documents_and_lose_nothing(page: Any, small_page: str) -> None:
    with browsers.visit_again(page, small_page) as opened:
        opened.wait_for_status("ready")
        opened.type("The old lighthouse keeper")
        opened.wait_until_settled()
        rewriting = open_tab(opened)
        rewriting.fill("source", SOURCE)
        rewriting.click()
        rewriting.click(1)
        text, rows = rewriting.text, rewriting.rows()
        page.keyboard.press("Alt+p")
        page.wait_for_selector("#rewrite-branches[data-state=paused]", timeout=PATIENCE)
        page.get_by_role("tab", name="Write", exact=True).click()
        assert opened.text == "The old lighthouse keeper"
        assert page.locator("#pause").inner_text().endswith("Pause"), "the key is for the tab that is seen"
        page.locator("#document textarea").focus()
        opened.token(0, 0).click()
        page.keyboard.press("Control+z")
        assert opened.text == "The old lighthouse keeper"
        page.get_by_role("tab", name="Rewrite").click()
        assert (rewriting.text, rewriting.rows()) == (text, rows)


def test_leaving_the_page_asks_before_the_text_is_lost(rewriting: Rewriting) -> None:
    asked: list[str] = []

    def hear(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.accept()

    rewriting.page.locator("#rewrite-text").press_sequentially("The keeper")
    rewriting.page.on("dialog", hear)
    rewriting.page.reload()
    assert asked == ["beforeunload"]
    rewriting.page.remove_listener("dialog", hear)


def test_source_instruction_text_and_history_are_restored_after_a_reload(rewriting: Rewriting) -> None:
    rewriting.fill("source", SOURCE)
    rewriting.fill("instruction", "Say it as a pirate would.")
    inserted = rewriting.click(1, 0)
    rows = rewriting.rows()
    again = reloaded(rewriting)
    fields = [again.page.locator(f"#rewrite-{name}").input_value() for name in ("source", "instruction", "ready")]
    assert fields == [SOURCE, "Say it as a pirate would.", ""]
    assert (again.text, again.rows()) == (inserted, rows)
    before = again.revision
    again.page.locator(".rewritten .undo").click()
    again.settle(before)
    assert again.text == ""


@pytest.mark.parametrize("kept", ["{", "7", '{"draft": 3}', '{"draft": {"text": 5}, "told": {}}'])
def test_unreadable_stored_data_is_discarded(rewriting: Rewriting, kept: str) -> None:
    rewriting.page.evaluate(
        """kept => {
            addEventListener('pagehide', () => sessionStorage.setItem('lookahead:kept:1:rewrite', kept));
        }""",
        kept,
    )
    again = reloaded(rewriting)
    again.fill("source", SOURCE)
    assert again.click(0, 0) and not again.visit.complaints


def test_forgotten_data_is_not_restored(rewriting: Rewriting) -> None:
    page, forget = rewriting.page, "document.dispatchEvent(new CustomEvent('forgotten'))"
    rewriting.fill("source", SOURCE)
    page.evaluate(forget)
    again = reloaded(rewriting)
    assert page.locator("#rewrite-source").input_value() == ""
    again.fill("source", SOURCE)
    page.evaluate(forget)
    again.fill("source", "The keeper slept.")
    again = reloaded(again)
    assert page.locator("#rewrite-source").input_value() == "The keeper slept."


def test_a_text_with_a_too_long_history_is_restored_without_it(rewriting: Rewriting) -> None:
    rewriting.fill("source", SOURCE)
    rewriting.page.evaluate(
        """() => {
            const box = document.querySelector('#rewrite-text');
            for (const text of ['1'.repeat(600_000), '2'.repeat(600_000), 'The keeper slept.']) {
                box.value = text;
                box.dispatchEvent(new InputEvent('input'));
            }
        }"""
    )
    again = reloaded(rewriting)
    assert again.text == "The keeper slept."
    assert again.page.locator(".rewritten .undo").get_attribute("aria-disabled") == "true"


def reloaded(rewriting: Rewriting) -> Rewriting:
    """The tab after the page was loaded again, whatever it asked before."""
    page = rewriting.page
    page.once("dialog", lambda dialog: dialog.accept())
    page.reload()
    rewriting.visit.wait_for_status("ready")
    return open_tab(rewriting.visit)


def test_the_new_text_can_be_copied(rewriting: Rewriting) -> None:
    rewriting.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    rewriting.fill("text", "Old\nlamp 🙂")
    rewriting.page.locator("#rewrite-copy").click()
    rewriting.page.locator(".rewritten .notice.said").wait_for()
    assert rewriting.page.evaluate("navigator.clipboard.readText()") == "Old\nlamp 🙂"


def test_a_banned_word_is_not_offered_until_it_is_allowed(rewriting: Rewriting) -> None:
    rewriting.fill("source", SOURCE)
    first = rewriting.rows()[0]
    before = rewriting.revision
    rewriting.token(0).focus()
    rewriting.page.keyboard.press("Delete")
    rewriting.settle(before)
    assert all(row[0] != first[0] for row in rewriting.rows() if row)
    before = rewriting.revision
    rewriting.page.locator("#rewrite-controls .never button").click()
    rewriting.settle(before)
    assert rewriting.rows()[0] == first


def test_markup_and_template_tokens_are_plain_text_everywhere(rewriting: Rewriting) -> None:
    for name in ("source", "instruction", "text"):
        rewriting.fill(name, MARKUP)
    rewriting.click(next(branch for branch, row in enumerate(rewriting.rows()) if row))
    assert rewriting.text.startswith(MARKUP)
    assert rewriting.page.evaluate("window.pwned === undefined && !document.querySelector('.sheet img')")


@pytest.mark.parametrize(
    ("source", "sentence"),
    [("The old lighthouse. " * 50_000, "1,000,000 characters"), ("old ship " * 10_000, "This model's context has")],
    ids=["a megabyte", "more than the model sees"],
)
def test_a_too_long_source_gets_a_sentence_and_stays(rewriting: Rewriting, source: str, sentence: str) -> None:
    rewriting.fill("text", "The keeper")
    rewriting.page.locator("#rewrite-source").evaluate(
        "(box, source) => { box.value = source; box.dispatchEvent(new Event('input')); }", source
    )
    rewriting.page.wait_for_selector("#rewrite-branches[data-state=error]", timeout=PATIENCE)
    assert sentence in rewriting.page.locator("#status").inner_text()
    assert sentence in rewriting.page.locator("#rewrite-branches .note").inner_text()
    assert rewriting.text == "The keeper"
    rewriting.page.get_by_role("tab", name="Write", exact=True).click()
    rewriting.page.get_by_role("textbox", name="Your text").fill("What is written elsewhere")
    rewriting.page.wait_for_selector("#branches[data-state=settled][data-stale=false]", timeout=PATIENCE)
    status = rewriting.page.locator("#status")
    expect(status).to_have_attribute("data-state", "ready")
    rewriting.page.get_by_role("tab", name="Rewrite").click()
    expect(status).to_contain_text(sentence)  # the work on another tab has not cleared it
    rewriting.fill("source", SOURCE)
    assert rewriting.page.locator("#status").get_attribute("data-state") == "ready"


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
        rewriting = open_tab(opened)
        rewriting.fill("source", SOURCE)
        rewriting.click()
        assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        include = [[".told"], [".rewritten"], ["#rewrite-controls"], ["#rewrite-branches"], ["[role=tablist]"]]
        found = Axe().run(opened.page, context={"include": include}).response["violations"]
        serious = [(one["id"], node["html"][:120]) for one in found for node in one["nodes"]]
        assert [one for one in serious if one] == []


VIEW = {
    "branches": [
        {"ids": [5, 6], "logprobs": [-1, -0.1], "at": [0, 1], "ended": False, "healed": False,
         "pieces": [{"text": " the", "tokens": 1, "ends": 1}, {"text": " sea", "tokens": 2, "ends": 0}]},
        {"ids": [7, 8, 9], "logprobs": [-2, -0.1, -0.2], "at": [0, 1, 1], "ended": False, "healed": False,
         "pieces": [{"text": " t", "tokens": 1, "ends": 0}, {"text": "he", "tokens": 2, "ends": 1},
                    {"text": " sea", "tokens": 3, "ends": 0}]},
    ],
    "nodes": [], "rest": [], "asked": {"k": 2, "depth": 3, "mode": "likely", "until": "tokens"},
}  # fmt: skip
SHAPED = importing("""async ([view, settings]) => {
  const {shapeRows} = await import('/lookahead/web/core/branch_rows.js');
  const {choiceOf} = await import('/lookahead/web/core/choice.js');
  return shapeRows(view, settings).rows.map((row, index) => choiceOf(row, index, row.pieces.length - 1));
}""")


def test_it_is_said_where_the_rows_continue_if_the_caret_is_within_the_new_text(rewriting: Rewriting) -> None:
    rewriting.fill("source", SOURCE)
    rewriting.fill("text", "The keeper was old")
    box, said = rewriting.page.locator("#rewrite-text"), rewriting.page.locator(".rewritten .caret-note")
    browsers.expect(said).to_be_hidden()
    box.evaluate("box => { box.focus(); box.setSelectionRange(10, 10); }")
    browsers.expect(said).to_have_text("The rows continue at the caret, after “The keeper”. What follows it stays.")
    box.press("End")
    browsers.expect(said).to_be_hidden()


SIGN_AT_EACH_WIDTH = importing("""async () => {
  const {TextMirror} = await import('/lookahead/web/ui/text_mirror.js');
  const {TextOwner} = await import('/lookahead/web/ui/text_owner.js');
  const own = document.querySelector('.sheet.rewritten'), sheet = own.cloneNode(true);
  own.after(sheet);
  const part = name => sheet.querySelector(name);
  const box = part('textarea'), frame = () => new Promise(requestAnimationFrame), found = [];
  box.value = 'a memorable experience';
  box.setSelectionRange(box.value.length, box.value.length);
  const parts = {mirror: part('.mirror'), strip: part('.strip'), count: part('.count')};
  const mirror = new TextMirror(new TextOwner(box), parts);
  for (let width = 250; width < 400; width += 2) {
    box.style.width = `${width}px`;
    mirror.ghost(', with the lions');
    for (let count = 0; count < 3; count += 1) await frame();
    const {firstChild: first, lastChild: last} = part('.ghost'), range = document.createRange();
    const letterAt = (node, at) => {
      range.setStart(node, at);
      range.setEnd(node, at + 1);
      return range.getBoundingClientRect();
    };
    const sign = letterAt(first.firstChild ?? first, 0), word = letterAt(last, last.textContent.indexOf('w'));
    const end = part('.mirror span:empty').getBoundingClientRect(), edge = part('.mirror').getBoundingClientRect();
    found.push({
      along: sign.left - end.left, down: sign.top - end.top,
      inside: sign.right <= edge.right, below: word.top - end.top,
    });
  }
  sheet.remove();
  return found;
}""")


def test_no_line_of_grey_text_begins_with_a_sign_of_the_word_before(rewriting: Rewriting) -> None:
    found = rewriting.page.evaluate(SIGN_AT_EACH_WIDTH)
    assert len({one["below"] > 1 for one in found}) == 2, "at some widths the words after the sign are on the next line"
    for one in found:
        assert abs(one["along"]) < 1 and abs(one["down"]) < 1 and one["inside"], one


@pytest.mark.parametrize("one_word", [True, False])
def test_branches_with_equal_texts_stay_separate(page: Any, one_word: bool) -> None:
    with workbench() as url:
        page.goto(url)
        first, second = page.evaluate(SHAPED, [VIEW, {"oneWord": one_word}])
    assert first["text"] == second["text"] == (" the" if one_word else " the sea")
    assert (first["ids"], second["ids"]) == (([5], [7, 8]) if one_word else ([5, 6], [7, 8, 9]))
    if one_word:
        assert second["token"] == 0, "a word of two tokens is one button"
        assert [piece["text"] for piece in second["rest"]["pieces"]] == [" sea"]


def test_ones_own_instruction_is_restored_after_a_ready_one_was_tried(rewriting: Rewriting) -> None:
    field, ready = rewriting.page.locator("#rewrite-instruction"), rewriting.page.locator("#rewrite-ready")
    rewriting.fill("instruction", "Say it as a pirate would.")
    for instruction in READY[3:5]:
        rewriting.choose(instruction)
        assert field.input_value() == instruction
    before = rewriting.revision
    ready.select_option("")
    assert field.input_value() == "Say it as a pirate would."
    assert rewriting.page.evaluate("document.activeElement.id") == "rewrite-instruction"
    rewriting.settle(before)


def test_leaving_the_page_asks_before_ones_own_instruction_is_lost_and_not_for_a_ready_one(
    rewriting: Rewriting,
) -> None:
    page = rewriting.page
    asked: list[str] = []

    def hear(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.accept()

    def leave() -> None:
        page.reload()
        page.get_by_role("tab", name="Rewrite").click()
        page.locator("#rewrite-instruction").wait_for()
        page.wait_for_function("document.querySelector('#rewrite-instruction').value !== ''")

    page.on("dialog", hear)
    rewriting.choose(READY[2])
    page.locator("#rewrite-instruction").focus()
    page.keyboard.press("End")  # a page in which nobody pressed a key is left without a question in any case
    leave()
    assert asked == []
    page.locator("#rewrite-instruction").press_sequentially(" Briefly.")
    leave()
    assert asked == ["beforeunload"]
    page.remove_listener("dialog", hear)


def test_branches_refuse_clicks_as_soon_as_source_or_instruction_changes(
    rewriting: Rewriting,
) -> None:
    rewriting.fill("source", SOURCE)
    for name in ("source", "instruction"):
        before = rewriting.revision
        refused = rewriting.page.evaluate(
            """name => {
                const box = document.querySelector(`#rewrite-${name}`);
                const branches = document.querySelector('#rewrite-branches');
                box.value += ' Be kind.';
                box.dispatchEvent(new Event('input', {bubbles: true}));
                branches.querySelector('[data-token]').click();
                return 'refused' in branches.dataset;
            }""",
            name,
        )
        assert refused and rewriting.text == ""
        rewriting.settle(before)
        assert rewriting.rows()[0], "it is asked for once the person rests"
    assert rewriting.click() == rewriting.text


TYPING = """async () => {
    const box = document.querySelector('#rewrite-text'), begun = performance.now();
    for (let count = 0; count < 30; count += 1) {
        box.value += 'a';
        box.setSelectionRange(box.value.length, box.value.length);
        box.dispatchEvent(new InputEvent('input', {inputType: 'insertText', data: 'a', bubbles: true}));
        await new Promise(done => setTimeout(done, 60));
    }
    return performance.now() - begun;
}"""


def test_with_a_long_source_typing_sends_fewer_requests(rewriting: Rewriting) -> None:
    sent: list[str] = []

    def hear(request: Any) -> None:
        if "component_server" in request.url and '"fn_name":"ask"' in (request.post_data or "").replace(" ", ""):
            sent.append(request.url)

    # More than is allowed: the server answers at once, and what is counted are the page's own requests.
    rewriting.page.locator("#rewrite-source").fill("old ship " * 13_000)
    rewriting.page.wait_for_selector("#rewrite-branches[data-state=error]", timeout=PATIENCE)
    rewriting.page.on("request", hear)
    milliseconds = rewriting.page.evaluate(TYPING)
    rewriting.page.remove_listener("request", hear)
    assert rewriting.text == "a" * 30
    assert 1 <= len(sent) <= milliseconds / 250 + 2, "a request with all of the source is not sent at every key"
