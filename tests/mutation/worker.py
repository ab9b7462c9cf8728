"""A process that has imported what is slow to import, and forks one child for each run of tests.

Its working folder is a copy of the repository, of which it has imported nothing but this folder. It reads the modules
to import from the first line, and then one request a line, and answers each with the exit status of the child.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.mutation.plugins import Recorder, Selection

MEMORY = 8 * 2**30
"""Bytes that a changed program may take: it may ask for far more than the machine has."""
BROKEN = 70
"""Exit status of a child in which pytest itself failed."""
PLAIN = ["-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts="]


def main() -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for name in json.loads(sys.stdin.readline()):
        importlib.import_module(name)
    for line in sys.stdin:
        print(_status_of(json.loads(line)), file=answers, flush=True)


def _status_of(request: dict[str, Any]) -> int:
    """The exit status of a child that runs these tests; less than 0 where a signal ended it."""
    child = os.fork()
    if not child:
        _become_child(request)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        # Also what it started and left behind, and the child itself where this process is told to end.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)


def _become_child(request: dict[str, Any]) -> None:
    status = BROKEN
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        status = _run(request)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _run(request: dict[str, Any]) -> int:
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    os.dup2(output, sys.stdout.fileno())
    os.dup2(output, sys.stderr.fileno())
    result = Path(request["result"])
    result.write_text("")
    if "record" in request:
        return _record(request["record"], request["marks"], result, request["coverage"])
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    limits = request["tests"]
    files = dict.fromkeys(test.split("::")[0] for test in limits)
    return int(pytest.main([*PLAIN, "-x", "-p", "no:cov", *files], plugins=[Selection(limits, result)]))


def _record(file: str, marks: str, result: Path, coverage: str) -> int:
    settings = Path(__file__).with_name("coverage.ini")
    os.environ.update(COVERAGE_FILE=coverage, COVERAGE_PROCESS_START=str(settings))
    covering = ["--cov", "--cov-context=test", "--cov-report=", f"--cov-config={settings}"]
    return int(pytest.main([*PLAIN, "-m", marks, *covering, file], plugins=[Recorder(result)]))


if __name__ == "__main__":
    main()
