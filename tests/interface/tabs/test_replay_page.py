"""Who wrote what, and the replay: exports, files and links of the Write tab."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import START_AND_STOP, Visit, expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def visit(tiny: Visit) -> Visit:
    return tiny


def write_story(visit: Visit) -> str:
    """Typed, chosen and pasted; the chosen piece."""
    visit.page.locator("#document textarea").focus()
    visit.page.keyboard.insert_text("Once upon")  # one step: a pause of a second between two keys would make it two
    visit.wait_until_settled()
    chosen = visit.pieces(0)[0]
    visit.token(0, 0).click()
    expect(visit.page.locator("#document textarea")).to_have_value("Once upon" + chosen)
    visit.page.locator("#document textarea").focus()
    visit.page.keyboard.press("Control+End")
    visit.page.evaluate(
        """() => {
          const box = document.querySelector('#document textarea');
          const pasted = {inputType: 'insertFromPaste', data: ' <b>the end</b>', bubbles: true};
          box.dispatchEvent(new InputEvent('beforeinput', {...pasted, cancelable: true}));
          box.setRangeText(' <b>the end</b>', box.value.length, box.value.length, 'end');
          box.dispatchEvent(new InputEvent('input', pasted));
        }"""
    )
    assert visit.text == f"Once upon{chosen} <b>the end</b>"
    return chosen


def saved(visit: Visit, selector: str) -> str:
    with visit.page.expect_download() as download:
        visit.page.locator(selector).click()
    return Path(download.value.path()).read_text(encoding="utf-8")


def exported(visit: Visit, kind: str) -> str:
    visit.page.locator("#export").click()
    return saved(visit, f"#formats-dialog [data-format='{kind}']")


def shown(page: Any) -> str:
    return str(page.locator(".replay-text").evaluate("element => element.textContent"))


def test_who_wrote_what_is_exported_and_twice_alike(visit: Visit) -> None:
    chosen = write_story(visit)
    # Chromium allows ten downloads in a row, and then asks the person.
    kinds = ("authorship-json", "authorship-html", "authorship-md", "replay-json", "replay-html")
    files = {kind: exported(visit, kind) for kind in kinds}
    for kind, first in files.items():
        assert exported(visit, kind) == first, kind
    pieces = json.loads(files["authorship-json"])["pieces"]
    assert [(piece["author"], piece["text"]) for piece in pieces] == [
        ("typed", "Once upon"),
        ("chosen", chosen),
        ("pasted", " <b>the end</b>"),
    ]
    assert pieces[1]["model"]
    assert 0 < pieces[1]["probability"] <= 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_authorship_page_shows_the_text_in_any_browser(
    visit: Visit, browser: Any, tmp_path: Path, scheme: str
) -> None:
    write_story(visit)
    visit.page.locator("#instruction-toggle").click()
    visit.page.locator("#instruction").fill("Be <i>brief</i>.")
    file = tmp_path / "authorship.html"
    file.write_text(exported(visit, "authorship-html"), encoding="utf-8")
    other = browser.new_page(color_scheme=scheme, java_script_enabled=False)
    other.goto(file.as_uri())
    assert other.locator("article.text").inner_text() == visit.text
    assert other.locator("article .chosen").count() == 1
    assert other.locator("article b").count() == 0
    assert "the model was told: “Be <i>brief</i>.”" in other.locator(".told").inner_text()
    other.close()


def test_a_replay_plays_every_step_by_buttons_and_keys(visit: Visit) -> None:
    chosen = write_story(visit)
    page = visit.page
    page.locator("#history").click()
    page.locator("#replay").click()
    expect(page.locator(".replay-caption")).to_contain_text("Step 3 of 3", timeout=20_000)
    assert shown(page) == visit.text
    page.keyboard.press("Home")
    assert shown(page) == ""
    page.keyboard.press("ArrowRight")
    assert shown(page) == "Once upon"
    page.keyboard.press("ArrowRight")
    assert shown(page) == f"Once upon{chosen}"
    expect(page.locator(".replay-text .chosen.fresh")).to_have_count(1)
    expect(page.locator(".replay-caption")).to_contain_text("chosen")
    page.keyboard.press("ArrowLeft")
    assert shown(page) == "Once upon"
    page.keyboard.press("End")
    page.locator(".replay-bar select").select_option("8")
    # On a slow machine the replay may end between two requests to the browser: the name is read in one step.
    meanwhile, afterwards = page.locator(".replay-bar .chief").evaluate(START_AND_STOP)
    assert "Pause" in meanwhile and "Play" in afterwards
    page.keyboard.press("Home")
    page.locator(".replay-bar .chief").click()
    expect(page.locator(".replay-caption")).to_contain_text("Step 3 of 3")
    page.keyboard.press("Escape")
    expect(page.locator("#replay-dialog")).to_be_hidden()
    assert visit.text == f"Once upon{chosen} <b>the end</b>", "a replay changes no text"


def test_a_step_of_a_long_text_that_is_gone_to_is_in_sight(visit: Visit) -> None:
    visit.fill("\n".join(f"Line {number}" for number in range(60)))
    visit.type(" the end")
    page = visit.page
    page.locator("#history").click()
    page.locator("#replay").click()
    expect(page.locator(".replay-text")).to_be_visible()
    inside = """() => {
      const {top, bottom} = document.querySelector('.replay-text').getBoundingClientRect();
      const step = document.querySelector('.replay-text .fresh').getBoundingClientRect();
      return step.top >= top + 8 && step.bottom <= bottom - 8;
    }"""
    page.keyboard.press("Home")
    page.keyboard.press("End")
    expect(page.locator(".replay-text .fresh")).to_have_text(" the end")
    assert page.evaluate(inside)
    page.locator(".replay-position").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(inside)
    page.keyboard.press("Escape")


def test_a_replay_file_opens_here_and_plays(visit: Visit) -> None:
    write_story(visit)
    text, file = visit.text, exported(visit, "replay-json")
    visit.page.locator("#documents").click()
    visit.page.locator("#new-document").click()
    visit.page.set_input_files(
        "#import input", {"name": "story.json", "mimeType": "application/json", "buffer": file.encode()}
    )
    expect(visit.page.locator("#replay-dialog")).to_be_visible()
    expect(visit.page.locator(".replay-caption")).to_contain_text("Step 3 of 3", timeout=20_000)
    assert shown(visit.page) == text == visit.text
    visit.page.keyboard.press("Escape")
    visit.page.locator("#undo").click()
    assert visit.text != text, "its history is the document's"


@pytest.mark.parametrize("instruction", ["", "Be brief."])
def test_a_replay_link_opens_and_plays(visit: Visit, instruction: str) -> None:
    write_story(visit)
    text = visit.text
    if instruction:
        visit.page.locator("#instruction-toggle").click()
        visit.page.locator("#instruction").fill(instruction)
    visit.page.locator("#history").click()
    visit.page.locator("#replay").click()
    visit.page.locator("#replay-link").click()
    visit.page.wait_for_function("document.querySelector('#share-link').value.includes('#t=')")
    link = visit.page.locator("#share-link").input_value()
    assert len(link) <= 8192
    visit.page.keyboard.press("Escape")
    expect(visit.page.locator("#share-dialog")).to_be_hidden()
    expect(visit.page.locator("#replay-dialog")).to_be_visible()
    visit.page.keyboard.press("Escape")
    visit.page.locator("#documents").click()
    visit.page.locator("#new-document").click()
    visit.page.evaluate("link => { location.hash = new URL(link).hash; }", link)
    if instruction:
        expect(visit.page.locator(".offered")).to_have_text(instruction)
        visit.page.locator("#offer-use").click()
    expect(visit.page.locator("#replay-dialog")).to_be_visible()
    expect(visit.page.locator(".replay-caption")).to_contain_text("Step 3 of 3", timeout=20_000)
    assert shown(visit.page) == text == visit.text


def test_a_replay_page_plays_itself_and_asks_nobody(visit: Visit, browser: Any, tmp_path: Path) -> None:
    write_story(visit)
    file = tmp_path / "replay.html"
    file.write_text(exported(visit, "replay-html"), encoding="utf-8")
    other = browser.new_page()
    complaints: list[str] = []
    requests: list[str] = []
    other.on("pageerror", lambda error: complaints.append(str(error)))
    other.on("request", lambda request: requests.append(request.url))
    other.goto(file.as_uri())
    expect(other.locator(".replay-caption")).to_contain_text("Step 3 of 3", timeout=20_000)
    assert shown(other) == visit.text
    assert requests == [file.as_uri()]
    assert not complaints
    other.close()


def test_a_document_without_a_history_offers_no_replay(visit: Visit) -> None:
    visit.page.set_input_files(
        "#import input", {"name": "old.txt", "mimeType": "text/plain", "buffer": b"An old text."}
    )
    expect(visit.page.locator("#document textarea")).to_have_value("An old text.")
    visit.page.locator("#history").click()
    expect(visit.page.locator("#replay")).to_be_hidden()
    visit.page.keyboard.press("Escape")
    visit.type(" And more.")
    visit.page.locator("#history").click()
    expect(visit.page.locator("#replay")).to_be_visible()
