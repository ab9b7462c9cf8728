"""Batch invariance in bfloat16 and float32: when probabilities depend on the size of a pass, and by how much at most.

Compiled layers sum in float32, and no bit depends on the other rows of a pass. Only where the processor has AMX, passes
of more than `ROWS` rows of a bfloat16 model are computed by packed matrices: probabilities then depend on the size of a
pass, within BOUND.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers

from lookahead_core import Document, Model, load_model
from lookahead_core.engines.cpu.compiled_layers import ROWS, registers
from lookahead_core.engines.cpu.packed_matrix import packs
from tests.engines.test_engine_laws import evaluate_in_passes, random_tree
from tests.support.families import GROUPED
from tests.support.parameters import mostly_slow

BOUND = {torch.float32: 1e-5, torch.bfloat16: 3e-2}
"""The largest difference of a log-probability between two groupings, as a share of the largest log-probability."""
both_types = pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(dtype, marks=pytest.mark.skipif(not packs(dtype), reason=f"{dtype} cannot be packed here"))
        for dtype in BOUND
    ],
)
compiling = pytest.mark.skipif(registers() is None, reason="nothing is compiled for this processor")


@pytest.fixture(params=[False, True], ids=["without AMX", "with AMX"])
def amx(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the processor is taken for one with AMX: which path is used depends on it, and both run on any."""
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: request.param)
    return bool(request.param)


def small_model(dtype: torch.dtype) -> Model:
    """A small Llama with peaked distributions, whose weights are exact in bfloat16."""
    torch.manual_seed(0)
    hf_model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**GROUPED)).eval()
    for parameter in hf_model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    return load_model(hf_model.bfloat16().to(dtype), tokenizer=None)


def stream_steps(model: Model, prompt: list[int], **options: Any) -> list[tuple[int, float, float]]:
    """Each token of a stream, with its log-probability and the probability with which it was drawn."""
    stream = Document(model, token_ids=prompt).stream(max_new_tokens=40, stop_ids=[], **options)
    return [(step.token_id, step.logprob, step.chance) for step in stream]


@pytest.mark.slow
@compiling
@pytest.mark.skipif(not packs(torch.bfloat16), reason="bfloat16 is not packed here")
@pytest.mark.parametrize("length", mostly_slow([ROWS + 1, 3, ROWS - 2, ROWS, 150], 2))
@pytest.mark.parametrize("options", [{}, {"temperature": 0.8, "seed": 3}], ids=["greedy", "drawn"])
@pytest.mark.usefixtures("amx")
def test_a_bfloat16_stream_has_the_same_bits_with_and_without_drafts(length: int, options: dict[str, Any]) -> None:
    model = small_model(torch.bfloat16)
    prompt = [1 + index % 7 for index in range(length)]
    plain = stream_steps(model, prompt, speculate=False, **options)
    assert stream_steps(model, prompt, speculate=True, **options) == plain


@pytest.mark.slow
@compiling
@both_types
@pytest.mark.usefixtures("amx")
def test_passes_of_up_to_the_compiled_rows_give_the_same_bits_in_any_grouping(dtype: torch.dtype) -> None:
    engine = small_model(dtype).engine
    found = []
    for size in (1, 3, 11, ROWS - 40):
        _, nodes = random_tree(8, 1)
        # The prompt is evaluated first, so that it has its own pass each time.
        engine.evaluate([min(nodes, key=lambda node: node.depth)])
        found.append(evaluate_in_passes(engine, nodes, size, size))
    assert all(torch.equal(rows, found[0]) for rows in found)


@compiling
@both_types
def test_the_size_of_a_pass_is_limited_only_in_bfloat16_with_amx(dtype: torch.dtype, amx: bool) -> None:
    limit = small_model(dtype).engine.batch_invariant_rows
    assert limit == (ROWS if amx and dtype is torch.bfloat16 else None)


@pytest.mark.slow
@compiling
@both_types
def test_without_amx_no_bit_depends_on_how_rows_are_grouped_into_passes_of_any_size(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    engine, found = small_model(dtype).engine, []
    for size in (1, ROWS - 1, 2 * ROWS + 9, 400):
        _, nodes = random_tree(8, 2, nodes=3 * ROWS)
        engine.evaluate([min(nodes, key=lambda node: node.depth)])
        found.append(evaluate_in_passes(engine, nodes, size, size))
    assert all(torch.equal(rows, found[0]) for rows in found)


@both_types
@pytest.mark.usefixtures("amx")
def test_probabilities_of_a_small_pass_and_a_large_one_differ_within_the_stated_bound(dtype: torch.dtype) -> None:
    engine = small_model(dtype).engine
    (_, nodes), (_, again) = random_tree(8, 2, nodes=2 * ROWS), random_tree(8, 2, nodes=2 * ROWS)
    small, large = evaluate_in_passes(engine, nodes, 5, 0), evaluate_in_passes(engine, again, 3 * ROWS, 0)
    assert float((small - large).abs().max()) <= BOUND[dtype] * float(small.abs().max())
