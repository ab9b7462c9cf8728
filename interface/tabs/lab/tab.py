"""Layout of the Lab tab: a lesson, and for each experiment its prompt and options, and beside them its result."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from interface.http import plotly_script
from interface.server.model_loading import ModelLoader
from interface.server.page_service import PageService
from interface.tabs.lab.cache_session import CacheRequest, CacheSession
from interface.tabs.lab.decoding_session import DecodingRequest, DecodingSession
from interface.tabs.lab.masks_session import MasksRequest, MasksSession
from interface.tabs.lab.speculation_session import SpeculationRequest, SpeculationSession
from interface.web.parts import CONTROLS, SHEET, ZOOMS, footer_and_script, markup_of, static_html

FOLDER = Path(__file__).parent
PARTS = ("prompt", "run_bar", "passes_bar", "to_lesson")
"""Markup that several experiments have: files in FOLDER, without `.html`."""
REPEATING = "One, two, three, four, one, two, three,"
"""The example of the speculation page: a text that repeats itself, of which drafters guess much."""


def build(loader: ModelLoader) -> None:
    """Lay out the tab in the current `gr.Blocks` context: a tab in it for the lesson, and one for each experiment.

    The lesson is open at first. Each experiment connects its script to a PageService of its own, with the sessions of
    that experiment. The model of `loader` may still be loading.
    """
    with gr.Tabs(elem_classes="tabs-bar inner"):
        with gr.Tab("Lesson"):
            _lesson()
        with gr.Tab("Cache"):
            _experiment("cache", PageService(loader, CacheRequest.from_json, CacheSession))
        with gr.Tab("Decoding"):
            _experiment("decoding", PageService(loader, DecodingRequest.from_json, DecodingSession))
        with gr.Tab("Masks"):
            _experiment("masks", PageService(loader, MasksRequest.from_json, MasksSession))
        with gr.Tab("Speculation"):
            service = PageService(
                loader,
                SpeculationRequest.from_json,
                lambda model: SpeculationSession(model, lambda: loader.draft_model),
            )
            small = "checked" if loader.has_draft_model else "disabled"
            _experiment("speculation", service, REPEATING, small=small)


def _experiment(name: str, service: PageService, example: str = "After careful", **others: str) -> None:
    """Lay out the experiment's form and beside it its result, and start its script, which asks `service`.

    The files are `{name}_form.html`, `{name}_result.html`, `{name}_page.js`, and maybe `{name}_result.css`. `{prompt}`
    and `{run_bar}` in the form are replaced by the field for the prompt, which holds `example`, and the buttons, which
    all forms have, and `{to_lesson}` by the link back to a step of the lesson; `{passes_bar}` in the result by the
    controls of passes; and names in `others` by their texts.
    """
    parts = {part: markup_of(FOLDER / f"{part}.html", name=name, example=example) for part in PARTS}
    own = [file for file in [FOLDER / f"{name}_result.css"] if file.exists()]
    with gr.Row(elem_classes="desk lab"):
        with gr.Column(elem_classes="card", scale=4, min_width=300):
            static_html(FOLDER / f"{name}_form.html", SHEET, CONTROLS, FOLDER / "form.css", **parts, **others)
        with gr.Column(elem_classes="card", scale=8, min_width=300):
            static_html(FOLDER / f"{name}_result.html", FOLDER / "result.css", ZOOMS, *own, **parts)
    footer_and_script(f"tabs/lab/{name}_page.js", service.functions, {"plotly": f".{plotly_script.ADDRESS}"})


def _lesson() -> None:
    """Lay out the outline of the lesson and beside it its parts, and start its script, which asks the server nothing.

    The script makes the parts from `lesson_steps.js`.
    """
    with gr.Row(elem_classes="desk lab"):
        with gr.Column(elem_classes="card", scale=4, min_width=300):
            static_html(FOLDER / "lesson_outline.html", SHEET, FOLDER / "lesson_outline.css")
        with gr.Column(elem_classes="card", scale=8, min_width=300):
            static_html(FOLDER / "lesson_parts.html", SHEET, FOLDER / "lesson_parts.css")
    footer_and_script("tabs/lab/lesson_page.js", [])
