"""Beam search: all running beams are evaluated in one forward pass per level; ended beams are kept aside.

Two sets of rules score beams and stop the search. Those of transformers equal its `generate`, scores included. Those of
the prototype notebooks (`stopping="seed"`) add up log-probabilities, and stop when enough sequences have ended.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from lookahead_core.engines.engine import Engine, evaluate_top
from lookahead_core.strategies.beam_options import BeamOptions
from lookahead_core.strategies.branch_growth import BranchLeaf
from lookahead_core.strategies.rules import ModelRules, RuledOutError
from lookahead_core.tree import Node

PRUNE_INTERVAL = 16
"""Every this many levels, the nodes of abandoned beams are removed and their cache slots freed."""
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
"""The values of `BeamTrace.fate`, each with the sentence that explains it to users."""


@dataclass(eq=False, slots=True)
class BeamTrace:
    """A path that the search considered, with its score so far and its fate; linked to the path before its last token.

    `BeamSearch.traces` holds all of them, for reports. The search changes `fate` only.
    """

    parent: BeamTrace | None
    """The path without its last token; None if that is the first token."""
    token_id: int
    """The last token."""
    logprob: float
    """The log-probability that the model gives the last token, without rules and penalties."""
    total: float
    """The sum of the path's token scores: log-probabilities with the rules and penalties applied."""
    step: int
    """The level of the last token, from 1."""
    fate: str = OUTSCORED
    """One of the keys of `FATES`; it may change until the search is over."""


@dataclass(frozen=True, slots=True)
class BeamPath:
    """A beam: a path below the node where the search begins, with its scores."""

    leaf: BranchLeaf
    total: float
    """The sum of its token scores, as in `BeamTrace`."""
    score: float
    """The score that beams are ranked by: the total, with the length penalty applied by the rules of transformers."""
    trace: BeamTrace | None
    """None for the root of the search."""


@dataclass(frozen=True, slots=True)
class BeamCandidate:
    """A beam and one token that could follow it. Of the candidates of a level, the search keeps the best.

    Its node is created in the token tree by `path` only.
    """

    beam: BeamPath
    """The beam before the extension."""
    trace: BeamTrace
    """The extended path."""

    def path(self, score: float) -> BeamPath:
        """Return the extended beam with this score; its node is added to the token tree.

        The node of the beam before must have its prediction.
        """
        prediction = self.beam.leaf.node.prediction
        assert prediction is not None
        leaf = self.beam.leaf.extended(self.trace.token_id, self.trace.logprob, prediction)
        return BeamPath(leaf, self.trace.total, score, self.trace)


@dataclass(slots=True)
class BeamGroup:
    """A group of a beam search: its running and ended beams.

    A beam competes with those of its own group only, until the results are chosen from all groups together.
    """

    size: int
    """Maximum number of running beams."""
    running: list[BeamPath]
    """The beams that can still grow, best first."""
    finished: list[BeamPath] = field(default_factory=list)
    """The ended beams. With `stopping="seed"`, all of them, in the order in which they ended. Else the best `size`,
    best first; if no token may follow any running beam, the running beams that may end there come after these."""
    over: bool = False
    """Whether the group has stopped; its running beams then grow no more."""


class BeamSearch:
    """The state of one beam search below the node `head`, the end of the prompt, which must not be the root.

    The function `beam_search` evaluates `pending_nodes` and calls `grow` once for each level. The object registers as a
    grower of the tree, so that the nodes of its beams are not pruned while the search runs.
    """

    def __init__(self, head: Node, options: BeamOptions, rules: ModelRules) -> None:
        self.head = head
        self.options = options
        self.rules = rules
        self.step = 0
        """Number of levels grown."""
        self.traces: list[BeamTrace] = []
        """All paths considered so far."""
        self.error: RuledOutError | None = None
        """Set if the search is over without a result because the options exclude every token; else None."""
        self._prompt_ids = head.tree.token_ids(head)
        size = options.num_beams // options.num_beam_groups
        root = BeamPath(BranchLeaf(head, (), ()), 0.0, 0.0, None)
        self.groups = [BeamGroup(size, [root]) for _ in range(options.num_beam_groups)]
        head.tree.growers.add(self)

    @property
    def pending_nodes(self) -> list[Node]:
        """The nodes of the running beams of all groups that have not stopped, each once; empty if the search is over.

        They have to be evaluated for the next level.
        """
        return list(dict.fromkeys(beam.leaf.node for group in self._growing_groups for beam in group.running))

    @property
    def frontier(self) -> list[Node]:
        """The last nodes of all running and ended beams, whose paths the tree must keep; none once the search is over.

        A node may occur several times.
        """
        if not self._growing_groups:
            return []
        return [beam.leaf.node for group in self.groups for beam in (*group.running, *group.finished)]

    def snapshot(self) -> list[tuple[BeamTrace, str]]:
        """Return all paths considered so far, in order, as (trace, fate) pairs with the fates that they have now."""
        return [(trace, trace.fate) for trace in self.traces]

    @property
    def results(self) -> list[BeamPath]:
        """The beams to return at present, highest score first, at most as many as the options request.

        They are the best ended beams (with `stopping="seed"` those that ended first), and if there are too few of these
        also the best running ones. Before the first level they are beams without tokens.
        """
        found = [beam for group in self.groups for beam in group.finished]
        if self._by_seed_rules:
            found = found[: self.options.returned]
        if len(found) < self.options.returned:
            running = [beam for group in self.groups for beam in group.running]
            found += sorted(running, key=lambda beam: -beam.score)[: self.options.returned - len(found)]
        return sorted(found, key=lambda beam: -beam.score)[: self.options.returned]

    @property
    def tokens_read(self) -> int | None:
        """How many of the highest log-probabilities after a node `grow` reads at most; None if it may read any.

        Rules may change the order of tokens. A diversity penalty lowers at most one token for each beam.
        """
        if not self.rules.changes_nothing:
            return None
        penalised = self.options.num_beams if self.options.diversity_penalty else 0
        return max(self._candidate_count(group) for group in self.groups) + penalised

    def _candidate_count(self, group: BeamGroup) -> int:
        """Return how many candidates of a level a group looks at."""
        return group.size * (1 if self._by_seed_rules else max(2, 1 + len(self.rules.end_token_ids)))

    @property
    def _growing_groups(self) -> list[BeamGroup]:
        """The groups that have not stopped and have running beams."""
        return [group for group in self.groups if not group.over and group.running]

    def grow(self, rows: torch.Tensor) -> None:
        """Extend all groups that have not stopped by one level, from the log-probabilities after `pending_nodes`.

        `rows` has the shape (pending nodes, vocabulary), in the order of `pending_nodes`. These nodes must have their
        predictions, and there must be at least one. If the search is then over, the results get the fate RETURNED;
        without results, `error` is set.
        """
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
        """Grow a group by one level: replace its running beams, add those that end to `finished`, and set `over`.

        `rows` are the log-probabilities after the running beams, in their order; `chosen_before` are the last token ids
        of the running beams that earlier groups have now, with repetitions. If no token may follow any beam, the group
        is over, and those beams that may end without a further token are added to `finished`.
        """
        candidates = self._candidates(group, rows, chosen_before, self._candidate_count(group))
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
        """Whether the prototype notebooks' rules apply (`stopping="seed"`), instead of those of transformers."""
        return self.options.stopping == "seed"

    def _completes(self, candidate: BeamCandidate, is_last: bool) -> bool:
        """Whether a candidate ends here: with an end token, or, except by the seed's rules, at the last level.

        `is_last` tells that the level is the last one that `max_new_tokens` allows.
        """
        return candidate.trace.token_id in self.rules.end_token_ids or (is_last and not self._by_seed_rules)

    def _note_fates(
        self, group: BeamGroup, candidates: list[BeamCandidate], ended: list[BeamCandidate], grown: list[BeamCandidate]
    ) -> None:
        """Set the fates of a level's candidates, and of the beams that they extend; later levels may change them.

        `ended` and `grown` are the candidates that the group keeps, as ended and as running beams. `group.running` must
        still be the beams before this level.
        """
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
        """Return the best extensions of a group's running beams, all in one list, and add their traces to `traces`.

        They are sorted by `total`, highest first, at most `count`, without excluded tokens. `rows` are the
        log-probabilities after the running beams, of shape (running beams, vocabulary). The diversity penalty is
        subtracted for each time that a token is in `chosen_before`: the tokens that earlier groups took at this level.
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
        """Return `rows`, the log-probabilities after a group's running beams, with the model rules applied to each.

        The shape stays (running beams, vocabulary). Excluded tokens have -inf, and nothing is renormalised.
        """
        if self.rules.changes_nothing:
            return rows
        paths = [[*self._prompt_ids, *beam.leaf.token_ids] for beam in group.running]
        ruled = [self.rules.apply(row, path, self.step - 1) for row, path in zip(rows, paths, strict=True)]
        return torch.stack(ruled)

    def _scored_path(self, candidate: BeamCandidate) -> BeamPath:
        """Return the extended beam with its score; its node is added to the token tree.

        By the seed's rules the score is the total. By those of transformers it is the total divided by the number of
        levels grown, this one included, to the power of `length_penalty`.
        """
        length = 1 if self._by_seed_rules else self.step**self.options.length_penalty
        return candidate.path(candidate.trace.total / length)

    def _is_over(self, group: BeamGroup) -> bool:
        """Whether a group stops by the rules of transformers, before the last level.

        It stops if no beam runs. It also stops if `size` beams have ended, and either `early_stopping` is True or the
        best running beam scores no higher than the worst ended beam. The running beam is scored at its present length;
        with "never" and a positive `length_penalty`, as if it had `max_new_tokens`.
        """
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
        """Whether a beam may end without a further token: it has `min_new_tokens` or more, and all forced phrases."""
        return self.rules.may_end(beam.leaf.token_ids)

    def _finish(self) -> None:
        """At the end of the search, set the fate of each result to RETURNED; set `error` if there are no results."""
        if not self.results:
            self.error = RuledOutError(self.step - 1)
        for beam in self.results:
            if beam.trace is not None:
                beam.trace.fate = RETURNED


def beam_search(engine: Engine, searches: Sequence[BeamSearch]) -> Iterator[None]:
    """Run several searches side by side until all are over; a generator that yields None after each level.

    Each level is one `Engine.evaluate` for all searches that are not over, with its CacheFull. `BeamSearch.results` has
    the results. A search whose options exclude every token does not stop the others: when all are over, the first
    `BeamSearch.error`, in the order of `searches`, is raised.
    """
    while pending := [(search, nodes) for search in searches if (nodes := search.pending_nodes)]:
        counts = [search.tokens_read for search, _ in pending]
        most = None if None in counts else max(count for count in counts if count is not None)
        rows = evaluate_top(engine, [node for _, nodes in pending for node in nodes], most)
        parts = torch.split(rows, [len(nodes) for _, nodes in pending])
        for (search, _), part in zip(pending, parts, strict=True):
            search.grow(part)
            if search.step % PRUNE_INTERVAL == 0:
                engine.free(search.head.tree.prune_new(search.head))
        yield
    for search in searches:
        if search.error is not None:
            raise search.error
