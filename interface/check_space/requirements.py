"""The lines of requirements.txt: what a Space's build can install, and which torch shared GPUs would get."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from interface.check_space.platforms import SHARED_GPU_TORCH


def problems(file: Path, sdk_version: str) -> Iterator[str]:
    """Yield a sentence for each line that a Space's build cannot install, and for versions that a Space does not have.

    `sdk_version` is the version of Gradio in the front matter, empty if it has none. The build reads this file alone,
    so a line must not name another file.
    """
    if not file.is_file():
        yield f"There is no {file.name}."
        return
    parsed: list[Requirement] = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        text = line.split(" #")[0].strip()
        if not text or text.startswith("#"):
            continue
        try:
            parsed.append(requirement(text))
        except ValueError as error:
            yield f"Line {number} of {file.name} is {text!r}: {error}."
    yield from _version_problems(file.name, parsed, sdk_version)


def requirement(text: str) -> Requirement:
    """Return the requirement in a line. Raises ValueError if it is none, an option, or a path on a computer."""
    if text.startswith("-"):
        raise ValueError("a Space's build has no other file, and takes no option")
    if text.startswith((".", "/", "~")) or "file:" in text:
        raise ValueError("it names a path, which a Space's build does not have")
    try:
        return Requirement(text)
    except InvalidRequirement:
        raise ValueError("it is not a requirement") from None


def allowed(parsed: list[Requirement], name: str, versions: tuple[str, ...]) -> list[str]:
    """Return those of `versions` that every requirement of the package `name` allows, in the given order."""
    named = [each for each in parsed if each.name.lower() == name]
    return [version for version in versions if all(each.specifier.contains(version) for each in named)]


def _version_problems(file: str, parsed: list[Requirement], sdk_version: str) -> Iterator[str]:
    if not allowed(parsed, "torch", SHARED_GPU_TORCH):
        versions = ", ".join(SHARED_GPU_TORCH)
        yield f"{file} allows no torch that shared GPUs have: its range must include one of {versions}."
    if sdk_version and not allowed(parsed, "gradio", (sdk_version,)):
        yield f"{file} allows no gradio {sdk_version}, which is the sdk_version in the front matter."
