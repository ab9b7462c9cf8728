"""What a newcomer meets on a phone: nothing is cut, and the Help says what a finger does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support import browser as browsers
from tests.support.browser import PATIENCE, Visit, expect, requests_held

HELP = Path(__file__).parents[3] / "interface" / "tabs" / "writer" / "paper.html"


def test_no_sign_of_punctuation_stands_right_after_a_key() -> None:
    found = re.findall(r"</kbd>[,.;:]\s.{0,20}", HELP.read_text(encoding="utf-8"))
    assert found == [], "the border of a key would look like a space before it"


@pytest.fixture
def phone(page: Any, small_page: str) -> Iterator[Visit]:
    with browsers.visit_again(page, small_page, viewport={"width": 390, "height": 844}) as opened:
        opened.wait_for_status("ready")
        yield opened


@pytest.mark.browser
@pytest.mark.slow
def test_the_status_is_shown_whole(phone: Visit) -> None:
    status = phone.page.locator("#status")
    phone.page.evaluate(
        "document.querySelector('#status .sentence').textContent = 'SmolLM2-135M-Instruct · CPU · bfloat16 · cached'"
    )
    assert status.locator(".sentence").evaluate("one => one.scrollWidth <= one.clientWidth")
    box = status.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 390, 430])
def test_the_page_does_not_move_when_the_name_of_the_model_comes(phone: Visit, width: int) -> None:
    phone.page.set_viewport_size({"width": width, "height": 844})
    sentence, tops = phone.page.locator("#status .sentence"), []
    for said in ("Starting", "SmolLM2-135M-Instruct · CPU · bfloat16 · cached"):
        sentence.evaluate("(one, said) => { one.textContent = said; }", said)
        tops.append(phone.page.locator("#document").bounding_box()["y"])
    assert tops[0] == tops[1]


@pytest.mark.browser
@pytest.mark.slow
def test_a_token_that_is_chosen_is_seen_whole(phone: Visit) -> None:
    phone.open_tab("Internals")
    phone.page.locator("#internals-text").fill(" ".join(["The old keeper climbed the stairs again."] * 12))
    phone.page.wait_for_selector(
        "#internals[data-state=settled]:not([data-stale]) .box[aria-current]", timeout=PATIENCE
    )
    inside = """list => {
      const outer = list.getBoundingClientRect(), inner = list.querySelector('[aria-current]').getBoundingClientRect();
      const faded = parseFloat(getComputedStyle(list).paddingTop) - 1;   // pixels at both edges
      return faded > 8 && inner.top >= outer.top + faded && inner.bottom <= outer.bottom - faded;
    }"""
    lines = phone.page.locator("#internals .lines")
    assert lines.evaluate("list => list.scrollHeight > list.clientHeight")
    assert lines.evaluate("list => list.scrollTop") == 0
    for box in (phone.page.locator("#internals .box").last, phone.page.locator("#internals .box").first):
        phone.page.evaluate("scrollTo(0, 0)")
        box.dispatch_event("click")
        assert lines.evaluate(inside)


ANSWER = "#internals .thought .came"


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_the_answer_about_a_tapped_token_scrolls_into_sight_beside_the_token(phone: Visit, motion: str) -> None:
    page = phone.page
    page.emulate_media(reduced_motion=motion)
    phone.open_tab("Internals")
    page.locator("#internals-text").fill("The old keeper climbed the stairs again and saw a ship.")
    page.wait_for_selector("#internals[data-state=settled]:not([data-stale]) .box[aria-current]", timeout=PATIENCE)
    page.evaluate("scrollTo(0, 0)")
    box = page.locator("#internals .box").nth(2)
    page.locator("#internals-text").evaluate("field => field.style.minHeight = '20rem'")
    assert page.locator(ANSWER).bounding_box()["y"] >= 844
    box.focus()
    box.evaluate("one => { one.click(); window.atOnce = scrollY; }")
    assert (page.evaluate("atOnce") > 0) is (motion == "reduce")
    expect(page.locator(ANSWER)).to_be_in_viewport(ratio=1)
    expect(box).to_be_in_viewport(ratio=1)
    expect(box).to_be_focused()
    page.wait_for_timeout(1000)
    before = page.evaluate("scrollY")
    page.locator("#internals .box").nth(3).evaluate("one => one.click()")
    page.wait_for_timeout(500)
    assert page.evaluate("scrollY") == before, "an answer in sight moves nothing"
    page.emulate_media(reduced_motion="no-preference")


@pytest.mark.browser
@pytest.mark.slow
def test_the_sliders_of_all_tabs_are_as_wide(phone: Visit) -> None:
    width = phone.page.locator("#k").bounding_box()["width"]
    for tab, prefix in (("Rewrite", "rewrite-"), ("Type assistant", "chat-")):
        phone.open_tab(tab)
        for name in ("k", "depth"):
            assert phone.page.locator(f"#{prefix}{name}").bounding_box()["width"] == pytest.approx(width, abs=1)
    assert width > 150


@pytest.mark.browser
@pytest.mark.slow
def test_the_switch_that_hides_the_rows_is_tapped_on_its_words_alone(phone: Visit) -> None:
    phone.page.locator(".more-settings summary").first.click()
    label = phone.page.locator("label:has(#guess-first)")
    assert label.bounding_box()["width"] < 160, "a tap beside it hides nothing"


CUT_CHOICES = """select => {
  const copy = select.cloneNode();
  copy.removeAttribute('id');
  copy.style.cssText = 'position: absolute; width: max-content; min-width: 0';
  select.after(copy);
  const cut = [...select.options].map(option => option.text).filter(text => {
    copy.replaceChildren(new Option(text));
    return copy.getBoundingClientRect().width > select.getBoundingClientRect().width;
  });
  copy.remove();
  return cut;
}"""
"""Returns the choices of a list that are wider than the list is drawn."""


@pytest.mark.browser
@pytest.mark.slow
def test_every_choice_of_a_list_is_seen_whole(phone: Visit) -> None:
    for tab, prefix in (("Write", ""), ("Rewrite", "rewrite-"), ("Type assistant", "chat-")):
        phone.open_tab(tab)
        for more in phone.page.locator(f"#{prefix}controls .more-settings:not([open]) summary").all():
            more.click()
        lists = phone.page.locator(f"#{prefix}controls select:visible").all()
        assert lists
        for drawn in lists:
            assert drawn.evaluate(CUT_CHOICES) == [], drawn.get_attribute("id")


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 360])
def test_the_names_of_all_tabs_are_seen_whole_on_one_line(phone: Visit, width: int) -> None:
    phone.page.set_viewport_size({"width": width, "height": 844})
    names = phone.page.locator(".tabs-bar:not(.inner) > .tab-wrapper").get_by_role("tab")
    assert names.all_inner_texts() == ["Write", "Rewrite", "Highlights", "Type assistant", "Internals", "Lab"]
    for chosen in names.all():
        chosen.click()
        expect(chosen).to_have_attribute("aria-selected", "true")
        boxes = [name.bounding_box() for name in names.all()]
        assert len({box["y"] for box in boxes}) == 1
        assert boxes[0]["x"] >= 0 and boxes[-1]["x"] + boxes[-1]["width"] <= width
        gaps = [after["x"] - before["x"] - before["width"] for before, after in pairwise(boxes)]
        assert min(gaps) >= 4
    names.first.click()


CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const light = colour => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue] = [...canvas.getImageData(0, 0, 1, 1).data].map(part => part / 255)
      .map(part => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
  };
  const mark = getComputedStyle(document.querySelector('#tree .tree-key .seen')).borderTopColor;
  const [one, other] = [mark, getComputedStyle(document.querySelector('#tree .tree-foot')).backgroundColor].map(light);
  return Math.max(one, other) / Math.min(one, other);
}"""


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("colours", ["dark", "light"])
def test_the_mark_of_what_was_only_seen_stands_out_from_the_paper(page: Any, small_page: str, colours: str) -> None:
    phone_size = {"width": 390, "height": 844}
    with browsers.visit_again(page, small_page, viewport=phone_size, color_scheme=colours) as opened:
        opened.wait_for_status("ready")
        assert opened.page.evaluate(CONTRAST) >= 3


SHOW_NOTICE = browsers.importing("""() => import('/lookahead/web/ui/notice.js').then(({Notice}) => {
  const element = document.createElement('div');
  element.className = 'notice';
  document.querySelector('.sheet.writer').append(element);
  new Notice(element).show('This browser has no room for the text: save it as a file.', {label: 'Save', run() {}});
})""")


@pytest.mark.browser
@pytest.mark.slow
def test_a_notice_that_stays_covers_nothing_at_the_top_of_the_page(phone: Visit) -> None:
    page, head = phone.page, phone.page.locator(".masthead")
    top = head.bounding_box()["y"]
    page.evaluate("document.activeElement.blur()")  # no screen keyboard is open
    page.evaluate(SHOW_NOTICE)
    notice = page.locator(".notice.said").bounding_box()
    assert notice["y"] >= 0 and head.bounding_box()["y"] >= notice["y"] + notice["height"]
    phone.open_tab("Lab")
    assert head.bounding_box()["y"] == top, "the notice is in another tab"
    phone.open_tab("Write")
    assert head.bounding_box()["y"] > top
    page.locator(".notice.said .dismiss").click()
    assert head.bounding_box()["y"] == top


@pytest.mark.browser
@pytest.mark.slow
def test_a_notice_does_not_cover_the_text_that_is_written_above_the_screen_keyboard(phone: Visit) -> None:
    page, box = phone.page, phone.page.locator("#document textarea")
    page.set_viewport_size({"width": 390, "height": 500})
    page.evaluate(SHOW_NOTICE)
    phone.type("The old keeper")
    box.evaluate("one => scrollBy({top: one.getBoundingClientRect().top, behavior: 'instant'})")
    written = box.bounding_box()
    notice = page.locator(".notice.said").bounding_box()
    assert notice["y"] >= written["y"] + written["height"] and notice["y"] + notice["height"] <= 500
    page.evaluate("document.activeElement.blur()")
    assert page.locator(".notice.said").bounding_box()["y"] < 20
    assert box.bounding_box()["y"] == pytest.approx(written["y"], abs=1), "the page does not move"
    box.focus()
    page.locator(".notice.said .dismiss").click()
    expect(page.locator(".notice.said")).to_have_count(0)
    expect(box).to_be_focused()


@pytest.mark.browser
@pytest.mark.slow
def test_a_notice_that_goes_by_itself_lets_a_finger_reach_the_tabs(phone: Visit) -> None:
    page = phone.page
    phone.open_tab("Type assistant")
    page.get_by_role("button", name="New conversation").click()  # the one that is open is empty
    expect(page.locator(".notice.said")).to_be_visible()
    tab = page.get_by_role("tab", name="Write", exact=True)
    box = tab.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(tab).to_have_attribute("aria-selected", "true")


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 360])
def test_a_notice_of_type_assistant_with_undo_moves_nothing_and_covers_the_name_of_the_page_alone(
    phone: Visit, width: int
) -> None:
    page, text = phone.page, phone.page.locator("#chat-text")
    page.set_viewport_size({"width": width, "height": 844})
    phone.open_tab("Type assistant")
    text.fill("Why?")
    page.locator("#send").click()
    expect(page.locator("#chat .message")).to_have_count(1)
    page.locator("#chat-new").click()
    notice = page.locator(".talking .notice.said")
    expect(notice).to_contain_text("A new conversation.")
    covered, tab = notice.bounding_box(), page.get_by_role("tab", name="Write", exact=True).bounding_box()
    assert covered["y"] >= 0 and covered["y"] + covered["height"] <= tab["y"]
    assert notice.evaluate("one => one.scrollHeight <= one.clientHeight"), "all of the sentence is in it"
    expect(notice).to_be_in_viewport(ratio=1)
    for button in notice.locator("button").all():
        assert button.evaluate(
            "one => one.contains(document.elementFromPoint(...(({x, y, width, height}) =>"
            " [x + width / 2, y + height / 2])(one.getBoundingClientRect())))"
        )
    place = text.bounding_box()
    notice.locator(".dismiss").click()
    expect(notice).to_have_count(0)
    assert text.bounding_box() == place


@pytest.mark.browser
@pytest.mark.slow
def test_the_count_of_words_in_type_assistant_is_seen_whole(phone: Visit) -> None:
    phone.open_tab("Type assistant")
    count, bar = phone.page.locator(".talking .count"), phone.page.locator(".talking .bar").first
    height = bar.bounding_box()["height"]
    count.evaluate("one => { one.textContent = '1,234 words, 1,023 from rows'; }")
    assert count.evaluate("one => one.scrollWidth <= one.clientWidth")
    assert count.evaluate("one => getComputedStyle(one).textOverflow") == "clip"
    assert bar.bounding_box()["height"] == height


@pytest.mark.browser
@pytest.mark.slow
def test_the_help_says_first_what_a_finger_does(phone: Visit) -> None:
    phone.page.locator("#help").click()
    heads = phone.page.locator("#help-dialog h3")
    expect(heads.first).to_have_text("With a mouse or a finger")
    first = phone.page.locator("#help-dialog dl").first
    assert "swipe" in first.inner_text() and first.locator("kbd").count() == 0


WATCH_PAINTED_PLACE = """element => {
  const probe = document.body.appendChild(document.createElement('div'));
  Object.assign(window, {places: [], watching: true});
  Object.assign(probe.style, {position: 'fixed', top: '0', height: '1px'});
  const grow = () => {
    probe.style.width = probe.style.width === '1px' ? '2px' : '1px';
    if (window.watching) requestAnimationFrame(grow);
    else probe.remove();
  };
  new ResizeObserver(() => {
    const {x, y} = element.getBoundingClientRect();
    if (window.watching) window.places.push({x, y});
  }).observe(probe);
  addEventListener('pointerup', () => { window.watching = false; }, {capture: true, once: true});
  grow();
}"""
"""Records the position of an element in every frame until the pointer is released, after the ResizeObservers that were
created before have run."""


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["k", "top-p"])
def test_a_slider_that_is_dragged_stays_under_the_finger_while_rows_come_and_go(
    phone: Visit, width: int, name: str
) -> None:
    phone.page.set_viewport_size({"width": width, "height": 844})
    phone.type("My dog is")
    phone.wait_until_settled()
    slider = phone.control(name)
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    left, right, middle = box["x"] + 4, box["x"] + box["width"] - 4, box["y"] + box["height"] / 2
    phone.page.mouse.move(right if name == "top-p" else (left + right) / 2, middle)
    phone.page.mouse.down()
    slider.evaluate(WATCH_PAINTED_PLACE)
    for step in range(12):
        phone.page.mouse.move(right - (right - left) * abs(step - 6) / 6, middle)
        phone.page.wait_for_timeout(150)
    phone.page.mouse.up()
    places = phone.page.evaluate("window.places")
    assert len(places) > 10
    assert max(abs(place["x"] - box["x"]) for place in places) <= 1
    assert max(abs(place["y"] - box["y"]) for place in places) <= 1, places


WATCH_THE_NOTE = """() => {
  Object.assign(window, {heights: [], wasGrowing: false});
  const watch = () => {
    const note = document.querySelector('#branches .note');
    window.heights.push(Math.round(note.getBoundingClientRect().height));
    window.wasGrowing ||= note.innerText.includes('Growing');
    requestAnimationFrame(watch);
  };
  watch();
}"""


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 390])
def test_the_note_below_the_rows_keeps_its_height_while_rows_grow(phone: Visit, width: int) -> None:
    page = phone.page
    page.set_viewport_size({"width": width, "height": 844})
    phone.control("mode").select_option("every_level")
    phone.type("The old keeper went up")
    phone.wait_until_settled()
    page.evaluate(WATCH_THE_NOTE)
    phone.control("depth").fill("20")
    phone.wait_until_settled()
    for key in " the stairs":
        page.keyboard.press(key)
        phone.wait_until_settled()
    assert page.evaluate("wasGrowing")
    assert len(set(page.evaluate("heights"))) == 1


@pytest.mark.browser
@pytest.mark.slow
def test_run_of_a_page_of_the_lab_leads_to_its_result(phone: Visit) -> None:
    page = phone.page
    phone.open_tab("Lab")
    page.get_by_role("tab", name="Decoding").click()
    page.locator("#decoding-form textarea").fill("The keeper watched")
    said = page.locator("#lab-decoding > .says .sentence")
    for tokens, expected in (("0", "Tokens is a whole number from 1 to 40."), ("3", "texts of up to 3 tokens")):
        page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        page.locator("#decoding-tokens").fill(tokens)
        page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        expect(said).not_to_be_in_viewport()
        page.locator("#decoding-form .run").click()
        expect(said).to_contain_text(expected, timeout=PATIENCE)
        expect(said).to_be_in_viewport(ratio=1)


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("name", ["Decoding", "Speculation"])
def test_stop_is_in_sight_while_a_page_of_the_lab_runs(phone: Visit, name: str) -> None:
    page, form = phone.page, phone.page.locator(f"#{name.lower()}-form")
    phone.open_tab("Lab")
    page.get_by_role("tab", name=name).click()
    form.locator("textarea").fill("The keeper watched")
    with requests_held(page):
        form.locator(".run").click()
        expect(form.locator(".run")).not_to_be_in_viewport()  # the page scrolls to the result
        stop = form.locator(".halt")
        expect(stop).to_be_in_viewport(ratio=1)
        page.mouse.click(*browsers.middle_of(stop))
        expect(page.locator(f"#lab-{name.lower()} .says .sentence").first).to_have_text("Stopped.")
    expect(stop).not_to_be_in_viewport()


@pytest.mark.browser
@pytest.mark.slow
def test_the_name_of_the_rest_of_a_choice_lies_over_no_token(phone: Visit) -> None:
    phone.fill("The old keeper looked out over the")
    phone.control("depth").fill("12")
    phone.wait_until_asked()
    phone.wait_until_settled()
    for _ in range(12):
        with requests_held(phone.page):
            phone.token(4, 0).click()
            phone.wait_until_asked()
            row = phone.page.locator("#branches .branch:has(.rest-of-choice)")
            boxes = [token.bounding_box() for token in row.locator(".token").all()]
            name = row.locator(".rest-of-choice").bounding_box() if row.count() else None
        if name:
            break
        phone.wait_until_settled()
    assert name and len(boxes) > 3
    assert max(box["x"] + box["width"] for box in boxes) > 390, "a row that is wider than the screen"
    assert all(box["x"] + box["width"] <= name["x"] + 1 for box in boxes)


SIGN_LOOKS_AS_TEXT = """leaf => {
  const {content, color, pointerEvents} = getComputedStyle(leaf, '::after');
  const remark = document.querySelector('.mini .figures');
  return content.includes('…') && pointerEvents === 'none' && color === getComputedStyle(remark).color;
}"""


@pytest.mark.browser
@pytest.mark.slow
def test_the_sign_that_a_text_goes_on_below_has_the_colour_of_a_remark_and_not_of_a_button(phone: Visit) -> None:
    leaf = phone.page.locator("#document")
    phone.fill(" ".join(["The old keeper climbed the stairs again."] * 12))
    phone.page.wait_for_timeout(300)
    phone.page.locator("#document textarea").evaluate("box => { box.scrollTop = 0; }")
    expect(leaf).to_have_attribute("data-goes-on", "")
    assert leaf.evaluate(SIGN_LOOKS_AS_TEXT)


LINES = """element => {
  const lines = document.createRange(), tops = new Set();
  for (const node of element.childNodes) {
    if (node.nodeName === 'BUTTON') continue;
    lines.selectNodeContents(node);
    for (const {top} of lines.getClientRects()) tops.add(Math.round(top));
  }
  return [...tops].sort((one, other) => one - other);
}"""
"""Returns the upper edges of the lines of a paragraph, without its button."""


@pytest.mark.browser
@pytest.mark.slow
def test_the_lines_of_the_opening_of_type_assistant_are_as_far_apart_as_each_other(phone: Visit) -> None:
    phone.open_tab("Type assistant")
    tops = phone.page.locator(".talking .nothing").evaluate(LINES)
    gaps = [after - before for before, after in pairwise(tops)]
    assert len(gaps) >= 2 and max(gaps) - min(gaps) <= 1


@pytest.mark.browser
@pytest.mark.slow
def test_the_help_of_type_assistant_is_beside_its_other_button_on_a_narrow_phone(phone: Visit) -> None:
    phone.page.set_viewport_size({"width": 360, "height": 844})
    phone.open_tab("Type assistant")
    button, sign = phone.page.locator("#chat-new").bounding_box(), phone.page.locator(".talking .help").bounding_box()
    assert button["x"] + button["width"] <= sign["x"] and sign["y"] < button["y"] + button["height"]


SMALL_TARGETS = """() => [...document.querySelectorAll('button, a[href], summary, select, input, .token')]
.filter(one => {
  const shown = one.matches('[type=checkbox], [type=radio], [type=file]') ? one.closest('label') ?? one : one;
  const {width, height} = shown.getBoundingClientRect(), least = one.matches('.token') ? 28 : 24;
  return one.checkVisibility() && !one.matches('.skip') && width && (width < 24 || height < least);
}).map(one => one.outerHTML.slice(0, 80))"""
"""Returns the controls that are smaller than 24 x 24 pixels, and the tokens that are lower than 28."""


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), [(390, 844), (844, 390)])
def test_no_control_is_smaller_than_24_pixels_and_no_token_lower_than_28(
    browser: Any, tiny_page: str, width: int, height: int
) -> None:
    context = browser.new_context(has_touch=True, is_mobile=True, viewport={"width": width, "height": height})
    with browsers.visit(context, tiny_page) as visit:
        page = visit.page
        visit.fill("The old keeper's 202")
        visit.wait_until_settled()
        if page.locator("#more").is_visible():  # in a wide window its buttons are there without it
            page.locator("#more").tap()
        page.locator("#rest .more").tap()
        page.locator(".more-settings summary").first.tap()
        assert page.evaluate(SMALL_TARGETS) == []
        page.locator("#controls .views label:has(input[value=tree])").click()
        expect(page.locator("#tree .fit")).to_be_visible()
        assert page.evaluate(SMALL_TARGETS) == []
        page.goto("about:blank")
        page.goto(f"{tiny_page}#lab-masks?prompt=The+old+keeper&k=2&depth=3")
        page.wait_for_selector("#lab-masks[data-state=settled]", timeout=PATIENCE)
        expect(page.locator("#masks-pass")).to_be_visible()
        assert page.evaluate(SMALL_TARGETS) == []
    context.close()
