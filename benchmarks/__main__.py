"""The command line of the benchmarks: one subcommand for each question."""

from __future__ import annotations

import argparse
import sys

from benchmarks import (
    branching,
    compression,
    decoding,
    diversity,
    flood,
    index,
    load,
    page,
    pages,
    passes,
    remote,
    rounding,
    speculation,
)

# A module here has NAME, HELP, add_arguments(parser) and main(arguments) -> exit status.
COMMANDS = (
    branching,
    compression,
    decoding,
    diversity,
    flood,
    index,
    load,
    page,
    pages,
    passes,
    remote,
    rounding,
    speculation,
)


def parse(words: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line, or `words` in its place; in the result, `main` is the subcommand's function.

    It takes the result as its only argument and returns an exit status.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    subcommands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        subcommand = subcommands.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        command.add_arguments(subcommand)
        subcommand.set_defaults(main=command.main)
    return parser.parse_args(words)


def main() -> int:
    """Run the subcommand of the command line and return its exit status."""
    arguments = parse()
    return arguments.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
