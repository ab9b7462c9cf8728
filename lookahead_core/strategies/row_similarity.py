"""How alike rows are: by the words that they share, and by the direction of their hidden states."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch

Similarities = Sequence[Sequence[float]]
"""A symmetric table: how alike row i and row j are, from 0 (nothing in common) to 1."""


WORDS_SHARE = 2 / 3
"""The share of words in a similarity; the rest is that of directions. With equal shares the rows of mode "diverse"
share more words (`python -m benchmarks diversity`)."""


def row_similarities(words: Sequence[frozenset[Hashable]], vectors: torch.Tensor | None) -> Similarities:
    """Return how alike rows are: the mean of `shared_words` and `shared_directions`, with `WORDS_SHARE` as the weight.

    `words` has the set of words of each row. `vectors` has the shape (rows, width); without it only words count.
    """
    by_words = [[shared_words(one, other) for other in words] for one in words]
    if vectors is None:
        return by_words
    by_vectors = shared_directions(vectors)
    return [
        [WORDS_SHARE * word + (1 - WORDS_SHARE) * vector for word, vector in zip(*pair, strict=True)]
        for pair in zip(by_words, by_vectors, strict=True)
    ]


def shared_words(one: frozenset[Hashable], other: frozenset[Hashable]) -> float:
    """Return which share of the words of two rows both have, 0 to 1; 1 if neither has any."""
    return len(one & other) / len(one | other) if one | other else 1.0


def shared_directions(vectors: torch.Tensor) -> list[list[float]]:
    """Return the cosine of each two vectors, 0 where it is negative, after their mean was subtracted from all.

    All rows continue the same text, so their vectors have much in common; only what sets them apart counts. `vectors`
    has the shape (rows, width).
    """
    centred = vectors - vectors.mean(0)
    directions = torch.nn.functional.normalize(centred, dim=1)
    cosines: list[list[float]] = (directions @ directions.T).clamp(0, 1).tolist()
    return cosines
