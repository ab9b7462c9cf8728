"""Parts that several tabs are laid out with: markup, style sheets, branch controls, and a tab's footer and script."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr

from interface.http import assets

FOLDER = Path(__file__).parent / "ui"
HELP = FOLDER / "help.html"
SHEET = FOLDER / "sheet.css"
CONTROLS = FOLDER / "controls.css"
MOMENTS = FOLDER / "moments.css"
ZOOMS = FOLDER / "zooms.css"
PRIVACY = (
    "Your text is kept in this browser. It is sent to this server for computing, which keeps it in memory for a while "
    "and never writes it to disk."
)
"""What is stored of a text, in the footer of each tab and in the dialog *Help*."""
FALLIBILITY = "Branches are what a language model finds likely, not what is true."
FOOTER_NOTE = f'<p class="colophon">{PRIVACY} {FALLIBILITY}</p>'


def static_html(template: Path, *styles: Path, **replaced: str) -> gr.HTML:
    """Add a component of fixed markup and of style sheets, both read from files, and return it.

    It is added to the current `gr.Blocks` context. Each `{name}` in the markup is replaced by the argument of that
    name, such as `prefix`, by which ids differ between tabs; `{privacy}` and `{fallibility}` are replaced by the
    sentences of the footer, and `{help:name}` by the button that opens the help of this name: see `help_topics.js`.
    """
    style = "\n".join(file.read_text(encoding="utf-8") for file in styles)
    markup = markup_of(template, **replaced, privacy=PRIVACY, fallibility=FALLIBILITY)
    return gr.HTML(html_template=markup, css_template=style, apply_default_css=False)


def markup_of(template: Path, **replaced: str) -> str:
    """Return the markup in a file, with each `{name}` replaced by the argument of that name."""
    markup = template.read_text(encoding="utf-8")
    for name, text in replaced.items():
        markup = markup.replace(f"{{{name}}}", text)
    button = HELP.read_text(encoding="utf-8").strip()
    return re.sub(r"{help:(\w+)}", lambda found: button.replace("{help}", found[1]), markup)


def branch_controls(prefix: str) -> gr.HTML:
    """Add the controls of branches to the current `gr.Blocks` context, and return them; their ids begin with `prefix`.

    They are the number of branches, their length, the depth, and buttons to stop and to pause.
    """
    return static_html(FOLDER / "controls.html", CONTROLS, prefix=prefix)


def footer_and_script(script: str, functions: list[Callable[..., Any]], value: Any = None) -> None:
    """Add the end of a tab to the current `gr.Blocks` context: a note, and an empty component that starts its script.

    The note is about privacy and truth. `script` is a path below `interface/`; its exported function `start` is called
    with the object that `assets.on_load` describes: its `server` has `functions` by their names, its `props.value` the
    JSON value `value`.
    """
    gr.HTML(html_template=FOOTER_NOTE, apply_default_css=False)
    gr.HTML(
        value=value,
        html_template="",
        js_on_load=assets.on_load(script, "start"),
        server_functions=functions,
        apply_default_css=False,
        elem_classes="tab-script",
    )
