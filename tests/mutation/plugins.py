"""Two pytest plugins: one records the tests of a file, the other runs chosen tests in a chosen order."""

from __future__ import annotations

import json
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class Recorder:
    """Write how long each test that passed took, which shared fixtures it uses, and which of them it set up.

    A shared fixture is one that outlives a test. Its seconds are counted apart: whichever test comes first spends them.
    """

    def __init__(self, result: Path) -> None:
        self._result = result
        self._seconds: dict[str, float] = defaultdict(float)
        self._outcomes: dict[str, set[str]] = defaultdict(set)
        self._shared: dict[str, list[str]] = {}
        self._fixtures: dict[str, dict[str, float]] = defaultdict(dict)
        self._current = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self._fixtures[self._current][fixturedef.argname] = time.perf_counter() - began

    def pytest_runtest_setup(self, item: Any) -> None:
        self._current = item.nodeid
        definitions = item._fixtureinfo.name2fixturedefs
        self._shared[item.nodeid] = [name for name, found in definitions.items() if found[-1].scope != "function"]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._outcomes[report.nodeid].add(report.outcome)
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        passed = [test for test, outcomes in self._outcomes.items() if outcomes == {"passed"}]
        facts = {
            "tests": {test: self._facts(test) for test in passed},
            "left out": sorted(self._outcomes.keys() - set(passed)),
        }
        self._result.write_text(json.dumps(facts))

    def _facts(self, test: str) -> dict[str, Any]:
        set_up = self._fixtures[test]
        seconds = self._seconds[test] - sum(set_up.values())
        return {"seconds": seconds, "shared": self._shared[test], "set up": set_up}


class Selection:
    """Run these tests in this order, each for so many seconds at most, and write which one failed.

    A test that takes longer ends the process with the signal ALRM, wherever it hangs.
    """

    def __init__(self, limits: dict[str, float], result: Path) -> None:
        self._limits = limits
        self._result = result

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        found = {item.nodeid: item for item in items}
        items[:] = [found[test] for test in self._limits if test in found]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        self._result.write_text(item.nodeid)
        signal.setitimer(signal.ITIMER_REAL, self._limits[item.nodeid])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
