"""The training data of draft heads: hidden states, and the tokens that followed. A part is held out for evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from lookahead_core.speculation.heads_forward import HeadsForward

HOLD_OUT_INTERVAL = 12
"""Every this many prompts, one is held out, with all texts that continue it."""
EVALUATION_BATCH = 256
"""Maximum number of rows evaluated at once."""
NO_TOKEN = -1
"""Instead of an id: the text has ended there. Instead of an index: the token is not in the heads' vocabulary."""


@dataclass(frozen=True)
class HeadDataset:
    """Training rows for heads, and held-out rows to measure them. Each row is one token of a text.

    `TrainingRun` makes it with `from_rounds`, for `HeadTrainer` and `accuracy`. From a row, heads learn the most
    probable tokens at the positions after it, with the model's probabilities: more than the one token sampled there.
    """

    kept: torch.Tensor
    """The heads' vocabulary: token ids, ascending, of shape (tokens,)."""
    hidden_states: torch.Tensor
    """Of shape (rows, hidden size): the hidden state that the row's token was sampled from."""
    next_ids: torch.Tensor
    """Of shape (rows,): the id of the row's token."""
    targets: torch.Tensor
    """Of shape (rows, heads, candidates): the model's most probable tokens where the head's token was sampled, as
    indices into `kept`; NO_TOKEN for tokens outside `kept` and after the end of the text."""
    target_probabilities: torch.Tensor
    """Of the same shape: their probabilities, normalised over the candidates in `kept`; 0 for NO_TOKEN."""
    held_out_states: torch.Tensor
    """As `hidden_states`, for the held-out rows."""
    held_out_next_ids: torch.Tensor
    """As `next_ids`, for the held-out rows."""
    held_out_target_ids: torch.Tensor
    """Of shape (held-out rows, heads): the ids of the sampled tokens, also those outside `kept`; NO_TOKEN after the
    end of the text."""

    @classmethod
    def from_rounds(cls, rounds: Sequence[dict[str, Any]], heads: int, kept_tokens: int) -> HeadDataset:
        """Return the dataset made of rounds of texts, as `TrainingRun.write_rounds` returns them; on the CPU.

        `heads` is the number of heads, `kept_tokens` the maximum size of their vocabulary, which is the most frequent
        tokens of the texts that are not held out. Rows are in the order of the texts. If there is no text, all tensors
        have shape (0,).
        """
        rounds = [each for each in rounds if each["lengths"]]
        if not rounds:
            return cls(*(torch.empty(0),) * 8)
        hidden_states = torch.cat([each["vectors"] for each in rounds])
        target_ids, held_out = _later_ids(rounds, heads)
        next_ids = torch.cat([each["token_ids"] for each in rounds])
        kept = _most_frequent(next_ids[~held_out], kept_tokens)
        candidate_ids, probabilities = _later_candidates(rounds, heads)
        targets = indices_among(candidate_ids[~held_out], kept)
        probabilities = probabilities[~held_out].masked_fill_(targets == NO_TOKEN, 0)
        probabilities /= probabilities.sum(-1, keepdim=True).clamp_min(torch.finfo(probabilities.dtype).tiny)
        return cls(
            kept,
            hidden_states[~held_out],
            next_ids[~held_out],
            targets,
            probabilities,
            hidden_states[held_out],
            next_ids[held_out],
            target_ids[held_out],
        )


def _later_ids(rounds: Sequence[dict[str, Any]], heads: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the ids 1, 2, … `heads` positions after each token, (tokens, heads), and whether each token is held out.

    The ids are NO_TOKEN after the end of the token's text. The second tensor is boolean, of shape (tokens,): True if
    the number of the token's prompt is a multiple of HOLD_OUT_INTERVAL. `rounds` are as for `_later_candidates`.
    """
    rows, held_out = [], []
    for each in rounds:
        for ids, start in zip(torch.split(each["token_ids"], each["lengths"]), each["starts"], strict=True):
            padded = functional.pad(ids, (0, heads), value=NO_TOKEN)
            rows.append(padded.unfold(0, heads, 1)[1:])
            held_out.append(torch.full((len(ids),), start % HOLD_OUT_INTERVAL == 0))
    return torch.cat(rows), torch.cat(held_out)


def _later_candidates(rounds: Sequence[dict[str, Any]], heads: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the model's most probable ids 1, 2, … `heads` positions after each token, and their probabilities.

    Both have shape (tokens, heads, candidates), candidates by falling probability; both are NO_TOKEN (-1) after the end
    of the token's text. `rounds` are as `_as_tensors` returns them, at least one, none without texts.
    """
    found: dict[str, list[torch.Tensor]] = {"thought_ids": [], "thought_odds": []}
    for each in rounds:
        for name, rows in found.items():
            for part in torch.split(each[name], each["lengths"]):
                padded = functional.pad(part, (0, 0, 0, heads), value=NO_TOKEN)
                rows.append(padded.unfold(0, heads, 1)[1:].transpose(1, 2))
    return torch.cat(found["thought_ids"]), torch.cat(found["thought_odds"])


def _most_frequent(token_ids: torch.Tensor, count: int) -> torch.Tensor:
    """Return the `count` most frequent ids, or all that occur if there are fewer, in ascending order of id.

    `token_ids` and the result are one-dimensional. Of equally frequent ids, the smaller ones are taken.
    """
    counts = torch.bincount(token_ids)
    order = counts.argsort(descending=True, stable=True)[:count]
    return order[counts[order] > 0].sort().values


def indices_among(token_ids: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    """Return for each id its index in `kept`, in the shape of `token_ids`; NO_TOKEN (-1) for ids that are not there.

    `kept` has shape (tokens,), and is ascending and not empty.
    """
    indices = torch.searchsorted(kept, token_ids).clamp_max(len(kept) - 1)
    return torch.where(kept[indices] == token_ids, indices, NO_TOKEN)


def accuracy(forward: HeadsForward, dataset: HeadDataset) -> list[tuple[float, float]]:
    """Return for each head a pair: the share of held-out tokens that its first guess hits, and that its first four do.

    Shares are from 0 to 1. A guess hits if it is the token that was sampled; tokens outside the heads' vocabulary count
    and are never hit, positions after the end of a text do not count. A head without any held-out token gets shares of
    0. `forward` are the heads to measure, as many as the dataset was made for; the dataset must not be empty.
    """
    right = torch.zeros(dataset.held_out_target_ids.shape[1], 2)
    kept = forward.kept.cpu()
    tensors = (dataset.held_out_states, dataset.held_out_next_ids, dataset.held_out_target_ids)
    batches = zip(*(torch.split(tensor, EVALUATION_BATCH) for tensor in tensors), strict=True)
    for hidden_states, next_ids, target_ids in batches:
        scores = forward(hidden_states, next_ids)
        guesses = kept[scores.topk(min(4, scores.shape[-1])).indices.cpu()]
        hits = guesses == target_ids.t()[:, :, None]
        right += torch.stack([hits[..., 0].sum(1), hits.any(-1).sum(1)], 1)
    total = (dataset.held_out_target_ids != NO_TOKEN).sum(0).clamp_min(1)
    return [(first, four) for first, four in (right / total[:, None]).tolist()]
