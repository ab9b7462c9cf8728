"""Lookaheads of several documents in the same forward passes."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lookahead_core.document.cost_meter import CostMeter
from lookahead_core.document.results import Cost, Lookahead, LookaheadStep
from lookahead_core.engines.deferred import DeferredEngine, PassNeeded
from lookahead_core.engines.dispatch import DispatchedLookahead, dispatcher_of
from lookahead_core.engines.engine import prefill_in_chunks
from lookahead_core.engines.server_engine import server_engine_of
from lookahead_core.errors import VIEW_ENDED, LookaheadError
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.text.passage import TextEnd
from lookahead_core.tree import Node

if TYPE_CHECKING:
    from lookahead_core.document.document import Document


@dataclass(frozen=True, slots=True)
class LookaheadBatchStep:
    """The state of several lookaheads after a forward pass, or before the first one."""

    tokens_read: int
    """Number of tokens prefilled so far, of all texts together."""
    tokens_to_read: int
    """Number of tokens that still need prefill, of all texts together."""
    waiting: str
    """A sentence if the step has nothing new, as the lookaheads wait for a worker (`engines.dispatch`); else empty."""
    _members: Sequence[tuple[LookaheadStep | None, Cost, LookaheadOptions]] = field(repr=False)

    @property
    def begun(self) -> bool:
        """Whether the first tokens of at least one document are known."""
        return any(step is not None for step, _, _ in self._members)

    @property
    def results(self) -> list[Lookahead | None]:
        """The results at this step, in the order of the documents, built anew at each access.

        None for a document whose first tokens are not known yet; the last step has a result for each.
        """
        return [
            None if step is None else replace(step.result, cost=cost, options=options)
            for step, cost, options in self._members
        ]


class _Member:
    """One lookahead of a batch. `run` computes it as far as its engine has the scores of nodes."""

    def __init__(
        self, document: Document, options: LookaheadOptions, below: tuple[Node, TextEnd] | None = None
    ) -> None:
        """With `below`, a node and the end of the text there, the lookahead begins there, and no new view does."""
        self.document = document
        self.options = options
        self.engine = DeferredEngine(document.model.engine)
        # Drafts could differ between two runs, which must be the same; they change no result.
        options = replace(options, speculate=False)
        self._begin = document.begin_lookahead(options) if below is None else document.begin_below(options, *below)
        self.head = document.head if below is None else below[0]
        self._meter = CostMeter(document.model.engine, document.tree)
        self._view = document.tree.view
        self.step: LookaheadStep | None = None

    def watch(self) -> None:
        """Store which view of the document is current: `check` raises an error once there is another."""
        self._view = self.document.tree.view

    def check(self) -> None:
        """Raise LookaheadError if another view of the document has begun."""
        if self.document.tree.view != self._view:
            raise LookaheadError(VIEW_ENDED)

    def tokens_to_read(self) -> int:
        """Return how many tokens of the text need prefill."""
        return len(self.document.model.engine.nodes_to_prefill(self.head))

    def run(self) -> None:
        """Run the lookahead from its beginning until it needs a pass, and store its last step in `step`.

        `engine.pending` then has the nodes of that pass; it is empty if the lookahead has reached its end.
        """
        self.engine.pending, self.engine.rolling = [], None
        try:
            for step in self._begin(self.engine):
                self.step = step
        except PassNeeded:
            pass

    def state(self) -> tuple[LookaheadStep | None, Cost, LookaheadOptions]:
        """Return the last step (None before the first one), the cost so far, and the options as they were passed in."""
        return self.step, self._meter.cost(), self.options


def joint_lookahead_steps(lookaheads: Sequence[tuple[Document, LookaheadOptions]]) -> Iterator[LookaheadBatchStep]:
    """Grow one lookahead for each pair of document and options; yield a step at the beginning and after each pass.

    All documents must be of one model; one document may be in several pairs. The last step has the final results. No
    step without lookaheads. Raises the errors of `lookahead_batch_steps`.
    """
    # The deepest lookahead reserves the most room of the context, so that later ones do not move the window again.
    by_depth = sorted(range(len(lookaheads)), key=lambda index: -lookaheads[index][1].depth)
    made = {index: _Member(*lookaheads[index]) for index in by_depth}
    members = [made[index] for index in range(len(lookaheads))]
    for member in members:
        member.watch()  # after all were made: a document in two lookaheads has begun two views
    if members and (dispatcher := dispatcher_of(members[0].document.model.engine)) is not None:
        return _dispatched(members, functools.partial(dispatcher.begin, lookaheads))
    return _steps(members)


def dispatched_steps(document: Document, options: LookaheadOptions) -> Iterator[LookaheadStep]:
    """Yield the steps of one document's lookahead, which a worker computes: the engine must have a dispatcher."""
    for step in joint_lookahead_steps([(document, options)]):
        if step.begun or step.tokens_to_read or step.waiting:
            yield LookaheadStep(
                step.tokens_read, step.tokens_to_read, functools.partial(_only_result, step), step.waiting
            )


def _only_result(step: LookaheadBatchStep) -> Lookahead:
    ((latest, cost, options),) = step._members
    found = Lookahead((), 0.0, cost) if latest is None else latest.result
    return replace(found, cost=cost, options=options)


def steps_below(
    lookaheads: Sequence[tuple[Document, LookaheadOptions, tuple[Node, TextEnd]]],
    dispatched: DispatchedLookahead | None = None,
) -> Iterator[LookaheadBatchStep]:
    """Yield the steps that `joint_lookahead_steps` would yield if each document's text ended at a node below its head.

    The texts stay as they are, and no new view begins; `heal` has no effect. Each document must be listed once. With
    each node comes the `TextEnd` there. With `dispatched`, predictions come from a worker's lookahead that runs
    already, and no pass is made: PassNeeded is raised if it ends before all are known.
    """
    members = [_Member(*lookahead) for lookahead in lookaheads]
    return _steps(members) if dispatched is None else _dispatched(members, lambda: dispatched, may_compute=False)


def _dispatched(
    members: Sequence[_Member], begin: Callable[[], DispatchedLookahead], *, may_compute: bool = True
) -> Iterator[LookaheadBatchStep]:
    """Yield the steps of `joint_lookahead_steps` for its members, whose predictions a worker computes.

    `begin` is called when the first prediction is missing. If the worker has ended and predictions are still missing,
    they are computed pass by pass; without `may_compute` PassNeeded is raised. The worker stops if the generator is
    closed or raises.
    """
    dispatched: DispatchedLookahead | None = None
    running = list(members)
    try:
        while running:
            for member in running:
                member.run()
            read = (dispatched.tokens_read, 0) if dispatched else (0, 0)
            yield LookaheadBatchStep(*read, "", [member.state() for member in members])
            _check(members)
            running = [member for member in running if member.engine.pending]
            if not running:
                return
            dispatched = dispatched or begin()
            inserted = False
            while not dispatched.over and not (inserted := dispatched.advance()):
                read = dispatched.tokens_read, dispatched.tokens_to_read
                yield LookaheadBatchStep(*read, dispatched.waiting, [member.state() for member in members])
                _check(members)
            if not inserted and not may_compute:
                raise PassNeeded
            if not inserted:
                _make_pass(running)
    except BaseException:
        if dispatched is not None:
            dispatched.close()
        raise


def _steps(members: Sequence[_Member]) -> Iterator[LookaheadBatchStep]:
    """Yield the steps of `joint_lookahead_steps` for its members, pass by pass."""
    distinct = list({id(member.document): member for member in members}.values())
    unread = sum(member.tokens_to_read() for member in distinct)
    for member in distinct:
        for _ in prefill_in_chunks(member.document.model.engine, member.head):
            left = sum(each.tokens_to_read() for each in distinct)
            yield LookaheadBatchStep(unread - left, left, "", [each.state() for each in members])
            _check(members)
    running = list(members)
    while running:
        for member in running:
            member.run()
        yield LookaheadBatchStep(unread, 0, "", [member.state() for member in members])
        _check(members)
        running = [member for member in running if member.engine.pending]
        if scored := [member for member in running if member.engine.rolling is None]:
            _make_pass(scored)
        for _ in _roll_out([member for member in running if member not in scored]):
            yield LookaheadBatchStep(unread, 0, "", [member.state() for member in members])
            _check(members)


def _roll_out(members: Sequence[_Member]) -> Iterator[None]:
    """Let servers grow the branches of all members at once; yield after each level, with their new steps."""
    parts = [member.engine.rolling for member in members if member.engine.rolling is not None]
    servers = server_engine_of(members[0].document.model.engine) if members else None
    if servers is None:
        return
    with contextlib.closing(servers.roll_out_all(parts)) as levels:
        for _ in levels:
            for member in members:
                member.run()
            yield


def _check(members: Sequence[_Member]) -> None:
    """Raise LookaheadError if another view of a member's document has begun."""
    for member in members:
        member.check()


def _make_pass(members: Sequence[_Member]) -> None:
    """Compute the pending nodes of all members in one forward pass, and add the scores to the engine of each."""
    nodes = list(dict.fromkeys(node for member in members for node in member.engine.pending))
    hidden = any(member.engine.hidden for member in members)
    scores = members[0].document.model.engine.score(nodes, hidden=hidden)
    for member in members:
        member.engine.add(scores, hidden=hidden)
