"""Records of the tests: how long each takes and which lines it executes, kept between runs, one record for a file."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from coverage import CoverageData

from tests.mutation.workers import Worker

SOURCES = "sources"
"""The folder of the sources that were recorded, each under its hash: records outlive changes of the product."""

QUICK, SLOW = "not slow and not hub", "slow and not hub"
"""Marks: the tests of the README's command, and those that the continuous integration runs besides."""
NOTHING = 0.001
"""Seconds within which a fixture cannot have executed much of the product."""

Part = tuple[str, str]
"""A file of tests, and the marks of those that are recorded together."""


@dataclass(frozen=True)
class Test:
    """A test that passed when it was recorded."""

    name: str
    seconds: float
    shared: Mapping[str, float] = field(compare=False)
    """The seconds of each fixture that it shares with other tests of its file."""

    __test__ = False

    @property
    def file(self) -> str:
        return self.name.split("::")[0]

    @property
    def alone(self) -> float:
        """The seconds that the test takes when nothing is set up yet."""
        return self.seconds + sum(self.shared.values())


class Record:
    """The record of one file of tests, in terms of the sources of today."""

    def __init__(self, facts: Mapping[str, Any], coverage: Path, folder: Path) -> None:
        self._set_up = {name: test["set up"] for name, test in facts["tests"].items()}
        fixtures = {fixture: seconds for each in self._set_up.values() for fixture, seconds in each.items()}
        self.tests = {
            name: Test(name, test["seconds"], {each: fixtures.get(each, 0.0) for each in test["shared"]})
            for name, test in facts["tests"].items()
        }
        self._sources: Mapping[str, str] = facts["sources"]
        self._folder = folder
        self._data = CoverageData(basename=str(coverage))
        self._data.read()
        self._lines: dict[str, dict[int, list[str]]] = {}

    def reaching(self, path: str, line: int, source: str) -> set[Test]:
        """The tests that execute this line of today's source."""
        if path not in self._lines:
            self._lines[path] = self._data.contexts_by_lineno(path)
        recorded = self._lines[path]
        if not recorded:
            return set()
        then = _stored(self._folder, self._sources[path])
        contexts = {each for old in _lines_then(then, source)[line - 1] for each in recorded.get(old, ())}
        return {test for context in contexts for test in self._tests_in(context)}

    def _tests_in(self, context: str) -> Iterable[Test]:
        """The tests of a context: `name|run` in the test's process, `name (call)` in one that it started.

        What a test's setup executes is executed for all tests that use a shared fixture which it set up.
        """
        name, _, phase = context.rpartition("|") if "|" in context else context.rpartition(" ")
        first = self.tests.get(name)
        if first is None:
            return ()
        fixtures = {fixture for fixture, seconds in self._set_up[name].items() if seconds > NOTHING}
        if "setup" not in phase or not fixtures:
            return (first,)
        return [test for test in self.tests.values() if test is first or test.shared.keys() & fixtures]


class Records:
    """The records of all files of tests, in a folder outside git; those of slow tests apart, where they are wanted."""

    def __init__(self, root: Path, folder: Path, slow: bool = False) -> None:
        self._root = root
        self._folder = folder
        self._marks = [QUICK, SLOW] if slow else [QUICK]
        (folder / SOURCES).mkdir(parents=True, exist_ok=True)

    def outdated(self) -> list[Part]:
        """The tests that are new or changed since they were recorded: a file and marks."""
        digests = {file: _digest((self._root / file).read_bytes()) for file, _ in self._parts()}
        return [part for part in self._parts() if self._facts(part).get("digest") != digests[part[0]]]

    def update(self, part: Part, worker: Worker, sources: Sequence[str]) -> list[str]:
        """Record the tests of a file with these marks; returns the tests left out, which did not pass."""
        self._path(part, "json").unlink(missing_ok=True)
        facts = worker.record(*part, self._path(part, "coverage"))
        # Of the copy: the repository may have changed meanwhile.
        facts["digest"] = _digest((worker.folder / part[0]).read_bytes())
        facts["sources"] = {path: self._store((worker.folder / path).read_bytes()) for path in sources}
        self._path(part, "json").write_text(json.dumps(facts))
        return facts["left out"]

    def load(self) -> list[Record]:
        """The records that are there."""
        known = [(part, facts) for part in self._parts() if (facts := self._facts(part))]
        return [Record(facts, self._path(part, "coverage"), self._folder) for part, facts in known if facts["tests"]]

    def _parts(self) -> list[Part]:
        files = sorted(path.relative_to(self._root).as_posix() for path in (self._root / "tests").rglob("test_*.py"))
        return [(file, marks) for marks in self._marks for file in files]

    def _facts(self, part: Part) -> dict[str, Any]:
        path = self._path(part, "json")
        return json.loads(path.read_text()) if path.exists() else {}

    def _path(self, part: Part, kind: str) -> Path:
        file, marks = part
        name = "-".join(Path(file).with_suffix("").parts[1:])
        return self._folder / f"{name}{'' if marks == QUICK else '.slow'}.{kind}"

    def _store(self, source: bytes) -> str:
        digest = _digest(source)
        path = self._folder / SOURCES / digest
        if not path.exists():
            path.write_bytes(source)
        return digest


@cache
def _stored(folder: Path, digest: str) -> str:
    return (folder / SOURCES / digest).read_text(encoding="utf-8")


@cache
def _lines_then(then: str, now: str) -> list[set[int]]:
    """For each line of today's source the numbers of the lines that it was; for a new one those around it."""
    before, after = then.splitlines(), now.splitlines()
    lines: list[set[int]] = [set() for _ in after]
    for kind, i, i_end, j, j_end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        for offset in range(j_end - j):
            lines[j + offset] = {i + offset + 1} if kind == "equal" else set(range(i, i_end + 2))
    return lines


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
