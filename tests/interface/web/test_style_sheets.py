"""One visual system: every colour, distance and type size of the style sheets comes from one file of variables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from interface.web.theme import COLOURS, VARIABLES, colours, theme

INTERFACE = Path(__file__).parents[3] / "interface"
SHEETS = sorted(file for file in INTERFACE.rglob("*.css") if file != VARIABLES)
GRID = 4
"""Pixels of one step of the grid."""
LINE = 4
"""Pixels: what is thinner is a line or a dot, not a distance."""
EXCEPTIONS = {
    ("clip-path", "inset(50%)"): "hides an element from view alone",
    ("font-size", "0"): "a file input, whose own words are not shown",
    ("margin-inline-start", "-1px"): "two borders that lie on one another",
}
"""Values that need no variable, with their reasons."""
COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\b(?:rgba?|hsla?|hwb|lab|lch|oklab|oklch)\(")
NAMED = re.compile(r"(?<![\w-])(?:white|gray|grey|red|green|blue|orange|brown|yellow|silver|beige)(?![\w-])")
LENGTH = re.compile(r"(?<![\w.-])-?(\d*\.?\d+)(px|rem)\b")
DISTANCES = re.compile(r"^(?:margin|padding|gap|row-gap|column-gap|scroll-padding|scroll-margin)")


def without_comments(file: Path) -> str:
    return re.sub(r"/\*.*?\*/", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)


def declarations(file: Path) -> Iterator[tuple[str, str]]:
    """The property and the value of each declaration of a style sheet."""
    for found in re.finditer(r"(?:^|[{;])\s*([a-z-]+)\s*:\s*([^;{}]+)(?=[;}])", without_comments(file), re.MULTILINE):
        yield found[1], found[2].strip()


def pixels(number: str, unit: str) -> float:
    return float(number) * (16 if unit == "rem" else 1)


def without_exceptions(file: Path) -> list[tuple[str, str]]:
    found = [one for one in declarations(file) if one not in EXCEPTIONS]
    assert found
    return found


@pytest.mark.parametrize("file", SHEETS, ids=lambda file: str(file.relative_to(INTERFACE)))
def test_style_sheets_name_their_colours_distances_and_type_sizes(file: Path) -> None:
    for name, value in without_exceptions(file):
        what = f"{name}: {value}"
        assert not COLOUR.search(value) and not NAMED.search(value), f"{what}: a raw colour"
        if name == "font-size":
            assert value.startswith("var(--type-") or (value.endswith("em") and "rem" not in value), what
        elif name == "font" and value != "inherit":
            assert re.search(r"var\(--type-\w+\)|[\d.]+em\b", value) and "var(--" in value.split("/")[-1], what
        elif DISTANCES.match(name):
            assert not LENGTH.search(value), f"{what}: a distance without a variable"


@pytest.mark.parametrize("file", SHEETS, ids=lambda file: str(file.relative_to(INTERFACE)))
def test_all_lengths_are_multiples_of_the_grid_or_lines(file: Path) -> None:
    for name, value in without_exceptions(file):
        for number, unit in LENGTH.findall(value):
            length = pixels(number, unit)
            assert length % GRID == 0 or length < LINE, f"{name}: {value}"


@pytest.mark.parametrize("file", SHEETS, ids=lambda file: str(file.relative_to(INTERFACE)))
def test_style_sheets_use_only_variables_that_exist(file: Path) -> None:
    sheets = "".join(one.read_text(encoding="utf-8") for one in [*SHEETS, VARIABLES])
    scripts = "".join(one.read_text(encoding="utf-8") for one in INTERFACE.rglob("*.js"))
    known = set(re.findall(r"(--[a-z0-9-]+): ", sheets)) | set(re.findall(r"(--[a-z0-9-]+)[:']", scripts))
    known |= {f"--{name.replace('_', '-')}" for name in [*COLOURS, "color_accent"]} | {"--font"}
    for _, value in declarations(file):
        assert set(re.findall(r"var\((--[a-z0-9-]+)", value)) <= known, value


def arguments_of_has(text: str) -> Iterator[str]:
    """The text between the parentheses of each `:has()` in a style sheet."""
    for found in re.finditer(r":has\(", text):
        depth, end = 1, found.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        yield text[found.end() : end - 1]


@pytest.mark.parametrize("file", SHEETS, ids=lambda file: str(file.relative_to(INTERFACE)))
def test_no_has_makes_a_browser_style_the_whole_page_again(file: Path) -> None:
    """With `:not()` in the argument of `:has()`, browsers check it at each element that comes or goes, anywhere below.

    A `:has()` within `:is()` before `*` lets them style all elements of the page again.
    """
    text = without_comments(file)
    for argument in arguments_of_has(text):
        assert ":not(" not in argument, argument
    assert not re.search(r":is\([^{]*:has\([^{]*\) \*\)", text)


def test_the_steps_of_spacing_are_multiples_of_the_grid() -> None:
    steps = re.findall(r"--space-(\d): (\d+)px;", VARIABLES.read_text(encoding="utf-8"))
    assert [int(pixels) for _, pixels in steps] == [GRID * int(step) for step, _ in steps]
    assert len(steps) >= 4


def luminance(colour: str) -> float:
    """WCAG 2.2: relative luminance."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("mode", [":root", ".dark"])
@pytest.mark.parametrize("ink", ["ink", "ink-soft", "ink-faint", "accent"])
def test_every_colour_of_text_can_be_read_on_every_background(mode: str, ink: str) -> None:
    found = colours(mode)
    for background in ["paper", "desk", "accent-soft"][: 2 if ink == "ink-faint" else 3]:
        assert contrast(found[ink], found[background]) >= 4.5, (ink, background)


def test_a_placeholder_is_paler_than_any_other_text() -> None:
    for mode in (":root", ".dark"):
        found = colours(mode)
        pale, *others = (contrast(found[ink], found["paper"]) for ink in ("ink-faint", "ink-soft", "ink"))
        assert pale < min(others)


def test_gradios_own_variables_have_the_same_colours() -> None:
    css = theme()._get_theme_css()
    for name, colour in COLOURS.items():
        values = re.findall(rf"--{name.replace('_', '-')}: (#\w+);", css)
        assert values == [colours(":root")[colour], colours(".dark")[colour]]


def test_the_lines_at_the_edges_of_what_can_be_scrolled_have_sharp_ends() -> None:
    text = (INTERFACE / "web" / "page.css").read_text(encoding="utf-8")
    covers = re.findall(r"linear-gradient\((?:to \w+, )?var\(--cover\) 50%, ([^()]+)\)", text)
    assert covers == ["transparent 0"] * 4
