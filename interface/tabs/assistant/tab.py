"""The Type assistant tab: the messages so far, the one in progress, and where it could go, whoever's turn it is."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from interface.branch_view import BranchView
from interface.http import assets
from interface.server.page_service import PageService
from interface.web.parts import MOMENTS, SHEET, choosing, colophon, part

FOLDER = Path(__file__).parent
HINT = "See here how the message could begin, and go on. Click a word to take it."


def build(service: PageService) -> None:
    """Lay the tab out; its script asks the server what the writer's asks, and says of what the text is a message."""
    with gr.Row(elem_classes="desk assisting"):
        with gr.Column(elem_classes="card", scale=5, min_width=300):
            part(FOLDER / "paper.html", SHEET, MOMENTS, FOLDER / "paper.css")
        with gr.Column(elem_classes="card", scale=6, min_width=300), BranchView(prefix="chat-", hint=HINT):
            choosing("chat-")
    colophon()
    gr.HTML(
        html_template="",
        js_on_load=assets.on_load("tabs/assistant/assistant.js", "start"),
        server_functions=service.functions,
        apply_default_css=False,
        elem_classes="hand",
    )
