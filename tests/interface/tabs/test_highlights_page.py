"""The Highlights tab in a browser and on the server: marked words, their reasons, and branches; the text stays."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interface import ModelLoader
from interface.tabs.highlights.text_analysis import MOST_TEXT, HighlightsRequest, HighlightsService
from lookahead_core import Document, Model
from lookahead_core.analysis.highlight_results import HighlightEntry, Highlights
from lookahead_core.analysis.highlights import highlights
from lookahead_core.analysis.replacements import MAX_LIKELIHOOD_RATIO, drop_in
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, Visit, expect, importing
from tests.support.requests_to_pages import PAGE, ask
from tests.support.scripted_model import parrot

TEXT = "After careful consideration of the risks, the old keeper climbed the stairs again and again."
PHRASE = "fits: your next words can stay"
MARKUP = "the <b>sea</b> & ${sky} `grey` <img src=x onerror=alert(1)>"


SENTENCES = Path(__file__).parents[3] / "interface" / "tabs" / "highlights" / "highlight_sentences.js"


def test_the_card_says_the_ratio_that_the_library_uses() -> None:
    found = re.search(r"const FITTING_RATIO = (\d+);", SENTENCES.read_text(encoding="utf-8"))
    assert found and float(found[1]) == MAX_LIKELIHOOD_RATIO


def in_a_browser(test: Any) -> Any:
    return pytest.mark.browser(pytest.mark.slow(test))


@pytest.fixture
def service(tiny_model: Model) -> HighlightsService:
    loader = ModelLoader(lambda report: tiny_model)
    loader.run()
    return HighlightsService(loader)


def view_of(news: list[Any]) -> Any:
    return [one["view"] for one in news if "view" in one][-1]


async def fit(service: HighlightsService, **given: Any) -> Any:
    functions = {function.__name__: function for function in service.functions}
    return await functions["fit"]({"page": PAGE, "number": 0, "revision": 0} | given)


def test_the_page_gets_the_highlights_of_the_library(service: HighlightsService, tiny_model: Model) -> None:
    news = asyncio.run(ask(service, text=TEXT))
    found = highlights(Document(tiny_model, TEXT))
    view = view_of(news)
    assert news[-1]["state"] == "settled"
    assert [entry["start"] for entry in view["entries"]] == [entry.start for entry in found.entries]
    assert [view["entries"][place]["start"] for place in view["marks"]] == [entry.start for entry in found.marks]


def test_branches_at_a_word_come_from_the_cache_and_replacement_fits_take_one_pass(
    service: HighlightsService, tiny_model: Model
) -> None:
    document = Document(tiny_model, TEXT)
    entry = highlights(document).marks[0]

    async def all_of_it() -> Any:
        await ask(service, 1, text=TEXT)
        grown = await ask(service, 2, text=TEXT, start=entry.start, k=3, depth=3)
        return grown, await fit(service, text=TEXT, start=entry.start)

    grown, told = asyncio.run(all_of_it())
    view = view_of(grown)
    expected = Document(tiny_model, token_ids=document.token_ids[: entry.first_token]).lookahead(k=3, depth=3)
    shown = ["".join(piece["text"] for piece in branch["pieces"]) for branch in view["branches"]]
    assert shown == [branch.text for branch in expected.branches]
    assert view["cost"]["tokens"] <= 1 + 3 * 2
    fits = drop_in(document, entry, entry.alternatives)
    assert [one["drops_in"] for one in told["fits"]] == [one.drops_in for one in fits]
    assert [one["sentence"] for one in told["fits"]] == [one.verdict for one in fits]


def test_branches_at_a_word_end_where_they_would_repeat_themselves() -> None:
    text = "The keeper saw a ship. The keeper saw a ship. The"
    model = parrot([text], words=["The", " keeper", " saw", " a", " ship", ". "])
    loader = ModelLoader(lambda report: model)
    loader.run()
    grown = asyncio.run(ask(HighlightsService(loader), text=text, start=text.rindex("The"), k=1, depth=30))
    (branch,) = view_of(grown)["branches"]
    assert branch["repeats"]
    assert "".join(piece["text"] for piece in branch["pieces"]) == "The keeper saw a ship. "


def test_with_an_instruction_the_prompt_holds_it_and_the_text(byte_tokenizer: Any, tiny_model: Model) -> None:
    tokenizer = tiny_model.codec.require_tokenizer()
    before, tokenizer.chat_template = tokenizer.chat_template, "{{ messages[0].content }} --->"
    try:
        loader = ModelLoader(lambda report: tiny_model)
        loader.run()
        news = asyncio.run(ask(HighlightsService(loader), text="the sea", instruction="Be brief."))
    finally:
        tokenizer.chat_template = before
    opening = tokenizer("Be brief.\n\nthe sea --->", add_special_tokens=False).input_ids
    found = highlights(Document(tiny_model, "the sea", opening=opening))
    assert [entry["loss"] for entry in view_of(news)["entries"]] == pytest.approx(
        [entry.loss for entry in found.entries], rel=1e-4
    )


def test_nothing_is_prefetched_for_an_analysed_text_and_accepted_tokens_are_ignored() -> None:
    for given in ({}, {"ahead": True, "accepted": [[0, [5], False]]}):
        payload = {"page": PAGE, "number": 1, "revision": 1, "text": "The sea", **given}
        request = HighlightsRequest.from_json(payload)
        assert not request.ahead and request.accepted == ()


def test_bad_input_gets_a_sentence(service: HighlightsService) -> None:
    for given, words in [
        ({"text": ""}, "There is no text to read yet"),
        ({"text": "a" * (MOST_TEXT + 1)}, "60,000 are allowed here: shorten it"),
        ({"text": 5}, "must be a string"),
        ({"text": "the sea", "start": -1}, "start must be a whole number"),
        ({"text": "the sea", "start": "x"}, "start must be a whole number"),
        ({"text": "the sea", "start": 100}, "start is 100, and must be"),
        ({"text": "the sea", "start": 0}, "Nothing precedes the first word"),
        ({"text": "the sea", "k": -3}, "k must be a whole number"),
        ({"text": "the \ud83d sea"}, "half of a surrogate pair"),
    ]:
        news = asyncio.run(ask(service, **given))
        assert words in news[-1]["sentence"] and news[-1]["state"] == "error"
        service.open_pages._values.clear()
    told = asyncio.run(fit(service, text="the sea", start=3))
    assert told == {"unknown": True}
    assert asyncio.run(fit(service, page="x"))["state"] == "error"


def test_a_request_before_the_model_is_loaded_waits() -> None:
    loader = ModelLoader(lambda report: pytest.fail("Nobody has asked for it."))
    (news,) = asyncio.run(ask(HighlightsService(loader), text="the sea"))
    assert news["state"] == "waiting" and news["over"]


@pytest.fixture
def visit(page: Any, real_page: str) -> Iterator[Visit]:
    """The tab with a real model."""
    with browsers.visit_again(page, real_page) as opened:
        open_tab(opened)
        yield opened


@pytest.fixture
def tiny(page: Any, tiny_page: str) -> Iterator[Visit]:
    with browsers.visit_again(page, tiny_page) as opened:
        open_tab(opened)
        yield opened


def open_tab(opened: Visit) -> None:
    """The tab, once its script has run: the script's first sentence is there."""
    opened.wait_for_status("ready")
    opened.page.get_by_role("tab", name="Highlights").click()
    opened.page.locator(".read .says", has_text="Write or paste a text").wait_for()


def marked(visit: Visit) -> list[str]:
    return list(visit.page.locator("#highlights [data-marked]").all_inner_texts())


def likelier(entry: HighlightEntry) -> float:
    """How many times likelier the model's first choice was than the text's own token."""
    assert entry.loss is not None and entry.most_likely is not None
    return entry.most_likely.probability * math.exp(entry.loss)


@in_a_browser
def test_no_marked_word_was_the_first_choice_and_at_first_each_was_far_less_likely_than_that(visit: Visit) -> None:
    visit.analyse(TEXT)
    words, slider = visit.page.locator("#highlights [data-marked]"), visit.page.locator("#highlights-count")
    headline = visit.page.locator("#highlights-about .headline")
    ordinals = {}
    for count in (slider.input_value(), slider.get_attribute("max")):
        slider.fill(count)
        ordinals[count] = []
        for index in range(words.count()):
            words.nth(index).focus()
            expect(headline).to_contain_text(words.nth(index).inner_text())
            found = re.search(r"was its (\S+) choice(, .* times less likely)?", headline.inner_text())
            assert found is not None
            ordinals[count].append(found[1])
            assert found[2] or count == slider.get_attribute("max"), "each marked word says how much less likely it was"
    first, every = ordinals.values()
    assert not {"first", "2nd"} & set(first), "these were nearly what the model expected"
    assert "first" not in every and "2nd" in every


EARLY_TOKENS = 4
"""What is among so many first tokens of a text is marked last on the page."""


def in_order_of_page(found: Highlights) -> list[HighlightEntry]:
    """The marks in the order in which the page shows them."""
    return sorted(found.marks, key=lambda entry: entry.first_token < EARLY_TOKENS)


CHECKED = """() => {
  const verdicts = [...document.querySelectorAll('#highlights-about .verdict')];
  return verdicts.length && verdicts.every(one => one.textContent !== '…');
}"""
"""Whether the card of a word says of each alternative whether it fits."""


def label_of(alternative: str) -> str:
    """An alternative as the card shows it: signs in quotation marks, and “…” after letters, which more may follow."""
    if re.fullmatch(r"[,.:;!?\"“”‘’'\-–—…()*]+", alternative.strip()):
        return f"“{alternative.strip()}”"
    return alternative.replace("\n", "↵").strip() + ("…" if re.search(r"[^\W_]$", alternative) else "")


@in_a_browser
def test_a_card_without_figures_holds_one_sentence_and_the_alternatives(visit: Visit, default_model: Model) -> None:
    visit.analyse(TEXT)
    about, document = visit.page.locator("#highlights-about"), Document(default_model, TEXT)
    entry = in_order_of_page(highlights(document))[0]
    fits = drop_in(document, entry, entry.alternatives)
    visit.page.locator("#highlights [data-marked]", has_text=TEXT[slice(*entry.word)].strip()).first.hover()
    visit.page.wait_for_function(CHECKED)
    headline, *lines = about.inner_text().split("\n")
    assert headline.startswith("The model expected ")
    said = [label_of(fit.alternative.text or "") for fit in fits]
    beginning = about.locator(".beginning").all_inner_texts()
    assert len(beginning) == (entry.start < len("After careful consideration"))
    found = [line.strip() for line in lines if line.strip() and line not in beginning]
    assert [line for line in found if line != PHRASE] == said
    assert found.count(PHRASE) == sum(fit.drops_in is True for fit in fits)


@in_a_browser
def test_the_card_of_a_word_near_the_beginning_says_that_little_stands_before_it(tiny: Visit) -> None:
    page, why = tiny.page, tiny.page.locator("#highlights-about .beginning")

    def point_at(text: str) -> None:
        word = page.locator(f'#highlights .word:text-is("{text}")')
        word.hover()
        browsers.expect(word).to_have_attribute("aria-description", re.compile("The model expected"))

    tiny.analyse("I was born in a lighthouse.")
    point_at("was")
    browsers.expect(why).to_have_text(re.compile("^Only 1 word stands before it, so the model knows little yet"))
    point_at("lighthouse")
    browsers.expect(why).to_have_count(0)
    page.locator("#highlights-prompt").fill("Tell a story.")
    page.wait_for_selector("#highlights[data-stale]")
    page.wait_for_selector("#highlights[data-state=settled]:not([data-stale])")
    point_at("was")
    browsers.expect(why).to_have_count(0)


@in_a_browser
def test_the_first_highlights_appear_and_the_slider_sends_no_request(visit: Visit, default_model: Model) -> None:
    visit.analyse(TEXT)
    found = highlights(Document(default_model, TEXT))
    surprising = [e for e in found.marks if likelier(e) >= 10 and e.first_token >= EARLY_TOKENS]
    assert any(likelier(entry) >= 10 and entry.first_token < EARLY_TOKENS for entry in found.marks)
    assert 2 < len(marked(visit)) == min(10, len(surprising)) < len(found.marks)
    browsers.wait_until_idle()
    passes, asked = default_model.engine.passes, len(visit.asked)
    for count in (len(surprising), 1, len(found.marks), 3):
        visit.page.locator("#highlights-count").fill(str(count))
        words = sorted(in_order_of_page(found)[:count], key=lambda entry: entry.start)
        assert marked(visit) == [TEXT[slice(*entry.word)].strip() for entry in words]
    visit.wait_until_asked()
    assert (default_model.engine.passes, len(visit.asked)) == (passes, asked)
    assert visit.page.locator("#highlights-text").input_value() == TEXT


@in_a_browser
def test_hover_and_focus_show_alternatives_with_probabilities_and_fits(visit: Visit, default_model: Model) -> None:
    visit.analyse(TEXT)
    document = Document(default_model, TEXT)
    entry = in_order_of_page(highlights(document))[0]
    fits = drop_in(document, entry, entry.alternatives)
    visit.page.locator("#highlights-with-figures").check()
    word, about = visit.page.locator("#highlights [data-marked]"), visit.page.locator("#highlights-about")
    index = [one.strip() for one in marked(visit)].index(TEXT[slice(*entry.word)].strip())
    for show, hide in [
        (lambda: word.nth(index).hover(), lambda: visit.page.mouse.move(1, 1)),
        (lambda: word.nth(index).focus(), lambda: visit.page.locator("#highlights-text").focus()),
    ]:
        show()
        about.wait_for(state="visible")
        visit.page.wait_for_function(CHECKED)
        rows = about.locator("li")
        assert rows.count() == 5
        for row, fit in zip(rows.all(), fits, strict=True):
            assert (fit.alternative.text or "").strip() in row.inner_text()
            assert row.locator(".verdict").inner_text() == {True: "fits", False: ""}.get(fit.drops_in, fit.verdict)
            assert "%" in row.inner_text()
        said = word.nth(index).get_attribute("aria-description")
        assert about.locator(".headline").inner_text().split(" was its ")[1] in said
        assert said.count("%") == 6 and "Loss:" not in said, "figures of the word and of five alternatives, no meanings"
        hide()
        about.wait_for(state="hidden")


PLACES = """() => {
  const boxOf = selector => document.querySelector(selector).getBoundingClientRect();
  const card = boxOf('.word-details'), word = boxOf('#highlights .word:is([data-shown], :focus)');
  const covers = ({left, top, right, bottom}) =>
    left < card.right && card.left < right && top < card.bottom && card.top < bottom;
  return {
    card: [card.left, card.top, card.width, card.height],
    covered: ['#highlights-text', '#highlights', '#highlights-next'].filter(selector => covers(boxOf(selector))),
    word: covers(word) || word.bottom > innerHeight || word.top < 0,
    inside: card.top >= 0 && card.bottom <= innerHeight && card.right <= innerWidth,
  };
}"""
"""Where the details of the shown word are, what they cover, and whether the word is covered or out of the window."""


@in_a_browser
@pytest.mark.parametrize("size", [{"width": 1280, "height": 800}, {"width": 911, "height": 512}])
@pytest.mark.parametrize("figures", [False, True])
def test_the_details_of_a_word_have_a_place_of_their_own_beside_the_text(
    tiny: Visit, size: dict[str, int], figures: bool
) -> None:
    page, place = tiny.page, tiny.page.locator(".word-details")
    page.set_viewport_size(size)
    tiny.analyse(" ".join(TEXT for _ in range(14)))
    page.locator("#highlights-count").fill("10")
    page.locator("#highlights-with-figures").set_checked(figures)
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    assert place.inner_text().startswith("Point at a word of the analysed text to see here")
    box = place.bounding_box()
    for index in range(8):
        page.locator("#highlights-next" if index < 5 else "#highlights .word[tabindex='0']").press(
            "Enter" if index < 5 else "ArrowDown"
        )
        page.wait_for_function(CHECKED)
        places = page.evaluate(PLACES)
        assert places["card"] == pytest.approx(list(box.values()), abs=1), "nothing moves"
        assert places["inside"] and not places["word"] and places["covered"] == []


@in_a_browser
def test_on_a_phone_a_word_is_seen_above_its_details(phone: Visit) -> None:
    open_tab(phone)
    phone.analyse(" ".join(TEXT for _ in range(6)))
    for _ in range(8):
        phone.page.locator("#highlights-next").evaluate("one => one.click()")
        phone.page.wait_for_function(CHECKED)
        places = phone.page.evaluate(PLACES)
        assert places["inside"] and not places["word"]
    phone.page.evaluate("scrollTo({top: document.body.scrollHeight, behavior: 'instant'})")
    table = phone.page.locator("#highlights-branches").bounding_box()
    assert table["y"] + table["height"] <= phone.page.locator(".word-details").bounding_box()["y"]


@in_a_browser
@pytest.mark.parametrize("height", [844, 664])
def test_on_a_phone_the_button_for_the_next_highlight_stays_under_the_finger(phone: Visit, height: int) -> None:
    phone.page.set_viewport_size({"width": 390, "height": height})
    open_tab(phone)
    phone.analyse(" ".join(TEXT for _ in range(6)))
    button, text = phone.page.locator("#highlights-next"), phone.page.locator("#highlights")
    button.tap()
    place = button.bounding_box()
    for _ in range(int(phone.page.locator("#highlights-count").input_value())):
        button.tap()
        phone.page.wait_for_timeout(300)
        assert button.bounding_box() == place
        assert text.bounding_box()["y"] + text.bounding_box()["height"] <= height - 13 * 16
        places = phone.page.evaluate(PLACES)
        assert places["inside"] and not places["word"]


@in_a_browser
def test_the_details_of_a_word_say_what_fits_means(visit: Visit) -> None:
    visit.page.get_by_role("button", name="Try an example").locator("visible=true").click()
    words, about = visit.page.locator("#highlights [data-marked]"), visit.page.locator("#highlights-about")
    expect(words).to_have_count(10)
    for index in range(10):
        words.nth(index).focus()
        expect(about.locator(".meaning")).to_contain_text("An alternative fits if your next words")
    verdicts = about.locator(".verdict").all_inner_texts()
    assert not any("drops in" in text or "rewritten" in text for text in verdicts)


@in_a_browser
def test_another_text_is_seen_from_its_beginning_and_a_changed_one_where_it_was(tiny: Visit) -> None:
    shown, long = tiny.page.locator("#highlights"), "The keeper saw a ship and wrote it down. " * 60
    tiny.analyse(long)
    shown.evaluate("one => { one.scrollTop = 300; }")
    tiny.analyse(long + "Then he slept.")
    assert shown.evaluate("one => one.scrollTop") == 300
    tiny.analyse("Another " + long)
    assert shown.evaluate("one => one.scrollTop") == 0


@in_a_browser
def test_show_figures_shows_the_chance_of_each_highlighted_word_at_once(tiny: Visit) -> None:
    tiny.analyse(TEXT)
    word = tiny.page.locator("#highlights [data-marked]").first
    figure = "one => getComputedStyle(one, '::after').content"
    assert word.evaluate(figure) == "none"
    text = tiny.page.locator("#highlights").text_content()
    tiny.page.locator("#highlights-with-figures").check()
    assert "%" in word.evaluate(figure)
    unmarked = tiny.page.locator("#highlights .word:not([data-marked])")
    assert unmarked.first.evaluate(figure) == "none"
    assert tiny.page.locator("#highlights").text_content() == text
    expect(word).to_have_accessible_name(f"{word.inner_text().strip()}, marked")
    tiny.page.locator("#highlights-with-figures").uncheck()
    assert word.evaluate(figure) == "none"


LINES_OF_MARKED = """() => {
  const box = document.querySelector('#highlights'), widest = box.offsetWidth, torn = [];
  for (let width = widest; width > widest - 100; width -= 2) {
    box.style.width = `${width}px`;
    for (const word of box.querySelectorAll('[data-marked]:not(.blank)')) {
      if (word.getClientRects().length > 1) torn.push(`${word.textContent} ${word.dataset.chance} at ${width} px`);
    }
  }
  box.style.width = '';
  return torn;
}"""
"""Marked words that take several lines with their figures, in a text of many widths."""
WINDOWS = [{"width": 911, "height": 512}, {"width": 1366, "height": 768}, {"width": 390, "height": 844}]


@in_a_browser
@pytest.mark.parametrize("size", WINDOWS)
def test_a_figure_stands_on_the_line_of_its_word(tiny: Visit, size: dict[str, int]) -> None:
    page = tiny.page
    page.set_viewport_size(size)
    tiny.analyse("Stop! He didn’t say; perhaps 灯塔 and the old keeper – asleep – climbed again? Yes… no.")
    slider = page.locator("#highlights-count")
    slider.fill(slider.get_attribute("max"))
    page.locator("#highlights-with-figures").check()
    assert any("…" in chance for chance in page.locator("#highlights [data-marked]").evaluate_all(CHANCES))
    assert page.evaluate(LINES_OF_MARKED) == []


CHANCES = "words => words.map(word => word.dataset.chance.replace(/^\\u2060/, ''))"


@in_a_browser
def test_the_figure_of_a_marked_line_break_stands_before_the_break(tiny: Visit) -> None:
    page = tiny.page
    tiny.analyse("The keeper slept.\n\nThe sea was grey.\n\nThe lamp was lit.")
    slider = page.locator("#highlights-count")
    slider.fill(slider.get_attribute("max"))
    page.locator("#highlights-with-figures").check()
    contents = page.locator("#highlights .blank[data-marked]").evaluate_all(
        "all => all.map(one => ['::before', '::after'].map(part => getComputedStyle(one, part).content))"
    )
    assert contents
    assert all("%" in before and "%" not in after for before, after in contents)


@in_a_browser
def test_with_figures_the_legend_says_what_they_are_and_which_part_of_a_word_they_name(tiny: Visit) -> None:
    page = tiny.page
    tiny.analyse(TEXT)
    meaning = page.locator(".read .legend.of-figures")
    expect(meaning).to_be_hidden()
    page.locator("#highlights-with-figures").check()
    expect(meaning).to_be_visible()
    expect(meaning).to_contain_text("The figure beside a word is the chance that the model gave it")
    expect(meaning).to_contain_text("“…ly”")
    named = [one for one in page.locator("#highlights [data-marked]").evaluate_all(CHANCES) if one[0].isalpha()]
    assert all(re.match(r"\w+… ", one) for one in named), "the beginning of a word ends in the sign of the legend"


CUT_LINES = """() => {
  const box = document.querySelector('#highlights'), outer = box.getBoundingClientRect();
  const top = outer.top + box.clientTop, bottom = top + box.clientHeight;
  const cut = edge => [...box.querySelectorAll('.word')].filter(word => [...word.getClientRects()]
    .some(line => line.top < edge - 2 && edge + 2 < line.bottom)).map(word => word.textContent);
  return [...cut(top), ...cut(bottom)];
}"""
"""The words that the upper or the lower edge of the text cuts in half."""


END_OF_MEANING = """legend => {
  const range = document.createRange(), after = legend.querySelector('.band').nextSibling;
  range.setStart(after, 0);
  range.setEnd(after, after.data.indexOf('.') + 1);
  return range.getBoundingClientRect().bottom;
}"""
"""Where the sentence ends that says what the underlining means."""


def show_example_with_figures(page: Any) -> None:
    """Show the example of the tab with figures in a low window, such as that of a projector."""
    page.set_viewport_size({"width": 911, "height": 512})
    page.get_by_role("button", name="Try an example").locator("visible=true").click()
    expect(page.locator("#highlights [data-marked]")).to_have_count(10)
    page.locator("#highlights-with-figures").check()


@in_a_browser
def test_in_a_low_window_the_example_with_figures_is_seen_whole(visit: Visit) -> None:
    page, shown = visit.page, visit.page.locator("#highlights")
    show_example_with_figures(page)
    sentence = page.locator("#highlights-threshold")
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    height, inner = shown.evaluate("one => [one.scrollHeight, one.clientHeight]")
    assert height == inner, "it does not scroll within itself"
    box = shown.bounding_box()
    assert box["y"] + box["height"] <= 512
    assert sentence.evaluate("one => one.offsetHeight / parseFloat(getComputedStyle(one).lineHeight)") < 2.5, (
        "two lines"
    )


@in_a_browser
@pytest.mark.parametrize("size", WINDOWS)
@pytest.mark.parametrize("figures", [False, True])
def test_no_line_of_a_long_text_is_cut_in_half(tiny: Visit, size: dict[str, int], figures: bool) -> None:
    page = tiny.page
    page.set_viewport_size(size)
    tiny.analyse(" ".join(TEXT for _ in range(14)))
    page.locator("#highlights-with-figures").set_checked(figures)
    page.locator("#highlights-count").fill("12")
    assert (
        page.evaluate(
            "() => { const one = document.querySelector('#highlights'); return one.scrollHeight - one.clientHeight; }"
        )
        > 50
    )
    assert page.evaluate(CUT_LINES) == []
    for _ in range(12):
        page.locator("#highlights-next").click()
        assert page.evaluate(CUT_LINES) == []
    page.locator("#highlights .word[tabindex='0']").focus()
    for _ in range(12):
        page.keyboard.press("ArrowUp")
        assert page.evaluate(CUT_LINES) == []


@in_a_browser
def test_on_a_projector_what_marks_mean_and_the_heads_of_the_table_are_in_sight(tiny: Visit) -> None:
    page = tiny.page
    page.set_viewport_size({"width": 911, "height": 512})
    tiny.analyse(" ".join(TEXT for _ in range(14)))
    page.locator("#highlights-with-figures").check()
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    sentence = page.locator("#highlights-threshold").bounding_box()
    assert sentence["y"] + sentence["height"] <= 512
    assert page.locator(".read .legend").first.evaluate(END_OF_MEANING) <= 512
    expect(page.locator(".read .legend .others")).to_be_hidden()
    page.locator("#highlights-count-name").hover()
    expect(page.locator(".tip")).to_contain_text("with so little text before them, the model cannot know what comes")
    page.locator(".read summary").click()
    page.locator(".read tbody tr").nth(30).scroll_into_view_if_needed()
    bar, heads = page.locator(".read .controls").bounding_box(), page.locator(".read thead").bounding_box()
    assert bar["y"] == 0 and heads["y"] == pytest.approx(bar["height"], abs=1), "they stay while the page scrolls"


@in_a_browser
def test_on_a_projector_all_alternatives_with_their_figures_are_seen_at_once(visit: Visit) -> None:
    page, about = visit.page, visit.page.locator("#highlights-about")
    show_example_with_figures(page)
    for index in range(10):
        page.locator("#highlights-next").click()
        expect(page.locator("#highlights [data-marked]").nth(index)).to_have_attribute("data-shown", "")
        page.wait_for_function(CHECKED)
        expect(about.locator(".following")).to_be_attached()
        last, lower = about.locator("li").last.bounding_box(), about.locator(".more").bounding_box()
        assert last["y"] >= 0 and last["y"] + last["height"] <= lower["y"] <= 512


@in_a_browser
def test_the_table_tints_exactly_the_highlights(tiny: Visit) -> None:
    tiny.analyse(TEXT)
    tiny.page.locator("#highlights-with-figures").check()
    tiny.page.locator(".read .figures summary").click()
    tinted = tiny.page.locator(".read tbody tr[data-marked]")
    expect(tinted).to_have_count(len(marked(tiny)))
    tiny.page.locator("#highlights-count").fill("3")
    expect(tinted).to_have_count(3)
    assert len(marked(tiny)) == 3
    colours = tiny.page.locator(".read tbody tr").evaluate_all(
        "rows => rows.map(row => [row.hasAttribute('data-marked'), getComputedStyle(row.cells[0]).backgroundColor])"
    )
    assert {is_tinted for is_tinted, colour in colours if colour != "rgba(0, 0, 0, 0)"} == {True}


@in_a_browser
def test_a_screen_reader_hears_the_name_of_a_sign_that_branches_would_replace(visit: Visit) -> None:
    visit.analyse("The keeper saw the sea. He slept.")
    visit.page.locator("#highlights .word").filter(has_text=re.compile(r"^\.$")).first.click()
    replaced = visit.page.locator("#highlights-replaced q")
    expect(replaced.locator("[aria-hidden]")).to_have_text(".")
    expect(replaced.locator(".spoken-only")).to_have_text("full stop")


@in_a_browser
def test_a_click_or_enter_on_any_word_opens_branches_there_from_the_cache(visit: Visit, default_model: Model) -> None:
    visit.analyse(TEXT)
    found = highlights(Document(default_model, TEXT))
    words = visit.page.locator("#highlights .word")
    word = words.filter(has_text="keeper").first
    entry = next(entry for entry in found.entries if "keeper" in entry.token)
    word.click()
    visit.page.wait_for_selector("#highlights-branches[data-state=settled][data-stale=false]", timeout=PATIENCE)
    ids = Document(default_model, TEXT).token_ids[: entry.first_token]
    expected = Document(default_model, token_ids=ids).lookahead(k=5, depth=5)
    replaced = visit.page.locator("#highlights [aria-current=true]").inner_text().strip()
    expect(visit.page.locator("#highlights-replaced p")).to_have_text(f"Instead of {replaced}")
    rows = visit.page.locator("#highlights-branches .rows")
    expect(rows).to_have_accessible_description(re.compile(f"^Instead of .?{replaced}.?$"))
    assert f"in place of “{replaced}”" in visit.page.locator("#highlights-branches .note").inner_text()
    shown = visit.page.locator("#highlights-branches [data-branch]")
    pieces = [[piece.text for piece in branch.pieces] for branch in expected.branches]
    assert [
        row.locator("[data-token]").evaluate_all("all => all.map(one => one.dataset.text)") for row in shown.all()
    ] == (pieces)
    assert int(visit.page.locator("#highlights-meter").get_attribute("data-tokens")) <= 21
    # A token that is only to be read is marked as disabled, and says why nothing is inserted.
    visit.page.locator("#highlights-branches [data-token='0']").first.click(force=True)
    refusal = visit.page.locator("#highlights-branches .announcement")  # the note shows it too, but not for long
    browsers.expect(refusal).to_contain_text("nothing is inserted")
    assert visit.page.locator("#highlights-text").input_value() == TEXT
    revision = visit.page.locator("#highlights-branches").get_attribute("data-revision")
    word.focus()
    visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_function(
        "old => { const {dataset} = document.querySelector('#highlights-branches');"
        "return Number(dataset.revision) > old && dataset.state === 'settled' }",
        arg=int(revision),
        timeout=PATIENCE,
    )


@in_a_browser
def test_a_click_waits_while_a_server_without_the_text_evaluates_it_again(tiny: Visit) -> None:
    tiny.analyse(TEXT)
    count = tiny.page.locator("#highlights-count").input_value()
    forgets, held = iter([True]), []

    def forget(route: Any) -> None:
        if '"fit"' in route.request.post_data and next(forgets, False):
            route.fulfill(json={"unknown": True})
        elif '"ask"' in route.request.post_data and held is not None:
            held.append(route)  # the text is read again only once the word was clicked
        else:
            route.continue_()

    tiny.page.route("**/component_server**", forget)
    word = tiny.page.locator("#highlights .word").filter(has_text="keeper").first
    word.hover()
    tiny.page.wait_for_selector(".read .says[data-state=thinking]", timeout=PATIENCE)
    word.click()
    tiny.wait_until_asked()
    assert ['"start"' in route.request.post_data for route in held] == [False], "branches are asked for afterwards"
    released, held = held, None
    for route in released:
        route.continue_()
    tiny.page.wait_for_selector("#highlights-branches[data-state=settled][data-stale=false]", timeout=PATIENCE)
    assert tiny.page.locator("#highlights .word[aria-current]").inner_text() == "keeper"
    assert tiny.page.locator(".read .says").get_attribute("data-state") == "settled"
    assert tiny.page.locator("#highlights-count").input_value() == count
    assert next(forgets, None) is None, "it was forgotten"


@in_a_browser
def test_the_table_has_the_figures_of_every_token_and_the_underline_its_entropy(
    visit: Visit, default_model: Model
) -> None:
    visit.analyse(TEXT)
    found = highlights(Document(default_model, TEXT))
    expect(visit.page.locator(".read .figures")).to_be_hidden()
    visit.page.locator("#highlights-with-figures").check()
    visit.page.locator(".read .figures summary").click()
    rows = visit.page.locator(".read tbody tr")
    expect(visit.page.locator(".read caption")).to_contain_text("a chance of 50\u00a0% is a loss of 1 bit")
    browsers.expect(rows).to_have_count(len(found.entries))  # made when the browser says that it was opened
    for row, entry in list(zip(rows.all(), found.entries, strict=True))[:6]:
        cells = [cell.strip() for cell in row.locator("td").all_inner_texts()]
        assert cells[:2] == [str(entry.start), str(entry.end)]
        assert cells[5] == (str(entry.rank) if entry.rank else "–")
        for cell, nats in ((cells[3], entry.loss), (cells[6], entry.entropy)):
            assert cell == "–" if nats is None else float(cell) == pytest.approx(nats / math.log(2), abs=0.006), "bits"
    assert rows.last.locator("td:nth-child(3) [aria-hidden]").inner_text() == "."
    assert rows.last.locator(".spoken-only").first.text_content() == "full stop"
    spoken = rows.last.locator(".spoken-only").last.text_content() or ""
    assert spoken.count("%") == 5 and spoken.count("; ") == 4 and "·" not in spoken
    first = {entry.word: entry for entry in reversed(found.entries)}
    entropies = [first[word].entropy or 0 for word in sorted(first)]
    bands = visit.page.locator("#highlights .word").evaluate_all("all => all.map(one => Number(one.dataset.fork))")
    assert bands == pytest.approx([one / max(entropies) for one in entropies], abs=1e-3)


@in_a_browser
def test_texts_of_people_and_models_are_never_markup(tiny: Visit) -> None:
    tiny.analyse(MARKUP)
    assert tiny.page.locator("#highlights :is(b, img)").count() == 0
    tiny.page.locator("#highlights .word").nth(3).hover()
    tiny.page.locator("#highlights-about").wait_for(state="visible")
    tiny.analyse("🙂👩‍👩‍👧 中文字符\n\nالعربية naïve")
    assert tiny.page.locator("#highlights-text").input_value() == "🙂👩‍👩‍👧 中文字符\n\nالعربية naïve"


@in_a_browser
def test_text_and_instruction_are_restored_after_a_reload_and_analysed_again(tiny: Visit) -> None:
    page = tiny.page
    tiny.analyse("The keeper of the light.")
    page.locator("#highlights-prompt").fill("Say it briefly.")
    page.locator("#highlights-with-figures").check()
    page.wait_for_selector("#highlights[data-state=settled]:not([data-stale])")
    at_first = page.locator("#highlights-count").evaluate("slider => slider.valueAsNumber")
    page.locator("#highlights-count").fill(str(at_first - 1))
    page.once("dialog", lambda dialog: dialog.accept())
    page.reload()
    tiny.wait_for_status("ready")
    page.get_by_role("tab", name="Highlights").click()
    page.wait_for_function("document.querySelector('#highlights')?.textContent === 'The keeper of the light.'")
    assert page.locator("#highlights-text").input_value() == "The keeper of the light."
    assert page.locator("#highlights-prompt").input_value() == "Say it briefly."
    expect(page.locator("#highlights-with-figures")).to_be_checked()
    expect(page.locator("#highlights[data-figures]")).to_be_visible()
    expect(page.locator("#highlights-count")).to_have_value(str(at_first - 1))
    tiny.analyse("The keeper of the light slept.")
    expect(page.locator("#highlights-count")).not_to_have_value(str(at_first - 1))


@in_a_browser
def test_an_empty_text_a_text_too_long_and_one_without_candidates_get_a_sentence(browser: Any, page: Any) -> None:
    model = parrot(["the sea was grey"])
    with browsers.page_of(lambda report: model) as url, browsers.visit_again(page, url) as opened:
        open_tab(opened)
        says = opened.page.locator(".read .says")
        opened.analyse("the sea was grey")
        says.filter(has_text="No possible edits found.").wait_for()
        assert opened.page.locator("#highlights-count").is_disabled() and not marked(opened)
        opened.page.locator("#highlights-text").fill("a" * (MOST_TEXT + 1))
        says.filter(has_text="60,000 are allowed here").wait_for()
        opened.page.locator("#highlights-text").fill("")
        says.filter(has_text="Write or paste a text").wait_for()


@in_a_browser
def test_typing_during_an_analysis_is_kept_and_the_last_text_is_shown(tiny: Visit) -> None:
    box = tiny.page.locator("#highlights-text")
    box.press_sequentially(TEXT, delay=15)
    assert box.input_value() == TEXT
    tiny.page.wait_for_function("text => document.querySelector('#highlights').textContent === text", arg=TEXT)


PERCENT = importing(
    "all => import('/lookahead/web/core/figures_and_labels.js').then(one => all.map(p => one.formatPercent({p})))"
)
BESIDE = importing("""async ([entry, fits]) => {
  const {paintWordDetails} = await import('/lookahead/tabs/highlights/word_details.js');
  const element = document.createElement('div');
  paintWordDetails(element, entry, fits);
  const rows = [...element.querySelectorAll('.after')].map(one => one.textContent);
  return [rows, element.querySelector('.following').textContent];
}""")


@in_a_browser
def test_each_alternative_shows_the_probability_of_the_following_words(visit: Visit, default_model: Model) -> None:
    visit.analyse(TEXT)
    document = Document(default_model, TEXT)
    found = highlights(document)
    entry = in_order_of_page(found)[0]
    fits = drop_in(document, entry, entry.alternatives)
    visit.page.locator("#highlights-with-figures").check()
    about = visit.page.locator("#highlights-about")
    words = [one.strip() for one in marked(visit)]
    visit.page.locator("#highlights [data-marked]").nth(words.index(TEXT[slice(*entry.word)].strip())).hover()
    about.locator(".following").wait_for()
    known = [fit for fit in fits if fit.logprob is not None and fit.own_logprob is not None]
    logs = [known[0].own_logprob, *(fit.logprob for fit in known)]
    own, *expected = visit.page.evaluate(PERCENT, [math.exp(log or 0) for log in logs])
    said = about.locator(".following").inner_text()
    assert f"the chance of your next words, “{fits[0].following.strip()}”, after it" in said
    assert said.endswith(f"than after your own word ({own}).")
    after = [text.replace("\u00a0", " ") for text in about.locator("li .after").all_inner_texts()]
    assert len(after) == len(fits) == len(known)
    for fit, text, figure in zip(known, after, expected, strict=True):
        rarer = math.exp((fit.own_logprob or 0) - (fit.logprob or 0))
        assert text.startswith(f"then {figure}, ".replace("\u00a0", " "))
        assert text.endswith("rarer" if rarer > 1.05 else "likelier" if rarer < 0.95 else "as likely")
        if 1.1 < rarer < 100_000:
            times = float(text.split(", ", 1)[1].split()[0].replace(",", ""))
            assert times == pytest.approx(rarer, rel=0.06)


@in_a_browser
def test_the_factor_for_the_following_words_has_few_digits(tiny: Visit) -> None:
    entry = {
        "token": " fox", "ids": [9], "place": 0, "loss": 2.302585, "rank": 3, "entropy": 1.5, "seen_from": 0,
        "alternatives": [{"id": id, "text": " cat", "probability": 0.2, "end": False} for id in range(6)],
    }  # fmt: skip
    logs = [-2.0, -1.0, -3.2, -9.0, -40.0, None]
    fits = [
        {"id": id, "drops_in": None, "sentence": "-", "following": " sat\nthere", "logprob": log, "own": -2.0}
        for id, log in enumerate(logs)
    ]
    rows, line = tiny.page.evaluate(BESIDE, [entry, fits])
    assert [row.replace("\u00a0", " ") for row in rows] == [
        "then 14 %, as likely", "then 37 %, 2.7 × likelier", "then 4.1 %, 3.3 × rarer", "then 0.012 %, 1,100 × rarer",
        "then < 0.0001 %, > 100,000 × rarer", "",
    ]  # fmt: skip
    assert line.replace("\u00a0", " ") == (
        "Beside each alternative: its chance, then the chance of your next words, “sat↵there”, after it, and how much "
        "rarer or likelier they are there than after your own word (14 %)."
    )


TOLD = importing("""async entry => {
  const {paintWordDetails} = await import('/lookahead/tabs/highlights/word_details.js');
  const element = document.createElement('div');
  paintWordDetails(element, entry, null);
  const verdicts = [...element.querySelectorAll('.verdict')].map(one => one.textContent);
  return [element.querySelector('p').textContent, verdicts];
}""")


@in_a_browser
def test_a_character_of_several_tokens_shows_its_own_probability_and_that_of_its_first_token(tiny: Visit) -> None:
    alternatives = [{"id": id, "text": None, "probability": 0.2, "end": False} for id in (7, 8, 9)]
    entry = {
        "token": "🦊", "ids": [7, 8, 9], "place": 1, "loss": 2.302585, "rank": 2, "entropy": 1.5, "seen_from": 0,
        "alternatives": alternatives,
    }  # fmt: skip
    line, verdicts = tiny.page.evaluate(TOLD, entry)
    loss = "loss 3.32 bits (50 % is 1 bit)"
    assert line.replace("\u00a0", " ") == f"“🦊”: 10 % · {loss} · token 2 of its 3: choice 2 · entropy 2.16 bits"
    assert verdicts == ["…", "as written", "…"], "it is the token of that place that was written there"
    line, verdicts = tiny.page.evaluate(TOLD, entry | {"token": " fox", "ids": [9], "place": 0, "rank": 3})
    assert line.replace("\u00a0", " ") == f"“fox”: 10 % · {loss} · choice 3 · entropy 2.16 bits"
    assert verdicts == ["…", "…", "as written"]


PROJECTOR = {"width": 853, "height": 480}
"""A projector of 1280 x 720 at a zoom of 150 %."""


@in_a_browser
@pytest.mark.parametrize("size", [{"width": 1280, "height": 720}, PROJECTOR])
def test_the_headline_of_the_card_is_larger_than_its_text_but_not_twice(tiny: Visit, size: dict[str, int]) -> None:
    tiny.page.set_viewport_size(size)
    tiny.analyse(TEXT)
    tiny.page.locator("#highlights [data-marked]").first.hover()
    about = tiny.page.locator("#highlights-about")
    about.wait_for(state="visible")
    large, plain = about.evaluate(
        "card => [card.querySelector('.headline'), document.querySelector('.read')]"
        ".map(one => parseFloat(getComputedStyle(one).fontSize))"
    )
    assert plain < large < 2 * plain
    if size == PROJECTOR:
        box = about.bounding_box()
        assert box["width"] * box["height"] < size["width"] * size["height"] / 4


@in_a_browser
def test_next_highlight_shows_the_card_of_its_word_where_the_page_scrolls_under_the_mouse(tiny: Visit) -> None:
    page = tiny.page
    page.set_viewport_size({"width": 911, "height": 512})
    tiny.analyse(" ".join(TEXT for _ in range(12)))
    page.evaluate("scrollTo(0, 0)")
    following = page.get_by_role("button", name="Next highlight")
    for _ in range(4):
        box = following.bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.wait_for_timeout(700)
        wanted = page.locator("#highlights .word[data-shown]")
        expect(wanted).to_have_count(1)
        expect(wanted).to_have_attribute("aria-description", re.compile("Alternatives|No text comes before"))
        page.evaluate("scrollTo(0, 0)")
    page.set_viewport_size({"width": 1280, "height": 720})


COVERS_NEXT = """() => {
  const boxOf = selector => document.querySelector(selector).getBoundingClientRect();
  const one = boxOf('#highlights-about'), other = boxOf('#highlights-next');
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}"""


COVERS_WORD = """() => {
  const card = document.querySelector('#highlights-about').getBoundingClientRect();
  const lines = document.querySelector('#highlights .word[data-shown]').getClientRects();
  return [...lines].some(one => one.left < card.right && card.left < one.right && one.top < card.bottom
    && card.top < one.bottom);
}"""


@in_a_browser
@pytest.mark.parametrize("scrolled", [0, 200])
@pytest.mark.parametrize("figures", [False, True])
def test_on_a_projector_clicks_at_one_point_lead_from_highlight_to_highlight(
    tiny: Visit, figures: bool, scrolled: int
) -> None:
    page = tiny.page
    page.set_viewport_size({"width": 911, "height": 512})
    tiny.analyse(" ".join(TEXT for _ in range(14)))
    page.locator("#highlights-count").fill("10")
    page.locator("#highlights-with-figures").set_checked(figures)
    page.evaluate("top => scrollTo(0, top)", scrolled)
    box = page.locator("#highlights-next").bounding_box()
    assert box["y"] > 0, "the button stays in sight"
    words, about = page.locator("#highlights [data-marked]"), page.locator("#highlights-about")
    for index in range(8):
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        expect(words.nth(index)).to_have_attribute("data-shown", "", timeout=5000)
        expect(about).to_be_visible()
        page.wait_for_function(CHECKED)
        assert page.locator("#highlights-next").bounding_box() == box, "the page stays under the mouse"
        assert not page.evaluate(COVERS_NEXT) and not page.evaluate(COVERS_WORD)
        own, bar = words.nth(index).bounding_box(), page.locator(".read .controls").bounding_box()
        assert own["y"] >= bar["y"] + bar["height"] and own["y"] + own["height"] <= 512, "the word is in sight"
    page.set_viewport_size({"width": 1280, "height": 720})


@in_a_browser
def test_a_card_that_goes_on_says_so_until_it_is_scrolled_to_its_end(tiny: Visit) -> None:
    page = tiny.page
    page.set_viewport_size({"width": 911, "height": 330})
    tiny.analyse(TEXT)
    page.locator("#highlights-with-figures").check()
    about, more = page.locator("#highlights-about"), page.locator("#highlights-about .more")
    page.locator("#highlights-next").click()
    page.wait_for_function(CHECKED)
    hidden = "card => Math.round(card.scrollHeight - card.clientHeight - card.scrollTop)"
    assert about.evaluate(hidden) > 0, "the card is higher than its room"
    expect(more).to_be_visible()
    page.mouse.wheel(0, 2000)
    expect(more).to_be_hidden()
    assert about.evaluate(hidden) <= 1
    page.locator("#highlights-with-figures").uncheck()
    page.set_viewport_size({"width": 1280, "height": 720})
    page.locator("#highlights [data-marked]").first.hover()
    expect(about).to_be_visible()
    assert about.evaluate(hidden) == 0
    expect(more).to_be_hidden()


@in_a_browser
@pytest.mark.parametrize("size", [{"width": 1280, "height": 720}, PROJECTOR])
def test_the_next_highlight_takes_the_branches_of_the_word_before_away(tiny: Visit, size: dict[str, int]) -> None:
    page, replaced = tiny.page, tiny.page.locator("#highlights-replaced")
    page.set_viewport_size(size)
    tiny.analyse(TEXT)
    page.locator("#highlights [data-marked]").first.click()
    expect(replaced).to_be_visible()
    page.locator("#highlights-next").click()
    expect(page.locator("#highlights-about")).to_be_visible()
    expect(replaced).to_be_hidden()
    expect(page.locator("#highlights [aria-current]")).to_have_count(0)
    expect(page.locator("#highlights-branches .branch")).to_have_count(0)


@in_a_browser
def test_a_card_that_goes_on_takes_the_focus_from_its_word_and_is_scrolled_by_keys(tiny: Visit) -> None:
    page, about = tiny.page, tiny.page.locator("#highlights-about")
    tiny.analyse(TEXT)
    page.locator("#highlights-with-figures").check()
    word = page.locator("#highlights [data-marked]").first
    word.focus()
    page.wait_for_function(CHECKED)
    assert about.evaluate("card => card.tabIndex") == -1, "a whole card is no stop of Tab"
    page.set_viewport_size({"width": 911, "height": 330})
    hidden = "card => Math.round(card.scrollHeight - card.clientHeight - card.scrollTop)"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.wait_for_function(CHECKED)
    assert about.evaluate(hidden) > 0, "the card is higher than its room"
    expect(about.locator(".more")).to_contain_text("Tab")
    page.keyboard.press("Tab")
    expect(about).to_be_focused()
    page.keyboard.press("End")
    page.wait_for_function(f"({hidden})(document.querySelector('#highlights-about')) <= 1", timeout=5000)
    expect(about).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(word).to_be_focused()
    expect(about).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(word).to_be_focused()
    expect(about).to_be_hidden()
    page.keyboard.press("ArrowDown")
    page.wait_for_function(CHECKED)
    page.keyboard.press("Tab")
    expect(about).to_be_focused()
    page.keyboard.press("Tab")
    expect(about).to_be_hidden()
    expect(page.locator(".read .figures summary")).to_be_focused()


@in_a_browser
def test_next_highlight_waits_while_the_text_is_analysed_again(tiny: Visit) -> None:
    page, following = tiny.page, tiny.page.locator("#highlights-next")
    tiny.analyse(TEXT)
    expect(following).to_be_enabled()
    page.locator("#highlights-text").fill(TEXT + " Then he slept.")
    page.wait_for_selector("#highlights[data-stale]")
    assert following.is_disabled()
    page.locator("#highlights-count").fill("3")
    assert following.is_disabled(), "also after the slider was moved"
    page.wait_for_selector("#highlights[data-state=settled]:not([data-stale])", timeout=PATIENCE)
    expect(following).to_be_enabled()


@in_a_browser
def test_in_a_small_window_the_card_of_a_word_leaves_next_highlight_free(tiny: Visit) -> None:
    page = tiny.page
    page.set_viewport_size({"width": 911, "height": 512})
    tiny.analyse(TEXT)
    page.evaluate("scrollTo(0, 0)")
    words = page.locator("#highlights .word")
    for index in (1, 3):
        words.nth(index).hover()
        page.locator("#highlights-about").wait_for(state="visible")
        page.wait_for_function(CHECKED)
        assert not page.evaluate(COVERS_NEXT)
    page.set_viewport_size({"width": 1280, "height": 720})


@in_a_browser
@pytest.mark.parametrize("wait", [False, True])
def test_a_word_keeps_its_description_while_it_has_the_focus_also_without_its_card(tiny: Visit, wait: bool) -> None:
    page, about, expected = tiny.page, tiny.page.locator("#highlights-about"), re.compile("The model expected")
    tiny.analyse(TEXT)
    word = page.locator("#highlights .word").filter(has_text="keeper").first
    for key in ("Enter", "Escape"):
        word.focus()
        about.wait_for(state="visible")
        if wait:
            page.wait_for_function(CHECKED)
        page.keyboard.press(key)
        if key == "Escape":
            expect(about).to_be_hidden()
        elif wait:
            assert about.is_visible(), "details whose alternatives are checked stay beside the branches"
        expect(word).to_have_attribute("aria-description", expected)
        state = "settled" if key == "Enter" else "empty"
        page.wait_for_selector(f"#highlights-branches[data-state={state}]", timeout=PATIENCE)
        expect(word).to_be_focused()
        expect(word).to_have_attribute("aria-description", expected)
        page.keyboard.press("ArrowLeft")
        expect(about).to_be_visible()
        whole = page.locator("#highlights [aria-description*='Alternatives']")
        expect(whole).to_have_count(1)
        page.locator("#highlights-count").focus()
        expect(whole).to_have_count(0)


@in_a_browser
def test_escape_on_a_chosen_word_closes_its_branches_and_says_so(tiny: Visit) -> None:
    page, said = tiny.page, tiny.page.locator(".read .announcement")
    tiny.analyse(TEXT)
    words = page.locator("#highlights .word")
    words.nth(2).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#highlights-branches[data-state=settled]", timeout=PATIENCE)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    expect(page.locator("#highlights-branches")).to_have_attribute("data-state", "settled")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Escape")
    expect(page.locator("#highlights-branches")).to_have_attribute("data-state", "empty")
    expect(said).to_have_text("The branches are closed.")
    expect(words.nth(2)).to_be_focused()
    expect(page.locator("#highlights [aria-current]")).to_have_count(0)


@in_a_browser
def test_a_marked_word_is_described_without_its_card_by_what_next_highlight_announces(tiny: Visit) -> None:
    page, words = tiny.page, tiny.page.locator("#highlights .word[data-marked]")
    described = page.locator("#highlights .word[aria-description]")
    tiny.analyse(TEXT)
    for count in (3, 2):
        page.locator("#highlights-count").fill(str(count))
        expect(words).to_have_count(count)
        expect(described).to_have_count(count)
    page.locator("#highlights-next").focus()
    for number in (1, 2):
        said = words.nth(number - 1).get_attribute("aria-description")
        assert said and said.startswith("The model expected ") and "Alternatives" not in said
        page.keyboard.press("Enter")
        expect(page.locator(".read .announcement")).to_have_text(f"Highlight {number} of 2. {said}")
    page.locator("#highlights-text").focus()
    assert words.nth(1).get_attribute("aria-description") == said, "the card of a word leaves it as it was"
    page.locator("#highlights-count").fill("1")
    expect(described).to_have_count(1)
    expect(page.locator(".read .announcement")).to_be_empty()
    tiny.listen(".read .announcement")
    page.locator("#highlights-next").focus()
    for times in (1, 2):
        page.keyboard.press("Enter")
        heard = "times => spoken.filter(said => said.includes('Highlight 1 of 1.')).length === times"
        page.wait_for_function(heard, arg=times)


@in_a_browser
@pytest.mark.parametrize("size", [{"width": 1280, "height": 720}, PROJECTOR])
@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_opened_branches_are_in_sight_and_no_card_covers_them(tiny: Visit, size: dict[str, int], by: str) -> None:
    page, about = tiny.page, tiny.page.locator("#highlights-about")
    page.set_viewport_size(size)
    tiny.analyse(TEXT)
    word = page.locator("#highlights .word").filter(has_text="keeper").first
    if by == "mouse":
        word.hover()
        about.wait_for(state="visible")
        word.click()
    else:
        word.focus()
        about.wait_for(state="visible")
        page.keyboard.press("Enter")
    if size == PROJECTOR:
        expect(about).to_be_hidden()
    page.wait_for_selector("#highlights-branches[data-state=settled][data-stale=false]", timeout=PATIENCE)
    page.wait_for_timeout(300)
    row = page.locator("#highlights-branches [data-branch='0']").bounding_box()
    assert row["y"] >= 0 and row["y"] + row["height"] <= size["height"]
    assert word.bounding_box()["y"] >= 0, "the word stays in sight with its rows"
    if about.is_visible():
        assert about.bounding_box()["x"] > row["x"] + row["width"] and size != PROJECTOR
    if by == "mouse":
        page.locator("#highlights [data-marked]").first.hover()
        if size == PROJECTOR:
            page.wait_for_function(CHECKED)
            assert about.is_hidden(), "in a low window the branches have the place of the details"
            assert page.locator("#highlights-branches [data-branch='0']").bounding_box() == row
        else:
            about.wait_for(state="visible")


@in_a_browser
@pytest.mark.parametrize(
    "size", [{"width": 1280, "height": 800}, {"width": 911, "height": 512}, {"width": 390, "height": 844}]
)
@pytest.mark.parametrize("place", [1, -2])
def test_the_page_scrolls_at_a_click_on_a_word_and_not_when_the_branches_come(
    tiny: Visit, size: dict[str, int], place: int
) -> None:
    page, held = tiny.page, []
    page.set_viewport_size(size)
    tiny.analyse(" ".join(TEXT for _ in range(4)))
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")

    def hold(route: Any) -> None:
        if '"ask"' in route.request.post_data and '"start"' in route.request.post_data and held is not None:
            held.append(route)
        else:
            route.continue_()

    page.route("**/component_server**", hold)
    word = page.locator("#highlights .word").nth(place)
    word.evaluate("one => one.click()")
    page.wait_for_timeout(1000)
    before = page.evaluate("scrollY"), word.bounding_box()
    assert held, "the branches are not there yet"
    released, held = held, None
    for route in released:
        route.continue_()
    page.wait_for_selector("#highlights-branches[data-state=settled][data-stale=false]", timeout=PATIENCE)
    page.wait_for_timeout(600)
    assert (page.evaluate("scrollY"), word.bounding_box()) == before
    row = page.locator("#highlights-branches [data-branch='0']").bounding_box()
    assert 0 <= row["y"] < size["height"], "the first row is in sight"


WORD_OF_LINE = """line => {
  const words = [...document.querySelectorAll('#highlights .word')], box = document.querySelector('#highlights');
  const {bottom} = box.getBoundingClientRect();
  return line === 'first' ? 1 : words.findLastIndex(word => word.getBoundingClientRect().bottom < bottom);
}"""
"""The index of a word of the first or the last line that is seen of the text."""


@in_a_browser
@pytest.mark.parametrize("line", ["first", "last"])
def test_in_a_low_window_branches_of_a_long_text_with_figures_are_seen_below_their_word(tiny: Visit, line: str) -> None:
    page, shown = tiny.page, tiny.page.locator("#highlights")
    page.set_viewport_size({"width": 911, "height": 512})
    tiny.analyse(" ".join(TEXT for _ in range(14)))
    page.locator("#highlights-with-figures").check()
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    page.locator("#highlights .word").nth(page.evaluate(WORD_OF_LINE, line)).click()
    page.wait_for_selector("#highlights-branches[data-state=settled][data-stale=false]", timeout=PATIENCE)
    page.wait_for_timeout(300)
    box, word = shown.bounding_box(), page.locator("#highlights [aria-current]").bounding_box()
    row = page.locator("#highlights-branches [data-branch='0']").bounding_box()
    assert max(0, box["y"]) <= word["y"] and word["y"] + word["height"] <= box["y"] + box["height"]
    assert row["y"] + row["height"] <= 512
    expect(page.locator(".read .legend.of-figures")).to_be_visible()


@in_a_browser
@pytest.mark.parametrize("by_key", [False, True])
def test_a_word_that_is_chosen_again_closes_its_branches_and_the_legend_is_back(tiny: Visit, by_key: bool) -> None:
    page, rows = tiny.page, tiny.page.locator("#highlights-branches [data-branch]")
    page.set_viewport_size({"width": 911, "height": 512})
    tiny.analyse(" ".join(TEXT for _ in range(14)))
    word = page.locator("#highlights .word").nth(3)
    said = page.locator(".read > .announcement")
    word.dblclick()
    page.wait_for_selector("#highlights-branches[data-state=settled][data-stale=false]", timeout=PATIENCE)
    expect(rows.first).to_be_visible()
    for _ in range(2):
        if by_key:
            word.focus()
            page.keyboard.press("Enter")
        else:
            page.wait_for_timeout(600)  # no double click
            word.click()
        expect(rows).to_have_count(0)
        expect(word).not_to_have_attribute("aria-current", "true")
        expect(page.locator(".read .legend").first).to_be_visible()
        expect(said).to_have_text("The branches are closed.")
        page.wait_for_timeout(600)
        word.click()
        expect(said).to_contain_text(" follow.")
        expect(rows.first).to_be_visible()


@in_a_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_branches_that_open_are_announced_with_the_way_back(tiny: Visit, width: int) -> None:
    page = tiny.page
    page.set_viewport_size({"width": width, "height": 800})
    tiny.analyse(TEXT)
    word, field = page.locator("#highlights .word").nth(3), page.locator("#highlights-text")
    replaced = str(word.text_content()).strip()
    word.focus()
    page.keyboard.press("Enter")
    assert field.is_hidden() == (width == 1280)
    hidden = " The text field is hidden meanwhile." if field.is_hidden() else ""
    back = " Escape on the word, or the button Close, leads back."
    said = page.locator(".read > .announcement")
    expect(said).to_have_text(f"Branches instead of “{replaced}” follow.{hidden}{back}")
    expect(word).to_be_focused()
    page.locator(".masthead .skip").press("Enter")
    expect(page.locator("[role=tabpanel][aria-label=Highlights]") if field.is_hidden() else field).to_be_focused()
    word.focus()
    page.keyboard.press("Escape")
    expect(field).to_be_visible()
    expect(word).to_be_focused()
    page.keyboard.press("Enter")
    page.locator("#highlights-replaced button").press("Enter")
    expect(field).to_be_visible()
    expect(word).to_be_focused()


@in_a_browser
def test_alt_and_arrow_up_lead_from_the_branches_back_to_the_word(tiny: Visit) -> None:
    page = tiny.page
    tiny.analyse(TEXT)
    word = page.locator("#highlights .word").filter(has_text="keeper").first
    word.click()
    page.wait_for_selector("#highlights-branches[data-state=settled][data-stale=false]", timeout=PATIENCE)
    assert "Alt+↑ leads back" in page.locator("#highlights-keys").text_content()
    page.locator("#highlights-branches .token").nth(1).focus()
    tiny.listen("#highlights-branches [aria-live], .read .announcement")
    page.keyboard.press("Alt+ArrowUp")
    assert word.evaluate("one => one === document.activeElement")
    assert page.evaluate("window.spoken") == []
    page.keyboard.press("Alt+ArrowDown")
    assert page.evaluate("document.activeElement.matches('#highlights-branches .token')")
    page.keyboard.press("Alt+ArrowUp")
    page.keyboard.press("Alt+ArrowUp")
    expect(page.locator("#highlights-text")).to_be_focused()


@in_a_browser
@pytest.mark.parametrize("width", [1280, 700])
def test_alt_and_arrow_up_lead_from_any_word_to_the_text_and_close_branches_in_its_place(
    tiny: Visit, width: int
) -> None:
    page = tiny.page
    page.set_viewport_size({"width": width, "height": 800})
    tiny.analyse(TEXT)
    rows = page.locator("#highlights-branches [data-branch]")
    for key in ("Shift", "ArrowRight"):  # on the opened word, and on another one
        page.locator("#highlights .word").nth(3).focus()
        page.keyboard.press("Enter")
        expect(rows.first).to_be_visible()
        page.keyboard.press(key)
        page.keyboard.press("Alt+ArrowUp")
        expect(page.locator("#highlights-text")).to_be_focused()
        assert (rows.count() == 0) == (width == 1280)
        if width < 760:
            page.locator("#highlights .word").nth(3).focus()
            page.keyboard.press("Escape")
            expect(rows).to_have_count(0)


@in_a_browser
def test_a_word_says_whether_its_branches_are_open(tiny: Visit) -> None:
    tiny.analyse(TEXT)
    word = tiny.page.locator("#highlights .word").filter(has_text="keeper").first
    for state in ("false", "true", "false"):
        expect(word).to_have_attribute("aria-expanded", state)
        word.focus()
        tiny.page.keyboard.press("Enter")


@in_a_browser
def test_without_branches_alt_and_arrow_down_say_how_to_open_them(tiny: Visit) -> None:
    tiny.analyse(TEXT)
    tiny.page.locator("#highlights .word").first.focus()
    tiny.page.keyboard.press("Alt+ArrowDown")
    said = tiny.page.locator(".read .announcement")
    expect(said).to_have_text("No branches are open: Enter on a word of the analysed text opens them.")


@in_a_browser
def test_a_tap_on_next_highlight_shows_no_sentence_on_the_button_over_the_text(phone: Visit) -> None:
    open_tab(phone)
    phone.analyse(TEXT)
    phone.page.locator("#highlights-next").tap()
    expect(phone.page.locator("#highlights-about")).to_be_visible()
    expect(phone.page.locator(".tip")).to_be_hidden()


@in_a_browser
def test_a_finger_that_rests_on_a_word_shows_its_alternatives_and_a_tap_opens_branches(phone: Visit) -> None:
    open_tab(phone)
    phone.analyse(TEXT)
    word, card = phone.page.locator("#highlights .word", has_text="climbed"), phone.page.locator("#highlights-about")
    branches = phone.page.locator("#highlights-branches")
    legend = phone.page.locator(".read .legend:not(.of-figures)").inner_text()
    assert "Hold a word or a sign for its alternatives; tap it for branches there, and again to close them." in legend
    assert "Point at" not in legend
    word.scroll_into_view_if_needed()
    phone.hold(word)
    phone.page.wait_for_timeout(300)
    expect(card).to_be_visible()
    expect(card.locator("li").first).to_be_visible()
    expect(branches).to_have_attribute("data-state", "empty")
    phone.page.touchscreen.tap(3, 400)  # beside the card, which may cover the text and the legend
    expect(card).to_be_hidden()
    phone.hold(word)
    expect(card).to_be_visible()
    word.tap()
    expect(card).to_be_hidden()
    expect(branches).to_have_attribute("data-state", "settled")


@in_a_browser
def test_a_finger_closes_the_details_of_a_word_by_a_button_that_covers_none_of_their_text(phone: Visit) -> None:
    open_tab(phone)
    phone.analyse(TEXT)
    page, card = phone.page, phone.page.locator("#highlights-about")
    close = page.locator(".word-details .close")
    for figures in (False, True):
        page.locator("#highlights-with-figures").set_checked(figures)
        page.locator("#highlights-next").tap()
        expect(close).to_be_visible()
        button = close.bounding_box()
        assert min(button["width"], button["height"]) >= 40
        ends = card.locator(":scope > :not(.more)").evaluate_all(
            "parts => parts.filter(one => one.checkVisibility()).map(one => one.getBoundingClientRect().right)"
        )
        assert ends and max(ends) <= button["x"] + 1
        close.tap()
        expect(card).to_be_hidden()
        expect(close).to_be_hidden()
        expect(page.locator("#highlights-branches")).to_have_attribute("data-state", "empty")


@in_a_browser
def test_a_button_beside_the_branches_closes_them_and_keys_get_back_to_the_word(tiny: Visit) -> None:
    page = tiny.page
    tiny.analyse(TEXT)
    word, branches = page.locator("#highlights .word", has_text="climbed"), page.locator("#highlights-branches")
    close = page.locator("#highlights-replaced button")
    expect(close).to_be_hidden()
    for by_key in (False, True):
        word.click()
        expect(branches).to_have_attribute("data-state", "settled", timeout=PATIENCE)
        if by_key:
            close.press("Enter")
        else:
            close.click()
        expect(branches).to_have_attribute("data-state", "empty")
        expect(close).to_be_hidden()
        assert page.locator("#highlights [aria-current]").count() == 0
        assert word.evaluate("one => one === document.activeElement") is by_key


@in_a_browser
def test_in_a_low_window_the_wheel_on_a_word_scrolls_its_card_to_the_end(tiny: Visit) -> None:
    page = tiny.page
    page.set_viewport_size({"width": 911, "height": 400})
    tiny.analyse(TEXT)
    page.locator("#highlights-with-figures").check()
    word, about = page.locator("#highlights [data-marked]").first, page.locator("#highlights-about")
    page.locator("#highlights").evaluate("one => one.scrollIntoView({block: 'center'})")
    word.hover()
    about.wait_for(state="visible")
    page.wait_for_function(CHECKED)
    hidden = "card => Math.round(card.scrollHeight - card.clientHeight - card.scrollTop)"
    assert about.evaluate(hidden) > 0, "the card is higher than its room"
    at = page.evaluate("scrollY")
    page.mouse.wheel(0, about.evaluate(hidden))
    page.wait_for_function("document.querySelector('#highlights-about').scrollTop > 0", timeout=5000)
    assert about.evaluate(hidden) <= 1
    assert page.evaluate("scrollY") == at, "the page stays"
    card, own = about.bounding_box(), word.bounding_box()
    assert card["y"] >= 0 and card["y"] + card["height"] <= 400
    over_or_under = card["y"] + card["height"] <= own["y"] or card["y"] >= own["y"] + own["height"]
    assert over_or_under or card["x"] >= own["x"] or card["x"] + card["width"] <= own["x"]


@in_a_browser
@pytest.mark.parametrize("line", ["first", "last"])
@pytest.mark.parametrize(("scrolled", "figures"), [(0, False), (200, True)])
@pytest.mark.parametrize("size", [{"width": 911, "height": 512}, {"width": 1280, "height": 800}])
def test_beside_the_text_field_a_click_on_a_word_moves_nothing_and_all_branches_are_in_sight(
    tiny: Visit, size: dict[str, int], figures: bool, scrolled: int, line: str
) -> None:
    page = tiny.page
    page.set_viewport_size(size)
    tiny.analyse(" ".join(TEXT for _ in range(14)))
    page.locator("#highlights-with-figures").set_checked(figures)
    page.evaluate("top => scrollTo({top, behavior: 'instant'})", scrolled)
    bar = page.locator(".read .controls").bounding_box()
    index = page.evaluate(
        """([line, bar]) => {
          const words = [...document.querySelectorAll('#highlights .word')];
          const {bottom} = document.querySelector('#highlights').getBoundingClientRect();
          const seen = words.filter(word => {
            const box = word.getBoundingClientRect();
            return box.top > bar && box.bottom < Math.min(bottom, innerHeight);
          });
          return words.indexOf(line === 'first' ? seen[1] : seen.at(-1));
        }""",
        [line, max(0, bar["y"] + bar["height"])],
    )
    word, text = page.locator("#highlights .word").nth(index), page.locator("#highlights")
    before = [page.evaluate("scrollY"), *word.bounding_box().values(), *text.bounding_box().values()]
    rows = page.locator("#highlights-branches [data-branch]")
    for count in (5, 0, 5):
        page.mouse.click(*browsers.middle_of(word))
        expect(rows).to_have_count(count)
        page.wait_for_timeout(600)  # no double click
        after = [page.evaluate("scrollY"), *word.bounding_box().values(), *text.bounding_box().values()]
        assert after == pytest.approx(before, abs=2)
    for row in (rows.first.bounding_box(), rows.last.bounding_box()):
        assert row["y"] >= 0 and row["y"] + row["height"] <= size["height"]


@in_a_browser
@pytest.mark.parametrize("size", [{"width": 911, "height": 512}, {"width": 1024, "height": 768}, *WINDOWS[1:]])
def test_no_column_of_the_table_of_figures_is_cut(tiny: Visit, size: dict[str, int]) -> None:
    page = tiny.page
    page.set_viewport_size(size)
    tiny.analyse(" ".join(TEXT for _ in range(14)))
    page.locator("#highlights-with-figures").check()
    page.locator(".read .figures summary").click()
    wide = page.locator(".read .figures .wide")
    expect(wide.locator("tbody tr").first).to_be_visible()
    assert wide.evaluate("one => one.scrollWidth - one.clientWidth") == 0
    if size["height"] > 600:  # in a lower window the page scrolls the table
        wide.evaluate("one => { one.scrollTop = 300; }")
        head, box = wide.locator("th:visible").first.bounding_box(), wide.bounding_box()
        assert abs(head["y"] - box["y"]) <= 1, "the names of the columns stay in sight"
