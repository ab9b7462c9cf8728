"""Copies of the repository, and a worker process in each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RECORDED = (0, 1, 5)
"""Exit statuses of pytest: all passed, some failed, there were none."""
CACHE = "lookahead"
"""The folder of the user's cache in which the product keeps the default model."""

SLOW_IMPORTS = (
    "torch",
    "transformers",
    "transformers.models.auto.modeling_auto",
    "transformers.models.llama.modeling_llama",
    "transformers.models.gpt2.modeling_gpt2",
    "transformers.generation",
    "gradio",
    "hypothesis",
    "playwright.sync_api",
    "pytest_cov.plugin",
)
"""None of them starts a thread when it is imported: a process with threads cannot be forked safely."""


class Worker:
    """A process that runs tests in its own copy of the repository, with its own cache folder."""

    def __init__(self, root: Path, folder: Path, number: int, imports: Sequence[str] = SLOW_IMPORTS) -> None:
        self.folder = folder / f"copy-{number}"
        self._scratch = folder / f"scratch-{number}"
        self._scratch.mkdir(parents=True, exist_ok=True)
        _copy_repository(root, self.folder)
        _copy_cache(self._scratch / "cache")
        self._clock = 0
        # Nothing of a test or a recording in which this very process may run.
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COVERAGE_"))
        }
        environment |= {
            "XDG_CACHE_HOME": str(self._scratch / "cache"),
            "OMP_NUM_THREADS": "1",
            "GRADIO_ANALYTICS_ENABLED": "False",
            "PYTEST_XDIST_WORKER": f"gw{number}",  # by which the tests choose their ports
        }
        with (self._scratch / "worker.txt").open("w") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.mutation.worker"],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
        self._send(list(imports))

    @property
    def output(self) -> str:
        """What the last run printed."""
        return (self._scratch / "output.txt").read_text(encoding="utf-8", errors="replace")

    def run(self, tests: Mapping[str, float]) -> tuple[int, str]:
        """Run tests in this order up to the first failure, each with its limit in seconds: status and last test."""
        status = self._ask({"tests": dict(tests)})
        return status, (self._scratch / "result").read_text()

    def record(self, file: str, marks: str, coverage: Path) -> dict[str, Any]:
        """Run the tests of one file that have these marks, and write which lines each executes."""
        status = self._ask({"record": file, "marks": marks, "coverage": str(coverage)})
        text = (self._scratch / "result").read_text()
        if status not in RECORDED or not text:
            raise RuntimeError(f"{file} could not be recorded (status {status}):\n{self.output[-2000:]}")
        return json.loads(text)

    @contextmanager
    def changed(self, path: str, source: str) -> Iterator[None]:
        """The copy with another source in this file."""
        file = self.folder / path
        before = file.read_text(encoding="utf-8")
        self._write(file, source)
        try:
            yield
        finally:
            self._write(file, before)

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate()
        shutil.rmtree(self.folder)
        shutil.rmtree(self._scratch)

    def _ask(self, request: dict[str, Any]) -> int:
        assert self._process.stdout
        scratch = {"result": str(self._scratch / "result"), "output": str(self._scratch / "output.txt")}
        self._send(request | scratch)
        answer = self._process.stdout.readline()
        if not answer:
            said = (self._scratch / "worker.txt").read_text()[-2000:]
            raise RuntimeError(f"A worker ended with status {self._process.wait()}:\n{said}")
        return int(answer)

    def _send(self, line: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(line) + "\n")
        self._process.stdin.flush()

    def _write(self, file: Path, source: str) -> None:
        """Write with a time of its own in whole seconds, by which Python knows that its compiled code is outdated."""
        file.write_text(source, encoding="utf-8")
        self._clock += 1
        os.utime(file, (self._clock, self._clock))


def _copy_repository(root: Path, folder: Path) -> None:
    """Copy the files that git tracks, and those that it does not ignore."""
    shutil.rmtree(folder, ignore_errors=True)
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, folder / name)


def _copy_cache(folder: Path) -> None:
    """Copy the default model, so that a changed program cannot spoil the real cache."""
    source = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / CACHE
    if source.is_dir() and not (folder / CACHE).exists():
        shutil.copytree(source, folder / CACHE)
