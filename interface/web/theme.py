"""Colours and fonts of the page, for light and dark mode. All fonts are installed on common systems."""

from __future__ import annotations

from gradio.themes import Base

COLOURS = {
    "body_background_fill": ("#faf9f7", "#191817"),
    "background_fill_primary": ("#ffffff", "#22211f"),
    "background_fill_secondary": ("#faf9f7", "#191817"),
    "block_background_fill": ("#ffffff", "#22211f"),
    "body_text_color": ("#22201d", "#ece8e1"),
    "body_text_color_subdued": ("#6b665f", "#a49d93"),
    "block_label_text_color": ("#6b665f", "#a49d93"),
    "block_title_text_color": ("#6b665f", "#a49d93"),
    "border_color_primary": ("#e6e2db", "#37342f"),
    "border_color_accent": ("#a64b26", "#e58e62"),
    "color_accent_soft": ("#f6e7df", "#3a2a22"),
    "input_background_fill": ("#ffffff", "#22211f"),
    "slider_color": ("#a64b26", "#e58e62"),
    "input_placeholder_color": ("#a49d93", "#7d766c"),
}
"""By variable of Gradio's theme: its colour in light and in dark mode."""
FONT = ["system-ui", "-apple-system", "Segoe UI", "Roboto", "sans-serif"]
MONOSPACE = ["ui-monospace", "Consolas", "monospace"]


def theme() -> Base:
    """Return the Gradio theme of the page: colours for light and dark mode, and fonts.

    The style sheets use its CSS variables, so they follow dark mode.
    """
    values = {name: light for name, (light, _) in COLOURS.items()}
    values |= {f"{name}_dark": dark for name, (_, dark) in COLOURS.items()}
    return Base(font=FONT, font_mono=MONOSPACE).set(color_accent="#a64b26", **values)
