"""The files of a Space: their sizes, links that leave the folder, and paths of somebody's computer in the code."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from interface.check_space.platforms import MOST_FILE_BYTES

HOME_PATH = re.compile(r"""["'](/home/(?!user\b)\w|/Users/\w|/root/\w|/mnt/\w|[A-Z]:[\\/])""")
"""A string in code that begins with a path of one computer. /home/user is the home of a Space itself."""


def problems(folder: Path) -> Iterator[str]:
    """Yield a sentence for each file that the Hub would refuse, and for each path that exists on one computer only."""
    for file in pushed(folder):
        name = file.relative_to(folder).as_posix()
        if file.is_symlink() and not file.resolve().is_relative_to(folder.resolve()):
            yield f"{name} is a link to a file outside of the folder."
            continue
        if not file.is_file():
            continue
        if file.stat().st_size > MOST_FILE_BYTES:
            size, most = (count // 1024**2 for count in (file.stat().st_size, MOST_FILE_BYTES))
            yield f"{name} has {size} MiB: outside Git LFS the Hub takes files of up to {most} MiB."
        if file.suffix == ".py":
            yield from _absolute_paths(file, name)


def pushed(folder: Path) -> list[Path]:
    """Return the files that a push contains: those that git tracks, or, without git, all but hidden ones."""
    listed = subprocess.run(["git", "-C", folder, "ls-files", "-z"], capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return [folder / name for name in listed.stdout.split("\0") if name]
    visible = (file for file in sorted(folder.rglob("*")) if not _hidden(file.relative_to(folder)))
    return [file for file in visible if file.is_symlink() or file.is_file()]


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") or part in ("__pycache__", "node_modules") for part in path.parts)


def _absolute_paths(file: Path, name: str) -> Iterator[str]:
    for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        if HOME_PATH.search(line):
            yield f"Line {number} of {name} has an absolute path of one computer."
