"""Figures that the page's sentences name are those of the core's options."""

from __future__ import annotations

from pathlib import Path

from interface.server.branch_request import FORK_CUTOFF
from interface.web.parts import FALLIBILITY, FOOTER_NOTE, PRIVACY
from lookahead_core.strategies.lookahead_options import LookaheadOptions

INTERFACE = Path(__file__).parents[3] / "interface"


def sentences(name: str) -> str:
    return (INTERFACE / name).read_text(encoding="utf-8").replace("\u00a0", " ")


def test_the_figures_of_forks_and_surprising_rows_are_those_of_the_options() -> None:
    options = LookaheadOptions()
    assert options.slope == 1.0, "else the figure is another one at each level"
    assert f" {100 * FORK_CUTOFF:.0f} % or more" in sentences("web/core/branch_sentences.js")
    assert f"{100 * options.floor:g} % or more" in sentences("web/core/branch_sentences.js")
    assert f"still have {100 * options.floor:g} % or more" in sentences("web/core/branch_sentences.js")


def test_the_help_and_the_footer_take_what_is_stored_from_one_sentence() -> None:
    assert PRIVACY in FOOTER_NOTE and FALLIBILITY in FOOTER_NOTE
    assert "{privacy}" in sentences("tabs/writer/paper.html") and "{fallibility}" in sentences("tabs/writer/paper.html")
