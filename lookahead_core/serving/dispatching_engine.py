"""The engine of a process that must not compute: it dispatches tasks to a worker, and keeps trees and predictions."""

from __future__ import annotations

import contextlib
import functools
import pickle
import queue
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from lookahead_core.document.document import Document
from lookahead_core.document.document_state import DocumentState
from lookahead_core.document.tree_facts import FactsWriter
from lookahead_core.engines import engine as base
from lookahead_core.engines.dispatch import COMPUTING, WAITING
from lookahead_core.engines.engine import NodeScores, group_by_tree
from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.errors import WorkerLost
from lookahead_core.serving.worker_tasks import (
    Failed,
    LookaheadTask,
    NodePaths,
    PrefetchRequest,
    Progress,
    Rows,
    RowsTask,
    StepsTask,
    Task,
    as_tensor,
    seconds_for,
)
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.tree import Node, TokenTree

T = TypeVar("T")
Dispatch = Callable[[bytes, float, Any], Iterator[bytes]]
"""A function from a pickled task, its estimated seconds and its caller to the pickled answers of a worker.

It raises WorkerLost if the worker ends before it has answered, and another NoRoom if there is no worker.
"""
WAIT = 0.02
"""Seconds that one step waits for a worker's answer: other clients of a scheduler wait as long at most."""
PREFETCH_SECONDS = 4.0
"""Seconds after which a task prefetches nothing further."""
ATTEMPTS = 3
"""How often a task is dispatched if its workers end before it is done."""
_END: Any = object()


class TaskAnswers:
    """The answers of one dispatched task, which a thread of its own fetches."""

    def __init__(self, dispatch: Dispatch, task: Task, caller: Any) -> None:
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._closed = threading.Event()
        self.ended = threading.Event()
        """Set when the worker is done with the task."""
        run = (dispatch, pickle.dumps(task, pickle.HIGHEST_PROTOCOL), seconds_for(task), caller)
        threading.Thread(target=self._run, args=run, name="task", daemon=True).start()

    def close(self) -> None:
        """Stop the worker after its next answer, and return at once."""
        self._closed.set()

    def next(self, seconds: float | None) -> Any:
        """Return the next answer; None after this many seconds without one, `_END` after the last. Raises its error."""
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            return None
        if isinstance(answer, Failed):
            raise answer.error()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def rest(self) -> Iterator[Any]:
        """Yield all further answers; raises like `next`."""
        while (answer := self.next(None)) is not _END:
            yield answer

    def _run(self, dispatch: Dispatch, task: bytes, seconds: float, caller: Any) -> None:
        answers: Any = ()
        try:
            answers = dispatch(task, seconds, caller)
            for answer in answers:
                if self._closed.is_set():
                    break
                self._answers.put(pickle.loads(answer))
        except Exception as error:
            self._answers.put(error)
        finally:
            with contextlib.suppress(Exception):
                answers.close()
            self.ended.set()
            self._answers.put(_END)


class TaskLookahead:
    """A `DispatchedLookahead`: one task, dispatched when the document's older one has ended."""

    def __init__(
        self, start: Callable[[], TaskAnswers], writers: dict[str, FactsWriter], older: TaskAnswers | None, view: int
    ) -> None:
        """`start` dispatches the task, when `older` has ended; `writers` insert its facts by the tree's key."""
        self.answers = older
        """Those of this task, or of the older one while it is awaited; None if there is neither."""
        self._start = start
        self._started = False
        self._writers = writers
        self._attempts = 0
        self._ahead = False
        self._error: Exception | None = None
        """The worker's error, while what came before it is looked at."""
        self._usage: dict[str, tuple[int, int]] = {}
        self.tokens_read = self.tokens_to_read = 0
        self.waiting = WAITING
        self.over = False
        self.view = view
        """The view of the first document's tree in which it was begun."""

    def advance(self) -> bool:
        """See `DispatchedLookahead.advance`. If the worker ends within the lookahead, the task is dispatched again.

        What came before an error is inserted first, and the next call raises the error: the lookahead may be complete,
        so that only prefetching has failed.
        """
        if not self._started:
            if self.answers is not None and not self.answers.ended.wait(WAIT):
                return False
            self._attempts += 1
            self.answers, self._started = self._start(), True
            for writer in self._writers.values():
                writer.restart()
        assert self.answers is not None
        inserted, kept, self._error = False, self._error, None
        try:
            if kept is not None:
                raise kept
            # What has come already is inserted together: the strategy is repeated after it.
            while (answer := self.answers.next(0 if inserted else WAIT)) is not None:
                if answer is _END:
                    self.over = True
                    break
                self.waiting = COMPUTING
                inserted |= self._insert(answer)
                if not inserted:
                    break
        except Exception as error:
            if inserted:
                self._error = error
            elif not isinstance(error, WorkerLost):
                raise
            elif self._ahead:
                self.over = True
            elif self._attempts == ATTEMPTS:
                raise
            else:
                self._started = False
        return inserted

    def usage(self, key: str) -> tuple[int, int]:
        """Return slots and bytes of the worker's cache for a tree, as last known."""
        return self._usage.get(key, (0, 0))

    def close(self) -> None:
        self.over = True
        if self.answers is not None:
            self.answers.close()

    def _insert(self, progress: Progress) -> bool:
        self._ahead = progress.ahead
        self.tokens_read, self.tokens_to_read = progress.tokens_read, progress.tokens_to_read
        self._usage |= {facts.key: facts.usage for facts in progress.facts}
        return any([self._writers[facts.key].write(facts) for facts in progress.facts])


@dataclass(eq=False, slots=True)
class TreeDispatch:
    """What the engine keeps for a tree, as the tree's `cache`."""

    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    """The tree's name in workers."""
    caller: Any = None
    prefetch: PrefetchRequest | None = None
    running: TaskLookahead | None = None
    """The newest lookahead that was begun."""

    def check(self) -> None:
        """Do nothing: there are no slots. `Document.check` calls it."""


def _state(tree: TokenTree) -> TreeDispatch:
    """Return what the engine keeps for a tree; it is created there on first use."""
    state = tree.cache
    if not isinstance(state, TreeDispatch):
        state = tree.cache = TreeDispatch()
    return state


class DispatchingEngine:
    """An `Engine` whose forward passes workers make; it is its own `LookaheadDispatcher`.

    A lookahead is one task, with its prefetch, and so is an experiment of `steps`. All other work is dispatched pass by
    pass: right, but with the costs of a task for each pass.
    """

    def __init__(self, dispatch: Dispatch) -> None:
        self._dispatch = dispatch
        self.batch_invariant_rows = None
        self.pass_costs = PassCosts()
        self.passes = 0

    @property
    def dispatcher(self) -> DispatchingEngine:
        return self

    def prepare(self, tree: TokenTree, *, caller: Any = None, prefetch: Any = None) -> None:
        state = _state(tree)
        state.caller, state.prefetch = caller, prefetch

    def begin(self, lookaheads: Sequence[tuple[Document, LookaheadOptions]]) -> TaskLookahead:
        documents = [document for document, _ in lookaheads]
        trees = list(dict.fromkeys(document.tree for document in documents))
        first = _state(trees[0])
        older = first.running
        if older is not None:
            older.close()
        sent = tuple(
            (DocumentState.of(document, _state(document.tree).key), options) for document, options in lookaheads
        )
        task = LookaheadTask(sent, first.prefetch, PREFETCH_SECONDS)
        start = functools.partial(TaskAnswers, self._dispatch, task, first.caller)
        writers = {_state(tree).key: FactsWriter(tree) for tree in trees}
        started = TaskLookahead(start, writers, None if older is None else older.answers, trees[0].view)
        # One text for each tree: facts of another text on the same tree would have no numbers.
        started.over = len({id(document) for document in documents}) > len(trees)
        for tree in trees:
            _state(tree).running = started
        return started

    def prefetching(self, lookaheads: Sequence[tuple[Document, LookaheadOptions]]) -> TaskLookahead | None:
        tree = lookaheads[0][0].tree
        state = _state(tree)
        if state.prefetch is None:
            return None
        running = state.running
        return running if running is not None and running.view == tree.view else self.begin(lookaheads)

    def steps(self, compute: Callable[[Any], Iterator[T]], first: T, *, seconds: float, caller: Any) -> Iterator[T]:
        """See `LookaheadDispatcher.steps`. Where the generator is closed, the worker stops after its next result."""
        task, found = StepsTask(compute, seconds), first
        for attempt in range(1, ATTEMPTS + 1):
            answers = TaskAnswers(self._dispatch, task, caller)
            try:
                while (answer := answers.next(WAIT)) is not _END:
                    found = found if answer is None else answer
                    yield found
                return
            except WorkerLost:
                if attempt == ATTEMPTS:
                    raise
            finally:
                answers.close()

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        with torch.inference_mode():
            return base.evaluate([self.score(nodes)], nodes)

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        order = self._ordered(nodes)
        parts: list[Rows] = self._answers(RowsTask(self._paths(order), hidden), order)
        self.passes += 1
        with torch.inference_mode():
            return NodeScores.joined(
                [
                    NodeScores([order[index] for index in part.indices], as_tensor(part.logits), part.hidden)
                    for part in parts
                ]
            )

    def next_logprobs(self, nodes: Sequence[Node], token_ids: Sequence[int]) -> list[float]:
        """See `NextTokenEngine.next_logprobs`; only these numbers come back."""
        wanted = dict(zip(nodes, token_ids, strict=True))
        order = self._ordered(nodes)
        task = RowsTask(self._paths(order), token_ids=tuple(wanted[node] for node in order))
        (values,) = self._answers(task, order)
        self.passes += 1
        found = dict(zip(order, values, strict=True))
        return [found[node] for node in nodes]

    def nodes_to_prefill(self, node: Node) -> list[Node]:
        """Return no nodes: the worker prefills."""
        return []

    def prefill(self, nodes: Sequence[Node]) -> None:
        """Do nothing: the worker prefills."""

    def roll_out(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        return base.roll_out(self, nodes, depth, stop)

    def free(self, nodes: Sequence[Node]) -> None:
        """Do nothing: the worker's trees are a cache of their own."""

    def compact(self, tree: TokenTree) -> None:
        """Do nothing: there is no cache in this process."""

    def cache_usage(self, tree: TokenTree) -> tuple[int, int]:
        """Return slots and bytes of the cache that the worker of the last lookahead had for the tree."""
        state = _state(tree)
        return (0, 0) if state.running is None else state.running.usage(state.key)

    @staticmethod
    def _ordered(nodes: Sequence[Node]) -> list[Node]:
        """Return the nodes without repetitions, those of each tree together."""
        return [node for members in group_by_tree(list(dict.fromkeys(nodes))).values() for node in members]

    def _paths(self, nodes: Sequence[Node]) -> tuple[NodePaths, ...]:
        for node in nodes:
            node.tree.mark_visible(node)
        return tuple(NodePaths.of(_state(tree).key, members) for tree, members in group_by_tree(nodes).items())

    def _answers(self, task: RowsTask, nodes: Sequence[Node]) -> list[Any]:
        """Return all answers of a task for these nodes, and count its pass. It is dispatched again if a worker ends."""
        caller = _state(nodes[0].tree).caller
        for attempt in range(1, ATTEMPTS + 1):
            try:
                answers = TaskAnswers(self._dispatch, task, caller)
                found = list(answers.rest())
                break
            except WorkerLost:
                if attempt == ATTEMPTS:
                    raise
        for tree, members in group_by_tree(nodes).items():
            tree.work.passes += 1
            tree.work.tokens += len(members)
        return found
