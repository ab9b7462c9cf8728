"""The report of a run: a table by file, and each change that no test noticed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from tests.mutation.changes import Change
from tests.mutation.trial import Fate, Verdict

Result = tuple[Change, Verdict]
COLUMNS = (Fate.CAUGHT, Fate.TIMED_OUT, Fate.SURVIVED, Fate.UNREACHED)


def report(results: Sequence[Result]) -> str:
    return "\n\n".join([_survivors(results), _table(results), _share(results)])


def line(number: int, result: Result) -> str:
    """One change in one line, as it is shown while a run goes on."""
    change, verdict = result
    return f"{number:4}  {verdict.fate.value:9}  {change.path}:{change.line}  {verdict.reason}"


def _survivors(results: Sequence[Result]) -> str:
    left = [(change, verdict) for change, verdict in results if not _noticed(verdict)]
    ordered = sorted(left, key=lambda result: (result[0].path, result[0].line))
    return "\n\n".join(f"{change.diff}\n# {verdict.fate.value}: {verdict.reason}" for change, verdict in ordered)


def _table(results: Sequence[Result]) -> str:
    counts: dict[str, Counter[Fate]] = defaultdict(Counter)
    for change, verdict in results:
        counts[change.path][verdict.fate] += 1
    width = max(map(len, counts), default=0)
    heading = f"{'file':{width}}  changes" + "".join(f"  {fate.value:>9}" for fate in COLUMNS)
    rows = [
        f"{path:{width}}  {found.total():7}" + "".join(f"  {found[fate] or '':>9}" for fate in COLUMNS)
        for path, found in sorted(counts.items())
    ]
    return "\n".join([heading, *rows])


def _share(results: Sequence[Result]) -> str:
    noticed = sum(_noticed(verdict) for _, verdict in results)
    return f"{noticed} of {len(results)} changes were noticed ({noticed / max(len(results), 1):.0%})."


def _noticed(verdict: Verdict) -> bool:
    return verdict.fate in (Fate.CAUGHT, Fate.TIMED_OUT)
