"""The command `train-heads`: what may be asked, where the heads go, and what it tells."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lookahead_core.command import terminal
from lookahead_core.settings import Settings
from lookahead_core.validation import parse_options

if TYPE_CHECKING:
    from lookahead_core.model import Model
    from lookahead_core.speculation.heads_file import Heads

NAME = "train-heads"
DESCRIPTION = """\
Train heads that guess several tokens ahead, so that a model writes the same text in fewer passes.

The model writes texts of its own, and the heads learn from them; the model stays as it is. Ctrl+C stops it, and the
same command goes on where it stood.
"""
EPILOG = """\
examples:
  python -m lookahead_core train-heads
  python -m lookahead_core train-heads --minutes 5 --name quick
  python -m lookahead_core train-heads --model big/model --texts my-texts.txt --output my-heads
"""
MINUTES = 10.0


def add(made: argparse.ArgumentParser) -> None:
    """The options of the training; what is not given does not come into the namespace."""
    group = made.add_argument_group("training")

    def option(flag: str, kind: type, said: str, place: str) -> None:
        metavar = {int: "N", float: "X"}.get(kind, "TEXT")
        group.add_argument(flag, type=kind, dest=place, default=argparse.SUPPRESS, metavar=metavar, help=said)

    option("--name", str, "what the heads are called in the cache folder; the model's name, if not given", "name")
    option("--output", str, "the folder that gets heads.safetensors, in place of one in the cache folder", "output")
    option("--tokens", int, "how many tokens the model writes to learn from (300000)", "tokens")
    option("--heads", int, "how many heads, each of which guesses one token further (3)", "count")
    option("--minutes", float, f"about how long it may take; inf sets no bound ({MINUTES:g})", "minutes")
    option("--texts", str, "a file of texts to go on from, in place of openings of many kinds", "texts")
    option("--seed", int, "the same seed draws the same texts (0)", "seed")


def run(asked: dict[str, Any], load: Callable[[dict[str, Any]], Model]) -> None:
    """Train, and tell what it is worth. The options are checked before anything is loaded."""
    terminal.report("Starting")
    from lookahead_core.training.trainer import TrainingPlan, train_heads

    given = {name: asked[name] for name in ("tokens", "count", "seed") if name in asked}
    minutes = asked.get("minutes", MINUTES)
    given["minutes"] = None if minutes == float("inf") else minutes
    parse_options(TrainingPlan, given, NAME)
    if "name" in asked and "output" in asked:
        raise ValueError("--name and --output are both given; the heads go to one place.")
    texts = [_read(asked["texts"])] if "texts" in asked else None
    if "name" in asked:
        _folder(asked, "")
    model = load(asked)
    folder = _folder(asked, model.name)
    try:
        heads = train_heads(model, texts=texts, into=folder, report=terminal.report, **given)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("Stopped; the same command goes on from here.") from None
    terminal.report("")
    _tell(heads, folder)


def _folder(asked: dict[str, Any], model_name: str) -> Path:
    """Where the heads go."""
    from lookahead_core.speculation.heads import home_of

    if "output" in asked:
        return Path(asked["output"]).expanduser()
    return home_of(asked["name"] if "name" in asked else Path(model_name).name, Settings.from_env())


def _read(place: str) -> str:
    """A person's texts."""
    try:
        return Path(place).expanduser().read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"Byte {error.start} of {place} is no UTF-8; give it as UTF-8.") from None
    except OSError as error:
        raise ValueError(f"The texts {place} cannot be read: {error.strerror or error}.") from None


def _tell(heads: Heads, folder: Path) -> None:
    """How often each head was right, and where the heads are."""
    for line in _table(heads.held_out):
        print(line)
    steps, texts = heads.notes["steps"], heads.notes["trained_on"]
    print(f"{heads.count} heads, {steps} steps on {texts}: {terminal.visible(str(folder))}")
    sys.stdout.flush()


def _table(held_out: Sequence[tuple[float, float]]) -> list[str]:
    rows = [
        f"{f'head {place}':10}{terminal.percent(first):>12}{terminal.percent(four):>20}"
        for place, (first, four) in enumerate(held_out, 1)
    ]
    return ["On texts kept apart:", f"{'':10}{'first guess':>12}{'one of the first 4':>20}".rstrip(), *rows]
