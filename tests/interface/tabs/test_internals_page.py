"""The Internals tab in a browser and on the server: every token with its id and the model's probabilities."""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from interface import ModelLoader
from interface.server.page_service import PageService
from interface.tabs.internals.token_odds import MOST_TEXT, MOST_TOKENS, InternalsRequest, InternalsSession
from lookahead_core import Model, load_model
from tests.conftest import tiny_llama
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, Visit
from tests.support.requests_to_pages import PAGE, ask
from tests.text.test_chat import PLAIN

TEXT = "After careful\n\tconsideration of the 🙂 risks"
TALK = [{"role": "user", "content": "Say 🙂"}, {"role": "assistant", "content": "The old"}]
MARKUP = "the <b>sea</b> & ${sky} `grey` <img src=x onerror=alert(1)> <|im_end|>"
SPECIAL = "<|im_end|>"


def in_a_browser(test: Any) -> Any:
    return pytest.mark.browser(pytest.mark.slow(test))


@pytest.fixture(scope="module")
def chatty(byte_tokenizer: Any) -> Model:
    """A tiny model with a chat template, whose messages end with the token that ends its texts."""
    tokenizer = copy.deepcopy(byte_tokenizer)
    tokenizer.chat_template = PLAIN
    return load_model(tiny_llama(len(tokenizer), max_position_embeddings=4096), tokenizer=tokenizer)


@pytest.fixture
def service(chatty: Model) -> PageService:
    return served(chatty)


def served(model: Model) -> PageService:
    loader = ModelLoader(lambda report: model)
    loader.run()
    return PageService(loader, InternalsRequest.from_json, InternalsSession)


def view_of(news: list[Any]) -> Any:
    assert news[-1]["state"] == "settled", news[-1]
    return [one["view"] for one in news if "view" in one][-1]


def plain_rows(model: Model, ids: list[int]) -> torch.Tensor:
    """The reference: transformers' own forward, once over all of it."""
    with torch.no_grad():
        return model.hf_model(torch.tensor([ids])).logits[0].float().log_softmax(-1)


def template_of(model: Model, messages: list[dict[str, str]]) -> list[int]:
    """What transformers makes of all messages but the last, and of where an answer begins."""
    return list(model.tokenizer.apply_chat_template(messages[:-1], add_generation_prompt=True, return_dict=False))


def test_the_tree_that_a_page_keeps_counts_with_its_bytes(service: PageService) -> None:
    view = view_of(asyncio.run(ask(service, messages=TALK)))
    (page,) = service.open_pages.values()
    assert page.session.tree_bytes >= 10_000 * (len(view["tokens"]) - 1)


def test_every_token_has_its_id_and_the_probabilities_of_a_plain_forward(service: PageService, chatty: Model) -> None:
    view = view_of(asyncio.run(ask(service, messages=TALK)))
    *tokens, blank = view["tokens"]
    written = chatty.tokenizer(TALK[-1]["content"], add_special_tokens=False).input_ids
    ids = [token["id"] for token in tokens]
    assert ids == [*template_of(chatty, TALK), *written]
    rows = plain_rows(chatty, ids)
    assert tokens[0]["logprob"] is None and tokens[0]["alternatives"] == []
    for place, token in enumerate([*tokens[1:], blank], 1):
        row = rows[place - 1]
        odds = dict(token["alternatives"])
        assert list(odds)[:10] == row.topk(10).indices.tolist()
        assert list(odds.values()) == pytest.approx(row[list(odds)].tolist(), abs=1e-4)
        if token is not blank:
            assert token["logprob"] == pytest.approx(float(row[token["id"]]), abs=1e-4)
            assert token["rank"] == int((row > row[token["id"]]).sum()) + 1
        assert view["entropies"][place - 1] == pytest.approx(float(-(row.exp() * row).sum()), abs=1e-3)
    assert blank["id"] is None and blank["logprob"] is None


def test_token_texts_join_to_the_text_and_template_tokens_belong_to_no_message(
    service: PageService, chatty: Model
) -> None:
    tokens = view_of(asyncio.run(ask(service, messages=TALK)))["tokens"][:-1]
    whole = "".join(token["text"] for token in tokens)
    rendered = chatty.tokenizer.apply_chat_template(TALK[:-1], add_generation_prompt=True, tokenize=False)
    assert whole == rendered + TALK[-1]["content"]
    assert "".join(token["text"] for token in tokens if token["message"] == 1) == TALK[1]["content"]
    assert {token["message"] for token in tokens} == {None, 0, 1}
    special = set(chatty.tokenizer.all_special_ids)
    assert all(token["message"] is None for token in tokens if token["id"] in special)
    plain = view_of(asyncio.run(ask(service, 2, text=TEXT)))["tokens"][:-1]
    assert "".join(token["text"] for token in plain) == TEXT


def test_end_tokens_are_marked_and_parts_of_characters_are_shown_as_bytes(service: PageService, chatty: Model) -> None:
    view = view_of(asyncio.run(ask(service, text="🦊")))
    tokens, spelled = view["tokens"][:-1], view["spelled"]
    held = [spelled[str(token["id"])]["bytes"] for token in tokens]
    assert bytes.fromhex("".join(held)) == "🦊".encode() and len(tokens) > 1
    assert [token["text"] for token in tokens] == [""] * (len(tokens) - 1) + ["🦊"]
    ends = {int(token_id) for token_id, one in spelled.items() if one["ended"]}
    shown = {token_id for token in view["tokens"] for token_id, _ in token["alternatives"]}
    assert ends == shown & set(chatty.end_token_ids)
    every = view_of(asyncio.run(ask(service, 2, messages=TALK)))["spelled"]
    assert every[str(chatty.tokenizer.eos_token_id)]["ended"]
    assert every[str(chatty.tokenizer.eos_token_id)]["text"] == "<|end|>"


def test_every_token_and_every_alternative_has_its_text_in_the_view(service: PageService) -> None:
    view = view_of(asyncio.run(ask(service, messages=TALK)))
    alternatives = {token_id for token in view["tokens"] for token_id, _ in token["alternatives"]}
    ids = {token["id"] for token in view["tokens"]} - {None}
    assert {str(token_id) for token_id in ids | alternatives} == set(view["spelled"])


def test_nothing_is_prefetched_for_the_tokens_of_a_text_and_accepted_tokens_are_ignored() -> None:
    for given in ({}, {"ahead": True, "accepted": [[0, [5], False]]}):
        payload = {"page": PAGE, "number": 1, "revision": 1, "text": TEXT, **given}
        request = InternalsRequest.from_json(payload)
        assert not request.ahead and request.accepted == ()


def test_as_many_tokens_as_allowed_are_shown_and_one_more_is_refused(
    service: PageService, monkeypatch: pytest.MonkeyPatch
) -> None:
    length = len(view_of(asyncio.run(ask(service, text=TEXT)))["tokens"]) - 1
    monkeypatch.setattr("interface.tabs.internals.token_odds.MOST_TOKENS", length)
    assert view_of(asyncio.run(ask(service, 2, text=TEXT)))["tokens"]
    refused = asyncio.run(ask(service, 3, text=TEXT + "\n\t"))[-1]
    assert refused["state"] == "error" and f"at most {length} are shown" in refused["sentence"]


def test_entropies_are_rounded_to_four_digits_behind_the_point(service: PageService) -> None:
    entropies = view_of(asyncio.run(ask(service, text=TEXT)))["entropies"]
    assert entropies == [round(entropy, 4) for entropy in entropies]
    assert entropies != [round(entropy, 3) for entropy in entropies]


def test_a_common_prefix_is_not_evaluated_again(service: PageService) -> None:
    first = view_of(asyncio.run(ask(service, text=TEXT)))
    again = view_of(asyncio.run(ask(service, 2, text=TEXT)))
    longer = view_of(asyncio.run(ask(service, 3, text=TEXT + " again")))
    assert first["cost"]["tokens"] == len(first["tokens"]) - 1
    assert (again["cost"]["passes"], again["cost"]["tokens"]) == (0, 0)
    assert 0 < longer["cost"]["tokens"] < 8


def test_a_long_text_is_evaluated_in_chunks_with_progress(service: PageService) -> None:
    news = asyncio.run(ask(service, text="the sea and the sky " * 60))
    reading = [one["reading"] for one in news if "reading" in one]
    total = len(view_of(news)["tokens"]) - 1
    assert len(reading) >= 2 and reading == sorted(reading)
    assert {whole for _, whole in reading} == {total} and all(read <= total for read, _ in reading)


@pytest.mark.slow
def test_bad_input_gets_a_sentence(service: PageService) -> None:
    for given, words in [
        ({"text": 5}, "must be a string"),
        ({"text": "a" * (MOST_TEXT + 1)}, "20,000 are allowed here: shorten the text"),
        ({"messages": [{"role": "user", "content": "a" * (MOST_TEXT + 1)}]}, "20,000 are allowed here"),
        ({"text": "🦊" * MOST_TOKENS}, "at most 2,000 are shown: shorten the text"),
        ({"text": "the \ud83d sea"}, "half of a surrogate pair"),
        ({"messages": []}, "At least one message must be provided."),
        ({"messages": "hello"}, "messages must be a list"),
        ({"messages": {"role": "user"}}, "messages must be a list"),
        ({"messages": [{"role": "wizard", "content": "a"}]}, "role of message 1 must be one of"),
        ({"messages": [{"role": "user", "content": 5}]}, "Message 1 must be"),
        ({"messages": [7]}, "Message 1 must be"),
    ]:
        news = asyncio.run(ask(service, **given))
        assert words in news[-1]["sentence"] and news[-1]["state"] == "error"
        service.open_pages._values.clear()
    assert asyncio.run(ask(service, messages=TALK))[-1]["state"] == "settled"


def test_text_that_spells_template_tokens_stays_text(service: PageService, chatty: Model) -> None:
    talk = [{"role": "user", "content": "<|end|> is <|start|>"}, {"role": "assistant", "content": "<|end|>"}]
    tokens = view_of(asyncio.run(ask(service, messages=talk)))["tokens"][:-1]
    special = set(chatty.tokenizer.all_special_ids)
    assert all(token["message"] is None for token in tokens if token["id"] in special)
    assert "".join(token["text"] for token in tokens if token["message"] == 0) == talk[0]["content"]
    assert "".join(token["text"] for token in tokens if token["message"] == 1) == talk[1]["content"]


def test_a_request_before_the_model_is_loaded_waits() -> None:
    loader = ModelLoader(lambda report: pytest.fail("Nobody has asked for it."))
    (news,) = asyncio.run(ask(PageService(loader, InternalsRequest.from_json, InternalsSession), text="the sea"))
    assert news["state"] == "waiting" and news["over"]


@dataclass
class Inside:
    """The tab as somebody has it open."""

    visit: Visit

    @property
    def page(self) -> Any:
        return self.visit.page

    @property
    def boxes(self) -> Any:
        return self.page.locator("#internals .box")

    @property
    def rows(self) -> Any:
        return self.page.locator("#internals tbody tr[data-id]")

    def settle(self) -> None:
        """What is shown is marked at once where it is of another text; where nothing is, nothing is settled."""
        self.page.wait_for_selector("#internals[data-state=settled]:not([data-stale])", timeout=PATIENCE)

    def read(self, text: str) -> None:
        self.page.locator("#internals-text").fill(text)
        self.settle()

    def talk(self, *messages: dict[str, str]) -> None:
        """A conversation, written message by message."""
        self.page.get_by_label("A conversation").check()
        while self.page.locator(".asked .turn").count() < len(messages):
            self.page.get_by_role("button", name="Add a message").click()
        for number, message in enumerate(messages, 1):
            self.page.get_by_label(f"Role of message {number}", exact=True).select_option(message["role"])
            self.page.get_by_label(f"Message {number}", exact=True).fill(message["content"])
        self.settle()

    def ids(self) -> list[int]:
        return list(
            self.page.locator("#internals .box[data-id]").evaluate_all("all => all.map(one => Number(one.dataset.id))")
        )

    def odds(self, name: str = "p") -> dict[int, float]:
        """What the table of the open token says, by id: raw odds (p) or processed."""
        script = "(all, name) => all.map(one => [Number(one.dataset.id), Number(one.dataset[name])])"
        return dict(self.rows.evaluate_all(script, name))

    def heat(self, temperature: float, top_p: float = 1.0) -> None:
        self.page.locator("#internals-temperature").fill(str(temperature))
        self.page.locator("#internals-top-p").fill(str(top_p))


@pytest.fixture
def inside(page: Any, small_page: str) -> Iterator[Inside]:
    with browsers.visit_again(page, small_page) as opened:
        yield open_tab(opened)


@pytest.fixture
def default_inside(page: Any, real_page: str) -> Iterator[Inside]:
    """The tab with the default model, for what depends on what the model says."""
    with browsers.visit_again(page, real_page) as opened:
        yield open_tab(opened)


def open_tab(opened: Visit) -> Inside:
    opened.wait_for_status("ready")
    opened.page.get_by_role("tab", name="Internals").click()
    opened.page.locator("#internals .says", has_text="Write something").wait_for()  # its script has run
    return Inside(opened)


@in_a_browser
def test_every_token_is_a_box_and_a_click_shows_the_ten_alternatives_of_a_plain_forward(
    default_inside: Inside, default_model: Model
) -> None:
    default_inside.read(TEXT)
    ids = default_model.tokenizer(TEXT).input_ids
    rows = plain_rows(default_model, ids)
    assert default_inside.ids() == ids
    assert default_inside.boxes.count() == len(ids) + 1
    for place in range(1, len(ids), 2):
        default_inside.boxes.nth(place).click()
        row = rows[place - 1].exp()
        shown = default_inside.odds()
        assert list(shown)[:10] == row.topk(10).indices.tolist()
        assert set(shown) == {*row.topk(10).indices.tolist(), ids[place]}
        assert list(shown.values()) == pytest.approx(row[list(shown)].tolist(), rel=1e-3, abs=1e-7)
        rank = int((row > row[ids[place]]).sum()) + 1
        assert f"Choice {rank:,} of the model " in default_inside.page.locator("#internals .came").inner_text()
        assert f"position {place} · id {ids[place]}" in default_inside.page.locator("#internals .facts").inner_text()
        (came,) = default_inside.page.locator("#internals tr[data-came]").all()
        assert came.get_attribute("data-id") == str(ids[place]) and "came" in came.inner_text()
    default_inside.boxes.first.click()
    assert "No text comes before it" in default_inside.page.locator("#internals .came").inner_text()
    assert default_inside.rows.count() == 0


COVERED = """() => {
  const tip = document.querySelector('.tip').getBoundingClientRect();
  const meets = ({left, top, right, bottom}) =>
    left < tip.right && tip.left < right && top < tip.bottom && tip.top < bottom;
  return [...document.querySelectorAll('#internals :is(.box, td)')]
    .filter(one => meets(one.getBoundingClientRect())).map(one => one.textContent);
}"""


@in_a_browser
def test_no_sentence_of_the_focus_covers_a_token_or_its_odds(inside: Inside) -> None:
    page, tip = inside.page, inside.page.locator(".tip")
    page.set_viewport_size({"width": 1280, "height": 800})
    try:
        inside.read(f"{TEXT} 🦊")
        page.keyboard.press("Shift")  # as who uses the keyboard: the focus is visible then
        explained = page.locator("#internals :is([data-tip][tabindex], [data-tip] input):visible")
        assert explained.count() > 8
        for one in explained.all():
            one.focus()
            browsers.expect(tip).to_be_visible()
            assert page.evaluate(COVERED) == [], tip.inner_text()
    finally:
        page.set_viewport_size({"width": 1280, "height": 720})


@in_a_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_every_figure_and_column_has_a_sentence_on_hover_and_on_focus(inside: Inside, width: int) -> None:
    page, tip = inside.page, inside.page.locator(".tip")
    page.set_viewport_size({"width": width, "height": 844})
    try:
        inside.read(f"{TEXT} 🦊")
        inside.boxes.nth(2).click()
        figures = page.locator("#internals :is(.legend, .facts, .came, th) [data-tip]:visible")
        named = {text.split()[0].lower() for text in figures.all_inner_texts()}
        sample = page.locator("#internals .box[data-part] .spelled").first.inner_text()
        assert {"token", "position", "id", "choice", "raw", "processed", "entropy", sample.split()[0].lower()} <= named
        columns = page.locator("#internals th").all_inner_texts()
        assert page.locator("#internals th [data-tip]").all_inner_texts() == columns
        for figure in figures.all():
            sentence = figure.get_attribute("data-tip")
            page.locator("#internals-text").focus()
            page.mouse.move(0, 0)
            figure.scroll_into_view_if_needed()
            page.wait_for_timeout(100)
            figure.hover()
            browsers.expect(tip).to_have_text(sentence)
            page.mouse.move(0, 0)
            browsers.expect(tip).to_be_hidden()
            page.keyboard.press("Shift")  # as who uses the keyboard: the focus is visible then
            figure.focus()
            browsers.expect(tip).to_have_text(sentence)
            browsers.expect(figure).to_have_accessible_description(sentence)
    finally:
        page.set_viewport_size({"width": 1280, "height": 720})


@in_a_browser
def test_the_blank_shows_the_next_tokens_distribution_and_is_open_at_first(
    default_inside: Inside, default_model: Model
) -> None:
    default_inside.read("The sea and the")
    row = plain_rows(default_model, default_model.tokenizer("The sea and the").input_ids)[-1].exp()
    assert default_inside.boxes.last.locator(".spelled").inner_text() == "[____]"
    assert default_inside.boxes.last.get_attribute("aria-current") == "true"
    assert list(default_inside.odds()) == row.topk(10).indices.tolist()
    assert list(default_inside.odds().values()) == pytest.approx(row.topk(10).values.tolist(), rel=1e-3)
    assert default_inside.page.locator("#internals tr[data-came]").count() == 0


@in_a_browser
def test_template_tokens_are_marked_not_by_colour_alone(inside: Inside, small_model: Model) -> None:
    talk = [{"role": "user", "content": "Say 🙂\nnow"}, {"role": "assistant", "content": "The old"}]
    inside.talk(*talk)
    written = small_model.tokenizer("The old", add_special_tokens=False).input_ids
    assert inside.ids() == [*template_of(small_model, talk), *written]
    template = inside.page.locator("#internals .box[data-template]")
    special = set(small_model.tokenizer.all_special_ids)
    theirs = template.evaluate_all("all => all.map(one => Number(one.dataset.id))")
    assert special & set(inside.ids()) <= set(theirs)
    names = template.evaluate_all("all => all.map(one => one.ariaLabel)")
    assert all("of the template" in name for name in names)
    borders = "all => [...new Set(all.map(one => getComputedStyle(one).borderTopStyle))]"
    assert template.evaluate_all(borders) == ["dashed"]
    own = inside.page.locator("#internals .box[data-id]:not([data-template])")
    assert own.evaluate_all(borders) == ["solid"]
    assert "".join(own.evaluate_all("all => all.map(one => one.dataset.text)")).endswith("nowThe old")
    own.first.click()
    assert "message 1, the user's" in inside.page.locator("#internals .facts").inner_text()
    template.last.click()
    assert "put there by the template" in inside.page.locator("#internals .facts").inner_text()


@in_a_browser
def test_the_legend_explains_only_what_is_shown(inside: Inside) -> None:
    entries = inside.page.locator("#internals .legend .entry:visible")
    for text, shown in (("sea", ""), ("a sea", "space"), ("sea 🦊", "part space"), ("sea\nsky", "break")):
        inside.read(text)
        assert " ".join(entries.evaluate_all("all => all.map(one => one.dataset.entry)")) == shown, text
    inside.talk({"role": "user", "content": "sea"})
    assert "template" in entries.evaluate_all("all => all.map(one => one.dataset.entry)")


IN_SIGHT = """index => {
  const boxes = [index - 1, index, index + 1].map(one => `[data-token="${one}"]`);
  return [...boxes, 'thead', 'tbody tr:nth-child(5)'].map(part => {
    const {top, bottom} = document.querySelector(`#internals ${part}`).getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight;
  });
}"""
"""Whether the chosen token, its neighbours, the head of its table and the fifth row are in the window."""


@in_a_browser
@pytest.mark.parametrize("height", [512, 560])
@pytest.mark.parametrize("pairs", [1, 4])
def test_in_a_low_window_a_token_its_neighbours_five_rows_and_the_legend_are_in_sight_and_no_choice_moves_them(
    inside: Inside, height: int, pairs: int
) -> None:
    page = inside.page
    page.set_viewport_size({"width": 911, "height": height})
    page.evaluate("scrollTo(0, 0)")
    inside.read("The old lighthouse stood at the edge of the sea.\nNobody had climbed its stairs for years." * pairs)
    assert inside.boxes.nth(4).locator("small").evaluate("one => getComputedStyle(one).fontSize") == "14px"
    legend = page.locator("#internals .legend").bounding_box()
    assert legend["y"] + legend["height"] <= height
    places = "['.lines', 'thead'].map(part => document.querySelector(`#internals ${part}`).getBoundingClientRect().top)"
    before = page.evaluate(places)
    for index in (4, 5, 8, 3, 7):
        inside.boxes.nth(index).click()
        page.wait_for_timeout(400)
        assert all(page.evaluate(IN_SIGHT, index)), index
        assert page.evaluate(places) == before, index
    assert page.evaluate("scrollY") == 0


@in_a_browser
@pytest.mark.parametrize(("width", "height"), [(911, 512), (1366, 768), (390, 844)])
def test_another_text_is_shown_from_its_beginning_and_a_chosen_token_stays_in_sight(
    inside: Inside, width: int, height: int
) -> None:
    inside.page.set_viewport_size({"width": width, "height": height})
    lines = inside.page.locator("#internals .lines")
    inside.read("The sea and the sky.\n" * 12)
    assert lines.evaluate("list => [list.scrollTop, list.scrollHeight > list.clientHeight]") == [0, True]
    browsers.expect(inside.page.locator("#internals .what")).to_have_text("What would come next")
    inside.page.evaluate("document.querySelectorAll('#internals .box').item(30).click()")
    top = lines.evaluate("list => list.scrollTop")
    assert top > 0, "the chosen token is scrolled into sight"
    inside.read("The sea and the sky.\n" * 13)
    assert lines.evaluate("list => list.scrollTop") == top, "the same text goes on"
    inside.read("Another sky and another sea.\n" * 12)
    assert lines.evaluate("list => list.scrollTop") == 0


@in_a_browser
def test_a_line_break_is_named_beside_its_sign(inside: Inside) -> None:
    inside.read("The sea\nand")
    inside.page.locator("#internals .box", has_text="↵").click()
    browsers.expect(inside.page.locator("#internals .what")).to_have_text("“↵” (line break)")


@in_a_browser
def test_an_end_token_is_marked(default_inside: Inside, default_model: Model) -> None:
    default_inside.talk({"role": "user", "content": "Say yes."}, {"role": "assistant", "content": "Yes."})
    [end] = default_model.tokenizer.convert_tokens_to_ids([SPECIAL])
    boxes = default_inside.page.locator(f"#internals .box[data-id='{end}']")
    assert boxes.count() and "an ending" in boxes.first.get_attribute("aria-label")
    default_inside.boxes.last.click()
    row = default_inside.page.locator(f"#internals tbody tr[data-id='{end}']")
    assert row.get_attribute("data-end") is not None
    assert SPECIAL in row.inner_text() and row.locator(".end").inner_text() == "end"
    assert default_inside.page.locator("#internals tbody tr:not([data-end]) .end").count() == 0


@in_a_browser
def test_processed_probabilities_equal_a_softmax_and_the_sliders_send_no_request(
    default_inside: Inside, default_model: Model
) -> None:
    default_inside.read("The old lighthouse keeper climbed the stairs")
    ids = default_model.tokenizer("The old lighthouse keeper climbed the stairs").input_ids
    rows = plain_rows(default_model, ids)
    browsers.wait_until_idle()
    passes, asked = default_model.engine.passes, len(default_inside.visit.asked)
    for place in (2, 5, len(ids)):
        default_inside.boxes.nth(place).click()
        for temperature in (0.5, 0.7, 1.3, 2.0):
            default_inside.heat(temperature)
            expected = torch.softmax(rows[place - 1].double() / temperature, -1)
            shown = default_inside.odds("processed")
            assert list(shown.values()) == pytest.approx(expected[list(shown)].tolist(), rel=0.01, abs=1e-9)
        default_inside.heat(1.0)
        assert default_inside.odds("processed") == default_inside.odds()
        raw = default_inside.odds()
        default_inside.heat(0.0)
        assert next(iter(default_inside.odds("processed").values())) == 1
        assert default_inside.odds() == raw, "raw odds are left as they are"
    default_inside.visit.wait_until_asked()
    assert (default_model.engine.passes, len(default_inside.visit.asked)) == (passes, asked)


@in_a_browser
def test_top_p_is_exact_where_it_can_be_and_a_bound_elsewhere(default_inside: Inside, default_model: Model) -> None:
    default_inside.read("Once upon a")
    row = plain_rows(default_model, default_model.tokenizer("Once upon a").input_ids)[-1].exp()
    default_inside.heat(1.0, 0.5)
    kept = int((row.sort(descending=True).values.cumsum(0) < 0.5).sum()) + 1
    best = row.topk(10)
    mass = float(row.topk(kept).values.sum())
    expected = [float(p) / mass if place < kept else 0.0 for place, p in enumerate(best.values)]
    assert list(default_inside.odds("processed").values()) == pytest.approx(expected, rel=0.01)
    default_inside.read("After careful")
    default_inside.heat(2.0, 0.95)
    assert {one.get_attribute("data-bound") for one in default_inside.rows.all()} == {"true"}
    assert all("≤" in one.inner_text() for one in default_inside.rows.all())
    assert "this is only a bound" in default_inside.page.locator("#internals .about").inner_text()
    hot = torch.softmax(plain_rows(default_model, default_model.tokenizer("After careful").input_ids)[-1] / 2, -1)
    order = hot.sort(descending=True).values
    whole = float(order[: int((order.cumsum(0) < 0.95).sum()) + 1].sum())
    for token_id, bound in default_inside.odds("processed").items():
        assert float(hot[token_id]) / whole <= bound * 1.01


@in_a_browser
def test_the_name_of_a_token_says_its_signs_and_its_chance(default_inside: Inside, default_model: Model) -> None:
    default_inside.read("I love it.")
    names = default_inside.page.locator("#internals .box[data-id]").evaluate_all("all => all.map(one => one.ariaLabel)")
    ids = default_model.tokenizer("I love it.").input_ids
    assert names[0] == f"“I” 0, {ids[0]}: position and id", "the model has no odds for it"
    assert re.fullmatch(rf"“space, love” 1, {ids[1]}: position and id, (< )?[\d.]+\u00a0% chance", names[1])
    assert re.fullmatch(rf"“full stop” 3, {ids[3]}: position and id, [\d.]+\u00a0% chance", names[3])
    love = default_inside.boxes.nth(1)
    assert love.locator(".spelled").get_attribute("title") == f"position 1, id {ids[1]}"
    for box in (love, default_inside.boxes.last):
        browsers.expect(box).to_have_accessible_description("")
    last = default_inside.boxes.last.get_attribute("aria-label")
    assert last == f"The token to come, position {len(ids)}"
    seen = default_inside.boxes.evaluate_all(
        r"""all => {
          const words = text => text.replace(/[^\w ]|_/g, '').trim();
          return all.map(({textContent, ariaLabel}) => [words(textContent), words(ariaLabel)]);
        }"""
    )
    assert [text for text, name in seen if text not in name] == []
    default_inside.boxes.nth(3).click()
    came = default_inside.page.locator("#internals tr[data-came] .spelled")
    assert came.locator("[aria-hidden]").inner_text() == "."
    assert came.locator(".spoken-only").text_content() == "full stop"


@in_a_browser
def test_parts_of_characters_are_bytes_and_white_space_has_signs(default_inside: Inside, default_model: Model) -> None:
    default_inside.read("a 🦊\tb\n\nc ")
    parts = default_inside.page.locator("#internals .box[data-part] .spelled").all_inner_texts()
    assert len(parts) > 1 and parts[0].startswith("␣ ")
    sample = default_inside.page.locator("#internals .legend .key.part")
    shown, said = sample.locator("[aria-hidden]").inner_text(), sample.locator(".spoken-only").text_content()
    assert shown in parts, "the legend shows bytes of this text"
    assert said == shown.replace("␣ ", "space, bytes ")
    assert bytes.fromhex("".join(parts).replace("␣", "20")).decode() == " 🦊"
    shown = "".join(default_inside.page.locator("#internals .box:not([data-part]) .spelled").all_inner_texts())
    assert shown == "a⇥b↵↵c␣[____]" and "�" not in shown
    texts = "".join(default_inside.page.locator("#internals .line > .text").all_inner_texts())
    assert "🦊" in texts


@in_a_browser
def test_pointing_at_a_token_marks_its_text_and_the_other_way_round(inside: Inside) -> None:
    inside.read("a 🦊 sea")
    marked = inside.page.locator("#internals [data-of][data-marked]")
    boxes = inside.page.locator("#internals .box[data-marked]")
    parts = inside.page.locator("#internals .box[data-part]")
    fox = inside.page.locator("#internals [data-of]", has_text="🦊")
    assert parts.count() > 1
    fox.hover()
    browsers.expect(boxes).to_have_count(parts.count())
    inside.page.mouse.move(1, 1)
    browsers.expect(boxes).to_have_count(0)
    parts.first.hover()
    browsers.expect(marked).not_to_have_count(0)
    assert "".join(marked.all_inner_texts()).strip() == "🦊"
    inside.page.mouse.move(1, 1)
    browsers.expect(marked).to_have_count(0)
    inside.boxes.nth(0).focus()
    assert marked.inner_text() == "a"
    fox.click()
    assert "bytes of a part of a character" in inside.page.locator("#internals .facts").inner_text()


@in_a_browser
def test_the_boxes_are_one_tab_stop_with_arrow_keys(inside: Inside) -> None:
    inside.read("the sea and the sky\n" * 3)
    assert inside.page.locator("#internals .lines [tabindex='0']").count() == 1
    focused = "Number(document.activeElement.dataset.token)"
    inside.boxes.nth(0).focus()
    inside.page.keyboard.press("ArrowRight")
    inside.page.keyboard.press("ArrowRight")
    assert inside.page.evaluate(focused) == 2
    inside.page.keyboard.press("Enter")
    assert inside.boxes.nth(2).get_attribute("aria-current") == "true"
    assert "position 2 " in inside.page.locator("#internals .facts").inner_text()
    inside.page.keyboard.press("ArrowDown")
    below = inside.page.evaluate(focused)
    assert below > 2
    inside.page.keyboard.press("ArrowUp")
    assert inside.page.evaluate(focused) == 2
    inside.page.keyboard.press("End")
    assert inside.page.evaluate(focused) == inside.boxes.count() - 1
    inside.page.keyboard.press("Home")
    inside.page.keyboard.press("ArrowLeft")
    assert inside.page.evaluate(focused) == 0
    inside.page.keyboard.press("Tab")
    assert inside.page.evaluate("!document.activeElement.matches('.box')")


@in_a_browser
def test_texts_of_people_and_models_are_never_markup(inside: Inside, small_model: Model) -> None:
    inside.read(MARKUP)
    assert inside.ids() == small_model.tokenizer(MARKUP, split_special_tokens=True).input_ids
    assert inside.page.locator("#internals :is(b:not(.place), img, script)").count() == 0
    inside.talk({"role": "user", "content": MARKUP}, {"role": "assistant", "content": MARKUP})
    [end] = small_model.tokenizer.convert_tokens_to_ids([SPECIAL])
    typed = inside.page.locator("#internals .box[data-id]:not([data-template])")
    assert str(end) not in typed.evaluate_all("all => all.map(one => one.dataset.id)")
    assert inside.page.locator("#internals :is(img, script)").count() == 0
    assert "".join(typed.evaluate_all("all => all.map(one => one.dataset.text)")).count(SPECIAL) == 2


@in_a_browser
def test_too_long_a_text_and_an_empty_one_get_a_sentence(inside: Inside) -> None:
    says = inside.page.locator("#internals .says")
    says.filter(has_text="Write something").wait_for()
    inside.page.locator("#internals-text").fill("a" * (MOST_TEXT + 1))
    says.filter(has_text="20,000 are allowed here").wait_for()
    inside.page.locator("#internals-text").fill("7 " * (MOST_TOKENS // 2 + 1))
    says.filter(has_text="at most 2,000 are shown").wait_for()
    assert inside.page.locator("#internals").get_attribute("data-state") == "error"
    inside.page.locator("#internals-text").fill("")
    says.filter(has_text="Write something").wait_for()


@in_a_browser
def test_the_conversation_of_type_assistant_can_be_copied(inside: Inside) -> None:
    page, take = inside.page, inside.page.locator(".asked .take")
    page.get_by_label("A conversation").check()
    inside.visit.wait_until_asked()  # what it says of an empty conversation comes before what is said of taking one
    take.click()
    page.locator("#internals .says", has_text="There is no conversation").wait_for()
    page.get_by_role("tab", name="Type assistant").click()
    page.wait_for_selector("#chat-branches[data-state=settled]")
    page.locator("#chat-text").fill("Say <b>yes</b>.")
    page.locator("#send").click()
    page.locator("#chat-text").fill("Yes")
    page.get_by_role("tab", name="Internals").click()
    page.get_by_label("A conversation").check()
    take.click()
    inside.settle()
    assert page.get_by_label("Message 1", exact=True).input_value() == "Say <b>yes</b>."
    own = page.locator("#internals .box[data-id]:not([data-template])")
    assert "".join(own.evaluate_all("all => all.map(one => one.dataset.text)")) == "Say <b>yes</b>.Yes"


@in_a_browser
def test_text_and_conversation_are_restored_after_a_reload(inside: Inside) -> None:
    said = [{"role": "system", "content": "Be <b>brief</b>."}, {"role": "user", "content": "Who lights the lamp?"}]
    inside.read("The keeper")
    inside.talk(*said, {"role": "assistant", "content": "The"})
    ids = inside.ids()
    inside.page.once("dialog", lambda dialog: dialog.accept())
    inside.page.reload()
    inside.visit.wait_for_status("ready")
    inside.page.get_by_role("tab", name="Internals").click()
    inside.settle()
    assert inside.page.get_by_label("A conversation").is_checked() and inside.ids() == ids
    assert inside.page.get_by_label("Message 1", exact=True).input_value() == "Be <b>brief</b>."
    assert inside.page.get_by_label("Role of message 3", exact=True).input_value() == "assistant"
    inside.page.get_by_label("A text").check()
    inside.settle()
    assert inside.page.locator("#internals-text").input_value() == "The keeper"


LOOKS = [
    {"viewport": {"width": 390, "height": 844}},
    {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
]


@in_a_browser
@pytest.mark.parametrize("look", LOOKS, ids=["a phone", "dark"])
def test_it_fits_narrow_pages_and_axe_finds_no_serious_violation(
    page: Any, small_page: str, look: dict[str, Any]
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    with browsers.visit_again(page, small_page, **look) as opened:
        inside = open_tab(opened)
        inside.talk(
            {"role": "user", "content": "Say 🦊 " + "again " * 60}, {"role": "assistant", "content": "a" + " " * 80}
        )
        inside.boxes.nth(inside.boxes.count() - 2).click()
        inside.heat(1.6, 0.9)
        assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        found = Axe().run(opened.page, context={"include": [[".asked"], ["#internals"], ["[role=tablist]"]]})
        assert [(one["id"], node["html"][:120]) for one in found.response["violations"] for node in one["nodes"]] == []


def contents(inside: Inside) -> list[str]:
    return list(inside.page.locator(".asked .turn textarea").evaluate_all("all => all.map(({value}) => value)"))


def take_back(inside: Inside) -> None:
    inside.page.locator(".asked .notice .action", has_text="Undo").click()


@in_a_browser
def test_removed_messages_are_restored_in_reverse_order_at_their_positions(inside: Inside) -> None:
    inside.talk(*({"role": role, "content": role} for role in ("system", "user", "assistant")))
    said = inside.page.locator(".asked .notice .sentence")
    for number in (2, 1):
        inside.page.get_by_label(f"Remove message {number}", exact=True).click()
        said.filter(has_text=f"Message {number} was removed").wait_for()
    assert contents(inside) == ["assistant"]
    inside.page.get_by_label("Message 1", exact=True).fill("another")
    take_back(inside)
    assert contents(inside) == ["system", "another"]
    said.filter(has_text="Message 2 was removed").wait_for()
    take_back(inside)
    assert contents(inside) == ["system", "user", "another"], "what was written since stays"
    roles = inside.page.locator(".asked .turn select").evaluate_all("all => all.map(({value}) => value)")
    assert roles == ["system", "user", "assistant"]
    assert inside.page.evaluate("document.activeElement.ariaLabel") == "Message 2"
    inside.page.locator(".asked .notice:not(.said)").wait_for(state="attached")
    inside.settle()
    assert "another" in inside.page.locator("#internals .lines").inner_text()


@in_a_browser
def test_copying_a_conversation_can_be_undone_without_loss(inside: Inside) -> None:
    page = inside.page
    page.evaluate(
        "document.addEventListener('conversation',"
        " ({detail}) => { detail.messages = [{role: 'user', content: 'Taken.'}]; })"
    )
    inside.talk({"role": "user", "content": "Mine."}, {"role": "assistant", "content": "Also mine."})
    page.locator(".asked .take").click()
    page.locator(".asked .notice.said").wait_for()
    assert contents(inside) == ["Taken."]
    take_back(inside)
    assert contents(inside) == ["Mine.", "Also mine."]
    page.locator(".asked .notice:not(.said)").wait_for(state="attached")
    page.locator(".asked .take").click()
    page.get_by_label("Message 1", exact=True).fill("Taken, and written on.")
    take_back(inside)
    assert contents(inside) == ["Mine.", "Also mine."]
    take_back(inside)
    assert contents(inside) == ["Taken, and written on."]
    take_back(inside)
    assert contents(inside) == ["Mine.", "Also mine."]
