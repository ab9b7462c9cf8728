"""The writer's tab: a text on paper, and beside it where it could go. All of the text's life is in the page."""

from __future__ import annotations

import json
from pathlib import Path

import gradio as gr

from interface.branch_view import BranchView
from interface.http import assets
from interface.server.page_service import PageService
from interface.web.parts import CONTROLS, MOMENTS, SHEET, colophon, part

FOLDER = Path(__file__).parent


def build(service: PageService, address: str | None = None) -> None:
    """Lay the tab out and give its script what it may ask of the server: no event has the text among its outputs."""
    with gr.Row(elem_classes="desk"):
        with gr.Column(elem_classes="card", scale=5, min_width=300):
            part(FOLDER / "paper.html", SHEET, MOMENTS, FOLDER / "paper.css")
        with gr.Column(elem_classes="card", scale=6, min_width=300), BranchView():
            part(FOLDER / "controls.html", CONTROLS)
    colophon()
    gr.HTML(
        value={"example": json.loads((FOLDER / "example.json").read_text(encoding="utf-8")), "address": address},
        html_template="",
        js_on_load=assets.on_load("tabs/writer/writer.js", "start"),
        server_functions=service.functions,
        apply_default_css=False,
        elem_classes="hand",
    )
