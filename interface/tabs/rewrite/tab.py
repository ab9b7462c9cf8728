"""The Rewrite tab: beside a source grows a new text, as the model would go on with it when told an instruction."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from interface.branch_view import BranchView
from interface.http import assets
from interface.server.page_service import PageService
from interface.web.parts import SHEET, choosing, colophon, part

FOLDER = Path(__file__).parent
HINT = "Paste a source or write an instruction, and see here how the new text could begin. Click a word to take it."


def build(service: PageService) -> None:
    """Lay the tab out; its script asks the server what the writer's asks, and says of what the text is a rewriting."""
    with gr.Row(elem_classes="desk rewriting"):
        with gr.Column(elem_classes="card", scale=5, min_width=300):
            part(FOLDER / "told.html", SHEET, FOLDER / "told.css")
        with gr.Column(elem_classes="pile", scale=6, min_width=300):
            with gr.Column(elem_classes="card"):
                part(FOLDER / "paper.html", SHEET, FOLDER / "paper.css")
            with gr.Column(elem_classes="card"), BranchView(prefix="rewrite-", hint=HINT):
                choosing("rewrite-")
    colophon()
    gr.HTML(
        html_template="",
        js_on_load=assets.on_load("tabs/rewrite/rewrite.js", "start"),
        server_functions=service.functions,
        apply_default_css=False,
        elem_classes="hand",
    )
