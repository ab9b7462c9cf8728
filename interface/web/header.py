"""The page's header: its name, and the status of the model or the last error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from interface.http import assets

FOLDER = Path(__file__).parent


class Header(gr.HTML):
    """Component at the top of the page that shows the status of the model, or the latest error of a tab's script.

    `value` is the result of `LoadingState.as_json`. When it first has the state "ready", the component's script
    dispatches the browser event `lookahead:ready` on the document.
    """

    def __init__(self, value: dict[str, Any]) -> None:
        super().__init__(
            value=value,
            html_template=(FOLDER / "ui" / "header.html").read_text(encoding="utf-8"),
            js_on_load=assets.on_load("web/ui/header.js", "mount"),
            apply_default_css=False,
        )
