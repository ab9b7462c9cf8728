"""Check a folder as a Hugging Face Space would start it: front matter, requirements, files, and the app file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from interface.check_space import app_file, files, front_matter, requirements

CARD = "README.md"
REQUIREMENTS = "requirements.txt"
__all__ = ["problems"]


def problems(folder: Path) -> Iterator[str]:
    """Yield a sentence for each reason why a Gradio Space of this folder would not be built or would not start.

    The app file is imported in a process of its own, and only if nothing else is wrong. A folder without problems
    yields nothing. The requirements are read, not resolved; for that see `resolution`.
    """
    if not folder.is_dir():
        yield f"{folder} is not a folder."
        return
    found = False
    for problem in _problems_without_import(folder):
        found = True
        yield problem
    if not found:
        yield from app_file.problems(folder, str(front_matter.read(folder / CARD).get("app_file", "app.py")))


def _problems_without_import(folder: Path) -> Iterator[str]:
    """Yield a sentence for each problem of the Space in `folder` that is found without importing its app file."""
    yield from files.problems(folder)
    try:
        fields = front_matter.read(folder / CARD)
    except ValueError as error:
        yield str(error)
        return
    yield from front_matter.problems(fields)
    yield from requirements.problems(folder / REQUIREMENTS, str(fields.get("sdk_version", "")))
