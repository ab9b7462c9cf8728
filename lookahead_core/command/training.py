"""The subcommand `train-heads`: its arguments, the folder of the heads, and its report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookahead_core.command import model_loading, terminal
from lookahead_core.settings import Settings
from lookahead_core.validation import parse_options

if TYPE_CHECKING:
    from lookahead_core.speculation.heads_file import Heads

NAME = "train-heads"
DESCRIPTION = """\
Train heads that draft several tokens ahead, so that a model writes the same text in fewer passes.

The model writes texts of its own, and the heads learn from them; the model itself is not changed. Ctrl+C stops the
training, and the same command continues it.
"""
EPILOG = """\
examples:
  python -m lookahead_core train-heads
  python -m lookahead_core train-heads --minutes 5 --name quick
  python -m lookahead_core train-heads --model big/model --texts my-texts.txt --output my-heads
"""
DEFAULT_MINUTES = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommand's own options; those that are not on the command line are absent from the parsed arguments."""
    group = parser.add_argument_group("training")

    def add(flag: str, kind: type, help: str, key: str) -> None:
        metavar = {int: "N", float: "X"}.get(kind, "TEXT")
        group.add_argument(flag, type=kind, dest=key, default=argparse.SUPPRESS, metavar=metavar, help=help)

    add("--name", str, "name of the heads in the cache folder; the model's name, if not given", "name")
    add("--output", str, "folder that gets heads.safetensors, instead of one in the cache folder", "output")
    add("--tokens", int, "number of tokens that the model writes as training text (300000)", "tokens")
    add("--heads", int, "number of heads, each of which predicts one token further (3)", "count")
    add("--minutes", float, f"approximate time limit; inf sets none ({DEFAULT_MINUTES:g})", "minutes")
    add("--texts", str, "a file of texts that the model continues, instead of the built-in openings", "texts")
    add("--seed", int, "the same seed draws the same texts (0)", "seed")


def run(arguments: dict[str, Any]) -> None:
    """Check the options, load the model, train its heads, save them, and print how often each was right.

    Raises ValueError for wrong options, LookaheadError if the model cannot be loaded or gets no heads, and
    KeyboardInterrupt with a sentence if the training is interrupted: the same command then continues it.
    """
    terminal.report("Starting")
    from lookahead_core.training.trainer import TrainingPlan, train_heads

    options: dict[str, Any] = {key: arguments[key] for key in ("tokens", "count", "seed") if key in arguments}
    minutes = arguments.get("minutes", DEFAULT_MINUTES)
    options["minutes"] = None if minutes == float("inf") else minutes
    parse_options(TrainingPlan, options, NAME)  # before the model is loaded, which takes longer
    if "name" in arguments and "output" in arguments:
        raise ValueError("--name and --output are both given; the heads go to one place.")
    texts = [_read(arguments["texts"])] if "texts" in arguments else None
    if "name" in arguments:
        _folder(arguments, "")
    model = model_loading.load(arguments)
    folder = _folder(arguments, model.name)
    try:
        heads = train_heads(model, texts=texts, into=folder, report=terminal.report, **options)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("Stopped; the same command goes on from here.") from None
    terminal.report("")
    _print_summary(heads, folder)


def _folder(arguments: dict[str, Any], model_name: str) -> Path:
    """Return the folder to save the heads in: `--output`, else one in the cache folder by `--name` or the model's name.

    Of the model's name only the last part counts. Raises ValueError for a name that cannot be a folder's; the folder
    need not exist.
    """
    from lookahead_core.speculation.load_heads import home_of

    if "output" in arguments:
        return Path(arguments["output"]).expanduser()
    name = arguments["name"] if "name" in arguments else Path(model_name).name
    return home_of(name, Settings.from_env())


def _read(path: str) -> str:
    """Return the text of a file; raise ValueError with a sentence if it cannot be read."""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"Byte {error.start} of {path} is not UTF-8; give it as UTF-8.") from None
    except OSError as error:
        raise ValueError(f"The texts {path} cannot be read: {error.strerror or error}.") from None


def _print_summary(heads: Heads, folder: Path) -> None:
    """Print how often each head was right, and a line with the number of heads and steps, the texts, and the folder."""
    for line in accuracy_lines(heads.held_out):
        print(line)
    steps, texts = heads.notes["steps"], heads.notes["trained_on"]
    print(f"{heads.count} heads, {steps} steps on {texts}: {terminal.visible(str(folder))}")
    sys.stdout.flush()


def accuracy_lines(held_out: Sequence[tuple[float, float]]) -> list[str]:
    """Return a table's lines, headings first: how often each head's first guess, and one of its first four, was right.

    `held_out` has these two shares, 0 to 1, per head; the table has them in percent.
    """
    rows = [
        f"{f'head {number}':10}{terminal.percent(first):>12}{terminal.percent(four):>20}"
        for number, (first, four) in enumerate(held_out, 1)
    ]
    return ["On texts kept apart:", f"{'':10}{'first guess':>12}{'one of the first 4':>20}".rstrip(), *rows]
