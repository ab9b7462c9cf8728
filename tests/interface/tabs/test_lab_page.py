"""The Lab's cache page in a browser, and its requests on the server."""

from __future__ import annotations

import csv
import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gradio
import pytest

from interface.tabs.lab.cache_session import CacheRequest, CacheSession
from interface.tabs.lab.experiment_request import MOST_PROMPT
from lookahead_core import Model, load_model
from lookahead_core.experiments.cache_experiment import cache_experiment
from tests.conftest import tiny_llama
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, Visit
from tests.support.requests_to_pages import news_from

PROMPT = "The keeper watched"
EXPERIMENT = {"k": 3, "depth": 4, "levels": 1}


def in_a_browser(test: Any) -> Any:
    return pytest.mark.browser(pytest.mark.slow(test))


@pytest.fixture(scope="module")
def model(byte_tokenizer: Any) -> Model:
    return load_model(tiny_llama(len(byte_tokenizer), seed=3), tokenizer=byte_tokenizer, dtype="float32")


def news_of(model: Model, **fields: Any) -> list[Any]:
    return news_from(model, CacheRequest.from_json, CacheSession, **{"text": PROMPT, "experiment": EXPERIMENT} | fields)


def test_a_request_is_answered_with_the_experiment_of_the_library(model: Model) -> None:
    news = news_of(model)
    assert news[-1]["state"] == "settled"
    found = cache_experiment(model, PROMPT, **EXPERIMENT)
    view = [one["view"] for one in news if "view" in one][-1]
    assert (view["equal"], view["branches"], view["prompt_tokens"]) == (True, list(found.texts), found.prompt_tokens)
    for row, step in zip(view["steps"], found.steps, strict=True):
        assert (row["depth"], row["rows"], row["difference"]) == (step.depth, step.rows, step.difference)
    assert view["steps"][-1]["cached_tokens"] == found.cached.tokens
    assert view["steps"][-1]["uncached_tokens"] == found.uncached.tokens


def test_both_precisions_are_answered_if_they_are_asked_for(model: Model) -> None:
    news = news_of(model, experiment=EXPERIMENT | {"precisions": True})
    found = cache_experiment(model, PROMPT, **EXPERIMENT, precisions=True)
    view = [one["view"] for one in news if "view" in one][-1]
    assert view["precisions"] == [asdict(step) for step in found.precisions]
    assert len(view["precisions"]) == EXPERIMENT["depth"]


@pytest.mark.parametrize(
    ("fields", "because"),
    [
        ({"text": ""}, "Write a prompt"),
        ({"text": "x" * (MOST_PROMPT + 1)}, "The prompt has 2,001 characters"),
        ({"experiment": None}, "k must be a whole number from 1 to 20."),
        ({"experiment": EXPERIMENT | {"precisions": True, "levels": 4}}, "levels must be a whole number from 1 to 3."),
        ({"experiment": EXPERIMENT | {"depth": 101}}, "depth must be a whole number from 1 to 100."),
        ({"experiment": EXPERIMENT | {"k": 20, "levels": 3}}, "which makes 8,000 branches"),
        (
            {"text": "the sea " * 240, "experiment": EXPERIMENT | {"depth": 100}},
            "does not fit into the model's context of 512",
        ),
    ],
)
def test_what_cannot_be_run_gets_a_sentence(model: Model, fields: dict[str, Any], because: str) -> None:
    *_, last = news_of(model, **fields)
    assert last["state"] == "error"
    assert because in last["sentence"]


def test_a_model_without_a_cache_gets_a_sentence(byte_tokenizer: Any) -> None:
    uncached = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer, engine="uncached")
    *_, last = news_of(uncached)
    assert last["state"] == "error"
    assert last["sentence"].startswith("This model runs without a cache, because")


def run(visit: Visit, depth: int) -> None:
    page = visit.page
    visit.open_tab("Lab")
    visit.open_tab("Cache")
    page.locator("#cache-depth").fill(str(depth))
    page.locator("#cache-form .run").click()
    page.wait_for_selector("#lab-cache[data-state=settled]", timeout=PATIENCE)


@in_a_browser
def test_an_experiment_is_run_and_shown_with_verdict_costs_plots_and_tables(tiny: Visit, tmp_path: Path) -> None:
    page = tiny.page
    tiny.open_tab("Lab")
    tiny.open_tab("Cache")
    assert page.locator("#lab-cache .announcement").first.text_content() == "", "nothing has happened yet"
    page.locator("#cache-precisions").check()
    run(tiny, 6)
    assert page.locator("#lab-cache p.precisions").inner_text().startswith("In float32 and in bfloat16 ")
    assert page.locator("#lab-cache .verdict strong").inner_text() == "Yes, the cache is right"
    heads = page.locator("#lab-cache .sums thead th").all_inner_texts()
    assert heads == ["Cost", "With the cache", "Without it", "Without ÷ with"]
    costs = {
        row.split("\t")[0]: row.split("\t")[1:]
        for row in page.locator("#lab-cache .sums tbody").inner_text().splitlines()
    }
    assert costs["Forward passes in each run"][0] == "6"
    assert re.fullmatch(
        r"[0-9.e-]+\sm?s \([0-9.e-]+\sto\s[0-9.e-]+\)", costs["Time, median of 3 runs (shortest to longest)"][0]
    )
    page.locator("#lab-cache .depths summary").click()
    assert page.locator("#lab-cache .depths tbody tr").count() == 6
    heads = page.locator("#lab-cache .depths thead th").all_inner_texts()
    assert len(set(heads)) == len(heads) == 9 and heads[1] == "Equal within 0.001 %"
    browsers.expect(page.locator("#lab-cache .depths .note")).to_have_text(re.compile("Equal: “yes” if the difference"))
    page.locator("#lab-cache .texts summary").click()
    assert page.locator("#lab-cache .texts li").count() == 5
    page.wait_for_function("() => document.querySelectorAll('#lab-cache .plot .scatterlayer .trace').length === 7")
    title = "How much predictions with and without the cache differ at most, in per cent"
    assert page.locator("#lab-cache figcaption").first.inner_text() == title
    with page.expect_download() as saved:
        page.locator("#lab-cache .csv").click()
    saved.value.save_as(tmp_path / "depths.csv")
    with (tmp_path / "depths.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["depth"] for row in rows] == ["1", "2", "3", "4", "5", "6"]
    assert rows[-1]["cached_tokens"] == costs["Tokens computed in each run"][0].replace(",", "")
    with page.expect_download() as saved:
        page.locator("#lab-cache .svg").click()
    saved.value.save_as(tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_text().startswith("<svg")


@in_a_browser
def test_a_link_opens_the_tab_and_repeats_the_run(tiny: Visit, tiny_page: str) -> None:
    page = tiny.page
    page.goto(f"{tiny_page}#lab-cache?prompt=The+old+keeper&k=3&depth=4&levels=2&precisions=true")
    for how in ("while the page is open", "when it is loaded"):
        page.wait_for_selector("#lab-cache[data-state=settled]", timeout=PATIENCE)
        assert page.locator("#cache-prompt").input_value() == "The old keeper", how
        assert page.get_by_role("tab", name="Lab").get_attribute("aria-selected") == "true"
        page.locator("#lab-cache .texts summary").click()
        assert page.locator("#lab-cache .texts li").count() == 9
        assert page.locator("#cache-precisions").is_checked()
        page.get_by_role("button", name="Copy link").click()
        said = page.get_by_text("Only this computer can open this link.").locator("visible=true").first
        browsers.expect(said).to_contain_text("For others, ask the person who runs this page for a public address.")
        page.reload()


@in_a_browser
def test_a_link_opens_the_tab_also_if_the_tabs_come_after_the_rest_of_the_page(tiny: Visit, tiny_page: str) -> None:
    """Delays Gradio's script of tabs: usually it comes first, and now and then it does not."""
    page = tiny.page
    assets = Path(gradio.__file__).parent / "templates" / "frontend" / "assets"
    (script,) = (file.name for file in assets.glob("Index-*.js") if 'role="tablist"' in file.read_text("utf-8"))

    def late(route: Any) -> None:
        time.sleep(1.5)
        route.continue_()

    page.route(f"**/assets/{script}", late)
    page.goto("about:blank")
    page.goto(f"{tiny_page}#lab-cache?prompt=The+old+keeper&k=3&depth=4")
    page.wait_for_selector("#lab-cache[data-state=settled]", timeout=PATIENCE)
    lists = page.locator("[role=tablist]:visible")
    assert [one.get_attribute("aria-label") for one in lists.all()] == ["Pages", "Lab"]
    page.goto("about:blank")
    page.goto(f"{tiny_page}#none")
    browsers.expect(lists).to_have_attribute("aria-label", "Pages")
    browsers.expect(page.locator("[role=tabpanel]:visible")).to_have_attribute("aria-label", "Write")


@in_a_browser
def test_what_the_form_does_not_allow_gets_a_sentence_and_nothing_is_run(tiny: Visit) -> None:
    page = tiny.page
    tiny.open_tab("Lab")
    tiny.open_tab("Cache")
    page.locator("#cache-depth").fill("101")
    page.locator("#cache-form .run").click()
    says = page.locator("#lab-cache .says .sentence")
    browsers.expect(says).to_have_text("Depth is a whole number from 1 to 100.")
    page.locator("#cache-depth").fill("5")
    page.locator("#cache-prompt").fill("")
    page.locator("#cache-form .run").click()
    browsers.expect(says).to_have_text(re.compile("Write a prompt"))
    assert page.locator("#lab-cache .found").is_hidden()


@in_a_browser
def test_a_run_is_stopped_and_what_was_compared_stays(real: Visit) -> None:
    page = real.page
    real.open_tab("Lab")
    real.open_tab("Cache")
    page.locator("#cache-depth").fill("100")
    page.locator("#cache-form .run").click()
    page.wait_for_function("() => document.querySelectorAll('#lab-cache .depths tbody tr').length >= 3")
    page.locator("#cache-form .halt").click()
    browsers.expect(page.locator("#lab-cache .says .sentence")).to_have_text(re.compile("^Stopped"))
    count = page.locator("#lab-cache .depths tbody tr").count()
    page.wait_for_timeout(700)
    assert 3 <= page.locator("#lab-cache .depths tbody tr").count() == count < 100


@in_a_browser
@pytest.mark.parametrize("width", [853, 390])
def test_the_table_of_costs_fits_its_frame(tiny: Visit, width: int) -> None:
    tiny.page.set_viewport_size({"width": width, "height": 480})
    run(tiny, 6)
    assert tiny.page.locator("#lab-cache .sums").evaluate("one => one.scrollWidth <= one.clientWidth")


@in_a_browser
def test_a_logarithmic_axis_says_that_it_is_one_and_has_several_labels(tiny: Visit) -> None:
    run(tiny, 3)
    tiny.page.wait_for_function("document.querySelectorAll('#lab-cache .plot .ytitle').length === 3")
    titles = tiny.page.locator("#lab-cache .plot .ytitle").all_text_contents()
    assert titles == ["difference,logarithmic scale", "seconds", "times"]
    first = tiny.page.locator("#lab-cache .plot").first
    frame, title = first.bounding_box(), first.locator(".ytitle").bounding_box()
    assert title["y"] >= frame["y"] and title["y"] + title["height"] <= frame["y"] + frame["height"]
    assert title["x"] >= frame["x"] - 0.01, "but for the rounding of the browser"
    labels = [float(label.rstrip("\u00a0%")) for label in first.locator(".ytick").all_text_contents()]
    assert len(labels) >= 3
    differences = [float(cell) for cell in tiny.page.locator("#lab-cache .depths td:nth-child(3)").all_text_contents()]
    assert min(labels) <= min(one for one in differences if one) and max(differences) <= max(labels)


@in_a_browser
@pytest.mark.parametrize(
    "link",
    [
        "decoding?prompt=The+old+keeper&tokens=12&samples=3&beams=4",
        "cache?prompt=The+old+keeper&k=3&depth=12&runs=3",
        "speculation?prompt=One+two+three,+one+two+three,+one+two&tokens=12",
    ],
)
def test_all_columns_of_the_tables_are_in_sight_in_a_small_window(tiny: Visit, tiny_page: str, link: str) -> None:
    page = tiny.page
    page.set_viewport_size({"width": 911, "height": 512})
    page.goto("about:blank")
    page.goto(f"{tiny_page}#lab-{link}")
    result = page.locator(f"#lab-{link.split('?')[0]}")
    browsers.expect(result).to_have_attribute("data-state", "settled", timeout=PATIENCE)
    result.evaluate("one => { for (const details of one.querySelectorAll('details')) details.open = true; }")
    tables = result.locator(".wide:has(table):visible")
    assert tables.count() >= 1
    cut = "ones => ones.filter(one => one.scrollWidth > one.clientWidth).map(({ariaLabel}) => ariaLabel)"
    assert tables.evaluate_all(cut) == []


@in_a_browser
@pytest.mark.parametrize(("width", "height"), [(911, 512), (390, 844)])
def test_run_is_in_sight_in_a_small_window_and_covers_no_field_that_has_the_focus(
    tiny: Visit, width: int, height: int
) -> None:
    page = tiny.page
    page.set_viewport_size({"width": width, "height": height})
    tiny.open_tab("Lab")
    for name in ("Cache", "Masks", "Speculation", "Decoding"):
        tiny.open_tab(name)
        form = page.locator(f"#{name.lower()}-form")
        browsers.expect(form.locator(".run")).to_be_in_viewport(ratio=1)
    seed, bar = form.locator("[name=seed]"), form.locator(".bar")
    form.locator("[name=prompt]").focus()
    for _ in range(20):
        page.keyboard.press("Tab")
        if seed.evaluate("one => one === document.activeElement"):
            break
    bottom = seed.evaluate("one => one.getBoundingClientRect().bottom")
    assert bottom <= bar.evaluate("one => one.getBoundingClientRect().top")


@in_a_browser
def test_in_a_low_window_the_whole_prompt_is_seen_above_run(tiny: Visit) -> None:
    page = tiny.page
    page.set_viewport_size({"width": 911, "height": 512})
    tiny.open_tab("Lab")
    for name in ("Cache", "Masks", "Speculation", "Decoding"):
        tiny.open_tab(name)
        form = page.locator(f"#{name.lower()}-form")
        browsers.expect(form.locator(".run")).to_be_in_viewport(ratio=1)
        end = form.locator("[name=prompt]").evaluate("one => one.getBoundingClientRect().bottom")
        assert end <= form.locator(".bar").evaluate("one => one.getBoundingClientRect().top"), name


@in_a_browser
def test_in_a_low_window_what_a_page_is_about_is_seen_beside_the_prompt_until_it_runs_and_then_what_it_shows(
    tiny: Visit,
) -> None:
    page = tiny.page
    tiny.open_tab("Lab")
    for name in ("Cache", "Speculation", "Decoding"):
        page.set_viewport_size({"width": 911, "height": 512})
        tiny.open_tab(name)
        form, result = page.locator(f"#{name.lower()}-form"), page.locator(f"#lab-{name.lower()}")
        about, heights = result.locator(".about"), "all => all.map(one => one.offsetHeight)"
        paragraphs = form.locator(".about p")
        assert about.locator("p").all_inner_texts() == paragraphs.all_inner_texts()
        browsers.expect(about).to_be_in_viewport(ratio=1)
        assert set(paragraphs.evaluate_all(heights)) == {1}, "it is seen once"
        page.set_viewport_size({"width": 1280, "height": 720})
        browsers.expect(about).to_be_hidden()
        for paragraph in paragraphs.all():
            browsers.expect(paragraph).to_be_in_viewport(ratio=1)
        page.set_viewport_size({"width": 911, "height": 512})
        form.locator(f"[name={'depth' if name == 'Cache' else 'tokens'}]").fill("2")
        form.locator(".run").click()
        browsers.expect(result).to_have_attribute("data-state", "settled", timeout=PATIENCE)
        browsers.expect(about).to_be_hidden()
        assert min(paragraphs.evaluate_all(heights)) > 10
        for part in (form.locator(".about .seen"), result.locator(".verdict, .plots").first):
            browsers.expect(part).to_be_in_viewport()
        end = form.locator("[name=prompt]").evaluate("one => one.getBoundingClientRect().bottom")
        assert end <= form.locator("> .bar").evaluate("one => one.getBoundingClientRect().top"), name


@in_a_browser
def test_in_a_low_window_the_form_of_masks_which_is_as_wide_as_it_keeps_what_it_is_about_above(tiny: Visit) -> None:
    page, form = tiny.page, tiny.page.locator("#masks-form")
    page.set_viewport_size({"width": 911, "height": 512})
    tiny.open_tab("Lab")
    tiny.open_tab("Masks")
    about = form.locator(".about p")

    def place() -> Any:
        """Left, top and height in the document: the page may scroll to the result."""
        return about.evaluate("""one => {
          const {left, top, height} = one.getBoundingClientRect();
          return [left, top + scrollY, height];
        }""")

    before = place()
    assert before[1] + before[2] <= form.locator("[name=prompt]").bounding_box()["y"]
    form.locator(".run").click()
    browsers.expect(page.locator("#lab-masks")).to_have_attribute("data-state", "settled", timeout=PATIENCE)
    assert place() == before
    browsers.expect(page.locator("#lab-masks .about")).to_be_hidden()
