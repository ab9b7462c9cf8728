"""Layout of the Write tab: the text, and branches that continue it. The text itself lives in the page's scripts."""

from __future__ import annotations

import json
from pathlib import Path

import gradio as gr

from interface.branch_view import BranchView
from interface.server.page_service import PageService
from interface.web.parts import CONTROLS, MOMENTS, SHEET, ZOOMS, footer_and_script, static_html

FOLDER = Path(__file__).parent


def build(service: PageService, address: str | None = None) -> None:
    """Lay out the tab in the current `gr.Blocks` context and connect its script to the functions of `service`.

    `address` is the base URL of shared links; None for the URL in the visitor's browser. No Gradio event has the text
    among its outputs, so the server cannot overwrite it. The script also gets the stored example.
    """
    with gr.Row(elem_classes="desk"):
        with gr.Column(elem_classes="card", scale=5, min_width=300):
            static_html(FOLDER / "paper.html", SHEET, MOMENTS, FOLDER / "paper.css", FOLDER / "replay.css")
        with gr.Column(elem_classes="card", scale=6, min_width=300):
            static_html(FOLDER / "controls.html", CONTROLS)
            with BranchView():
                static_html(FOLDER / "tree_panel.html", CONTROLS, ZOOMS, FOLDER / "tree_panel.css")
                static_html(FOLDER / "columns.html", FOLDER / "columns.css")
    example = json.loads((FOLDER / "example.json").read_text(encoding="utf-8"))
    footer_and_script("tabs/writer/writer.js", service.functions, {"example": example, "address": address})
