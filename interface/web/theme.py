"""The Gradio theme of the page: its colours come from `variables.css`, for light and dark mode."""

from __future__ import annotations

import re
from pathlib import Path

from gradio.themes import Base

VARIABLES = Path(__file__).parent / "variables.css"
COLOURS = {
    "body_background_fill": "desk",
    "background_fill_primary": "paper",
    "background_fill_secondary": "desk",
    "block_background_fill": "paper",
    "body_text_color": "ink",
    "body_text_color_subdued": "ink-soft",
    "block_label_text_color": "ink-soft",
    "block_title_text_color": "ink-soft",
    "border_color_primary": "line",
    "border_color_accent": "accent",
    "color_accent_soft": "accent-soft",
    "input_background_fill": "paper",
    "slider_color": "accent",
    "input_placeholder_color": "ink-faint",
}
"""By variable of Gradio's theme: the name of its colour in `variables.css`."""
FONT = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"]
"""Fonts that are installed on common systems, so that the page loads none."""
MONOSPACE = ["ui-monospace", "Consolas", "monospace"]


def colours(mode: str) -> dict[str, str]:
    """Return the colours of `variables.css` by name, as hexadecimal numbers.

    `mode` is the selector of a rule in that file: ":root" for light mode, ".dark" for dark mode.
    """
    rule = re.search(rf"^{re.escape(mode)} {{(.*?)^}}", VARIABLES.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", rule[1])) if rule else {}


def theme() -> Base:
    """Return the Gradio theme of the page: colours for light and dark mode, and fonts.

    The style sheets use its CSS variables, so they follow dark mode.
    """
    light, dark = colours(":root"), colours(".dark")
    values = {name: light[colour] for name, colour in COLOURS.items()}
    values |= {f"{name}_dark": dark[colour] for name, colour in COLOURS.items()}
    return Base(font=FONT, font_mono=MONOSPACE).set(color_accent=light["accent"], **values)
