"""Layout of the Internals tab: the text or conversation, its tokens, and the details of one token."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from interface.server.model_loading import ModelLoader
from interface.server.page_service import PageService
from interface.tabs.internals.token_odds import InternalsRequest, InternalsSession
from interface.web.parts import CONTROLS, SHEET, footer_and_script, static_html

FOLDER = Path(__file__).parent


def build(loader: ModelLoader) -> None:
    """Lay out the tab in the current `gr.Blocks` context and connect its script to a new PageService.

    Its sessions are InternalsSessions. The model of `loader` may still be loading.
    """
    with gr.Row(elem_classes="desk looking-inside"):
        with gr.Column(elem_classes="card", scale=4, min_width=300):
            static_html(FOLDER / "text_field.html", SHEET, FOLDER / "text_field.css")
        with gr.Column(elem_classes="card", scale=7, min_width=300):
            static_html(FOLDER / "tokens.html", CONTROLS, FOLDER / "tokens.css")
    service = PageService(loader, InternalsRequest.from_json, InternalsSession)
    footer_and_script("tabs/internals/internals.js", service.functions)
