"""The output matrix in float32: compiled where layers are; otherwise, for half-precision models, as a float32 copy."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from lookahead_core.engines.cpu.compiled_layers import ROWS, CompiledLayers, addresses, binding, paired, room

if binding is not None:  # otherwise no layers are compiled, and no `CompiledHead` is made
    from lookahead_core.engines.cpu.llvm_kernels import LOWEST
    from lookahead_core.engines.cpu.llvm_log_sum_exp import buffer_size


class Float32Head(nn.Module):
    """An output layer with float32 copies of the weight and bias of `head`, computed in float32.

    In bfloat16 a logit of 20 is rounded to a multiple of 1/8.
    """

    def __init__(self, head: nn.Linear) -> None:
        super().__init__()
        self.weight = head.weight.detach().float()
        self.bias = None if head.bias is None else head.bias.detach().float()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return float32 logits of shape (..., vocabulary) for hidden states of shape (..., width)."""
        return functional.linear(hidden.float(), self.weight, self.bias)


class CompiledHead(nn.Module):
    """An output layer of a model, whose matrix is copied as bfloat16 and multiplied by compiled functions, in float32.

    `weight`, of shape (vocabulary, width), is that of a module that `layers.takes`; the functions are those of
    `layers`.
    """

    def __init__(self, weight: torch.Tensor, layers: CompiledLayers) -> None:
        super().__init__()
        self.layers, self.weight = layers, weight.detach()
        self._matrix = paired(weight, layers.shape.lanes)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return float32 logits of shape (..., vocabulary) for hidden states of shape (..., width), of any float dtype.

        Raises ValueError if the width is not that of the matrix.
        """
        rows, (height, depth) = self._checked(hidden), self.weight.shape
        logits, functions = room(len(rows), height), self.layers.functions
        for first in range(0, len(rows), ROWS):
            some, result = rows[first : first + ROWS], logits[first : first + ROWS]
            pointers = some.data_ptr(), self._matrix.data_ptr(), result.data_ptr()
            arguments = addresses([*pointers, len(some), depth, height, len(self._matrix)])
            functions.run(functions.product, arguments, torch.get_num_threads())
        return logits.view(*hidden.shape[:-1], height)

    def next_logprobs(self, hidden: torch.Tensor, token_ids: Sequence[int]) -> torch.Tensor:
        """Return the natural log-probability of one token after each row, of shape (rows,), in float32.

        `hidden` has the shape (rows, width), of any float dtype, and `token_ids` one id of the vocabulary per row. No
        logits are stored. Raises ValueError if the width is not that of the matrix, or an id or their number is wrong.
        """
        rows, (height, depth) = self._checked(hidden), self.weight.shape
        columns = torch.tensor(token_ids, dtype=torch.int64, device="cpu")
        if columns.shape != (len(rows),) or not bool(((columns >= 0) & (columns < height)).all()):
            raise ValueError(f"{len(rows)} rows need as many token ids from 0 to {height - 1}.")
        threads, functions = torch.get_num_threads(), self.layers.functions
        buffers = room(threads, buffer_size(self.layers.shape.group_width))
        own, maxima, sums = room(1, len(rows))[0], room(threads, len(rows)).fill_(LOWEST), room(threads, len(rows))
        results = [tensor.data_ptr() for tensor in (buffers, own, maxima, sums.zero_())]
        pointers = rows.data_ptr(), self._matrix.data_ptr(), columns.data_ptr(), *results
        arguments = addresses([*pointers, len(rows), depth, len(self._matrix)])
        functions.run(functions.log_sum_exp, arguments, threads)
        highest = maxima.amax(0)
        return (own - highest) - (sums * (maxima - highest).exp()).sum(0).log()

    def _checked(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return hidden states as contiguous float32 rows; raise ValueError if their width is not the matrix's."""
        rows, depth = hidden.reshape(-1, hidden.shape[-1]).float().contiguous(), self.weight.shape[1]
        if rows.shape[1] != depth:
            raise ValueError(f"The output matrix takes rows of {depth} numbers, and was given {rows.shape[1]}.")
        return rows
