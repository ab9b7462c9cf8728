"""Beam search: all running beams are evaluated in one forward pass per level; ended beams are kept aside.

Two sets of rules score beams and stop the search. Those of transformers equal its `generate`, scores included. Those of
the seed notebooks add up log-probabilities, and stop when enough sequences have ended.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from lookahead_core.engines.engine import Engine
from lookahead_core.strategies.beam_options import BeamOptions
from lookahead_core.strategies.branch_growth import BranchLeaf
from lookahead_core.strategies.rules import ModelRules, RuledOutError
from lookahead_core.tree import Node

PRUNE_INTERVAL = 16
"""Number of levels after which the cache slots of abandoned beams are freed."""
GREW, RETURNED = "grew", "returned"
OUTSCORED, OVERTAKEN = "outscored", "overtaken"
ENDED_LOW, ENDED_OUT, UNFINISHED = "ended too low", "ended, outscored", "unfinished"
FATES = {
    GREW: "it was continued",
    RETURNED: "it is one of the results",
    OUTSCORED: "better candidates were chosen at the same level",
    OVERTAKEN: "it was chosen, and none of its continuations was good enough",
    ENDED_LOW: "it ended, and other candidates scored higher at that level",
    ENDED_OUT: "it ended, and other results scored higher",
    UNFINISHED: "the search was over before it ended",
}
"""What can become of a path in a search, with an explanation for people."""


@dataclass(eq=False, slots=True)
class BeamTrace:
    """A path that the search considered: its last token, its score so far, and its fate."""

    parent: BeamTrace | None
    token_id: int
    logprob: float
    """The log-probability of the last token."""
    total: float
    """The sum of the path's token scores: log-probabilities with the rules and penalties applied."""
    step: int
    """The level of the last token, from 1."""
    fate: str = OUTSCORED
    """One of `FATES`."""


@dataclass(frozen=True, slots=True)
class BeamPath:
    """A beam: its leaf, the sum of its token scores, and its score if it ends here."""

    leaf: BranchLeaf
    total: float
    score: float
    trace: BeamTrace | None
    """None for the root of the search."""


@dataclass(frozen=True, slots=True)
class BeamCandidate:
    """A beam extended by one token: a candidate, of which the search keeps the best."""

    beam: BeamPath
    trace: BeamTrace

    def path(self, score: float) -> BeamPath:
        """Return the extended beam, with this score."""
        prediction = self.beam.leaf.node.prediction
        assert prediction is not None
        leaf = self.beam.leaf.extended(self.trace.token_id, self.trace.logprob, prediction)
        return BeamPath(leaf, self.trace.total, score, self.trace)


@dataclass(slots=True)
class BeamGroup:
    """A group of a beam search: its running and ended beams, which compete within the group only."""

    size: int
    running: list[BeamPath]
    finished: list[BeamPath] = field(default_factory=list)
    over: bool = False


class BeamSearch:
    """The state of one beam search below a head. `beam_search` feeds it rows level by level."""

    def __init__(self, head: Node, options: BeamOptions, rules: ModelRules) -> None:
        self.head = head
        self.options = options
        self.rules = rules
        self.step = 0
        """Number of levels grown."""
        self.traces: list[BeamTrace] = []
        """All paths considered so far."""
        self.error: RuledOutError | None = None
        """Set if the search is over without a result because the options exclude every token."""
        self._prompt_ids = head.tree.token_ids(head)
        size = options.num_beams // options.num_beam_groups
        root = BeamPath(BranchLeaf(head, (), ()), 0.0, 0.0, None)
        self.groups = [BeamGroup(size, [root]) for _ in range(options.num_beam_groups)]
        head.tree.growers.add(self)

    @property
    def pending_nodes(self) -> list[Node]:
        """The nodes to evaluate for the next level; empty if the search is over."""
        return list(dict.fromkeys(beam.leaf.node for group in self._growing_groups for beam in group.running))

    @property
    def frontier(self) -> list[Node]:
        """The nodes whose paths the tree must keep: of running and finished beams, until the search is over."""
        if not self._growing_groups:
            return []
        return [beam.leaf.node for group in self.groups for beam in (*group.running, *group.finished)]

    def snapshot(self) -> list[tuple[BeamTrace, str]]:
        """Return all paths considered so far, each with its present fate."""
        return [(trace, trace.fate) for trace in self.traces]

    @property
    def results(self) -> list[BeamPath]:
        """Return the best beams so far, best first, at most as many as the options request.

        Running beams are among them only if too few have ended.
        """
        found = [beam for group in self.groups for beam in group.finished]
        if self._by_seed_rules:
            found = found[: self.options.returned]
        if len(found) < self.options.returned:
            running = [beam for group in self.groups for beam in group.running]
            found += sorted(running, key=lambda beam: -beam.score)[: self.options.returned - len(found)]
        return sorted(found, key=lambda beam: -beam.score)[: self.options.returned]

    @property
    def _growing_groups(self) -> list[BeamGroup]:
        return [group for group in self.groups if not group.over and group.running]

    def grow(self, rows: torch.Tensor) -> None:
        """Grow one level from the rows of log-probabilities of `pending_nodes`, in the same order."""
        row_by_node = dict(zip(self.pending_nodes, rows, strict=True))
        self.step += 1
        chosen_before: list[int] = []
        for group in self._growing_groups:
            group_rows = torch.stack([row_by_node[beam.leaf.node] for beam in group.running])
            self._grow_group(group, group_rows, chosen_before)
            chosen_before += [beam.leaf.token_ids[-1] for beam in group.running]
        if not self._growing_groups:
            self._finish()

    def _grow_group(self, group: BeamGroup, rows: torch.Tensor, chosen_before: Sequence[int]) -> None:
        """Replace a group's running beams by its best candidates, and keep those that end."""
        candidates_per_beam = 1 if self._by_seed_rules else max(2, 1 + len(self.rules.end_token_ids))
        candidates = self._candidates(group, rows, chosen_before, candidates_per_beam * group.size)
        if not candidates:
            # No token may follow any beam: the beams that may end here are complete.
            group.finished += [beam for beam in group.running if beam.trace and self._may_end(beam)]
            group.running, group.over = [], True
            return
        is_last = self.step == self.options.max_new_tokens
        completes = [self._completes(candidate, is_last) for candidate in candidates]
        ended = [one for one, complete in zip(candidates[: group.size], completes, strict=False) if complete]
        grown = [one for one, complete in zip(candidates, completes, strict=True) if not complete][: group.size]
        self._note_fates(group, candidates, ended, grown)
        group.finished += map(self._scored_path, ended)
        group.running = [self._scored_path(one) for one in grown]
        if self._by_seed_rules:
            group.over = is_last or len(group.finished) >= self.options.returned
        else:
            group.finished = heapq.nlargest(group.size, group.finished, key=lambda beam: beam.score)
            group.over = is_last or self._is_over(group)

    @property
    def _by_seed_rules(self) -> bool:
        return self.options.stopping == "seed"

    def _completes(self, candidate: BeamCandidate, is_last: bool) -> bool:
        """Whether a candidate ends: by an end token or, as transformers counts, by the maximum length."""
        return candidate.trace.token_id in self.rules.end_token_ids or (is_last and not self._by_seed_rules)

    def _note_fates(
        self, group: BeamGroup, candidates: list[BeamCandidate], ended: list[BeamCandidate], grown: list[BeamCandidate]
    ) -> None:
        for one in candidates:
            if one.trace.token_id in self.rules.end_token_ids:
                one.trace.fate = ENDED_LOW
        for one in ended:
            one.trace.fate = ENDED_OUT if one.trace.token_id in self.rules.end_token_ids else UNFINISHED
        for one in grown:
            one.trace.fate = UNFINISHED
        continued = {id(one.beam.trace) for one in (*ended, *grown)}
        for beam in group.running:
            if beam.trace is not None:
                beam.trace.fate = GREW if id(beam.trace) in continued else OVERTAKEN

    def _candidates(
        self, group: BeamGroup, rows: torch.Tensor, chosen_before: Sequence[int], count: int
    ) -> list[BeamCandidate]:
        """Return the `count` best extensions of all running beams of a group together, best first.

        `chosen_before` are the tokens that earlier groups chose at this level; the diversity penalty applies to them.
        """
        scores = self._ruled_scores(group, rows)
        if chosen_before and self.options.diversity_penalty:
            counts = torch.bincount(torch.tensor(chosen_before), minlength=scores.shape[-1]).to(scores)
            scores = scores - self.options.diversity_penalty * counts
        sums = torch.tensor([beam.total for beam in group.running], dtype=scores.dtype, device=scores.device)
        # Top-k per row runs on all processor cores, and no row has more than `count` of the best.
        values, token_ids = (scores + sums[:, None]).topk(min(count, scores.shape[-1]), dim=1)
        logprobs = rows.gather(1, token_ids).tolist()
        best = values.flatten().sort(descending=True, stable=True).indices[:count].tolist()
        totals, ids = values.tolist(), token_ids.tolist()
        found = []
        for beam, column in (divmod(index, values.shape[1]) for index in best):
            if (total := totals[beam][column]) > -math.inf:
                parent = group.running[beam]
                trace = BeamTrace(parent.trace, ids[beam][column], logprobs[beam][column], total, self.step)
                found.append(BeamCandidate(parent, trace))
        self.traces += [candidate.trace for candidate in found]
        return found

    def _ruled_scores(self, group: BeamGroup, rows: torch.Tensor) -> torch.Tensor:
        """Return the log-probabilities with the rules applied; they are not renormalised."""
        if self.rules.changes_nothing:
            return rows
        paths = [[*self._prompt_ids, *beam.leaf.token_ids] for beam in group.running]
        ruled = [self.rules.apply(row, path, self.step - 1) for row, path in zip(rows, paths, strict=True)]
        return torch.stack(ruled)

    def _scored_path(self, candidate: BeamCandidate) -> BeamPath:
        length = 1 if self._by_seed_rules else self.step**self.options.length_penalty
        return candidate.path(candidate.trace.total / length)

    def _is_over(self, group: BeamGroup) -> bool:
        """Whether no running beam can, or by `early_stopping` is likely to, score higher than the ended ones."""
        options = self.options
        if not group.running:
            return True
        if len(group.finished) < group.size:
            return False
        if options.early_stopping is True:
            return True
        at_full_length = options.early_stopping == "never" and options.length_penalty > 0
        length: float = options.max_new_tokens if at_full_length else self.step
        best_possible: float = group.running[0].total / length**options.length_penalty
        return best_possible <= group.finished[-1].score

    def _may_end(self, beam: BeamPath) -> bool:
        return self.rules.may_end(beam.leaf.token_ids)

    def _finish(self) -> None:
        """At the end of the search, note the fate of the results, or the error if there are none."""
        if not self.results:
            self.error = RuledOutError(self.step - 1)
        for beam in self.results:
            if beam.trace is not None:
                beam.trace.fate = RETURNED


def beam_search(engine: Engine, searches: Sequence[BeamSearch]) -> Iterator[None]:
    """Run several searches side by side until all are over; a generator that yields after each level.

    Each level is one forward pass for all searches. At the end the first search's RuledOutError is raised, if any.
    """
    while pending := [(search, nodes) for search in searches if (nodes := search.pending_nodes)]:
        rows = engine.evaluate([node for _, nodes in pending for node in nodes])
        parts = torch.split(rows, [len(nodes) for _, nodes in pending])
        for (search, _), part in zip(pending, parts, strict=True):
            search.grow(part)
            if search.step % PRUNE_INTERVAL == 0:
                engine.free(search.head.tree.prune_new(search.head))
        yield
    for search in searches:
        if search.error is not None:
            raise search.error
