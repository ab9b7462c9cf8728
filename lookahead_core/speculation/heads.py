"""Draft heads that predict several tokens ahead from one hidden state, after Medusa: loading, and the drafter.

A model's output matrix turns its last hidden state into logits of the next token. Head j transforms that hidden
state, so that the same matrix gives logits of the token j positions after the next one. Unlike Medusa's heads, it also
sees the embedding of the next token, which is known when a draft begins. The model itself is not changed.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import errors as hub
from huggingface_hub import hf_hub_download
from torch.nn import functional

from lookahead_core.engines.cpu.packed_matrix import PackedMatrix, packed, packs, product
from lookahead_core.engines.engine import NodeScores
from lookahead_core.engines.prediction_rows import top_k_sorted
from lookahead_core.errors import ModelError, is_caused_by
from lookahead_core.loading.from_transformers import hub_answers
from lookahead_core.model import Model, model_and_source
from lookahead_core.settings import Settings
from lookahead_core.speculation.drafters import Guess, decile
from lookahead_core.speculation.heads_file import TRAIN_HINT, Heads, check_heads, embed, output_matrix, read_heads
from lookahead_core.tree import Node

FILE = "heads.safetensors"
"""Name of the file that holds draft heads in a folder or a Hub repository."""
GUESSES = 6
"""Number of tokens that each head guesses."""
Source = str | os.PathLike[str]


def load_heads(source: Source | Model, model: Model | Source, *, settings: Settings | None = None) -> Heads:
    """Return the draft heads from a file, a folder, the name they were trained under, or a Hub id.

    Source and model may come in either order. A ModelError is raised if there are none or if
    they belong to another model.
    """
    model, source = model_and_source(source, model, "load_heads")
    if not isinstance(source, str | os.PathLike):
        raise ValueError(f"source is {source!r}, and must be a file, a folder, a name or a Hub id.")
    name = os.fspath(source)
    heads = read_heads(_locate(name, settings or Settings.from_env()), name)
    check_heads(heads, model)
    return heads


def home_of(name: str, settings: Settings) -> Path:
    """Return the folder for heads trained under a plain name; a ValueError is raised if it has slashes."""
    if not name or name in (".", "..") or set(name) & set("/\\:"):
        raise ValueError(
            f"name is {name!r}, and must be a plain name, without slashes; give a folder for any other place."
        )
    return settings.cache_dir.expanduser().absolute() / "heads" / name


def _locate(name: str, settings: Settings) -> Path:
    """Return the path of the heads' file, which is downloaded from the Hub if necessary."""
    path = Path(name).expanduser()
    candidates = [path, path / FILE]
    if not set(name) & set("/\\:") and name not in ("", ".", ".."):
        candidates.append(home_of(name, settings) / FILE)
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    if path.is_dir():
        raise ModelError(f"The folder {name} holds no {FILE}: give one that does, or {TRAIN_HINT}.")
    if name.count("/") == 1 and not name.startswith((".", "/", "~")) and path.suffix != ".safetensors":
        return _download(name, settings.hub_timeout)
    raise ModelError(f"There are no heads {name}, neither as {' nor as '.join(map(str, candidates))}: {TRAIN_HINT}.")


def _download(name: str, timeout: float) -> Path:
    """Return the path of the file from the Hub, or from the Hub's cache on this machine."""
    try:
        local_only = not hub_answers(name, None, timeout)
        return Path(hf_hub_download(name, FILE, local_files_only=local_only))
    except Exception as error:
        raise ModelError(_download_error(name, error)) from error


def _download_error(name: str, error: Exception) -> str:
    """Return the error message for a failed download."""
    if is_caused_by(error, hub.GatedRepoError):
        return f"{name} is gated: ask for access on its page on the Hub, then run `hf auth login`."
    if is_caused_by(error, hub.RepositoryNotFoundError):
        return f"There is no folder {name}, and the Hub shows none either: check the name, or {TRAIN_HINT}."
    if is_caused_by(error, hub.HFValidationError):
        return f"{name} is no file, no folder and no name on the Hub: check the spelling."
    if is_caused_by(error, hub.LocalEntryNotFoundError):
        return f"The heads {name} are not on this machine, and the Hub does not answer: connect once, or {TRAIN_HINT}."
    if is_caused_by(error, hub.EntryNotFoundError):
        return f"{name} on the Hub holds no {FILE}: give a repository that does, or {TRAIN_HINT}."
    return f"The heads {name} could not be fetched ({type(error).__name__}): try again, or {TRAIN_HINT}."


def transformed_states(
    states: torch.Tensor, embeddings: torch.Tensor, inward: torch.Tensor, biases: torch.Tensor, outward: torch.Tensor
) -> torch.Tensor:
    """Return the hidden states that the heads predict from, of shape (heads, rows, hidden size).

    Each row has a hidden state and the embedding of the token that followed it. `inward`, `biases` and `outward` are
    those of `Heads`.
    """
    inputs = _inputs(states, embeddings)
    inner = torch.baddbmm(biases[:, None], inputs.expand(len(inward), -1, -1), inward.transpose(1, 2))
    return states + _rms(states) * (functional.silu(inner) @ outward.transpose(1, 2))


def _inputs(states: torch.Tensor, embeddings: torch.Tensor) -> torch.Tensor:
    """Return the heads' inputs: both vectors normalised by RMS, whose size differs much between models."""
    return torch.cat([functional.rms_norm(part, part.shape[-1:]) for part in (states, embeddings)], -1)


def _rms(states: torch.Tensor) -> torch.Tensor:
    return states.float().pow(2).mean(-1, keepdim=True).sqrt().to(states.dtype)


class HeadsForward:
    """The forward pass of draft heads on one model: from hidden states to logits of the heads' vocabulary."""

    def __init__(self, heads: Heads, model: Model) -> None:
        matrix, bias = output_matrix(model)
        device = matrix.device
        # float16 is slow on processors.
        self.dtype = torch.float32 if (device.type, matrix.dtype) == ("cpu", torch.float16) else matrix.dtype
        # Heads may outlive a model.
        self._embeddings = weakref.ref(model.hf_model.get_input_embeddings())
        self.parameters = [part.to(device, self.dtype) for part in (heads.inward, heads.biases, heads.outward)]
        self.kept = heads.kept.to(device)
        self.matrix = matrix[self.kept].to(self.dtype)
        self.bias = None if bias is None else bias[self.kept].to(self.dtype)
        self._packed: tuple[PackedMatrix, PackedMatrix, PackedMatrix] | None = None
        if device.type == "cpu" and packs(self.dtype):
            inward, biases, outward = self.parameters
            self._packed = (
                packed(inward.flatten(0, 1), biases.flatten()),
                packed(outward.flatten(0, 1), None),
                packed(self.matrix, self.bias),
            )

    @torch.inference_mode()
    def __call__(self, states: torch.Tensor, token_ids: torch.Tensor, count: int | None = None) -> torch.Tensor:
        """Return logits of shape (heads, rows, kept tokens), in float32.

        Each row has a hidden state and the token that followed it. `count` limits the number of heads; None is all.
        """
        device = self.matrix.device
        layer = self._embeddings()
        assert layer is not None
        inputs = states.to(device, self.dtype), embed(layer, token_ids).to(device, self.dtype)
        if self._packed is None:
            transformed = transformed_states(*inputs, *(part[:count] for part in self.parameters))
            return functional.linear(transformed, self.matrix, self.bias).float()
        inward, outward, matrix = self._packed
        if len(states) == 1:
            transformed = _transformed_state(*inputs, inward, outward)[:count]
        else:
            transformed = transformed_states(*inputs, *(part[:count] for part in self.parameters))
        return product(matrix, transformed).float()


def _transformed_state(
    state: torch.Tensor, embedding: torch.Tensor, inward: PackedMatrix, outward: PackedMatrix
) -> torch.Tensor:
    """Return `transformed_states` of one row, with one product each for the inward and outward matrices of all heads.

    The outward product also computes each head with the others' matrices; only the diagonal is used.
    """
    inner = functional.silu(product(inward, _inputs(state, embedding))).view(-1, outward.matrix.shape[1])
    every_pair = product(outward, inner).view(len(inner), len(inner), -1)
    return (state + _rms(state) * every_pair.diagonal().t())[:, None]


class HeadsDrafter:
    """Guesses with trained draft heads. The state is a `HeadGuesses` and the number of the next head."""

    name = "heads"
    hidden = True
    guesses_are_valid = True
    dear = True

    def __init__(self, heads: Heads, model: Model) -> None:
        self.heads = heads
        check_heads(heads, model)
        if model.hf_model not in heads.prepared:
            heads.prepared[model.hf_model] = HeadsForward(heads, model)
        self._forward: HeadsForward = heads.prepared[model.hf_model]

    def read(self, token_ids: Sequence[int]) -> None:
        """Do nothing: heads use hidden states only."""

    def hear(self, path: Sequence[int], new: int, scores: NodeScores, nodes: Sequence[Node]) -> None:
        """Do nothing: heads are trained beforehand."""

    def start(self, path: Sequence[int], vector: torch.Tensor | None, reach: int) -> tuple[HeadGuesses, int] | None:
        """Return the guesses of as many heads as the draft is deep, and head 0; None without a hidden state."""
        if vector is None or reach < 1:
            return None
        return HeadGuesses(self._forward, vector, path[-1], min(reach, self.heads.count)), 0

    def ways(self, state: Any) -> Sequence[Guess]:
        """Return the guesses of the state's head."""
        guesses: HeadGuesses = state[0]
        return guesses.by_head[state[1]]

    def follow(self, state: Any, token_id: int) -> tuple[HeadGuesses, int] | None:
        """Return the next head, whose guesses do not depend on the token; None after the last head."""
        guesses, head = state
        return (guesses, head + 1) if head + 1 < guesses.count else None


class HeadGuesses:
    """The guesses of all heads from one hidden state, computed when they are first needed."""

    def __init__(self, forward: HeadsForward, state: torch.Tensor, token_id: int, count: int) -> None:
        self.count = count
        self._forward, self._state, self._token_id = forward, state, token_id

    @functools.cached_property
    def by_head(self) -> tuple[tuple[Guess, ...], ...]:
        """The guesses of each head, the most probable first."""
        scores = self._forward(self._state.reshape(1, -1), torch.tensor([self._token_id]), self.count)[:, 0]
        columns = top_k_sorted(scores, min(GUESSES, scores.shape[-1]))
        odds = scores.softmax(-1).gather(1, columns)
        token_ids = self._forward.kept[columns]
        return tuple(map(_guesses, range(self.count), token_ids.tolist(), odds.tolist()))


def _guesses(head: int, token_ids: list[int], odds: list[float]) -> tuple[Guess, ...]:
    return tuple(
        Guess(token_id, value, (head, min(rank, 3), decile(value)))
        for rank, (token_id, value) in enumerate(zip(token_ids, odds, strict=True))
    )
