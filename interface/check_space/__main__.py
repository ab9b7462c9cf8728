"""`python -m interface.check_space FOLDER`: whether the folder would start as a Hugging Face Space."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from interface.check_space import REQUIREMENTS, problems, resolution


def main() -> int:
    """Print the problems of a folder. Returns 0 if there are none, otherwise 1."""
    parser = argparse.ArgumentParser(prog="python -m interface.check_space", description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(), help="The folder; the current one by default.")
    parser.add_argument(
        "--resolve",
        action="store_true",
        help="Also resolve requirements.txt with uv, for the versions of Python and torch that Spaces have.",
    )
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    found = list(problems(folder))
    if arguments.resolve and not found:
        found += resolution.problems(folder / REQUIREMENTS)
    for problem in found:
        print(problem, file=sys.stderr)
    count = f"{len(found)} problem{'s' if len(found) > 1 else ''}"
    print(f"{folder.name}: {count if found else 'ready for a Space'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
