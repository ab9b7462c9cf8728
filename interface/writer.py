"""The writer's tab: a text box, and beside it where the text could go."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from interface.asking import MOST_BRANCHES, MOST_DEPTH
from interface.branch_view import BranchView
from interface.desk import Desk
from interface.header import Header

SCRIPT = (Path(__file__).parent / "writer.js").read_text(encoding="utf-8")
LOOK_AGAIN = "() => window.lookahead.lookAgain()"
REVISION = "() => window.lookahead.revision()"
ASKED = "(hand, k, depth) => [window.lookahead.asked(), k, depth]"


def build(desk: Desk, header: Header) -> None:
    """Lay the tab out and connect it. No handler has the text box among its outputs: typing is sacred."""
    with gr.Row(elem_classes="desk"):
        with gr.Column(elem_classes="card paper", scale=5, min_width=300):
            _text_box()
        with gr.Column(elem_classes="card", scale=6, min_width=300), BranchView() as branches:
            k, depth = _sliders()
    hand = gr.HTML(html_template="", js_on_load=SCRIPT, apply_default_css=False, elem_classes="hand")
    hidden = {"api_visibility": "private", "show_progress": "hidden"}
    for slider in (k, depth):
        slider.change(None, js=LOOK_AGAIN)
    hand.note(desk.note, hand, None, js=REVISION, queue=False, trigger_mode="multiple", **hidden)
    hand.ask(
        desk.answer,
        [hand, k, depth],
        [branches, header],
        js=ASKED,
        trigger_mode="always_last",
        concurrency_limit=None,
        **hidden,
    )


def _text_box() -> None:
    gr.Textbox(
        label="Your text",
        show_label=False,
        placeholder="Once upon a time …",
        elem_id="document",
        lines=3,
        max_lines=24,
        container=False,
        autoscroll=False,
        html_attributes=gr.InputHTMLAttributes(spellcheck=True),
    )


def _sliders() -> tuple[gr.Slider, gr.Slider]:
    with gr.Row(elem_classes="controls"):
        k = gr.Slider(1, MOST_BRANCHES, 5, step=1, precision=0, label="Branches", elem_id="k", min_width=120)
        depth = gr.Slider(1, MOST_DEPTH, 5, step=1, precision=0, label="Depth", elem_id="depth", min_width=120)
    return k, depth
