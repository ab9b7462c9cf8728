"""The subcommand `check-agreement`: for how many tokens a smaller model writes what the model would have written."""

from __future__ import annotations

import argparse
import json
from typing import Any

from lookahead_core.command import json_output, model_loading, terminal, text_output
from lookahead_core.command.standard_input import read_standard_input
from lookahead_core.serving.json_values import json_safe

NAME = "check-agreement"
DESCRIPTION = """\
Let a smaller model continue texts greedily, and let the model check all of it in one pass: how many tokens it would
have written as well, and which token it would have written where the two first differ.
"""
EPILOG = """\
examples:
  python -m lookahead_core check-agreement "def hello" --draft-model small/model --model big/model
  python -m lookahead_core check-agreement "One, two," "After careful" --draft-model small/model --max-new-tokens 35
"""
DEFAULT_NEW_TOKENS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the prompts and options of `check-agreement` to its parser; the caller adds the model's options.

    The parsed arguments have `json` and `columns` (from `--width`) only if they are on the command line: `run` and
    `_screen` ask whether the key is there.
    """
    parser.add_argument("prompt", nargs="+", help='a text to continue; "-" reads one, without its last line break')
    group = parser.add_argument_group("check")
    absent: dict[str, Any] = {"default": argparse.SUPPRESS}
    group.add_argument(
        "--draft-model",
        dest="draft_model",
        metavar="TEXT",
        required=True,
        help="the smaller model, with the same tokens",
    )
    length = f"maximum number of tokens that it writes, an end token included ({DEFAULT_NEW_TOKENS})"
    group.add_argument("--max-new-tokens", type=int, metavar="N", help=length, default=DEFAULT_NEW_TOKENS)
    group.add_argument("--json", action="store_true", help="write one JSON document and nothing else", **absent)
    group.add_argument("--width", dest="columns", type=int, metavar="N", help="maximum width of lines", **absent)


def run(arguments: dict[str, Any], screen: terminal.Screen) -> None:
    """Continue the prompts with the smaller model, check them with the bigger one, and write the result to `screen`.

    The result is lines of text, or JSON with `--json`. `arguments` are the subcommand's parsed arguments by key; a
    prompt "-" is read from standard input. Raises ValueError for wrong options or input, and LookaheadError if a model
    cannot be loaded or the two have different tokens.
    """
    terminal.report("Starting")
    from lookahead_core.analysis.agreement import generate_and_check
    from lookahead_core.strategies.rules import LogitRules

    prompts = [read_standard_input() if prompt == "-" else prompt for prompt in arguments["prompt"]]
    max_new_tokens = arguments["max_new_tokens"]
    LogitRules(max_new_tokens=max_new_tokens)  # before the models are loaded, which takes longer
    model = model_loading.load(arguments)
    draft_model = model_loading.load_draft_model(model, arguments)
    checks = generate_and_check(model, draft_model, prompts, max_new_tokens=max_new_tokens)
    if "json" not in arguments:
        for line in text_output.agreement_lines(prompts, checks, model, screen):
            screen.line(line)
        return
    result = {
        "method": NAME,
        "checks": [json_output.check_as_json(*pair) for pair in zip(prompts, checks, strict=True)],
        "big_passes": checks[0].big_passes,
        "model": json_output.model_as_json(model),
        "draft_model": json_output.model_as_json(draft_model),
        "options": {"max_new_tokens": max_new_tokens},
    }
    screen.line(json.dumps(json_safe(result), allow_nan=False))
