"""`python -m tests.mutation --changes 60 --seed 1`: which random mistakes do the tests notice?"""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from queue import Queue
from typing import TypeVar

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult
from filelock import FileLock, Timeout

from tests.mutation.changes import Change, draw, files_to_change
from tests.mutation.reach import Reach
from tests.mutation.records import Records
from tests.mutation.report import Result, line, report
from tests.mutation.trial import Fate, Trials, Verdict
from tests.mutation.workers import SLOW_IMPORTS, Worker

ROOT = Path(__file__).parents[2]
WORKERS = min(4, os.cpu_count() or 1)
T = TypeVar("T")
R = TypeVar("R")


class Pool:
    """Workers side by side; each job gets one to itself."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._free: Queue[Worker] = Queue()
        self._threads = ThreadPoolExecutor(len(workers))
        for worker in workers:
            self._free.put(worker)

    def map(self, job: Callable[[T, Worker], R], inputs: Sequence[T]) -> Iterator[R]:
        """The results in the order of the inputs, each as soon as those before it are there."""
        return self._threads.map(lambda each: self._with_worker(job, each), inputs)

    def _with_worker(self, job: Callable[[T, Worker], R], each: T) -> R:
        worker = self._free.get()
        try:
            return job(each, worker)
        finally:
            self._free.put(worker)


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--changes", type=int, default=60, help="how many changes to try (60)")
    parser.add_argument("--seed", type=int, default=1, help="which changes (1)")
    parser.add_argument("--files", nargs="*", default=(), help="only files whose path begins with one of these")
    parser.add_argument("--patience", type=float, default=60, help="seconds of tests to run for one change (60)")
    parser.add_argument("--workers", type=int, default=WORKERS, help=f"changes tried side by side ({WORKERS})")
    parser.add_argument("--slow", action="store_true", help="also with tests that are marked slow")
    parser.add_argument("--again", action="store_true", help="only those that the last run with this seed left")
    parser.add_argument("--as-recorded", action="store_true", help="do not record tests that changed since")
    parser.add_argument("--folder", type=Path, default=ROOT / ".mutation", help="where records and results are kept")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None, root: Path = ROOT, imports: Sequence[str] = SLOW_IMPORTS) -> int:
    options = arguments(words)
    files = files_to_change(root, options.files)
    changes = list(itertools.islice(draw(root, files, options.seed), options.changes))
    records = Records(root, options.folder / "records", options.slow)
    sources = {path: (root / path).read_text(encoding="utf-8") for path in files_to_change(root)}
    with ExitStack() as stack:
        stack.enter_context(_only_run_in(options.folder))
        made = (Worker(root, options.folder, number, imports) for number in range(options.workers))
        pool = Pool([stack.enter_context(closing(worker)) for worker in made])
        if not options.as_recorded:
            _record(records, pool, list(sources))
        db = stack.enter_context(use_db(str(options.folder / f"seed-{options.seed}.sqlite")))
        known = _known(db) if options.again else {}
        results = _try(changes, known, Reach(records.load(), sources), Trials(options.patience), pool, db)
    print("\n" + report(results))
    return 0


@contextmanager
def _only_run_in(folder: Path) -> Iterator[None]:
    """Two runs in one folder would change each other's copies."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "lock", timeout=0):
            yield
    except Timeout:
        sys.exit(f"Another run uses {folder}: wait for its end, or give another --folder.")


def _record(records: Records, pool: Pool, sources: Sequence[str]) -> None:
    """Record the tests of new and changed files."""
    outdated = records.outdated()
    left_out = pool.map(lambda part, worker: records.update(part, worker, sources), outdated)
    for (file, _), tests in zip(outdated, left_out, strict=True):
        print(f"Recorded {file}" + "".join(f"\n    did not pass: {test}" for test in tests), flush=True)


def _try(
    changes: Sequence[Change], known: dict[str, Verdict], reach: Reach, trials: Trials, pool: Pool, db: WorkDB
) -> list[Result]:
    """Try those changes that have no verdict yet, and keep each verdict at once."""
    began = time.monotonic()
    new = [change for change in changes if change.key not in known]
    db.clear()
    db.add_work_items(WorkItem.single(change.key, change.spec) for change in changes)
    for change in changes:
        if change.key in known:
            _keep(db, change, known[change.key])
    jobs = [(change, reach.tests(change.path, change.line)) for change in new]
    verdicts = pool.map(lambda job, worker: trials.verdict(*job, worker), jobs)
    for number, (change, verdict) in enumerate(zip(new, verdicts, strict=True), 1):
        _keep(db, change, verdict)
        known[change.key] = verdict
        print(line(number, (change, verdict)), flush=True)
    print(f"{len(new)} changes tried in {(time.monotonic() - began) / 60:.1f} minutes.")
    for test in sorted(trials.unsound):
        print(f"Fails without any change, so not counted: {test}", file=sys.stderr)
    return [(change, known[change.key]) for change in changes]


def _known(db: WorkDB) -> dict[str, Verdict]:
    """The changes that were noticed in the run before."""
    noticed = ((key, result) for key, result in db.results if result.test_outcome is TestOutcome.KILLED)
    return {key: Verdict(*_parts(result.output or "")) for key, result in noticed}


def _parts(output: str) -> tuple[Fate, str]:
    fate, _, reason = output.partition(": ")
    return Fate(fate), reason


def _keep(db: WorkDB, change: Change, verdict: Verdict) -> None:
    noticed = verdict.fate in (Fate.CAUGHT, Fate.TIMED_OUT)
    result = WorkResult(
        worker_outcome=WorkerOutcome.NO_TEST if verdict.fate is Fate.UNREACHED else WorkerOutcome.NORMAL,
        test_outcome=TestOutcome.KILLED if noticed else TestOutcome.SURVIVED,
        output=f"{verdict.fate.value}: {verdict.reason}",
        diff=change.diff,
    )
    db.set_result(change.key, result)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that workers end with the run
    raise SystemExit(main())
