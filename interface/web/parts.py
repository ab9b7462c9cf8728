"""What several tabs are made of: a person's draft, what steers it among branches, sheets and controls around it."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

FOLDER = Path(__file__).parent / "ui"
SHEET = FOLDER / "sheet.css"
CONTROLS = FOLDER / "controls.css"
MOMENTS = FOLDER / "moments.css"
COLOPHON = """<p class="colophon">What you write is computed on this server and not stored there.
Branches are what a language model thinks likely, not what is true.</p>"""


def part(template: Path, *styles: Path, prefix: str = "") -> gr.HTML:
    """Markup of ours, which holds nothing of a model's or a person's, with its styles."""
    style = "\n".join(file.read_text(encoding="utf-8") for file in styles)
    markup = template.read_text(encoding="utf-8").replace("{prefix}", prefix)
    return gr.HTML(html_template=markup, css_template=style, apply_default_css=False)


def choosing(prefix: str) -> gr.HTML:
    """How many branches, how deep, and whether a click takes one word or several; its ids begin with `prefix`."""
    return part(FOLDER / "controls.html", CONTROLS, prefix=prefix)


def colophon() -> None:
    """What everybody should know, at the foot of a tab."""
    gr.HTML(html_template=COLOPHON, apply_default_css=False)
