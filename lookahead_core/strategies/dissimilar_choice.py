"""The choice of k leaves among candidates: likely ones that are unlike each other, or unlike the first one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lookahead_core.strategies.branch_growth import BranchLeaf
from lookahead_core.strategies.row_similarity import Similarities


def worth(leaf: BranchLeaf, apart: int) -> float:
    """Return the log-probability of a leaf's first `apart` tokens, less what its later tokens fall short of.

    A later token falls short by the difference between the log-probability of the most probable token there and its
    own: nothing if it was chosen greedily.
    """
    short = (
        prediction.logprobs[0] - logprob
        for prediction, logprob in zip(leaf.predictions[apart:], leaf.logprobs[apart:], strict=True)
    )
    return math.fsum(leaf.logprobs[:apart]) - math.fsum(short)


class Candidates:
    """Candidate leaves, with how alike they are and how much each is worth beside others."""

    def __init__(self, leaves: Sequence[BranchLeaf], alike: Similarities) -> None:
        """`leaves` are one or more with different paths; `alike` has a row and a column for each, in their order."""
        self.count = len(leaves)
        self.alike = alike
        self._worths = [[worth(leaf, apart) for apart in range(len(leaf.token_ids) + 1)] for leaf in leaves]
        self._common = [[_common_length(one.token_ids, other.token_ids) for other in leaves] for one in leaves]

    def choose_diverse(self, k: int, contrast: float) -> list[int]:
        """Return the indices of at most k candidates, the first one first: each is the best of those that are left.

        The best one adds most to the worth of all chosen ones, less `contrast` times its likeness to the chosen one
        that it is most like. What it takes from the others counts: tokens that set them apart no longer. Of equally
        good ones the first is chosen.
        """
        chosen = [0]
        while len(chosen) < min(k, self.count):
            before = math.fsum(self._worths_beside(chosen))
            scores = {
                index: math.fsum(self._worths_beside([*chosen, index]))
                - before
                - contrast * self._closeness(index, chosen)
                for index in range(self.count)
                if index not in chosen
            }
            chosen.append(max(scores, key=lambda index: scores[index]))
        return chosen

    def choose_surprising(self, k: int, floor: float) -> list[int]:
        """Return the indices of at most k candidates: the first one, and others that are likely enough but unlike it.

        A candidate is likely enough if its worth beside the chosen ones, and the worth of each of them but the first
        beside it, is at least the logarithm of `floor`. Of these, each further one is least like the first one and the
        chosen one that it is most like: the mean of the two counts. Of equals the first is chosen.
        """
        chosen, least = [0], math.log(floor) if floor else -math.inf
        while len(chosen) < k:
            scores = {
                index: -(self.alike[index][0] + self._closeness(index, chosen)) / 2
                for index in range(self.count)
                if index not in chosen and min(self._worths_beside([*chosen, index])[1:]) >= least
            }
            if not scores:
                break
            chosen.append(max(scores, key=lambda index: scores[index]))
        return chosen

    def _closeness(self, index: int, chosen: Sequence[int]) -> float:
        """Return how much a candidate is like the chosen one that it is most like."""
        return max(self.alike[index][other] for other in chosen)

    def _worths_beside(self, chosen: Sequence[int]) -> list[float]:
        """Return the worth of each of these candidates by its shortest beginning that none of the others has."""
        worths = []
        for index in chosen:
            shared = max((self._common[index][other] for other in chosen if other != index), default=0)
            worths.append(self._worths[index][min(len(self._worths[index]) - 1, 1 + shared)])
        return worths


def _common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens two paths begin with in common."""
    size = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        size += 1
    return size
