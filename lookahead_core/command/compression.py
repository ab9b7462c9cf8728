"""The subcommand `compress`: shortens a text by removing the phrases that surprise the model least."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lookahead_core.command import json_output, model_loading, terminal
from lookahead_core.command.standard_input import read_standard_input
from lookahead_core.serving.compression_json import compression_as_json
from lookahead_core.serving.json_values import json_safe

NAME = "compress"
DESCRIPTION = """\
Shorten a text to at most a share of its tokens: the model reads it once, and the phrases that surprise it least are
removed. Names and numbers are removed last. The kept text goes to standard output.
"""
EPILOG = """\
examples:
  python -m lookahead_core compress report.txt --ratio 0.25
  cat report.txt | python -m lookahead_core compress - --ratio 0.5 --verbose > short.txt
  python -m lookahead_core compress report.txt --json    # also what was removed, and the surprise of each span
"""
DEFAULT_RATIO = 0.25


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file and options of `compress` to its parser; the caller adds the model's options.

    The parsed arguments have `json` and `verbose` only if they are on the command line.
    """
    parser.add_argument("file", help='a text file in UTF-8; "-" reads standard input, without its last line break')
    group = parser.add_argument_group("compression")
    absent: dict[str, Any] = {"default": argparse.SUPPRESS}
    share = f"maximum share of the tokens that is kept, more than 0 and at most 1 ({DEFAULT_RATIO})"
    group.add_argument("--ratio", type=float, metavar="X", help=share, default=DEFAULT_RATIO)
    group.add_argument("--json", action="store_true", help="write one JSON document and nothing else", **absent)
    group.add_argument("--verbose", action="store_true", help="also write figures to standard error", **absent)


def run(arguments: dict[str, Any], screen: terminal.Screen) -> None:
    """Read the text, shorten it, and write the kept text to `screen`; with `--json` one JSON document.

    `arguments` are the subcommand's parsed arguments by name. Raises ValueError for a wrong ratio or a file that is not
    UTF-8, OSError for a file that cannot be read, and LookaheadError if the model cannot be loaded or there is no text.
    """
    terminal.report("Starting")
    from lookahead_core.analysis.compression import check_ratio, compression_steps
    from lookahead_core.document.document import Document

    check_ratio(arguments["ratio"])  # before the model is loaded, which takes longer
    text = read_standard_input() if arguments["file"] == "-" else _read(Path(arguments["file"]))
    model = model_loading.load(arguments)
    for step in compression_steps(Document(model, text), arguments["ratio"]):
        terminal.report("Reading", step.read / max(step.total, 1))
    terminal.report("")
    found = step.result
    assert found is not None
    if "json" in arguments:
        result = {
            "method": NAME,
            **compression_as_json(found),
            "cost": asdict(found.cost),
            "model": json_output.model_as_json(model),
            "options": {"ratio": arguments["ratio"]},
        }
        screen.line(json.dumps(json_safe(result), allow_nan=False))
        return
    screen.write(found.text)
    screen.end_line()
    if "verbose" in arguments:
        cost = found.cost
        print(
            f"{found.tokens_after:,} of {found.tokens_before:,} tokens kept; {cost.tokens:,} tokens evaluated in "
            f"{cost.passes:,} pass{'es' * (cost.passes != 1)}, {cost.seconds:.1f} s",
            file=sys.stderr,
        )


def _read(path: Path) -> str:
    """Return a file's text, unchanged; raise ValueError if it is not UTF-8, and OSError if it cannot be read."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"Byte {error.start} of {path} is not UTF-8; give it as UTF-8.") from None
