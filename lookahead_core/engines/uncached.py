"""The uncached engine: a plain forward over each path. Slow, right for any model, what the cached one must equal."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import torch

from lookahead_core.engines import engine as base
from lookahead_core.engines import small_copy as twins
from lookahead_core.engines.cpu.prepare import Computation
from lookahead_core.engines.engine import NodeScores
from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.errors import ModelError, is_out_of_memory
from lookahead_core.tree import Node, TokenTree

BATCH_TOKENS = 8192
"""The most tokens, padding included, that one batch of paths may have."""
BATCH_ROWS = 256
"""The most rows of scores that one batch may give, those included that nobody asked for: they are large."""
GROWING_ROPES = frozenset({"dynamic", "longrope"})
_Asked: TypeAlias = tuple[list[Node], list[Node]]
"""A path, and those of its nodes after which scores were asked for."""


class UncachedEngine:
    """Predictions without a cache: paths as rows, padded right, in batches."""

    def __init__(self, hf_model: Any) -> None:
        self.twin = twins.twin_of(hf_model)
        self.same_length_only = bool(rope_types(self.twin.config) & GROWING_ROPES)
        self._takes = inspect.signature(self.twin.forward).parameters
        self._lock = threading.RLock()
        self.batch_invariant_rows = None
        self.computation = Computation("a forward over each whole path", "a forward over each whole path")
        self.passes = 0
        self.pass_costs = PassCosts()

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        with self._lock, torch.inference_mode():
            return base.evaluate(self._scored(nodes), nodes)

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        with self._lock, torch.inference_mode():
            return NodeScores.joined(list(self._scored(nodes)))

    def _scored(self, nodes: Sequence[Node]) -> Iterator[NodeScores]:
        for batch in self._batches(self._paths(nodes)):
            yield NodeScores([node for _, asked in batch for node in asked], self._pass(batch))

    def nodes_to_prefill(self, node: Node) -> list[Node]:
        return []

    def prefill(self, nodes: Sequence[Node]) -> None:
        """Nothing is kept, so there is nothing to read ahead of time."""

    def roll_out(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        return base.roll_out(self, nodes, depth, stop)

    def free(self, nodes: Sequence[Node]) -> None:
        """Nothing is kept."""

    def compact(self, tree: TokenTree) -> None:
        """Nothing is kept."""

    def cache_usage(self, tree: TokenTree) -> tuple[int, int]:
        return 0, 0

    def try_a_pass(self) -> None:
        """Raise ModelError unless the model gives logits for a short text's last token only, or for all its tokens."""
        tree = TokenTree()
        try:
            self.evaluate([tree.descend(tree.root, [0, 0, 0])])
        except Exception as error:
            if isinstance(error, ModelError) or is_out_of_memory(error):
                raise
            raise ModelError(f"The model fails on a text of three tokens ({type(error).__name__}: {error}).") from error

    def _paths(self, nodes: Sequence[Node]) -> Iterator[_Asked]:
        """The paths to run, longest first, so that padding is least, and which of their nodes were asked for.

        A path tells of all that lies on it, unless the rotation grows with it.
        """
        waiting = dict.fromkeys(sorted(nodes, key=lambda node: -node.depth))
        while waiting:
            path = next(iter(waiting)).tree.path(next(iter(waiting)))
            asked = path[-1:] if self.same_length_only else [node for node in path if node in waiting][-BATCH_ROWS:]
            for node in asked:
                del waiting[node]
            yield path, asked

    def _batches(self, paths: Iterator[_Asked]) -> Iterator[list[_Asked]]:
        """Some paths at a time; of one length each where the rotation grows with the text."""
        batch: list[_Asked] = []
        depths: set[int] = set()
        for path, asked in paths:
            longest, more = len(batch[0][0]) if batch else 0, depths | {node.depth for node in asked}
            full = (len(batch) + 1) * longest > BATCH_TOKENS or (len(batch) + 1) * len(more) > BATCH_ROWS
            if batch and (full or (self.same_length_only and len(path) != longest)):
                yield batch
                batch, more = [], {node.depth for node in asked}
            batch.append((path, asked))
            depths = more
        if batch:
            yield batch

    def _pass(self, batch: list[_Asked]) -> torch.Tensor:
        """The model's scores after each node that was asked for."""
        self._forget_rotation()
        paths = [path for path, _ in batch]
        lengths = torch.tensor([len(path) for path in paths])
        rows = torch.tensor([row for row, (_, asked) in enumerate(batch) for _ in asked])
        places = torch.tensor([node.depth - 1 for _, asked in batch for node in asked])
        kept = places.unique()
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
        device = self.twin.device
        given = {name: _on(value, device) for name, value in arguments.items() if name in self._takes}
        logits = base.select_logits(self.twin(**given).logits, kept.to(device), len(positions))
        columns = torch.searchsorted(kept, places)
        for path in paths:
            path[-1].tree.work.tokens += len(path)
        for tree in {path[-1].tree for path in paths}:
            tree.work.passes += 1
        self.passes += 1
        return logits[rows.to(device), columns.to(device)].float()

    def _forget_rotation(self) -> None:
        """Undo what longer texts have left in rotations that grow: transformers keeps the longest one's frequencies."""
        if self.same_length_only:
            for module in self.twin.modules():
                for name in [name for name in vars(module) if name.endswith("max_seq_len_cached")]:
                    setattr(module, name, module.original_max_seq_len)
                for name, buffer in list(module.named_buffers(recurse=False)):
                    if name.endswith("original_inv_freq"):
                        getattr(module, name.replace("original_", "")).copy_(buffer)


def _on(value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def rope_types(config: Any) -> set[str]:
    """The kinds of rotation that a configuration names, in all its layers."""
    given = getattr(config.get_text_config(decoder=True), "rope_parameters", None) or {}
    nested = [value for value in given.values() if isinstance(value, dict)]
    return {str(part.get("rope_type", "default")) for part in (nested or [given])}
