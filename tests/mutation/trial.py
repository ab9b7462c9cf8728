"""Trying one change: the tests that reach its line, the cheapest first, until one fails."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from tests.mutation.changes import Change
from tests.mutation.records import Test
from tests.mutation.workers import Worker

STAGES = (3.0, 20.0)
"""Seconds of tests that are run in one process, one after the other; the last process runs the rest."""
SLACK = 30.0
"""Seconds that a test may take beyond ten times what it took when it was recorded, before it counts as hanging."""
PASSED, NONE_FOUND = 0, 5
"""Exit statuses of pytest."""


class Fate(str, Enum):
    CAUGHT = "caught"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"
    UNREACHED = "unreached"


@dataclass(frozen=True)
class Verdict:
    """The fate of a change, with the test that noticed it or the seconds of tests that were run."""

    fate: Fate
    reason: str


class Trials:
    """Tries changes; keeps the tests that also fail without a change."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._sound: set[str] = set()
        self.unsound: set[str] = set()
        """Tests that failed in the unchanged copy as well: their failures count for nothing."""

    def verdict(self, change: Change, tests: Sequence[Test], worker: Worker) -> Verdict:
        """Run the tests in stages; a failure counts if the same test passes without the change."""
        affordable = list(_within(tests, self._patience))
        if not affordable:
            return Verdict(Fate.UNREACHED, "no test executes this line")
        for stage in _stages(affordable):
            if failed := self._first_failure(change, stage, worker):
                return failed
        spent = sum(test.seconds for test in affordable)
        return Verdict(Fate.SURVIVED, f"{len(affordable)} of {len(tests)} tests passed, {spent:.0f} s")

    def _first_failure(self, change: Change, stage: Sequence[Test], worker: Worker) -> Verdict | None:
        left = {test.name: _limit(test) for test in stage if test.name not in self.unsound}
        while left:
            with worker.changed(change.path, change.after):
                status, test = worker.run(left)
            if status in (PASSED, NONE_FOUND):
                return None
            if test not in left:
                return Verdict(Fate.CAUGHT, "the tests could not be collected")
            if self._is_sound(test, left[test], worker):
                timed_out = status == -signal.SIGALRM
                return Verdict(Fate.TIMED_OUT if timed_out else Fate.CAUGHT, test)
            left = {name: limit for name, limit in left.items() if name not in self.unsound}
        return None

    def _is_sound(self, test: str, limit: float, worker: Worker) -> bool:
        """Whether a test passes in the unchanged copy; asked once for each."""
        if test not in self._sound | self.unsound:
            status, _ = worker.run({test: limit})
            (self._sound if status == PASSED else self.unsound).add(test)
        return test in self._sound


def _limit(test: Test) -> float:
    return SLACK + 10 * test.alone


def _within(tests: Sequence[Test], seconds: float) -> Iterator[Test]:
    """The first tests that fit into a time, shared fixtures counted once; one test fits always."""
    spent = 0.0
    ready: set[tuple[str, str]] = set()
    for index, test in enumerate(tests):
        fixtures = {(test.file, name) for name in test.shared} - ready
        spent += test.seconds + sum(test.shared[name] for _, name in fixtures)
        if index and spent > seconds:
            return
        ready |= fixtures
        yield test


def _stages(tests: Sequence[Test]) -> Iterator[list[Test]]:
    """The tests in a few portions, each ordered by file, so that fixtures of a module are set up once."""
    left = list(tests)
    for seconds in (*STAGES, float("inf")):
        portion = list(_within(left, seconds))
        left = left[len(portion) :]
        if portion:
            yield sorted(portion, key=lambda test: _file_order(portion, test))


def _file_order(portion: Sequence[Test], test: Test) -> tuple[float, str, float]:
    return min(each.alone for each in portion if each.file == test.file), test.file, test.alone
