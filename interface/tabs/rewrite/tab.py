"""Layout of the Rewrite tab: instruction, source and the new text on the left, branches on the right."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from interface.branch_view import BranchView
from interface.server.page_service import PageService
from interface.tabs.rewrite.shortening import Shortening
from interface.web.parts import SHEET, branch_controls, footer_and_script, static_html

FOLDER = Path(__file__).parent
HINT = (
    '<span class="begins">Paste a source or write an instruction to see here how the new text could begin. '
    "Each button is a token: choose one to write up to it.</span>"
    '<span class="needs" hidden><span class="sentence" role="status"></span> '
    '<button type="button" class="try-example">Use the example as source</button></span>'
)
"""What stands in place of rows: what the tab is for, or that the chosen instruction needs a source."""


def build(service: PageService) -> None:
    """Lay out the tab in the current `gr.Blocks` context and connect its script to the functions of `service`.

    The Write tab may use the same service. The script's requests also hold instruction and source.
    """
    with gr.Row(elem_classes="desk rewriting"):
        with gr.Column(elem_classes="pile", scale=5, min_width=300):
            with gr.Column(elem_classes="card"):
                static_html(FOLDER / "source.html", SHEET, FOLDER / "source.css", FOLDER / "shortened_source.css")
            with gr.Column(elem_classes="card"):
                static_html(FOLDER / "paper.html", SHEET, FOLDER / "paper.css")
        with gr.Column(elem_classes="card", scale=6, min_width=300):
            branch_controls("rewrite-")
            BranchView(prefix="rewrite-", hint=HINT)
    functions = [*service.functions, *Shortening(service.loader).functions]
    footer_and_script("tabs/rewrite/rewrite.js", functions)
