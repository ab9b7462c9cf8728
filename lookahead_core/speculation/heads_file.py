"""Trained draft heads: their tensors, their file, and the check that they belong to a model."""

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
from torch import nn
from torch.nn import functional

from lookahead_core.errors import ModelError
from lookahead_core.model import Model

FORMAT = "lookahead heads 1"
"""Names the file format and its version in the file's metadata."""
DIMENSIONS = {"inward": 3, "biases": 2, "outward": 3, "kept": 1, "sample": 2}
"""The tensors in the file, and the number of dimensions of each."""
TENSORS = tuple(DIMENSIONS)
"""The names of the tensors, which are fields of `Heads`."""
PLAIN_FIELDS = ("name", "vocabulary", "fingerprint", "notes")
"""The fields of `Heads` that are not tensors and take part in comparisons."""
FLOAT_DTYPES = (torch.bfloat16, torch.float16, torch.float32, torch.float64)
"""The dtypes that the tensors in a file may have, except `kept`, which is int64."""
METADATA = ("count", "hidden_size", "vocabulary", "fingerprint")
"""Keys of the file's metadata that must be there, besides "format"."""
MAX_INNER_SIZE = 1024
"""Maximum inner size of a head that `untrained` makes; it is the hidden size if that is smaller."""
SAMPLE_ROWS = 32
"""Number of rows of the output matrix that identify the model of the heads."""
MIN_SIMILARITY = 0.9
"""Cosine similarity that those rows must exceed: more for the same model rounded or trained further, near 0 for others.
"""
TRAIN_HINT = "train some with `python -m lookahead_core train-heads`"


@dataclass(frozen=True, eq=False)
class Heads:
    """Trained draft heads: two matrices and a bias per head, and the tokens that they guess among.

    Head j, from 1, predicts the token j positions after the next one, from the model's last hidden state and the next
    token. Training makes them, and users get them from `load_heads`.
    Heads are equal if their names, vocabularies, fingerprints, notes and all tensors are equal.
    """

    name: str
    """Names the heads in messages."""
    inward: torch.Tensor
    """Of shape (heads, inner size, hidden size + embedding size)."""
    biases: torch.Tensor
    """Of shape (heads, inner size)."""
    outward: torch.Tensor
    """Of shape (heads, hidden size, inner size)."""
    kept: torch.Tensor
    """The ids of the tokens that heads guess among, ascending, of shape (tokens,): the most frequent ones of the
    training texts."""
    sample: torch.Tensor
    """SAMPLE_ROWS rows of the output matrix of the model that they belong to, or all if it has fewer."""
    vocabulary: int
    """The number of rows of that output matrix."""
    fingerprint: str
    """A hash of that model's weights, which does not depend on the dtype they were loaded in."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Descriptions as strings, for users: "model", "trained_on", "steps", and "held_out", which `held_out` reads."""
    checked_models: MutableSet[Any] = field(default_factory=WeakSet, init=False, repr=False, compare=False)
    """The transformers models that `check_heads` has found them to belong to."""
    prepared: MutableMapping[Any, Any] = field(default_factory=WeakKeyDictionary, init=False, repr=False, compare=False)
    """By transformers model, the `HeadsForward` of these heads. It is kept, as packing its matrices takes long."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Heads):
            return NotImplemented
        if any(getattr(self, name) != getattr(other, name) for name in PLAIN_FIELDS):
            return False
        return all(_are_equal(getattr(self, name), getattr(other, name)) for name in TENSORS)

    def __hash__(self) -> int:
        return hash((self.name, self.vocabulary, self.fingerprint))

    @property
    def count(self) -> int:
        """The number of heads."""
        return self.outward.shape[0]

    @property
    def width(self) -> int:
        """The hidden size of the model."""
        return self.outward.shape[1]

    @property
    def held_out(self) -> list[tuple[float, float]]:
        """By head, the share of held-out tokens that its first guess hit, and the share that its first four hit.

        Shares are from 0 to 1. Empty if the notes do not have them.
        """
        return [(first, four) for first, four in json.loads(self.notes.get("held_out", "[]"))]

    def save(self, path: Path) -> None:
        """Write the heads into the safetensors file `path`, which all users may read; an existing file is overwritten.

        Its folder must exist. `notes` are written, `name` is not: `read_heads` sets it.
        """
        tensors = {name: getattr(self, name).contiguous() for name in TENSORS}
        facts = {"format": FORMAT, "count": str(self.count), "hidden_size": str(self.width)}
        facts |= {"vocabulary": str(self.vocabulary), "fingerprint": self.fingerprint}
        save_file(tensors, path, {**self.notes, **facts})
        path.chmod(0o644)  # safetensors lets nobody but its owner read; a cache may be shared


def _are_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors have the same dtype, device, shape and values."""
    return (one.dtype, one.device) == (other.dtype, other.device) and torch.equal(one, other)


def untrained(model: Model, count: int, kept: torch.Tensor | None = None) -> Heads:
    """Return `count` heads for this model whose matrices and biases are zero, in bfloat16 on the CPU, for training.

    Each predicts what the model itself predicts as the next token. `kept` are the ids that they guess among, ascending,
    an int64 tensor of shape (tokens,); None is all. A ModelError is raised as by `output_matrix`.
    """
    matrix, _ = output_matrix(model)
    width = matrix.shape[1]
    inner = min(width, MAX_INNER_SIZE)
    return Heads(
        name="untrained",
        inward=torch.zeros(count, inner, _input_size(model, width), dtype=torch.bfloat16),
        biases=torch.zeros(count, inner, dtype=torch.bfloat16),
        outward=torch.zeros(count, width, inner, dtype=torch.bfloat16),
        kept=torch.arange(len(matrix)) if kept is None else kept,
        sample=_sample_rows(matrix),
        vocabulary=len(matrix),
        fingerprint=fingerprint(model),
        notes={"model": model.name},
    )


def read_heads(path: Path, name: str) -> Heads:
    """Return the heads in a safetensors file, on the CPU.

    A ModelError is raised if the file is missing, cannot be read, or does not hold valid heads; it says what is wrong.
    `name` becomes the heads' name, and is used in the message. Whether they belong to a model is not checked here.
    """
    try:
        with safe_open(path, "pt") as file:
            facts = dict(file.metadata() or {})
            if facts.get("format") != FORMAT:
                raise ModelError(f"{name} is a safetensors file, but holds no heads of this version: {TRAIN_HINT}.")
            tensors = {key: file.get_tensor(key) for key in TENSORS}
        own = {key: facts.pop(key) for key in ("format", *METADATA)}
        heads = Heads(name, **tensors, vocabulary=int(own["vocabulary"]), fingerprint=own["fingerprint"], notes=facts)
        if problem := _problem(heads, own):
            raise ValueError(problem)
    except KeyError as error:
        raise ModelError(_unreadable(name, f"it has no {error.args[0]}")) from error
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(_unreadable(name, str(error))) from error
    return heads


def _unreadable(name: str, why: str) -> str:
    """Return the error message for an invalid file; `why` is a phrase that says what is wrong."""
    return f"{name} cannot be read as heads ({why}): fetch the file again, or {TRAIN_HINT}."


def _problem(heads: Heads, metadata: Mapping[str, str]) -> str:
    """Return a phrase that says what is wrong with heads that were read from a file; empty if they are valid.

    Checked are the tensors' shapes, dtypes and finiteness, the order and range of `kept`, and that the file's
    `metadata` fits them.
    """
    for key, dimensions in DIMENSIONS.items():
        tensor = getattr(heads, key)
        if tensor.dim() != dimensions or not tensor.numel():
            return f"{key} has the shape {tuple(tensor.shape)}"
        if (tensor.dtype not in FLOAT_DTYPES) if key != "kept" else (tensor.dtype != torch.int64):
            return f"{key} holds {str(tensor.dtype).removeprefix('torch.')}"
        if key != "kept" and not bool(tensor.isfinite().all()):
            return f"{key} holds NaN or infinity"
    count, inner = heads.biases.shape
    shapes = {
        "inward": (count, inner, heads.inward.shape[2]),
        "outward": (count, heads.width, inner),
        "sample": (min(SAMPLE_ROWS, heads.vocabulary), heads.width),
    }
    for key, shape in shapes.items():
        if tuple(getattr(heads, key).shape) != shape:
            return f"{key} has the shape {tuple(getattr(heads, key).shape)} instead of {shape}"
    if (metadata["count"], metadata["hidden_size"]) != (str(count), str(heads.width)):
        return (
            f"its metadata has {metadata['count']} heads of hidden size {metadata['hidden_size']}, and its tensors "
            f"have {count} of {heads.width}"
        )
    kept = heads.kept
    if int(kept[0]) < 0 or int(kept[-1]) >= heads.vocabulary or not bool((kept[1:] > kept[:-1]).all()):
        return f"kept does not hold ascending ids from 0 to {heads.vocabulary - 1}"
    return ""


def check_heads(heads: Heads, model: Model) -> None:
    """Raise a ModelError if the heads were trained on another model; else add this one to `heads.checked_models`.

    Shape of the output matrix and size of the embeddings must be equal, and SAMPLE_ROWS rows of the matrix similar (or
    the fingerprints equal). So the same model is accepted in another precision, quantized, or trained further. What was
    accepted before is not compared again. A ModelError is also raised as by `output_matrix`.
    """
    if model.require_weights("A draft head") in heads.checked_models:
        return
    matrix, _ = output_matrix(model)
    theirs, ours = (heads.vocabulary, heads.width), tuple(matrix.shape)
    if theirs != ours:
        raise ModelError(
            f"The heads {heads.name} are for a model of {theirs[0]:,} tokens and hidden size {theirs[1]:,}, and "
            f"{model.name} has {ours[0]:,} and {ours[1]:,}: give heads of its own, or {TRAIN_HINT}."
        )
    similarity = functional.cosine_similarity(
        heads.sample.double().flatten(), _sample_rows(matrix).double().flatten(), 0
    )
    if heads.fingerprint != fingerprint(model) and not similarity > MIN_SIMILARITY:
        other = heads.notes.get("model", "unknown")
        raise ModelError(
            f"The heads {heads.name} were trained for another model ({other}), whose weights are not those of "
            f"{model.name}: give heads of its own, or {TRAIN_HINT}."
        )
    input_size = _input_size(model, heads.width)
    if heads.inward.shape[2] != input_size:
        raise ModelError(
            f"The heads {heads.name} have inputs of {heads.inward.shape[2]:,} numbers, and {model.name} gives "
            f"{input_size:,}: fetch them again, or {TRAIN_HINT}."
        )
    heads.checked_models.add(model.hf_model)


def _input_size(model: Model, width: int) -> int:
    """Return the input size of a head: the hidden size `width` plus the model's embedding size."""
    return width + embeddings_of(model, torch.zeros(1, dtype=torch.int64)).shape[1]


def fingerprint(model: Model) -> str:
    """Return 16 hexadecimal digits that identify a model: a hash of its output matrix's shape and SAMPLE_ROWS rows,
    rounded to bfloat16, and its number of layers.

    It is equal for a model loaded in bfloat16 and in float32. A ModelError is raised as by `output_matrix`.
    """
    matrix, _ = output_matrix(model)
    layers = getattr(model.hf_model.config.get_text_config(decoder=True), "num_hidden_layers", 0)
    digest = hashlib.sha256(f"{tuple(matrix.shape)} {layers}".encode())
    digest.update(_sample_rows(matrix).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]


def output_matrix(model: Model) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the matrix (vocabulary, hidden size) and the bias (or None) of the model's output layer, detached.

    They are in the dtype and on the device that the model holds them in. A quantized matrix is dequantized if it is a
    tensor that can be; a ModelError is raised if it is held as integers or on the meta device, or if the model has no
    output layer.
    """
    layer = model.require_weights("A draft head").get_output_embeddings()
    weight = getattr(layer, "weight", None)
    if weight is None or not weight.is_floating_point() or weight.is_meta:
        raise ModelError(f"The output matrix of {model.name} is not held as plain numbers: load it without quantize.")
    bias = getattr(layer, "bias", None)
    plain = weight.detach() if type(weight.data) is torch.Tensor else weight.detach().dequantize()
    return plain, None if bias is None else bias.detach()


def _sample_rows(matrix: torch.Tensor) -> torch.Tensor:
    """Return SAMPLE_ROWS evenly spaced rows of a matrix, from the first to the last, in bfloat16 on the CPU.

    All rows are returned if it has fewer.
    """
    rows = torch.linspace(0, len(matrix) - 1, min(SAMPLE_ROWS, len(matrix))).long()
    return matrix[rows.to(matrix.device)].cpu().bfloat16()


def embeddings_of(model: Model, token_ids: torch.Tensor) -> torch.Tensor:
    """Return the model's input embeddings of these token ids, without gradients.

    `token_ids`, of any shape, may be on any device. The result has one more dimension, the embedding size, and is on
    the device of the model's embedding layer.
    """
    return embed(model.hf_model.get_input_embeddings(), token_ids)


def embed(layer: nn.Module, token_ids: torch.Tensor) -> torch.Tensor:
    """Return an embedding layer's output for these token ids, on the layer's device and without gradients.

    `token_ids`, of any shape, may be on any device. The output has one more dimension, the embedding size.
    """
    weight = layer.weight
    assert isinstance(weight, torch.Tensor)
    with torch.no_grad():
        embeddings: torch.Tensor = layer(token_ids.to(weight.device))
    return embeddings
