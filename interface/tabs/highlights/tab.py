"""Layout of the Highlights tab: the text field, details of a word, the text with its highlights, and branches."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from interface.branch_view import BranchView
from interface.server.model_loading import ModelLoader
from interface.tabs.highlights.text_analysis import HighlightsService
from interface.web.parts import CONTROLS, SHEET, footer_and_script, static_html

FOLDER = Path(__file__).parent
HINT = "Choose a word of the analysed text to see how the text could have continued from it."


def build(loader: ModelLoader) -> None:
    """Lay out the tab in the current `gr.Blocks` context and connect its script to a new HighlightsService.

    The model of `loader` may still be loading.
    """
    with gr.Row(elem_classes="desk highlighting"):
        with gr.Column(elem_classes="pile", scale=5, min_width=300):
            with gr.Column(elem_classes="card"):
                static_html(FOLDER / "text_field.html", SHEET, FOLDER / "text_field.css")
            with gr.Column(elem_classes="card"):
                static_html(FOLDER / "word_details.html", FOLDER / "word_details.css")
        with gr.Column(elem_classes="pile", scale=6, min_width=300):
            with gr.Column(elem_classes="card"):
                static_html(FOLDER / "analysed_text.html", CONTROLS, FOLDER / "analysed_text.css")
            with gr.Column(elem_classes="card"):
                static_html(FOLDER / "replaced_word.html", FOLDER / "replaced_word.css")
                BranchView(prefix="highlights-", hint=HINT, read_only=True)
    footer_and_script("tabs/highlights/highlights.js", HighlightsService(loader).functions)
