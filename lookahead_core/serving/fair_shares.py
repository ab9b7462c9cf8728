"""Whose turn it is among the jobs that wait: who asks for much does not hold up the others."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from lookahead_core.serving.job import Job

MEMORY = 10.0
"""Seconds of all jobs' time after which half of what a payer has used is forgotten."""
LEAST_CREDIT = 0.5
"""Seconds of model time that other jobs must have used before late jobs run. These then have at most twice as many at
once, however long they have waited. Most views take less, so that they are complete before a late job runs."""
BACKGROUND_CREDIT = 1.0
"""Seconds that other jobs have used before a background job runs: most views take less."""
LATE_JOBS = 3
"""Late jobs that may run in one round: together they have about one pass."""
MOST_PAYERS = 10_000
"""Payers that are remembered."""


class FairShares:
    """Chooses jobs by what their payers have used: the model time of the last jobs, forgotten by halves.

    A job has payers, such as an address, and a person there; a payer counts together with those before it, so that two
    persons of the same name at two addresses are two payers. A job is late if the first one has used over `ahead`
    seconds more than that of another job that waits, or a further one more than that of another job with the same
    payers before it. A background job is late whenever another kind of job waits. So there is always a job that is not
    late. Late jobs have as much time together as all others, and among them first who has used least. Other jobs
    without payers are never late. Only for the scheduler's thread.
    """

    def __init__(self, ahead: float = 2.0) -> None:
        self._ahead = ahead
        self._worked = 0.0
        self._used: dict[tuple[Hashable, ...], tuple[float, float]] = {}
        """What each payer has used, and `_worked` at that time. The key is the payer with those before it in a job."""
        self._credit = 0.0
        self._late: set[Job] = set()

    def in_turn(self, jobs: Sequence[Job]) -> list[Job]:
        """Return those of the waiting jobs that are to run in the next round, in the same order."""
        had_late, self._late = bool(self._late), self._late_ones(jobs)
        if not (had_late and self._late):
            self._credit = 0.0  # it is what others have used since somebody is late
        if not self._late:
            return list(jobs)
        chosen: set[Job] = set()
        may_run = {job for job in self._late if self._credit > _least_credit(job)}
        if may_run:
            in_order = sorted(may_run, key=lambda job: ([self.used(payer) for payer in _payers_of(job)], job.number))
            chosen = set(in_order[:LATE_JOBS])
        return [job for job in jobs if job not in self._late or job in chosen]

    def have_become_late(self, jobs: Sequence[Job], waiting: Sequence[Job]) -> bool:
        """Whether some of `jobs`, which `in_turn` has returned, are late now and were not late then.

        `waiting` are all jobs that wait for a turn now. One that has come since can make others late, and so can the
        time that a job has used since.
        """
        return not (self._late_ones(waiting) - self._late).isdisjoint(jobs)

    def charge(self, job: Job) -> None:
        """Count what a job has used since it was last charged, for its payers."""
        seconds, job.charged = job.used - job.charged, job.used
        self._worked += seconds
        for payer in _payers_of(job):
            self._used[payer] = self.used(payer) + seconds, self._worked
        if len(self._used) > MOST_PAYERS:
            kept = sorted(self._used, key=self.used)[MOST_PAYERS // 2 :]
            self._used = {payer: self._used[payer] for payer in kept}
        self._credit += -seconds if job in self._late else seconds
        self._credit = min(self._credit, max((_least_credit(job) for job in self._late), default=0.0) * 2)

    def used(self, payer: tuple[Hashable, ...]) -> float:
        """Return the seconds that a payer has used, without what is forgotten; `payer` has those before it too."""
        seconds, then = self._used.get(payer, (0.0, 0.0))
        return float(seconds * 0.5 ** ((self._worked - then) / MEMORY))

    def _late_ones(self, jobs: Sequence[Job]) -> set[Job]:
        late = {job for job in jobs if job.background}
        if len(late) == len(jobs):
            late = set()
        jobs = [job for job in jobs if job not in late]
        for position in range(max((len(job.payers) for job in jobs), default=0)):
            groups: dict[tuple[Hashable, ...], list[Job]] = {}
            for job in jobs:
                if len(job.payers) > position:
                    groups.setdefault(job.payers[:position], []).append(job)
            for group in groups.values():
                used = {job: self.used(job.payers[: position + 1]) for job in group}
                least = min(used.values())
                late.update(job for job, seconds in used.items() if seconds > least + self._ahead)
        return late


def _payers_of(job: Job) -> list[tuple[Hashable, ...]]:
    """Return the keys under which the use of a job is counted: its first payer, its first two payers, and so on."""
    return [job.payers[:count] for count in range(1, len(job.payers) + 1)]


def _least_credit(job: Job) -> float:
    """Return the seconds that others must have used before a late job runs."""
    return BACKGROUND_CREDIT if job.background else LEAST_CREDIT
