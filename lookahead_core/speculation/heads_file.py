"""Trained heads as they are kept: their numbers, their file, and whether they belong to a model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, MutableMapping, MutableSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch.nn import functional

from lookahead_core.errors import ModelError
from lookahead_core.model import Model

FORMAT = "lookahead heads 1"
SIZES = {"inward": 3, "biases": 2, "outward": 3, "kept": 1, "sample": 2}
"""What is kept, and how many sizes the shape of each has."""
TENSORS = tuple(SIZES)
PLAIN = ("name", "vocabulary", "fingerprint", "notes")
"""The other fields, which compare as they are."""
FLOATS = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
FACTS = ("count", "hidden_size", "vocabulary", "fingerprint")
WIDEST = 1024
"""How many numbers a head thinks in at most."""
SAMPLED = 32
"""So many rows of the output matrix tell whether a model is the one that heads were trained for."""
NEAR = 0.9
"""How alike they must be: other roundings and further training leave more, other models next to nothing."""
TRAIN = "train some with `python -m lookahead_core train-heads`"


@dataclass(frozen=True, eq=False)
class Heads:
    """What was trained: two matrices and a bias a head, and the tokens that they guess among.

    Heads are equal where their names, notes and all numbers are.
    """

    name: str
    inward: torch.Tensor
    """By head: from a vector and a token's embedding to what the head thinks in."""
    biases: torch.Tensor
    outward: torch.Tensor
    """By head: from there to what is added to the vector."""
    kept: torch.Tensor
    """The ids of the tokens that heads guess among, in rising order: the most frequent ones of the training texts."""
    sample: torch.Tensor
    """Some rows of the output matrix of the model that they belong to."""
    vocabulary: int
    fingerprint: str
    """The same for the same weights, in whichever type they were loaded."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """What they were trained on, and how often they were right, for people."""
    known: MutableSet[Any] = field(default_factory=WeakSet, init=False, repr=False, compare=False)
    """The models of transformers that they were found to belong to."""
    ready: MutableMapping[Any, Any] = field(default_factory=WeakKeyDictionary, init=False, repr=False, compare=False)
    """What drafters have made of them, by such a model: laying matrices out takes longer than a draft."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Heads):
            return NotImplemented
        if any(getattr(self, name) != getattr(other, name) for name in PLAIN):
            return False
        return all(_are_equal(getattr(self, name), getattr(other, name)) for name in TENSORS)

    def __hash__(self) -> int:
        return hash((self.name, self.vocabulary, self.fingerprint))

    @property
    def count(self) -> int:
        return self.outward.shape[0]

    @property
    def width(self) -> int:
        """The length of the vectors that they bend: the hidden size of the model."""
        return self.outward.shape[1]

    @property
    def held_out(self) -> list[tuple[float, float]]:
        """For each head, how often its first guess, and one of its first four, was right on texts kept apart."""
        return [(first, four) for first, four in json.loads(self.notes.get("held_out", "[]"))]

    def save(self, path: Path) -> None:
        """One safetensors file."""
        tensors = {name: getattr(self, name).contiguous() for name in TENSORS}
        facts = {"format": FORMAT, "count": str(self.count), "hidden_size": str(self.width)}
        facts |= {"vocabulary": str(self.vocabulary), "fingerprint": self.fingerprint}
        save_file(tensors, path, {**self.notes, **facts})
        path.chmod(0o644)  # safetensors lets nobody but its owner read; a cache may be shared


def _are_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are the same in type, place, shape and numbers."""
    return (one.dtype, one.device) == (other.dtype, other.device) and torch.equal(one, other)


def untrained(model: Model, count: int, kept: torch.Tensor | None = None) -> Heads:
    """Heads that add nothing, and so guess what the model itself says of the next token."""
    matrix, _ = output_matrix(model)
    width = matrix.shape[1]
    thought = min(width, WIDEST)
    return Heads(
        name="untrained",
        inward=torch.zeros(count, thought, _seen(model, width), dtype=torch.bfloat16),
        biases=torch.zeros(count, thought, dtype=torch.bfloat16),
        outward=torch.zeros(count, width, thought, dtype=torch.bfloat16),
        kept=torch.arange(len(matrix)) if kept is None else kept,
        sample=_sample(matrix),
        vocabulary=len(matrix),
        fingerprint=fingerprint(model),
        notes={"model": model.name},
    )


def read_heads(path: Path, name: str) -> Heads:
    """Heads from a file, or a sentence on what is wrong with it."""
    try:
        with safe_open(path, "pt") as file:
            facts = dict(file.metadata() or {})
            if facts.get("format") != FORMAT:
                raise ModelError(f"{name} is a safetensors file, but holds no heads of this version: {TRAIN}.")
            tensors = {key: file.get_tensor(key) for key in TENSORS}
        own = {key: facts.pop(key) for key in ("format", *FACTS)}
        heads = Heads(name, **tensors, vocabulary=int(own["vocabulary"]), fingerprint=own["fingerprint"], notes=facts)
        if fault := _fault(heads, own):
            raise ValueError(fault)
    except KeyError as error:
        raise ModelError(_unreadable(name, f"it does not tell its {error.args[0]}")) from error
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(_unreadable(name, str(error))) from error
    return heads


def _unreadable(name: str, why: str) -> str:
    return f"{name} cannot be read as heads ({why}): fetch the file again, or {TRAIN}."


def _fault(heads: Heads, facts: Mapping[str, str]) -> str:
    """What is wrong with what a file held, if anything is."""
    for key, sizes in SIZES.items():
        tensor = getattr(heads, key)
        if tensor.dim() != sizes or not tensor.numel():
            return f"{key} has the shape {tuple(tensor.shape)}"
        if (tensor.dtype not in FLOATS) if key != "kept" else (tensor.dtype != torch.int64):
            return f"{key} holds {str(tensor.dtype).removeprefix('torch.')}"
        if key != "kept" and not bool(tensor.isfinite().all()):
            return f"{key} holds what is no number"
    count, thought = heads.biases.shape
    shapes = {
        "inward": (count, thought, heads.inward.shape[2]),
        "outward": (count, heads.width, thought),
        "sample": (min(SAMPLED, heads.vocabulary), heads.width),
    }
    for key, shape in shapes.items():
        if tuple(getattr(heads, key).shape) != shape:
            return f"{key} has the shape {tuple(getattr(heads, key).shape)} where {shape} is due"
    if (facts["count"], facts["hidden_size"]) != (str(count), str(heads.width)):
        return f"it tells of {facts['count']} heads of width {facts['hidden_size']}, and holds {count} of {heads.width}"
    kept = heads.kept
    if int(kept[0]) < 0 or int(kept[-1]) >= heads.vocabulary or not bool((kept[1:] > kept[:-1]).all()):
        return f"kept does not hold rising ids from 0 to {heads.vocabulary - 1}"
    return ""


def check_heads(heads: Heads, model: Model) -> None:
    """A ModelError where they belong to another model; the same one rounded, or trained further, will do."""
    if model.hf_model in heads.known:
        return
    matrix, _ = output_matrix(model)
    theirs, ours = (heads.vocabulary, heads.width), tuple(matrix.shape)
    if theirs != ours:
        raise ModelError(
            f"The heads {heads.name} are for a model of {theirs[0]:,} tokens and hidden size {theirs[1]:,}, and "
            f"{model.name} has {ours[0]:,} and {ours[1]:,}: give heads of its own, or {TRAIN}."
        )
    alike = functional.cosine_similarity(heads.sample.double().flatten(), _sample(matrix).double().flatten(), 0)
    if heads.fingerprint != fingerprint(model) and not alike > NEAR:
        other = heads.notes.get("model", "unknown")
        raise ModelError(
            f"The heads {heads.name} were trained for another model ({other}), whose weights are not those of "
            f"{model.name}: give heads of its own, or {TRAIN}."
        )
    seen = _seen(model, heads.width)
    if heads.inward.shape[2] != seen:
        raise ModelError(
            f"The heads {heads.name} look at {heads.inward.shape[2]:,} numbers, and {model.name} gives {seen:,}: "
            f"fetch them again, or {TRAIN}."
        )
    heads.known.add(model.hf_model)


def _seen(model: Model, width: int) -> int:
    """How many numbers a head looks at: a vector's, and those of a token's embedding."""
    return width + embedded(model, torch.zeros(1, dtype=torch.int64)).shape[1]


def fingerprint(model: Model) -> str:
    """A short sign of a model's weights that does not depend on the type they were loaded in."""
    matrix, _ = output_matrix(model)
    layers = getattr(model.hf_model.config.get_text_config(decoder=True), "num_hidden_layers", 0)
    digest = hashlib.sha256(f"{tuple(matrix.shape)} {layers}".encode())
    digest.update(_sample(matrix).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def output_matrix(model: Model) -> tuple[torch.Tensor, torch.Tensor | None]:
    """What the model multiplies its last vectors with, and what it adds."""
    layer = model.hf_model.get_output_embeddings()
    weight = getattr(layer, "weight", None)
    if weight is None or not weight.is_floating_point() or weight.is_meta:
        raise ModelError(f"The output matrix of {model.name} is not held as plain numbers: load it without quantize.")
    bias = getattr(layer, "bias", None)
    plain = weight.detach() if type(weight.data) is torch.Tensor else weight.detach().dequantize()
    return plain, None if bias is None else bias.detach()


def _sample(matrix: torch.Tensor) -> torch.Tensor:
    places = torch.linspace(0, len(matrix) - 1, min(SAMPLED, len(matrix))).long()
    return matrix[places.to(matrix.device)].cpu().bfloat16()


def embedded(model: Model, token_ids: torch.Tensor) -> torch.Tensor:
    """What the model makes of tokens before it reads them."""
    return looked_up(model.hf_model.get_input_embeddings(), token_ids)


def looked_up(layer: Any, token_ids: torch.Tensor) -> torch.Tensor:
    """The same, by the layer that does it."""
    with torch.no_grad():
        return layer(token_ids.to(layer.weight.device))
