"""The uncached engine: a plain forward pass over each path. Slow, and right for every model."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import torch

from lookahead_core.engines import engine as base
from lookahead_core.engines.cpu.prepare import Computation
from lookahead_core.engines.engine import NodeScores, select_logits
from lookahead_core.engines.memory_retry import with_smaller_passes
from lookahead_core.engines.model_copy import copy_sharing_parameters
from lookahead_core.engines.pass_costs import ROW_BOUNDS, PassCosts
from lookahead_core.errors import ModelError, NoRoom
from lookahead_core.histogram import Histogram
from lookahead_core.tree import Node, TokenTree

BATCH_TOKENS = 8192
"""The most tokens in a batch of several paths, padding included; one longer path is a batch of its own."""
BATCH_SIZES = (BATCH_TOKENS, 1024, 1)
"""The most tokens in a batch: at first, and then each time that memory has run out."""
BATCH_ROWS = 256
"""The most rows of logits in a batch, including rows that were not requested: each is as large as the vocabulary."""
LENGTH_DEPENDENT_ROPES = frozenset({"dynamic", "longrope"})
"""Rope types whose frequencies depend on the length of the text."""
_PathRequest: TypeAlias = tuple[list[Node], list[Node]]
"""A path, and those of its nodes whose logits are requested."""


class UncachedEngine:
    """An `Engine` without a cache: slower, and right for models that the cached engine does not fit.

    Each pass computes whole paths from the root, as rows of a batch, padded on the right.
    """

    def __init__(self, hf_model: Any) -> None:
        self.model_copy = copy_sharing_parameters(hf_model)
        self.same_length_only = bool(rope_types(self.model_copy.config) & LENGTH_DEPENDENT_ROPES)
        """Whether a path needs a row of its own length, because rotary embeddings depend on the length of the text."""
        self.batch_invariant_rows = None
        self.computation = Computation("a forward over each whole path", "a forward over each whole path")
        self.passes = 0
        self.pass_rows = Histogram(ROW_BOUNDS)
        """The passes so far by their rows: one row for each token of each path."""
        self.pass_costs = PassCosts()
        self._forward_parameters = inspect.signature(self.model_copy.forward).parameters
        self._lock = threading.RLock()

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        with self._lock, torch.inference_mode():
            return base.evaluate(self._score_in_passes(nodes), nodes)

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        """See `Engine.score`; `hidden` is ignored, and the result has no hidden states."""
        with self._lock, torch.inference_mode():
            return NodeScores.joined(list(self._score_in_passes(nodes)))

    def nodes_to_prefill(self, node: Node) -> list[Node]:
        return []

    def prefill(self, nodes: Sequence[Node]) -> None:
        """Do nothing: there is no cache."""

    def roll_out(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        return base.roll_out(self, nodes, depth, stop)

    def free(self, nodes: Sequence[Node]) -> None:
        """Do nothing: there is no cache."""

    def compact(self, tree: TokenTree) -> None:
        """Do nothing: there is no cache."""

    def cache_usage(self, tree: TokenTree) -> tuple[int, int]:
        return 0, 0

    def check_forward(self) -> None:
        """Raise ModelError if a forward pass over three tokens fails, or returns an unexpected number of logits.

        If memory runs out, NoRoom is raised.
        """
        tree = TokenTree()
        try:
            self.evaluate([tree.descend(tree.root, [0, 0, 0])])
        except Exception as error:
            if isinstance(error, ModelError | NoRoom):
                raise
            raise ModelError(f"The model fails on a text of three tokens ({type(error).__name__}: {error}).") from error

    def _score_in_passes(self, nodes: Sequence[Node]) -> Iterator[NodeScores]:
        """Generator: compute the paths to `nodes`, longest first, and yield the scores of `nodes`, pass by pass.

        Each node comes once, also if `nodes` repeats it; again if memory runs out, with smaller batches from then on.
        Raises NoRoom if it runs out for a single path.
        """

        def score(most: int) -> Iterator[NodeScores]:
            for batch in self._batches(self._paths(nodes), most):
                yield NodeScores([node for _, wanted in batch for node in wanted], self._pass(batch))

        return with_smaller_passes(score, BATCH_SIZES, lambda: None)

    def _paths(self, nodes: Sequence[Node]) -> Iterator[_PathRequest]:
        """Generator: yield the paths to run, longest first, each with those of `nodes` whose logits it is to give.

        These lie on the path, in its order: all that no earlier path gives, but at most the last BATCH_ROWS, and only
        the path's end if `same_length_only`. Each of `nodes` comes with exactly one path.
        """
        waiting = dict.fromkeys(sorted(nodes, key=lambda node: -node.depth))
        while waiting:
            path = next(iter(waiting)).tree.path(next(iter(waiting)))
            wanted = path[-1:] if self.same_length_only else [node for node in path if node in waiting][-BATCH_ROWS:]
            for node in wanted:
                del waiting[node]
            yield path, wanted

    def _batches(self, paths: Iterator[_PathRequest], most: int) -> Iterator[list[_PathRequest]]:
        """Generator: group successive paths, which must come longest first, into batches of one pass each.

        Batches stay within `most` tokens and `BATCH_ROWS`, except that one path alone may have more tokens. With
        `same_length_only` the paths of a batch have one length.
        """
        batch: list[_PathRequest] = []
        depths: set[int] = set()
        for path, wanted in paths:
            longest, joint_depths = len(batch[0][0]) if batch else 0, depths | {node.depth for node in wanted}
            full = (len(batch) + 1) * longest > most or (len(batch) + 1) * len(joint_depths) > BATCH_ROWS
            if batch and (full or (self.same_length_only and len(path) != longest)):
                yield batch
                batch, joint_depths = [], {node.depth for node in wanted}
            batch.append((path, wanted))
            depths = joint_depths
        if batch:
            yield batch

    def _pass(self, batch: list[_PathRequest]) -> torch.Tensor:
        """Run one forward pass; return the logits of the requested nodes in float32, of shape (nodes, vocabulary).

        The nodes are in the order of the batch: path by path, and of each path in the order of its requested nodes.
        """
        self._reset_dynamic_ropes()
        paths = [path for path, _ in batch]
        lengths = torch.tensor([len(path) for path in paths])
        rows = torch.tensor([row for row, (_, wanted) in enumerate(batch) for _ in wanted])
        depths = torch.tensor([node.depth - 1 for _, wanted in batch for node in wanted])
        kept = torch.unique(depths)
        positions = torch.arange(int(lengths.max()))
        arguments: dict[str, Any] = {
            "input_ids": torch.nn.utils.rnn.pad_sequence(
                [torch.tensor([node.token_id for node in path]) for path in paths], batch_first=True
            ),
            "attention_mask": (positions < lengths[:, None]).long(),
            "position_ids": positions.expand(len(paths), -1),
            "logits_to_keep": kept,
            "use_cache": False,
        }
        device = self.model_copy.device
        supported = arguments.keys() & self._forward_parameters.keys()
        accepted = {name: _to_device(arguments[name], device) for name in supported}
        logits = select_logits(self.model_copy(**accepted).logits, kept.to(device), len(positions))
        columns = torch.searchsorted(kept, depths)
        for path in paths:
            path[-1].tree.work.tokens += len(path)
        for tree in {path[-1].tree for path in paths}:
            tree.work.passes += 1
        self.passes += 1
        self.pass_rows.add(sum(len(path) for path in paths))
        return logits[rows.to(device), columns.to(device)].float()

    def _reset_dynamic_ropes(self) -> None:
        """Reset the model copy's rotary embeddings if they depend on the length of the text; otherwise do nothing.

        transformers keeps the frequencies of the longest text so far in them.
        """
        if self.same_length_only:
            for module in self.model_copy.modules():
                for name in [name for name in vars(module) if name.endswith("max_seq_len_cached")]:
                    setattr(module, name, module.original_max_seq_len)
                for name, buffer in list(module.named_buffers(recurse=False)):
                    if name.endswith("original_inv_freq"):
                        getattr(module, name.replace("original_", "")).copy_(buffer)


def _to_device(value: Any, device: torch.device) -> Any:
    """Return a tensor on the device; any other value unchanged."""
    return value.to(device) if isinstance(value, torch.Tensor) else value


def rope_types(config: Any) -> set[str]:
    """Return the types of rotary embedding that a transformers configuration names, for all layer types together.

    {"default"} if it names none.
    """
    parameters = getattr(config.get_text_config(decoder=True), "rope_parameters", None) or {}
    nested = [value for value in parameters.values() if isinstance(value, dict)]
    return {str(part.get("rope_type", "default")) for part in (nested or [parameters])}
