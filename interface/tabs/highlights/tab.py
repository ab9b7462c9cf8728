"""The Highlights tab: a text, its highlights, what they mean in figures, and branches at any of its words."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from interface.branch_view import BranchView
from interface.http import assets
from interface.server.model_loading import ModelLoader
from interface.tabs.highlights.text_analysis import HighlightsService
from interface.web.parts import CONTROLS, SHEET, colophon, part

FOLDER = Path(__file__).parent
HINT = "Click a word of the text as it was read, and see here where the text could have gone from there."


def build(loader: ModelLoader) -> None:
    """Lay the tab out and give its script what it may ask of the server; nothing here ever changes the text."""
    with gr.Row(elem_classes="desk highlighting"):
        with gr.Column(elem_classes="card", scale=5, min_width=300):
            part(FOLDER / "given.html", SHEET, FOLDER / "given.css")
        with gr.Column(elem_classes="pile", scale=6, min_width=300):
            with gr.Column(elem_classes="card"):
                part(FOLDER / "read.html", CONTROLS, FOLDER / "read.css")
            with gr.Column(elem_classes="card"):
                BranchView(prefix="highlights-", hint=HINT)
    colophon()
    gr.HTML(
        html_template="",
        js_on_load=assets.on_load("tabs/highlights/highlights.js", "start"),
        server_functions=HighlightsService(loader).functions,
        apply_default_css=False,
        elem_classes="hand",
    )
