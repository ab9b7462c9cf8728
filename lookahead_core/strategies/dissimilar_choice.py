"""Choosing k leaves from candidates: likely ones that are unlike each other, or unlike the first one."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from lookahead_core.speculation.acceptance import matching_prefix_length
from lookahead_core.strategies.branch_growth import BranchLeaf
from lookahead_core.strategies.row_similarity import Similarities


def worth(leaf: BranchLeaf, apart: int) -> float:
    """Return the log-probability of a leaf's first `apart` tokens, minus the shortfall of each later token.

    The shortfall of a token is the log-probability of the most probable token in its stead, minus its own; 0 if the
    token was chosen greedily.
    """
    shortfalls = (
        prediction.logprobs[0] - logprob
        for prediction, logprob in zip(leaf.predictions[apart:], leaf.logprobs[apart:], strict=True)
    )
    return math.fsum(leaf.logprobs[:apart]) - math.fsum(shortfalls)


class Candidates:
    """Candidate leaves, with their similarities; chooses some of them by similarity and `worth`.

    The worth of a leaf beside others is that with `apart` as the length of its shortest prefix that none of them has.
    """

    def __init__(self, leaves: Sequence[BranchLeaf], similarities: Similarities) -> None:
        """`leaves` are one or more, with different paths; `similarities` has a row and a column for each, in order."""
        self.count = len(leaves)
        self.similarities = similarities
        self._worths = [[worth(leaf, apart) for apart in range(len(leaf.token_ids) + 1)] for leaf in leaves]
        self._common = [[matching_prefix_length(one.token_ids, other.token_ids) for other in leaves] for one in leaves]

    def choose_diverse(self, k: int, contrast: float) -> list[int]:
        """Return the indices of k candidates, or of all if there are fewer: the first one, then always the best left.

        The best one has the highest difference: what it adds to the summed worth of all chosen ones, minus `contrast`
        times its highest similarity to one of them. It may reduce the worth of earlier ones, as their shortest own
        prefixes become longer. Of equally good ones the first is chosen.
        """
        chosen = [0]
        while len(chosen) < min(k, self.count):
            before = math.fsum(self._worths_beside(chosen))
            scores = {
                index: math.fsum(self._worths_beside([*chosen, index]))
                - before
                - contrast * self._highest_similarity(index, chosen)
                for index in range(self.count)
                if index not in chosen
            }
            chosen.append(max(scores, key=lambda index: scores[index]))
        return chosen

    def choose_surprising(self, k: int, floor: float, expected: Collection[int]) -> list[int]:
        """Return the indices of at most k candidates: the first one, and others that are likely enough but unlike it.

        A candidate is likely enough if with it the worth of all chosen ones but the first is at least log(`floor`). The
        next one is that of lowest similarity among these: the mean of its similarity to the first one and its highest
        similarity to a chosen one. Candidates whose index is in `expected` are chosen only if there is no other. Of
        equals the first is chosen.
        """
        chosen, least = [0], math.log(floor) if floor else -math.inf
        while len(chosen) < k:
            scores = {
                index: (
                    index not in expected,
                    -(self.similarities[index][0] + self._highest_similarity(index, chosen)) / 2,
                )
                for index in range(self.count)
                if index not in chosen and min(self._worths_beside([*chosen, index])[1:]) >= least
            }
            if not scores:
                break
            chosen.append(max(scores, key=lambda index: scores[index]))
        return chosen

    def _highest_similarity(self, index: int, chosen: Sequence[int]) -> float:
        """Return the highest similarity of a candidate to one of the chosen ones."""
        return max(self.similarities[index][other] for other in chosen)

    def _worths_beside(self, chosen: Sequence[int]) -> list[float]:
        """Return the worth of each of these candidates beside the others of them."""
        worths = []
        for index in chosen:
            shared = max((self._common[index][other] for other in chosen if other != index), default=0)
            worths.append(self._worths[index][min(len(self._worths[index]) - 1, 1 + shared)])
        return worths
