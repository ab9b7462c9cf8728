"""The similarity of branches, which the page shows as rows: by shared words and by their hidden states."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import torch

Similarities = Sequence[Sequence[float]]
"""A symmetric table: the similarity of row i and row j, from 0 (nothing in common) to 1."""

WORDS_SHARE = 2 / 3
"""The weight of words in a similarity; hidden states have the rest. With equal weights the rows of mode "diverse"
share more words (`python -m benchmarks diversity`)."""


def row_similarities(words: Sequence[frozenset[Hashable]], vectors: torch.Tensor | None) -> Similarities:
    """Return the table of similarities: the mean of `shared_words` and `shared_directions`, weighted by `WORDS_SHARE`.

    `words` has the set of words of each row. `vectors` are their hidden states, of shape (rows, width); if None, only
    words count.
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
    """Return the Jaccard index of two sets: the share of all their words that both have; 1 if both are empty."""
    return len(one & other) / len(one | other) if one | other else 1.0


def shared_directions(vectors: torch.Tensor) -> list[list[float]]:
    """Return the table of cosines between centred vectors, negative ones as 0. `vectors` has the shape (rows, width).

    Centring subtracts the mean of all vectors: as all rows continue the same text, they have much in common.
    """
    centred = vectors - vectors.mean(0)
    directions = torch.nn.functional.normalize(centred, dim=1)
    cosines: list[list[float]] = (directions @ directions.T).clamp(0, 1).tolist()
    return cosines
