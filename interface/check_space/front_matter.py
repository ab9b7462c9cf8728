"""The front matter of README.md, which configures a Space: read it, and check it against the documented fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from interface.check_space.platforms import COLORS, CUSTOM_HEADERS, HARDWARE, MOST_DESCRIPTION, SHARED_GPU_PYTHON

Rule = Callable[[Any], "str | None"]
"""Takes a field's value; returns what it must be if it is not that, otherwise None."""


def read(card: Path) -> dict[str, Any]:
    """Return the fields of the block between two lines of `---` at the beginning of a file.

    Raises ValueError, with a sentence, if there is no file, no block, or no YAML mapping in it.
    """
    try:
        text = card.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{card.name} cannot be read: {type(error).__name__}.") from None
    block = re.match(r"---\r?\n(.*?\n)---\s*(\n|$)", text, re.S)
    if block is None:
        raise ValueError(f"{card.name} does not begin with a block of YAML between two lines of ---.")
    try:
        fields = yaml.safe_load(block[1])
    except yaml.YAMLError as error:
        raise ValueError(
            f"The front matter of {card.name} is not valid YAML: {' '.join(str(error).split())}."
        ) from None
    if not isinstance(fields, dict):
        raise ValueError(f"The front matter of {card.name} has no fields.")
    return fields


def problems(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each field that is missing, not documented, or has a value that a Space does not accept."""
    for name in REQUIRED:
        if name not in fields:
            yield f"The front matter has no {name}."
    for name, value in fields.items():
        if name not in FIELDS:
            yield f"The front matter has {name}, which is not a field of Spaces."
        elif (allowed := FIELDS[name](value)) is not None:
            yield f"{name} in the front matter is {value!r}, and must be {allowed}."


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) and value.strip() else "a text"


def _switch(value: Any) -> str | None:
    return None if isinstance(value, bool) else "true or false"


def _count(value: Any) -> str | None:
    return None if type(value) is int and value > 0 else "a whole number above 0"


def _texts(value: Any) -> str | None:
    return None if isinstance(value, list) and all(isinstance(each, str) for each in value) else "a list of texts"


def _one_of(*allowed: str) -> Rule:
    return lambda value: None if value in allowed else f"one of {', '.join(allowed)}"


def _matching(pattern: str, allowed: str) -> Rule:
    return lambda value: None if isinstance(value, str) and re.fullmatch(pattern, value) else allowed


def _description(value: Any) -> str | None:
    short = isinstance(value, str) and 0 < len(value) <= MOST_DESCRIPTION
    return None if short else f"a text of at most {MOST_DESCRIPTION} characters"


def _python(value: Any) -> str | None:
    # Unquoted, YAML reads 3.10 as the number 3.1.
    versions = " or ".join(f'"{version}"' for version in SHARED_GPU_PYTHON)
    return None if value in SHARED_GPU_PYTHON else f"{versions}, with the quotes: shared GPUs have no other"


def _headers(value: Any) -> str | None:
    return None if isinstance(value, dict) and set(value) <= set(CUSTOM_HEADERS) else f"of {', '.join(CUSTOM_HEADERS)}"


REQUIRED = ("title", "sdk", "sdk_version", "python_version", "app_file")
"""Fields without which this app does not start as a Space: others have defaults of the Hub."""
FIELDS: Mapping[str, Rule] = {
    "title": _text,
    "emoji": _matching(r"[^\x00-\x7f]{1,8}", "one emoji"),
    "colorFrom": _one_of(*COLORS),
    "colorTo": _one_of(*COLORS),
    "header": _one_of("mini", "default"),
    "fullWidth": _switch,
    "thumbnail": _text,
    "short_description": _description,
    "pinned": _switch,
    "tags": _texts,
    "license": _text,
    "sdk": _one_of("gradio"),
    "sdk_version": _matching(r"\d+\.\d+\.\d+", 'a full version, such as "6.31.0"'),
    "python_version": _python,
    "app_file": _matching(r"(?!/)(?!.*\.\.)[\w./-]+\.py", "the path of a .py file inside the folder"),
    "app_port": _count,
    "base_path": _matching(r"/.*", "a path that begins with /"),
    "startup_duration_timeout": _matching(r"\d+ ?(s|m|h|seconds?|minutes?|hours?)", "a duration, such as 30m"),
    "preload_from_hub": _texts,
    "models": _texts,
    "datasets": _texts,
    "suggested_hardware": _one_of(*HARDWARE),
    "hf_oauth": _switch,
    "hf_oauth_scopes": _texts,
    "hf_oauth_expiration_minutes": _count,
    "hf_oauth_authorized_org": lambda value: None if _text(value) is None else _texts(value),
    "disable_embedding": _switch,
    "custom_headers": _headers,
}
"""The documented fields of a Space, each with the rule for its value; `license` is a field of every repository."""
