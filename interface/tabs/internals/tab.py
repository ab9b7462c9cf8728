"""The Internals tab: a text or a conversation, its tokens beside it, and at each what the model thought."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from interface.http import assets
from interface.server.model_loading import ModelLoader
from interface.server.page_service import PageService
from interface.tabs.internals.token_odds import InternalsRequest, InternalsSession
from interface.web.parts import CONTROLS, SHEET, colophon, part

FOLDER = Path(__file__).parent


def build(loader: ModelLoader) -> None:
    """Lay the tab out and give its script what it may ask of the server."""
    with gr.Row(elem_classes="desk looking-inside"):
        with gr.Column(elem_classes="card", scale=4, min_width=300):
            part(FOLDER / "asked.html", SHEET, FOLDER / "asked.css")
        with gr.Column(elem_classes="card", scale=7, min_width=300):
            part(FOLDER / "tokens.html", CONTROLS, FOLDER / "tokens.css")
    colophon()
    gr.HTML(
        html_template="",
        js_on_load=assets.on_load("tabs/internals/internals.js", "start"),
        server_functions=PageService(loader, InternalsRequest.of, InternalsSession).functions,
        apply_default_css=False,
        elem_classes="hand",
    )
