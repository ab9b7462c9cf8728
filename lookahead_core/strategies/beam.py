"""Beam search: the likeliest paths side by side, all in one pass a level, those that ended kept aside.

Two sets of rules for what counts and when it is over: those of transformers, scores and all, and those of seed
notebooks, which add up log-probabilities and stop when enough sequences have ended.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch

from lookahead_core.engines.engine import Engine
from lookahead_core.strategies.branch_growth import BranchLeaf
from lookahead_core.strategies.rules import LogitRules, ModelRules, RuledOutError
from lookahead_core.tree import Node
from lookahead_core.validation import check_choice, check_integer, check_number

SHED_EVERY = 16
"""After so many levels the slots of beams that have died are given back."""
GREW, RETURNED = "grew", "returned"
OUTSCORED, OVERTAKEN = "outscored", "overtaken"
ENDED_LOW, ENDED_OUT, UNFINISHED = "ended too low", "ended, outscored", "unfinished"
FATES = {
    GREW: "it went on",
    RETURNED: "it is one of the results",
    OUTSCORED: "better continuations took its place at once",
    OVERTAKEN: "it grew, and none of its continuations was good enough",
    ENDED_LOW: "it ended, and others were better at that moment",
    ENDED_OUT: "it ended, and other results were better",
    UNFINISHED: "the search was over before it ended",
}
"""What became of each path that a search looked at."""


@dataclass(frozen=True)
class BeamOptions(LogitRules):
    """What may be asked of a beam search; see `document.beam_search`."""

    num_beams: int = 5
    """How many paths grow side by side, 1 to 100."""
    num_return_sequences: int | None = None
    """How many of them to return; left out, all."""
    length_penalty: float = 1.0
    """A score is the sum of log-probabilities over the length to this power; 0 is the plain sum."""
    early_stopping: bool | Literal["never"] = False
    """True: over when enough have ended; False: when none that grows looks better; "never": when none can become so."""
    num_beam_groups: int = 1
    """Groups that search one after the other at each level, each kept away from what those before it took."""
    diversity_penalty: float = 0.0
    """What a token's score loses for each beam of an earlier group that took it at the same level."""
    stopping: Literal["transformers", "seed"] = "transformers"
    """Whose rules: "transformers", or "seed"."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("num_beams", self.num_beams, 1, 100)
        if self.num_return_sequences is not None:
            check_integer("num_return_sequences", self.num_return_sequences, 1, 100)
        if self.returned > self.num_beams:
            raise ValueError(
                f"num_return_sequences is {self.returned}, and there are only {self.num_beams} beams; raise num_beams."
            )
        check_number("length_penalty", self.length_penalty, -10, 10)
        check_choice("early_stopping", self.early_stopping, (False, True, "never"))
        check_choice("stopping", self.stopping, ("transformers", "seed"))
        check_integer("num_beam_groups", self.num_beam_groups, 1, self.num_beams)
        check_number("diversity_penalty", self.diversity_penalty, 0, 1000)
        if self.num_beams % self.num_beam_groups:
            raise ValueError(
                f"num_beam_groups is {self.num_beam_groups}, and {self.num_beams} beams cannot be shared out evenly."
            )
        if self.diversity_penalty and self.num_beam_groups == 1:
            raise ValueError("diversity_penalty keeps groups apart, and there is one; raise num_beam_groups.")
        if self.num_beam_groups > 1 and not self.diversity_penalty:
            raise ValueError(
                f"num_beam_groups is {self.num_beam_groups}, and all would find the same; raise diversity_penalty."
            )
        if self.stopping == "seed" and (self.length_penalty != 1 or self.early_stopping or self.num_beam_groups > 1):
            raise ValueError(
                'stopping="seed" adds up log-probabilities and ends when enough sequences have ended; it takes no '
                "length_penalty, early_stopping or num_beam_groups."
            )

    @property
    def returned(self) -> int:
        return self.num_beams if self.num_return_sequences is None else self.num_return_sequences


@dataclass(eq=False, slots=True)
class BeamTrace:
    """A path that the search looked at: its last token, the sum so far, and what became of it."""

    parent: BeamTrace | None
    token_id: int
    logprob: float
    total: float
    step: int
    fate: str = OUTSCORED


@dataclass(frozen=True, slots=True)
class BeamPath:
    """A beam: its leaf, the sum of its scores, and the score that it has if it ends here."""

    leaf: BranchLeaf
    total: float
    score: float
    trace: BeamTrace | None


@dataclass(frozen=True, slots=True)
class BeamCandidate:
    """A way for a beam to go on; a path of its own only if it is chosen."""

    beam: BeamPath
    trace: BeamTrace

    def path(self, score: float) -> BeamPath:
        said = self.beam.leaf.node.prediction
        assert said is not None
        leaf = self.beam.leaf.then(self.trace.token_id, self.trace.logprob, said)
        return BeamPath(leaf, self.trace.total, score, self.trace)


@dataclass(slots=True)
class BeamGroup:
    """Beams that compete with each other only."""

    size: int
    running: list[BeamPath]
    finished: list[BeamPath] = field(default_factory=list)
    over: bool = False


class BeamSearch:
    """One search below a head. It is fed with the rows of its beams, level by level."""

    def __init__(self, head: Node, options: BeamOptions, ruling: ModelRules) -> None:
        self.head = head
        self.options = options
        self.ruling = ruling
        self.step = 0
        self.traces: list[BeamTrace] = []
        self.error: RuledOutError | None = None
        """Why nothing was found, where the options rule everything out."""
        self._before = head.tree.token_ids(head)
        size = options.num_beams // options.num_beam_groups
        root = BeamPath(BranchLeaf(head, (), ()), 0.0, 0.0, None)
        self.groups = [BeamGroup(size, [root]) for _ in range(options.num_beam_groups)]
        head.tree.growers.add(self)

    @property
    def waiting(self) -> list[Node]:
        """The nodes whose rows are needed next; none where the search is over."""
        return list(dict.fromkeys(beam.leaf.node for group in self._growing for beam in group.running))

    @property
    def frontier(self) -> list[Node]:
        """The ends of all paths that grow, or have ended well enough; while the search goes on."""
        if not self._growing:
            return []
        return [beam.leaf.node for group in self.groups for beam in (*group.running, *group.finished)]

    def snapshot(self) -> list[tuple[BeamTrace, str]]:
        """All paths that were looked at, each with what has become of it so far."""
        return [(trace, trace.fate) for trace in self.traces]

    @property
    def results(self) -> list[BeamPath]:
        """The best so far, best first: those that ended; where they are too few, those that grow as well."""
        found = [beam for group in self.groups for beam in group.finished]
        if self.options.stopping == "seed":
            found = found[: self.options.returned]
        if len(found) < self.options.returned:
            growing = [beam for group in self.groups for beam in group.running]
            found += sorted(growing, key=lambda beam: -beam.score)[: self.options.returned - len(found)]
        return sorted(found, key=lambda beam: -beam.score)[: self.options.returned]

    @property
    def _growing(self) -> list[BeamGroup]:
        return [group for group in self.groups if not group.over and group.running]

    def take(self, rows: torch.Tensor) -> None:
        """One level further, from the rows of the nodes that were waited for."""
        by_node = dict(zip(self.waiting, rows, strict=True))
        self.step += 1
        taken: list[int] = []
        for group in self._growing:
            some = torch.stack([by_node[beam.leaf.node] for beam in group.running])
            self._grow(group, some, taken)
            taken += [beam.leaf.token_ids[-1] for beam in group.running]
        if not self._growing:
            self._close()

    def _grow(self, group: BeamGroup, rows: torch.Tensor, taken: Sequence[int]) -> None:
        """The next level of a group: its best candidates that have not ended go on."""
        spare = 1 if self._seeds else max(2, 1 + len(self.ruling.stop))
        candidates = self._candidates(group, rows, taken, spare * group.size)
        if not candidates:
            # Nothing may follow any of them: those that might end here are complete as they are.
            group.finished += [beam for beam in group.running if beam.trace and self._may_end(beam)]
            group.running, group.over = [], True
            return
        last = self.step == self.options.max_new_tokens
        hits = [self._hits(candidate, last) for candidate in candidates]
        ended = [one for one, hit in zip(candidates[: group.size], hits, strict=False) if hit]
        grown = [one for one, hit in zip(candidates, hits, strict=True) if not hit][: group.size]
        self._note_fates(group, candidates, ended, grown)
        group.finished += map(self._path, ended)
        group.running = [self._path(one) for one in grown]
        if self._seeds:
            group.over = last or len(group.finished) >= self.options.returned
        else:
            group.finished = heapq.nlargest(group.size, group.finished, key=lambda beam: beam.score)
            group.over = last or self._is_over(group)

    @property
    def _seeds(self) -> bool:
        return self.options.stopping == "seed"

    def _hits(self, candidate: BeamCandidate, last: bool) -> bool:
        """Whether a candidate is complete: it ends; or, as transformers counts, it has reached the length."""
        return candidate.trace.token_id in self.ruling.stop or (last and not self._seeds)

    def _note_fates(
        self, group: BeamGroup, candidates: list[BeamCandidate], ended: list[BeamCandidate], grown: list[BeamCandidate]
    ) -> None:
        for one in candidates:
            if one.trace.token_id in self.ruling.stop:
                one.trace.fate = ENDED_LOW
        for one in ended:
            one.trace.fate = ENDED_OUT if one.trace.token_id in self.ruling.stop else UNFINISHED
        for one in grown:
            one.trace.fate = UNFINISHED
        alive = {id(one.beam.trace) for one in (*ended, *grown)}
        for beam in group.running:
            if beam.trace is not None:
                beam.trace.fate = GREW if id(beam.trace) in alive else OVERTAKEN

    def _candidates(
        self, group: BeamGroup, rows: torch.Tensor, taken: Sequence[int], count: int
    ) -> list[BeamCandidate]:
        """The likeliest ways to go on from all beams of a group together, best first."""
        scores = self._ruled(group, rows)
        if taken and self.options.diversity_penalty:
            counts = torch.bincount(torch.tensor(taken), minlength=scores.shape[-1]).to(scores)
            scores = scores - self.options.diversity_penalty * counts
        sums = torch.tensor([beam.total for beam in group.running], dtype=scores.dtype, device=scores.device)
        # Row by row first: that is shared out among processors, and no more of a row than this can be among the best.
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

    def _ruled(self, group: BeamGroup, rows: torch.Tensor) -> torch.Tensor:
        """The log-probabilities with the rules applied; they are not made to add up to one again."""
        if self.ruling.bare:
            return rows
        paths = [[*self._before, *beam.leaf.token_ids] for beam in group.running]
        ruled = [self.ruling.apply(row, path, self.step - 1) for row, path in zip(rows, paths, strict=True)]
        return torch.stack(ruled)

    def _path(self, candidate: BeamCandidate) -> BeamPath:
        length = 1 if self._seeds else self.step**self.options.length_penalty
        return candidate.path(candidate.trace.total / length)

    def _is_over(self, group: BeamGroup) -> bool:
        """Whether nothing that grows can, or is likely to, become better than what has ended."""
        options = self.options
        if not group.running:
            return True
        if len(group.finished) < group.size:
            return False
        if options.early_stopping is True:
            return True
        longest = options.early_stopping == "never" and options.length_penalty > 0
        length = options.max_new_tokens if longest else self.step
        return group.running[0].total / length**options.length_penalty <= group.finished[-1].score

    def _may_end(self, beam: BeamPath) -> bool:
        return self.ruling.may_end(beam.leaf.token_ids)

    def _close(self) -> None:
        if not self.results:
            self.error = RuledOutError(self.step - 1)
        for beam in self.results:
            if beam.trace is not None:
                beam.trace.fate = RETURNED


def beam_search(engine: Engine, searches: Sequence[BeamSearch]) -> Iterator[None]:
    """All searches one level further, in one pass, until they are over."""
    while waiting := [(search, nodes) for search in searches if (nodes := search.waiting)]:
        rows = engine.evaluate([node for _, nodes in waiting for node in nodes])
        shares = rows.split([len(nodes) for _, nodes in waiting])
        for (search, _), share in zip(waiting, shares, strict=True):
            search.take(share)
            if search.step % SHED_EVERY == 0:
                engine.free(search.head.tree.prune_new(search.head))
        yield
    for search in searches:
        if search.error is not None:
            raise search.error
