"""Forward passes that serve several suspended jobs of the scheduler."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from lookahead_core.engines.dispatch import dispatcher_of
from lookahead_core.engines.engine import MAX_LAST_CHUNK, Engine
from lookahead_core.serving.job import Job, PassRequest, as_exception
from lookahead_core.tree import Node

READ_TURN = 1.0
"""Seconds of passes in which one job prefills its text before it is another one's turn: of two long texts the first
should not end as late as the second, and a short text should not wait for the end of a very long one."""
FREE = 1.02
"""A pass takes up nodes of prefetches if its estimated cost is at most this times the cost without them."""


@dataclass(frozen=True)
class PassLimits:
    """The largest sizes of the scheduler's passes. A job that comes while a pass runs waits for its end."""

    shared: int
    """The most nodes of different jobs in one pass; a request with more nodes has a pass of its own. It is also the
    most tokens of a text that are prefilled in one pass while other jobs need scores."""
    reading: int
    """The most tokens of a text that are prefilled in one pass while no other job needs scores."""


GPU_LIMITS = PassLimits(shared=64, reading=MAX_LAST_CHUNK)
"""Limits for GPUs, which compute 64 nodes in about the time of one."""
CPU_LIMITS = PassLimits(shared=28, reading=128)
"""Limits for CPUs. There a pass of more than about 16 nodes takes time in proportion to its nodes, so larger passes
save little (`python -m benchmarks passes` measures it). With AVX-512, compiled layers compute up to 14 rows at a time:
28 are two such blocks. Matrix units such as AMX are fast from about 128 tokens on."""


def make_passes(
    engine: Engine,
    requests: Sequence[Job],
    prefetches: Sequence[Job],
    limits: PassLimits,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Make the passes for which these jobs are suspended: all passes for scores of requests, and a part of one text.

    Prefetches wait if there are requests, except those that a pass takes up at no cost, see FREE; if there are none,
    one pass is made for them. Jobs that are dropped meanwhile are left out. After each pass for scores `is_over` is
    called; if it returns True, no further one is made.
    """
    waiting = requests or prefetches
    reading = [job for job in waiting if reads(engine, job.pending, limits.shared)]
    most = most_rows(engine, limits)
    groups = list(grouped(engine, [job for job in waiting if job not in reading], most))
    if not requests:
        groups = groups[:1]
    elif groups:
        groups[-1] += _free(engine, groups[-1], prefetches, most)
    for group in groups:
        if jobs := [job for job in group if not job.dropped]:
            make_pass(engine, jobs)
            if is_over():
                return
    if reading:
        reader = min(reading, key=lambda job: (job.pass_seconds // READ_TURN, job.number))
        if not reader.dropped:
            read_chunk(engine, reader, limits.shared if groups else limits.reading)


def row_count(engine: Engine, nodes: Sequence[Node]) -> int:
    """Return how many nodes a pass for the scores of `nodes` computes: they, and their ancestors outside the cache."""
    computed: set[Node] = set()
    for node in sorted(nodes, key=lambda node: -node.depth):
        if node not in computed:
            computed.update([node, *engine.nodes_to_prefill(node)])
    return len(computed)


def reads(engine: Engine, request: PassRequest, most: int) -> bool:
    """Whether a request prefills a text: only that, or before its scores more than `most` tokens."""
    return request.prefill or (request.chunks > 0 and len(engine.nodes_to_prefill(request.nodes[0])) > most)


def most_rows(engine: Engine, limits: PassLimits) -> int:
    """Return the most rows of a pass that several jobs share: the limit, or `batch_invariant_rows` if that is lower.

    0 for an engine with a dispatcher, whose tasks are each dispatched for one visitor.
    """
    if dispatcher_of(engine) is not None:
        return 0
    return min(limits.shared, engine.batch_invariant_rows or limits.shared)


def grouped(engine: Engine, jobs: Sequence[Job], most: int) -> Iterator[list[Job]]:
    """Yield the jobs, which wait for scores, in order, in groups whose requests have at most `most` rows together.

    A job with more rows is a group of its own.
    """
    group: list[Job] = []
    rows = 0
    for job in jobs:
        more = row_count(engine, job.pending.nodes)
        if group and rows + more > most:
            yield group
            group, rows = [], 0
        group.append(job)
        rows += more
    if group:
        yield group


def _free(engine: Engine, group: Sequence[Job], prefetches: Sequence[Job], most: int) -> list[Job]:
    """Return those prefetches whose nodes the pass of a group, of at most `most` rows, can take up at no cost."""
    rows = sum(row_count(engine, job.pending.nodes) for job in group)
    allowed = FREE * engine.pass_costs.cost(rows)
    free = []
    for job in prefetches:
        more = rows + row_count(engine, job.pending.nodes)
        if not job.pending.prefill and more <= most and engine.pass_costs.cost(more) <= allowed:
            free.append(job)
            rows = more
    return free


def make_pass(engine: Engine, jobs: Sequence[Job]) -> None:
    """Answer the requests of these jobs by one pass, and add to each job its share of the seconds, by its rows.

    If the pass raises an error, each request has a pass of its own, and only those that raise again get an error: an
    engine may have room for each of them, but not for all at once. A request with `prefill` must be alone.
    """
    requests = [job.pending for job in jobs]
    rows = [row_count(engine, request.nodes) for request in requests]
    started = time.perf_counter()
    try:
        _compute(engine, requests)
    except BaseException as error:
        if len(requests) > 1:
            for job in jobs:
                make_pass(engine, [job])
            return
        requests[0].error = as_exception(error)
    seconds = time.perf_counter() - started
    for job, request, count in zip(jobs, requests, rows, strict=True):
        job.pass_seconds += seconds * count / sum(rows)
        request.seconds, request.done = seconds, True


def read_chunk(engine: Engine, job: Job, size: int) -> None:
    """Prefill `size` tokens of a text for a job whose request `reads`, which goes on waiting for the others.

    If no more are left, the request is answered.
    """
    request, started = job.pending, time.perf_counter()
    nodes = request.nodes if request.prefill else engine.nodes_to_prefill(request.nodes[0])
    if len(nodes) <= size:
        make_pass(engine, [job])
        return
    try:
        engine.prefill(nodes[:size])
    except BaseException as error:
        request.error = as_exception(error)
    job.pass_seconds += time.perf_counter() - started
    request.chunks -= 1
    if request.prefill:
        request.nodes = nodes[size:]
    request.done = request.error is not None


def _compute(engine: Engine, requests: Sequence[PassRequest]) -> None:
    """Make the pass, and set `scores` of each request; raises the engine's error."""
    if requests[0].prefill:
        engine.prefill(requests[0].nodes)
        return
    hidden = any(request.hidden for request in requests)
    nodes = list(dict.fromkeys(node for request in requests for node in request.nodes))
    scores = engine.score(nodes, hidden=hidden)
    for request in requests:
        own = list(dict.fromkeys(request.nodes))
        with torch.inference_mode():
            request.scores = scores if len(requests) == 1 else scores.part(own, hidden=request.hidden)
