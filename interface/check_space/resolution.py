"""Resolve requirements.txt with uv for the Python and torch versions of Spaces, through the indexes of pip.

uv is used since it evaluates the markers of the Python version that is asked for. `pip install --dry-run
--python-version` evaluates those of the running one.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

PYTHON_VERSIONS = ("3.10", "3.12")
TORCH_VERSIONS = ("2.10.0", "2.11.0", "")
"""Versions of torch that requirements.txt must allow; empty for the newest that it allows."""
PLATFORM = "x86_64-manylinux_2_28"
INDEX_OPTIONS = ("index-url", "extra-index-url", "find-links", "no-index")
"""Options of pip that uv has under the same names."""
SECTIONS = ("global", "install", ":env:")
"""Sections of pip's configuration; an option in a later one replaces that in an earlier one."""


def problems(file: Path, index: Sequence[str] | None = None) -> Iterator[str]:
    """Yield a sentence for each Python and torch for which the requirements in a file have no solution of wheels.

    Prints a line for each combination that has one. `index` are uv's options for package indexes; None for those of
    pip's configuration. Also yields a sentence for each release in a solution that its maintainers have withdrawn.
    """
    options = pip_indexes() if index is None else list(index)
    combinations = list(product(PYTHON_VERSIONS, TORCH_VERSIONS))
    with ThreadPoolExecutor(len(combinations)) as pool:
        results = pool.map(lambda each: resolve(file, *each, options), combinations)
        for (python, torch), result in zip(combinations, results, strict=True):
            label = f"Python {python} with {f'torch {torch}' if torch else 'the newest torch'}"
            if result.returncode:
                yield f"{file.name} has no solution for {label}: {' '.join(result.stderr.split())}"
                continue
            pins = dict(line.split("==") for line in result.stdout.split() if "==" in line)
            print(f"{label}: {len(pins)} packages, torch {pins.get('torch')}, transformers {pins.get('transformers')}")
            yield from (f"{label}: {line.strip()}" for line in result.stderr.splitlines() if "yanked" in line)


def resolve(file: Path, python: str, torch: str, index: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run uv for one Python and one torch ("" for any). Its stdout has a line NAME==VERSION for each package."""
    with tempfile.TemporaryDirectory() as folder:
        constraint = Path(folder) / "constraint.txt"
        constraint.write_text(f"torch=={torch}\n" if torch else "")
        options = ["--no-header", "--no-annotate", "--only-binary", ":all:", "--index-strategy", "unsafe-best-match"]
        # Without --python, uv looks for an interpreter of the version, which takes ten times as long as the rest.
        interpreter = ["--python", sys.executable, "--python-version", python, "--python-platform", PLATFORM]
        target = [*interpreter, "--constraints", str(constraint)]
        command = [sys.executable, "-m", "uv", "pip", "compile", str(file), *options, *target, *index]
        return subprocess.run(command, capture_output=True, text=True, env=_environment(), cwd=folder, check=False)


def pip_indexes() -> list[str]:
    """Return uv's options for the package indexes that pip is configured to use."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    return index_options(listed.stdout)


def index_options(configuration: str) -> list[str]:
    """Return uv's options for the indexes in the output of `pip config list`."""
    found: dict[str, list[str]] = {}
    for section in SECTIONS:
        for name, value in re.findall(rf"^{section}\.([\w-]+)=(.*)$", configuration, re.M):
            if name in INDEX_OPTIONS:
                found[name] = " ".join(shlex.split(value)).replace("\\n", " ").split()
    if found.pop("no-index", ["false"])[0].lower() in ("1", "true", "yes", "on"):
        return ["--no-index", *_repeated("find-links", found)]
    return [option for name in found for option in _repeated(name, found)]


def _repeated(name: str, found: dict[str, list[str]]) -> list[str]:
    return [option for value in found.get(name, []) for option in (f"--{name}", value)]


def _environment() -> dict[str, str]:
    """Return the environment of uv: ours, with pip's certificates."""
    certificates = os.environ.get("PIP_CERT") or os.environ.get("SSL_CERT_FILE")
    return {**os.environ, **({"SSL_CERT_FILE": certificates} if certificates else {})}
