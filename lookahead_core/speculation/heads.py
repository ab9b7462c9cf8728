"""Heads that guess several tokens ahead from one vector, after Medusa: where they are found, and the drafter.

A model's output matrix turns a vector into odds for the next token. Head j bends that vector, so that the same matrix
gives odds for the token j places after that one. It also sees which token that one has become, as Medusa's do not:
that is known when a draft begins, and worth much. Nothing of the model is trained or changed.
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
from lookahead_core.speculation.heads_file import TRAIN, Heads, check_heads, looked_up, output_matrix, read_heads
from lookahead_core.tree import Node

FILE = "heads.safetensors"
GUESSES = 6
"""How many tokens each head guesses."""
Source = str | os.PathLike[str]


def load_heads(source: Source | Model, model: Model | Source, *, settings: Settings | None = None) -> Heads:
    """Heads of this model: by file, by folder, by the name that they were trained under, or by Hub id.

    Source and model may come in either order.
    """
    model, source = model_and_source(source, model, "load_heads")
    if not isinstance(source, str | os.PathLike):
        raise ValueError(f"source is {source!r}, and must be a file, a folder, a name or a Hub id.")
    name = os.fspath(source)
    heads = read_heads(_found(name, settings or Settings.from_env()), name)
    check_heads(heads, model)
    return heads


def home_of(name: str, settings: Settings) -> Path:
    """The folder in which heads of a bare name are kept."""
    if not name or name in (".", "..") or set(name) & set("/\\:"):
        raise ValueError(
            f"name is {name!r}, and must be a plain name, without slashes; give a folder for any other place."
        )
    return settings.cache_dir.expanduser().absolute() / "heads" / name


def _found(name: str, settings: Settings) -> Path:
    """The file that a person's words for some heads stand for."""
    path = Path(name).expanduser()
    looked = [path, path / FILE]
    if not set(name) & set("/\\:") and name not in ("", ".", ".."):
        looked.append(home_of(name, settings) / FILE)
    for candidate in looked:
        if candidate.is_file():
            return candidate
    if path.is_dir():
        raise ModelError(f"The folder {name} holds no {FILE}: give one that does, or {TRAIN}.")
    if name.count("/") == 1 and not name.startswith((".", "/", "~")) and path.suffix != ".safetensors":
        return _fetched(name, settings.hub_timeout)
    raise ModelError(f"There are no heads {name}, neither as {' nor as '.join(map(str, looked))}: {TRAIN}.")


def _fetched(name: str, timeout: float) -> Path:
    """The file from the Hub, or from its cache on this machine."""
    try:
        local_only = not hub_answers(name, None, timeout)
        return Path(hf_hub_download(name, FILE, local_files_only=local_only))
    except Exception as error:
        raise ModelError(_sentence(name, error)) from error


def _sentence(name: str, error: Exception) -> str:
    """What to tell a person whom the Hub gave no heads."""
    if is_caused_by(error, hub.GatedRepoError):
        return f"{name} is gated: ask for access on its page on the Hub, then run `hf auth login`."
    if is_caused_by(error, hub.RepositoryNotFoundError):
        return f"There is no folder {name}, and the Hub shows none either: check the name, or {TRAIN}."
    if is_caused_by(error, hub.HFValidationError):
        return f"{name} is no file, no folder and no name on the Hub: check the spelling."
    if is_caused_by(error, hub.LocalEntryNotFoundError):
        return f"The heads {name} are not on this machine, and the Hub does not answer: connect once, or {TRAIN}."
    if is_caused_by(error, hub.EntryNotFoundError):
        return f"{name} on the Hub holds no {FILE}: give a repository that does, or {TRAIN}."
    return f"The heads {name} could not be fetched ({type(error).__name__}): try again, or {TRAIN}."


def bend(
    vectors: torch.Tensor, tokens: torch.Tensor, inward: torch.Tensor, biases: torch.Tensor, outward: torch.Tensor
) -> torch.Tensor:
    """For each head and each vector with its token's embedding, the vector that the head's guess is read off."""
    seen = _seen(vectors, tokens)
    thought = torch.baddbmm(biases[:, None], seen.expand(len(inward), -1, -1), inward.transpose(1, 2))
    return vectors + _sizes(vectors) * (functional.silu(thought) @ outward.transpose(1, 2))


def _seen(vectors: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """What heads see. All is measured by the size of the vectors, which differs much between models."""
    return torch.cat([functional.rms_norm(part, part.shape[-1:]) for part in (vectors, tokens)], -1)


def _sizes(vectors: torch.Tensor) -> torch.Tensor:
    return vectors.float().pow(2).mean(-1, keepdim=True).sqrt().to(vectors.dtype)


class HeadsProduct:
    """Heads on one model: from vectors to scores of the kept tokens, all heads in one product."""

    def __init__(self, heads: Heads, model: Model) -> None:
        matrix, bias = output_matrix(model)
        device = matrix.device
        # Half precision of sixteen bits is slow on processors.
        self.dtype = torch.float32 if (device.type, matrix.dtype) == ("cpu", torch.float16) else matrix.dtype
        # Heads may be kept longer than a model.
        self._embeddings = weakref.ref(model.hf_model.get_input_embeddings())
        self.parts = [part.to(device, self.dtype) for part in (heads.inward, heads.biases, heads.outward)]
        self.kept = heads.kept.to(device)
        self.matrix = matrix[self.kept].to(self.dtype)
        self.bias = None if bias is None else bias[self.kept].to(self.dtype)
        self._packed: tuple[PackedMatrix, PackedMatrix, PackedMatrix] | None = None
        if device.type == "cpu" and packs(self.dtype):
            inward, biases, outward = self.parts
            self._packed = (
                packed(inward.flatten(0, 1), biases.flatten()),
                packed(outward.flatten(0, 1), None),
                packed(self.matrix, self.bias),
            )

    @torch.inference_mode()
    def __call__(self, vectors: torch.Tensor, token_ids: torch.Tensor, count: int | None = None) -> torch.Tensor:
        """Scores by head, vector and kept token; each vector comes with the token that came from it."""
        device = self.matrix.device
        layer = self._embeddings()
        assert layer is not None
        given = vectors.to(device, self.dtype), looked_up(layer, token_ids).to(device, self.dtype)
        if self._packed is None:
            bent = bend(*given, *(part[:count] for part in self.parts))
            return functional.linear(bent, self.matrix, self.bias).float()
        inward, outward, matrix = self._packed
        if len(vectors) == 1:
            bent = _bent_one(*given, inward, outward)[:count]
        else:
            bent = bend(*given, *(part[:count] for part in self.parts))
        return product(matrix, bent).float()


def _bent_one(vector: torch.Tensor, token: torch.Tensor, inward: PackedMatrix, outward: PackedMatrix) -> torch.Tensor:
    """What bending one vector gives: one product inward for all heads, and one outward, of which each takes its own."""
    thought = functional.silu(product(inward, _seen(vector, token))).view(-1, outward.matrix.shape[1])
    all_of_all = product(outward, thought).view(len(thought), len(thought), -1)
    return (vector + _sizes(vector) * all_of_all.diagonal().t())[:, None]


class HeadsDrafter:
    """What trained heads guess. It keeps nothing of a document, so that one serves all documents of a model."""

    name = "heads"
    hidden = True
    guesses_are_valid = True
    dear = True

    def __init__(self, heads: Heads, model: Model) -> None:
        self.heads = heads
        check_heads(heads, model)
        if model.hf_model not in heads.ready:
            heads.ready[model.hf_model] = HeadsProduct(heads, model)
        self._product: HeadsProduct = heads.ready[model.hf_model]

    def read(self, token_ids: Sequence[int]) -> None:
        """Heads look at vectors, not at texts."""

    def hear(self, path: Sequence[int], new: int, scores: NodeScores, nodes: Sequence[Node]) -> None:
        """What they know was learnt before."""

    def start(self, path: Sequence[int], vector: torch.Tensor | None, reach: int) -> Any:
        """All heads that the draft has room for, and which one's turn it is."""
        if vector is None or reach < 1:
            return None
        return HeadGuesses(self._product, vector, path[-1], min(reach, self.heads.count)), 0

    def ways(self, state: Any) -> Sequence[Guess]:
        asked, place = state
        return asked.guesses[place]

    def follow(self, state: Any, token_id: int) -> Any:
        """The next head: what it guesses does not depend on the token before."""
        asked, place = state
        return (asked, place + 1) if place + 1 < asked.count else None


class HeadGuesses:
    """Heads that look at a vector, when somebody first wants to know what they see."""

    def __init__(self, product: HeadsProduct, vector: torch.Tensor, token_id: int, count: int) -> None:
        self.count = count
        self._product, self._vector, self._token_id = product, vector, token_id

    @functools.cached_property
    def guesses(self) -> tuple[tuple[Guess, ...], ...]:
        """What each head guesses."""
        scores = self._product(self._vector.reshape(1, -1), torch.tensor([self._token_id]), self.count)[:, 0]
        places = top_k_sorted(scores, min(GUESSES, scores.shape[-1]))
        odds = scores.softmax(-1).gather(1, places)
        token_ids = self._product.kept[places]
        return tuple(map(_ways, range(self.count), token_ids.tolist(), odds.tolist()))


def _ways(head: int, token_ids: list[int], odds: list[float]) -> tuple[Guess, ...]:
    return tuple(
        Guess(token_id, value, (head, min(rank, 3), decile(value)))
        for rank, (token_id, value) in enumerate(zip(token_ids, odds, strict=True))
    )
