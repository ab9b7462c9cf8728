"""The command `python -m lookahead_core`: runs subcommands, and turns errors into sentences and exit statuses."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

from lookahead_core.command import agreement, compression, experiment, model_loading, sizing, training
from lookahead_core.command.arguments import DESCRIBE, MODEL_OPTIONS, Parser, parse_arguments
from lookahead_core.command.generation import GenerationCommand
from lookahead_core.command.terminal import Screen, complain
from lookahead_core.errors import LookaheadError
from lookahead_core.import_logs import quiet_import_logs
from lookahead_core.validation import check_integer


def main(words: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, or with those of the process if None; return the exit status.

    0 is success, also if the reader of a pipe has closed it; 2 is an error, which is one sentence on standard error;
    130 is an interrupt. `--help`, and arguments that the parser refuses, raise SystemExit instead.
    """
    quiet_import_logs()
    if sys.stdout is None:
        return complain("There is no standard output to write to; open one.")
    try:
        try:
            _run(sys.argv[1:] if words is None else words)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
    except KeyboardInterrupt as interrupt:
        return complain(str(interrupt) or "Stopped.", 130)
    except (LookaheadError, ValueError) as error:
        return complain(str(error))
    except OSError as error:
        _discard_output()
        name = f"{error.filename}: " if error.filename else ""
        return complain(f"That could not be written or read: {name}{error.strerror or error}.")
    except Exception as error:
        return complain(f"An unexpected error has occurred, {type(error).__name__}: {error}")
    return 0


def _run(words: Sequence[str]) -> None:
    if words and words[0] == training.NAME:
        return training.run(_parse_subcommand(training, words[1:]))
    for subcommand in (agreement, compression, experiment, sizing):
        if words and words[0] == subcommand.NAME:
            arguments = _parse_subcommand(subcommand, words[1:])
            subcommand.run(arguments, _screen(arguments))
            return
    arguments = parse_arguments(words)
    screen = _screen(arguments)
    if DESCRIBE.key in arguments:
        for line in model_loading.load(arguments).describe(details=True).splitlines():
            screen.line(line)
    else:
        GenerationCommand(arguments, screen).run()


def _parse_subcommand(subcommand: ModuleType, words: Sequence[str]) -> dict[str, Any]:
    """Return the parsed arguments of a subcommand by key: its own, and those of the model.

    `subcommand` is its module, with NAME, DESCRIPTION, EPILOG and `add_arguments`; also with OPTIONS_OF_MODEL if it
    takes some options of the model only. `words` are those after the subcommand's name. Exits with status 2 and a
    sentence if they are wrong, and with 0 after `--help`.
    """
    parser = Parser(
        prog=f"python -m lookahead_core {subcommand.NAME}",
        description=subcommand.DESCRIPTION,
        epilog=subcommand.EPILOG,
    )
    subcommand.add_arguments(parser)
    parser.add_options("model", getattr(subcommand, "OPTIONS_OF_MODEL", MODEL_OPTIONS))
    return vars(parser.parse_args(words))


def _screen(arguments: dict[str, Any]) -> Screen:
    """Return standard output as a `Screen`, with the width of `--width` if it is set.

    Characters that its encoding lacks are escaped from now on, and there are no colours with `NO_COLOR` or the terminal
    type "dumb" in the environment. Raises ValueError for a width outside of 20 to 1,000 columns.
    """
    if "columns" in arguments:
        check_integer("width", arguments["columns"], 20, 1000)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    colours = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Screen(sys.stdout, colours=colours, width=arguments.get("columns"))


def _discard_output() -> None:
    """Redirect standard output to the null device: flushing it at exit would otherwise raise another error."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
