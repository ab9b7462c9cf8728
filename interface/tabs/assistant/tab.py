"""Layout of the Type assistant tab: the messages, the one being written, and branches that continue it."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from interface.branch_view import BranchView
from interface.server.page_service import PageService
from interface.web.parts import MOMENTS, SHEET, branch_controls, footer_and_script, static_html

FOLDER = Path(__file__).parent
HINT = "How the message could begin or continue. Each button is a token: choose one to write up to it."


def build(service: PageService) -> None:
    """Lay out the tab in the current `gr.Blocks` context and connect its script to the functions of `service`.

    The Write tab may use the same service. The script's requests also hold the conversation.
    """
    with gr.Row(elem_classes="desk assisting"):
        with gr.Column(elem_classes="card", scale=5, min_width=300):
            static_html(FOLDER / "paper.html", SHEET, MOMENTS, FOLDER / "paper.css")
        with gr.Column(elem_classes="card", scale=6, min_width=300):
            branch_controls("chat-")
            BranchView(prefix="chat-", hint=HINT)
    footer_and_script("tabs/assistant/assistant.js", service.functions)
