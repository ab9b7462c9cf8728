"""The command `check-agreement`: for how many tokens a smaller model writes what the model would have written."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lookahead_core.command import terminal
from lookahead_core.serving.json_values import json_safe

if TYPE_CHECKING:
    from lookahead_core.model import Model

NAME = "check-agreement"
DESCRIPTION = """\
Let a smaller model go on with texts greedily, and let the model check all of it in one pass: how many tokens it would
have written as well, one after the other, and which one it would have written where they part.
"""
EPILOG = """\
examples:
  python -m lookahead_core check-agreement "def hello" --draft-model small/model --model big/model
  python -m lookahead_core check-agreement "One, two," "After careful" --draft-model small/model --max-new-tokens 35
"""
MOST = 10
"""How many tokens the smaller model writes where nothing is said."""


def add(made: argparse.ArgumentParser) -> None:
    """The arguments; an option that is not given does not come into the namespace."""
    made.add_argument("prompt", nargs="+", help='a text to go on from; "-" reads one, without its last line break')
    group = made.add_argument_group("check")
    absent: dict[str, Any] = {"default": argparse.SUPPRESS}
    group.add_argument(
        "--draft-model", dest="little", metavar="TEXT", required=True, help="the smaller model, with the same tokens"
    )
    said = f"how many tokens it writes at most, an end token included ({MOST})"
    group.add_argument("--max-new-tokens", type=int, metavar="N", help=said, default=MOST)
    group.add_argument("--json", action="store_true", help="one JSON document and nothing else", **absent)
    group.add_argument("--width", dest="columns", type=int, metavar="N", help="how wide lines may be", **absent)


def run(
    asked: dict[str, Any],
    screen: terminal.Screen,
    load: Callable[[dict[str, Any]], Model],
    load_beside: Callable[[Model, dict[str, Any]], Model],
) -> None:
    """Check, and tell what came of it. The options are checked before anything is loaded."""
    terminal.report("Starting")
    from lookahead_core.analysis.agreement import generate_and_check
    from lookahead_core.strategies.rules import LogitRules

    prompts, options = asked["prompt"], {"max_new_tokens": asked["max_new_tokens"]}
    LogitRules(**options)
    model = load(asked)
    little = load_beside(model, asked)
    checks = generate_and_check(model, little, prompts, **options)
    if "json" not in asked:
        for line in terminal.agreement_lines(prompts, checks, model, screen):
            screen.line(line)
        return
    found = {
        "method": NAME,
        "checks": [terminal.check_as_json(*pair) for pair in zip(prompts, checks, strict=True)],
        "big_passes": checks[0].big_passes,
        "model": terminal.model_facts(model),
        "draft_model": terminal.model_facts(little),
        "options": options,
    }
    screen.line(json.dumps(json_safe(found), allow_nan=False))
