"""The writer's tab: a text on paper, and beside it where it could go. All of the text's life is in the page."""

from __future__ import annotations

import json
from pathlib import Path

import gradio as gr

from interface import scripts
from interface.branch_view import BranchView
from interface.service import Service

FOLDER = Path(__file__).parent
COLOPHON = """<p class="colophon">What you write is computed on this server and not stored there.
Branches are what a language model thinks likely, not what is true.</p>"""


def build(service: Service, address: str | None = None) -> None:
    """Lay the tab out and give its script what it may ask of the server: no event has the text among its outputs."""
    with gr.Row(elem_classes="desk"):
        with gr.Column(elem_classes="card", scale=5, min_width=300):
            _part("paper")
        with gr.Column(elem_classes="card", scale=6, min_width=300), BranchView():
            _part("controls")
    gr.HTML(html_template=COLOPHON, apply_default_css=False)
    gr.HTML(
        value={"example": json.loads(_read("example.json")), "address": address},
        html_template="",
        js_on_load=scripts.load("writer/writer.js", "start"),
        server_functions=service.functions,
        apply_default_css=False,
        elem_classes="hand",
    )


def _part(name: str) -> gr.HTML:
    return gr.HTML(html_template=_read(f"{name}.html"), css_template=_read(f"{name}.css"), apply_default_css=False)


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
