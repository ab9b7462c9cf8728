"""Tasks that a worker process computes with the model, and the worker's side: it keeps trees as a cache only.

A task is all that a worker needs besides the model. What a task yields is pickled, and compact except for rows.
"""

from __future__ import annotations

import dataclasses
import pickle
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from lookahead_core.document.document import MOST_NODES, Document
from lookahead_core.document.document_state import DocumentState
from lookahead_core.document.joint_lookahead import joint_lookahead_steps
from lookahead_core.document.joint_prefetch import prefetch_joint_views
from lookahead_core.document.prefetch import prefetch_views
from lookahead_core.document.results import Lookahead, LookaheadStep
from lookahead_core.document.tree_facts import FactsReader, TreeFacts
from lookahead_core.engines.engine import next_logprobs
from lookahead_core.errors import CacheFull, InvalidLogits, LookaheadError, ModelError, NoRoom, TextError
from lookahead_core.model import Model
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from lookahead_core.tree import Node, TokenTree

MOST_TREES = 64
"""Trees that a worker keeps for later tasks; their caches share the engine's limit."""
PART_ROWS = 16
"""Rows of logits that are sent at once: some megabytes."""
KINDS = (InvalidLogits, CacheFull, NoRoom, ModelError, TextError, LookaheadError, ValueError)
"""The errors that are passed on, more special ones first."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The last answer of a task that raised one of KINDS."""

    kind: type[Exception]
    sentence: str

    def error(self) -> Exception:
        """Return the error to raise in the process that dispatched the task."""
        return self.kind(self.sentence)


@dataclass(frozen=True, slots=True)
class Progress:
    """What a `LookaheadTask` yields after each forward pass."""

    tokens_read: int
    tokens_to_read: int
    facts: tuple[TreeFacts, ...]
    ahead: bool = False
    """Whether the lookaheads are done, and this is prefetched."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a `RowsTask` yields: the logits after some of its nodes."""

    indices: tuple[int, ...]
    """The positions of these nodes among all nodes of the task."""
    logits: Any
    """A NumPy array of shape (nodes, vocabulary), float32."""
    hidden: Any
    """A tensor of shape (nodes, width); None if it was not wanted or is not known."""


@dataclass(frozen=True, slots=True)
class PrefetchRequest:
    """What to prefetch after the lookaheads of a task: the arguments of `prefetch_views` or `prefetch_joint_views`."""

    options: tuple[LookaheadOptions, ...]
    """Those of the views that follow each lookahead."""
    most_nodes: int = 512


@dataclass(frozen=True, slots=True)
class LookaheadTask:
    """Lookaheads of one or several documents, and the views after likely clicks on them."""

    lookaheads: tuple[tuple[DocumentState, LookaheadOptions], ...]
    prefetch: PrefetchRequest | None
    seconds: float
    """Seconds after which nothing further is prefetched; the lookaheads themselves are always finished."""

    def answers(self, worker: Worker) -> Iterator[Progress]:
        """Yield the progress after each pass of the lookaheads, and then of prefetching."""
        until = time.monotonic() + self.seconds
        documents = {state.key: worker.document(state) for state, _ in self.lookaheads}
        before = {key: dataclasses.replace(document.tree.work) for key, document in documents.items()}
        engine = worker.model.engine
        if len(self.lookaheads) == 1:
            ((state, options),) = self.lookaheads
            steps: Iterator[Any] = documents[state.key].begin_lookahead(options)(engine)
        else:
            steps = joint_lookahead_steps([(documents[state.key], options) for state, options in self.lookaheads])
        readers: dict[str, FactsReader] = {}

        def facts() -> tuple[TreeFacts, ...]:
            for key, document in documents.items():
                # The head is known once the lookaheads have begun.
                readers.setdefault(key, FactsReader(key, document.tree, before[key]))
            return tuple(readers[key].read(engine.cache_usage(documents[key].tree)) for key in documents)

        last = None
        for last in steps:
            yield Progress(last.tokens_read, last.tokens_to_read, facts())
        if self.prefetch is None or last is None:
            return
        results = [last.result] if isinstance(last, LookaheadStep) else last.results
        ahead = _prefetch([documents[state.key] for state, _ in self.lookaheads], results, self.prefetch)
        while time.monotonic() < until:
            step = next(ahead, self)
            if step is None or step is self:
                yield Progress(0, 0, facts(), ahead=True)
            if step is self:
                return


def _prefetch(
    documents: Sequence[Document], results: Sequence[Lookahead], prefetch: PrefetchRequest
) -> Iterator[object | None]:
    """Return the generator that prefetches the views after these results; it yields None after each pass."""
    if len(documents) == 1:
        (options,) = prefetch.options
        fields: dict[str, Any] = {each.name: getattr(options, each.name) for each in dataclasses.fields(options)}
        return prefetch_views(documents[0], results[0], most_nodes=prefetch.most_nodes, **fields)
    lookaheads = list(zip(documents, results, prefetch.options, strict=True))
    return prefetch_joint_views(lookaheads, most_nodes=prefetch.most_nodes)


@dataclass(frozen=True, slots=True)
class NodePaths:
    """Nodes of a tree, as paths from its root."""

    key: str
    nodes: tuple[tuple[int, int], ...]
    """All nodes on these paths, parents first: the parent's number and the token id. The root has number 0."""
    ends: tuple[int, ...]
    """The numbers of the nodes themselves."""

    @classmethod
    def of(cls, key: str, ends: Sequence[Node]) -> NodePaths:
        """Return the paths to nodes of one tree, none of which is the root."""
        tree = ends[0].tree
        numbers, nodes = {tree.root: 0}, list[tuple[int, int]]()
        for end in ends:
            for node in tree.path(end):
                if node not in numbers:
                    assert node.parent is not None
                    nodes.append((numbers[node.parent], node.token_id))
                    numbers[node] = len(numbers)
        return cls(key, tuple(nodes), tuple(numbers[end] for end in ends))

    def find(self, tree: TokenTree) -> list[Node]:
        """Return these nodes in another tree, in order; missing ones are created."""
        nodes = [tree.root]
        for parent, token_id in self.nodes:
            nodes.append(tree.expand(nodes[parent], token_id))
        return [nodes[number] for number in self.ends]


@dataclass(frozen=True, slots=True)
class RowsTask:
    """The logits after some nodes, or the log-probability of one token after each: one forward pass or a few."""

    paths: tuple[NodePaths, ...]
    hidden: bool = False
    token_ids: tuple[int, ...] | None = None
    """One token for each node, in the order of `paths`; None for the whole rows."""

    def answers(self, worker: Worker) -> Iterator[Rows | list[float]]:
        """Yield the log-probabilities of `token_ids`, or the rows in parts."""
        engine, nodes = worker.model.engine, list[Node]()
        for paths in self.paths:
            nodes += worker.find(paths)
        if self.token_ids is not None:
            yield next_logprobs(engine, nodes, self.token_ids)
            return
        scores = engine.score(list(dict.fromkeys(nodes)), hidden=self.hidden)
        positions = {node: index for index, node in enumerate(nodes)}
        for first in range(0, len(scores.nodes), PART_ROWS):
            some = slice(first, first + PART_ROWS)
            hidden = None if scores.hidden is None else scores.hidden[some].cpu().clone()
            indices = tuple(positions[node] for node in scores.nodes[some])
            yield Rows(indices, scores.logits[some].cpu().numpy(), hidden)


@dataclass(frozen=True, slots=True)
class StepsTask:
    """A whole experiment: `compute` and `seconds` are arguments of `LookaheadDispatcher.steps`."""

    compute: Callable[[Model], Iterator[Any]]
    seconds: float

    def answers(self, worker: Worker) -> Iterator[Any]:
        """Yield the results of `compute` with the worker's model."""
        yield from self.compute(worker.model)


Task = LookaheadTask | RowsTask | StepsTask


class Worker:
    """The worker's side: computes tasks with a model that it makes at its first task, and keeps trees between tasks.

    The object is made in the process that dispatches, and is used in worker processes only. A worker may end at any
    time; the next one begins without trees.
    """

    def __init__(self, make_model: Callable[[], Model]) -> None:
        """`make_model` returns the model with an engine that computes in the calling process."""
        self._make_model = make_model
        self._model: Model | None = None
        self._trees: OrderedDict[str, TokenTree] = OrderedDict()

    @property
    def model(self) -> Model:
        """The model, made at the first access."""
        if self._model is None:
            self._model = self._make_model()
        return self._model

    def compute(self, task: bytes) -> Iterator[bytes]:
        """Compute a pickled task, and yield its pickled answers; the last one is `Failed` if it raises one of KINDS."""
        work: Task = pickle.loads(task)
        try:
            for answer in work.answers(self):
                yield pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)
        except KINDS as error:
            kind = next(kind for kind in KINDS if isinstance(error, kind))
            yield pickle.dumps(Failed(kind, str(error)))

    def document(self, state: DocumentState) -> Document:
        """Return a document with this state, on the tree of earlier tasks if the worker still has it."""
        return state.document(self.model, self._tree(state.key))

    def find(self, paths: NodePaths) -> list[Node]:
        """Return the nodes at the ends of these paths; nodes of earlier tasks are removed if there are many."""
        tree = self._tree(paths.key)
        if tree.size > 2 * MOST_NODES:
            tree.new_view()
            self.model.engine.free(tree.prune())
        return paths.find(tree)

    def _tree(self, key: str) -> TokenTree:
        """Return the tree with this name, a new one if it is not kept; the one used longest ago may be dropped."""
        tree = self._trees.setdefault(key, TokenTree())
        self._trees.move_to_end(key)
        if len(self._trees) > MOST_TREES:
            self._trees.popitem(last=False)
        return tree


def seconds_for(task: Task) -> float:
    """Return an upper estimate of the seconds that a task computes on a GPU, from the size of its texts and branches.

    Shorter tasks are served earlier on shared GPUs, and all seconds count for the visitor's day.
    """
    if isinstance(task, RowsTask):
        return 5 + sum(len(paths.nodes) for paths in task.paths) / 2000
    if isinstance(task, StepsTask):
        return task.seconds
    tokens = sum(len(state.passage.tokens) for state, _ in task.lookaheads)
    levels = sum(options.depth + options.budget / options.width for _, options in task.lookaheads)
    return 5 + tokens / 2000 + levels / 20 + (task.seconds if task.prefetch is not None else 0)


def as_tensor(array: Any) -> torch.Tensor:
    """Return a NumPy array as a tensor that may be written to."""
    return torch.from_numpy(array.copy())
