"""The uncached engine: a plain forward over each path. Slow, right for any model, what the cached one must equal."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from lookahead_core.engines import engine as base
from lookahead_core.engines import twin as twins
from lookahead_core.engines.costs import Costs
from lookahead_core.engines.engine import Scores
from lookahead_core.tree import Node, TokenTree

BATCH_TOKENS = 8192
"""The most tokens, padding included, that one batch of paths may have."""
GROWING_ROPES = frozenset({"dynamic", "longrope"})


class UncachedEngine:
    """Predictions without a cache: paths as rows, padded right, in batches."""

    def __init__(self, hf_model: Any) -> None:
        self.twin = twins.twin_of(hf_model)
        self.same_length_only = bool(rope_types(self.twin.config) & GROWING_ROPES)
        self._takes = inspect.signature(self.twin.forward).parameters
        self._lock = threading.RLock()
        self.passes = 0
        self.costs = Costs()

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        with self._lock, torch.inference_mode():
            return base.evaluate(self._scored(nodes), nodes)

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> Scores:
        with self._lock, torch.inference_mode():
            return Scores.joined(list(self._scored(nodes)))

    def _scored(self, nodes: Sequence[Node]) -> Iterator[Scores]:
        for batch in self._batches(list(dict.fromkeys(nodes))):
            yield Scores(batch, self._pass([node.tree.path(node) for node in batch]))

    def unread(self, node: Node) -> list[Node]:
        return []

    def read(self, nodes: Sequence[Node]) -> None:
        """Nothing is kept, so there is nothing to read ahead of time."""

    def roll_out(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        return base.roll_out(self, nodes, depth, stop)

    def forget(self, nodes: Sequence[Node]) -> None:
        """Nothing is kept."""

    def compact(self, tree: TokenTree) -> None:
        """Nothing is kept."""

    def usage(self, tree: TokenTree) -> tuple[int, int]:
        return 0, 0

    def _batches(self, nodes: list[Node]) -> Iterator[list[Node]]:
        """Longest first, so that padding is least; of one length each where the rotation grows with the text."""
        batch: list[Node] = []
        for node in sorted(nodes, key=lambda node: -node.depth):
            full = batch and (len(batch) + 1) * batch[0].depth > BATCH_TOKENS
            if full or (batch and self.same_length_only and node.depth != batch[0].depth):
                yield batch
                batch = []
            batch.append(node)
        if batch:
            yield batch

    def _pass(self, paths: list[list[Node]]) -> torch.Tensor:
        """The model's scores after each path."""
        self._forget_rotation()
        lengths = torch.tensor([len(path) for path in paths])
        ends = lengths.unique() - 1
        positions = torch.arange(int(lengths.max()))
        arguments: dict[str, Any] = {
            "input_ids": torch.nn.utils.rnn.pad_sequence(
                [torch.tensor([node.token_id for node in path]) for path in paths], batch_first=True
            ),
            "attention_mask": (positions < lengths[:, None]).long(),
            "position_ids": positions.expand(len(paths), -1),
            "logits_to_keep": ends,
            "use_cache": False,
        }
        device = self.twin.device
        given = {name: _on(value, device) for name, value in arguments.items() if name in self._takes}
        logits = self.twin(**given).logits
        columns = torch.searchsorted(ends, lengths - 1) if "logits_to_keep" in given else lengths - 1
        for path in paths:
            path[-1].tree.work.tokens += len(path)
        for tree in {path[-1].tree for path in paths}:
            tree.work.passes += 1
        self.passes += 1
        chosen = logits[torch.arange(len(paths), device=device), columns.to(device)]
        return chosen.float()

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
    nested = [value for value in given.values() if isinstance(value, dict)] if isinstance(given, dict) else []
    return {str(part.get("rope_type", "default")) for part in (nested or [given])}
