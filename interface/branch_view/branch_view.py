"""The branch view as a Gradio component."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from interface.http import assets

FOLDER = Path(__file__).parent
HINT = "Write something to see here how it could continue. Click a word to insert it."


class BranchView(gr.HTML):
    """Rows of branches with their probabilities; components built inside appear between coverage bar and rows.

    `value` is the JSON of a view to show at first, or None. The ids of its elements begin with `prefix`. `hint` is
    shown while there are no rows. The template is static and the script inserts text as text nodes, so no text of a
    model or a person becomes markup. `options` are passed on to `gr.HTML`.
    """

    def __init__(
        self, value: dict[str, Any] | None = None, *, prefix: str = "", hint: str = HINT, **options: Any
    ) -> None:
        super().__init__(
            value=value,
            html_template=_read("template.html").replace("{prefix}", prefix).replace("{hint}", hint),
            css_template=_read("style.css"),
            js_on_load=assets.on_load("branch_view/branch_view.js", "mount"),
            apply_default_css=False,
            prefix=prefix,
            hint=hint,
            **options,
        )


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
