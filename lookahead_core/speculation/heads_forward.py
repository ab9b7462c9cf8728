"""The forward pass of draft heads, which predict several tokens ahead from one hidden state, after Medusa.

A model's output matrix turns its last hidden state into logits of the next token. Head j (from 1) transforms that
hidden state, so that the same matrix gives logits of the token j positions after the next one. Unlike Medusa's heads,
it also sees the embedding of the next token, which is known when a draft begins. The model itself is not changed.
"""

from __future__ import annotations

import weakref

import torch
from torch.nn import functional

from lookahead_core.engines.cpu.packed_matrix import PackedLinear, packs
from lookahead_core.model import Model
from lookahead_core.speculation.heads_file import Heads, embed, output_matrix


def transformed_states(
    states: torch.Tensor, embeddings: torch.Tensor, inward: torch.Tensor, biases: torch.Tensor, outward: torch.Tensor
) -> torch.Tensor:
    """Return the hidden states that the heads predict from, of shape (heads, rows, hidden size).

    `states`, of shape (rows, hidden size), are the model's last hidden states. `embeddings`, of shape (rows, embedding
    size), are those of the token that followed each state. `inward`, `biases` and `outward` are those of `Heads`. All
    must have the same device and dtype.
    """
    inputs = _inputs(states, embeddings)
    inner = torch.baddbmm(biases[:, None], inputs.expand(len(inward), -1, -1), inward.transpose(1, 2))
    return states + _rms(states) * (functional.silu(inner) @ outward.transpose(1, 2))


def _inputs(states: torch.Tensor, embeddings: torch.Tensor) -> torch.Tensor:
    """Return the heads' inputs, of shape (rows, hidden size + embedding size).

    They are `states` and then `embeddings`, each row of each divided by its root mean square.
    """
    return torch.cat([functional.rms_norm(part, part.shape[-1:]) for part in (states, embeddings)], -1)


def _rms(states: torch.Tensor) -> torch.Tensor:
    """Return the root mean square of each row of `states`, in their dtype, of shape (rows, 1)."""
    return states.float().pow(2).mean(-1, keepdim=True).sqrt().to(states.dtype)


class HeadsForward:
    """The forward pass of draft heads on one model: from hidden states to logits of the tokens in `Heads.kept`."""

    def __init__(self, heads: Heads, model: Model) -> None:
        """Convert the heads to the device and dtype of the model's output matrix, on a CPU packed where possible.

        On a CPU float32 stands in for float16. `heads` is not changed. A ModelError is raised as by `output_matrix`.
        Whether the heads belong to the model is not checked. The model is not kept alive.
        """
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
        self._packed: tuple[PackedLinear, PackedLinear, PackedLinear] | None = None
        if device.type == "cpu" and packs(self.dtype):
            inward, biases, outward = self.parameters
            self._packed = (
                PackedLinear(inward.flatten(0, 1), biases.flatten()),
                PackedLinear(outward.flatten(0, 1), None),
                PackedLinear(self.matrix, self.bias),
            )

    @torch.inference_mode()
    def __call__(self, states: torch.Tensor, token_ids: torch.Tensor, count: int | None = None) -> torch.Tensor:
        """Return logits of shape (heads, rows, kept tokens), in float32 on the device of the model's output matrix.

        The last dimension is in the order of `kept`. `states` has shape (rows, hidden size); `token_ids` (rows,) are
        the tokens that followed them; both may be on any device. Only the logits of the first `count` heads are
        returned; None returns all. An AssertionError is raised if the model does not exist any more.
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
        logits: torch.Tensor = matrix(transformed)
        return logits.float()


def _transformed_state(
    state: torch.Tensor, embedding: torch.Tensor, inward: PackedLinear, outward: PackedLinear
) -> torch.Tensor:
    """Return `transformed_states` of one row, of shape (heads, 1, hidden size), in two matrix products for all heads.

    `state` has shape (1, hidden size), and `embedding` (1, embedding size). `inward` and `outward` hold the matrices of
    all heads one below the other, `inward` with the biases. The outward product also computes each head with the
    others' matrices; only the diagonal is used.
    """
    inner = functional.silu(inward(_inputs(state, embedding))).view(-1, outward.in_features)
    every_pair: torch.Tensor = outward(inner).view(len(inner), len(inner), -1)
    return (state + _rms(state) * every_pair.diagonal().t())[:, None]
