"""The record of slots and masks, against the masks that the model is given and the paths of the tree."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lookahead_core import Document, LookaheadError, Model, ModelError, Settings, load_model
from lookahead_core.experiments.attention_record import MAX_PROMPT_TOKENS, attention_record, attention_steps
from tests.conftest import tiny_llama

PROMPT = "The keeper watched"


@pytest.fixture(scope="module")
def model(byte_tokenizer: Any) -> Model:
    return load_model(tiny_llama(len(byte_tokenizer), seed=3), tokenizer=byte_tokenizer, dtype="float32")


def test_every_row_is_that_of_the_mask_that_the_model_is_given(byte_tokenizer: Any) -> None:
    hf_model = tiny_llama(len(byte_tokenizer), seed=3)
    # Compiled layers would take the mask without this call.
    model = load_model(hf_model, tokenizer=byte_tokenizer, settings=Settings(compute="plain", dtype="float32"))
    given: list[torch.Tensor] = []

    def keep(module: Any, args: Any, kwargs: Any) -> None:
        given.append(kwargs["attention_mask"][0, 0] == 0)

    handle = model.engine.model_copy.register_forward_pre_hook(keep, with_kwargs=True)  # type: ignore[attr-defined]
    record = attention_record(model, PROMPT, k=3, depth=4)
    handle.remove()
    assert record.passes == len(given) == 4
    for number, mask in enumerate(given, start=1):
        nodes = [node for node in record.nodes if node.number == number]
        assert mask.shape[0] == len(nodes)
        assert [row.nonzero()[:, 0].tolist() for row in mask] == [list(node.attends) for node in nodes]


def test_nodes_attend_to_themselves_and_to_the_tokens_before_them(model: Model) -> None:
    record = attention_record(model, PROMPT, k=3, depth=4)
    by_slot = {node.slot: node for node in record.nodes}
    for node in record.nodes:
        path = [node.slot]
        while (parent := by_slot[path[-1]].parent) is not None:
            path.append(parent)
        assert node.attends == tuple(sorted(path))
        assert node.position == len(path) - 1


def test_the_tokens_are_those_of_the_prompt_and_of_a_lookahead(model: Model) -> None:
    record = attention_record(model, PROMPT, k=3, depth=4)
    document = Document(model, PROMPT)
    prompt = [node.token_id for node in record.nodes[: record.prompt_tokens]]
    assert prompt == list(document.token_ids)
    assert len(record.nodes) == len(prompt) + 3 * (4 - 1), "the last tokens of the branches need no slot"
    by_slot = {node.slot: node for node in record.nodes}

    def path_of(leaf: Any) -> tuple[int, ...]:
        ids, slot = [leaf.token_id], leaf.parent
        while slot >= record.prompt_tokens:
            ids.insert(0, by_slot[slot].token_id)
            slot = by_slot[slot].parent
        return tuple(ids)

    branches = document.lookahead(k=3, depth=4).branches
    assert [path_of(leaf) for leaf in record.leaves] == [branch.token_ids for branch in branches]
    assert "".join(node.text for node in record.nodes[: record.prompt_tokens]) == PROMPT


def test_the_record_grows_with_each_pass(model: Model) -> None:
    steps = list(attention_steps(model, PROMPT, k=2, depth=3))
    assert [step.passes for step in steps] == sorted(step.passes for step in steps)
    assert {1, 2, 3} <= {step.passes for step in steps}
    assert steps[-1] == attention_record(model, PROMPT, k=2, depth=3)


def test_branches_of_one_token_have_no_slots(model: Model) -> None:
    record = attention_record(model, PROMPT, k=2, depth=1)
    assert len(record.nodes) == record.prompt_tokens and record.passes == 1 and len(record.leaves) == 2


@pytest.mark.parametrize(
    ("options", "because"),
    [
        ({"k": 7}, "k is 7"),
        ({"depth": 0}, "depth is 0"),
        ({"levels": 2}, "levels is not an option of attention_record"),
    ],
)
def test_a_wrong_option_gets_a_sentence(model: Model, options: Any, because: str) -> None:
    with pytest.raises(ValueError, match=because):
        attention_record(model, PROMPT, **options)


def test_what_cannot_be_recorded_gets_a_sentence(model: Model, byte_tokenizer: Any) -> None:
    with pytest.raises(LookaheadError, match=f"at most {MAX_PROMPT_TOKENS} are allowed"):
        attention_record(model, "the sea " * 40)
    uncached = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer, engine="uncached")
    with pytest.raises(ModelError, match="runs without a cache"):
        attention_record(uncached, PROMPT)
