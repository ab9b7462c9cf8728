"""The branch view as a Gradio component."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from interface.http import assets

FOLDER = Path(__file__).parent
HINT = "Write something to see here how it could continue. Each button is a token: choose one to write up to it."
KEYS = "Keys: arrows move, Enter writes up to the token, E changes it, Delete bans it, Alt+↑ leads back."
"""What the keys do while a row has the focus: shown then, and said with the token that the focus enters by."""
READ_ONLY_KEYS = "Keys: arrows move, Alt+↑ leads back."
"""The same where the rows are only read; for screen readers alone."""


class BranchView(gr.HTML):
    """Gradio component that shows branches as rows of buttons with their probabilities, below a bar of their coverage.

    Used as a context manager, it shows the components that are made inside between that bar and the rows. `value` is
    what to show at first, the detail of a `show` event as JSON, with the lookahead as its `view`; None for nothing.
    The ids of its elements begin with `prefix`. `hint` is markup, shown while there is nothing else. Other text is
    inserted by the script as text nodes, so that no text of a model or a person becomes markup. With `read_only`, the
    branches do not look clickable. `options` are passed on to `gr.HTML`.
    """

    def __init__(
        self,
        value: dict[str, Any] | None = None,
        *,
        prefix: str = "",
        hint: str = HINT,
        read_only: bool = False,
        **options: Any,
    ) -> None:
        fields = {
            "{prefix}": prefix,
            "{hint}": hint,
            "{read_only}": "data-read-only" if read_only else "",
            "{keys}": READ_ONLY_KEYS if read_only else KEYS,
        }
        template = _read("template.html")
        for name, text in fields.items():
            template = template.replace(name, text)
        super().__init__(
            value=value,
            html_template=template,
            css_template=_read("style.css"),
            js_on_load=assets.on_load("branch_view/branch_view.js", "mount"),
            apply_default_css=False,
            prefix=prefix,
            hint=hint,
            read_only=read_only,
            **options,
        )


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
