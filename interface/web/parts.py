"""Parts that several tabs are laid out with: static markup, branch controls, style sheets, the footer note."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

FOLDER = Path(__file__).parent / "ui"
SHEET = FOLDER / "sheet.css"
CONTROLS = FOLDER / "controls.css"
MOMENTS = FOLDER / "moments.css"
FOOTER_NOTE = """<p class="colophon">Your text is sent to this server for computing and is not stored there.
Branches are what a language model finds likely, not what is true.</p>"""


def static_html(template: Path, *styles: Path, prefix: str = "") -> gr.HTML:
    """A component of fixed markup and style sheets; `{prefix}` in the markup's ids is replaced."""
    style = "\n".join(file.read_text(encoding="utf-8") for file in styles)
    markup = template.read_text(encoding="utf-8").replace("{prefix}", prefix)
    return gr.HTML(html_template=markup, css_template=style, apply_default_css=False)


def branch_controls(prefix: str) -> gr.HTML:
    """The controls of a tab: number of branches, depth, one word or several at a click. Ids begin with `prefix`."""
    return static_html(FOLDER / "controls.html", CONTROLS, prefix=prefix)


def footer_note() -> None:
    """Add the note about privacy and truth at the foot of a tab."""
    gr.HTML(html_template=FOOTER_NOTE, apply_default_css=False)
