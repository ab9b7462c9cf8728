"""The methods to compare with: two of an earlier notebook, the seed, rewritten for transformers 5, and transformers'.

Each takes (model, ids, k, depth) and returns k branches of `depth` tokens: the k most likely first tokens, each
continued greedily, except in beam search. None stops at end tokens, so that all do the same work; comparisons cut the
branches.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import Cache, DynamicCache, GenerationConfig, PreTrainedModel

from lookahead_core.engines.model_copy import copy_sharing_parameters


@dataclass(frozen=True)
class Rows:
    """The branches that a peer found, and the size of its cache at the end."""

    branches: tuple[tuple[int, ...], ...]
    """The token ids of each branch, without the prompt."""
    slots: int = 0
    """Tokens in the cache, rows times columns; 0 without a cache."""
    cache_bytes: int = 0
    """Bytes of its keys and values; 0 without a cache."""


def peers_model(hf_model: PreTrainedModel) -> PreTrainedModel:
    """Return a copy of the model in eval mode, with a blank generation config: no end tokens.

    On a CPU it has a copy of the weights too, since ours may be arranged anew there; on a GPU it shares them.
    """
    on_cpu = hf_model.device.type == "cpu"
    model = (copy.deepcopy(hf_model) if on_cpu else copy_sharing_parameters(hf_model)).eval()
    model.generation_config = GenerationConfig()
    return model


@torch.inference_mode()
def seed_cached(model: PreTrainedModel, ids: list[int], k: int, depth: int, last_only: bool = False) -> Rows:
    """Run the seed's cached method: evaluate the prompt once, repeat its cache k times, then k rows a step.

    The seed computes the logits of the whole prompt; with `last_only` only those of its last token, which is faster.
    """
    cache = DynamicCache(config=model.config)
    logits = model(_row(model, ids), past_key_values=cache, use_cache=True, logits_to_keep=int(last_only)).logits
    tokens = [logits[0, -1].topk(k).indices]
    cache.batch_repeat_interleave(k)
    for _ in range(depth - 1):
        logits = model(tokens[-1][:, None], past_key_values=cache, use_cache=True).logits
        tokens.append(logits[:, -1].argmax(dim=-1))
    return _rows(torch.stack(tokens, dim=1), cache)


@torch.inference_mode()
def seed_uncached(model: PreTrainedModel, ids: list[int], k: int, depth: int, last_only: bool = False) -> Rows:
    """Run the seed's uncached method: for each branch and each step a forward pass over the whole sequence.

    It computes the logits of the whole sequence; with `last_only` only those of its last token, which is faster.
    """
    first = _uncached_logits(model, ids, last_only).topk(k).indices.tolist()
    sequences = [[*ids, token] for token in first]
    for _ in range(depth - 1):
        for sequence in sequences:
            sequence.append(int(_uncached_logits(model, sequence, last_only).argmax()))
    return Rows(tuple(tuple(sequence[len(ids) :]) for sequence in sequences))


@torch.inference_mode()
def generate_rows(model: PreTrainedModel, ids: list[int], k: int, depth: int) -> Rows:
    """Run transformers' `generate`, greedy, on k rows, each the prompt and one of the k most likely first tokens."""
    first = _uncached_logits(model, ids, last_only=True).topk(k).indices
    rows = torch.cat([_row(model, ids).expand(k, -1), first[:, None]], dim=1)
    return _generate(model, rows, len(ids), _options(new_tokens=depth - 1, beams=1))


@torch.inference_mode()
def beam_search(model: PreTrainedModel, ids: list[int], k: int, depth: int) -> Rows:
    """Run transformers' beam search with k beams; its branches are other ones, which nothing compares with ours."""
    return _generate(model, _row(model, ids), len(ids), _options(new_tokens=depth, beams=k))


def _uncached_logits(model: PreTrainedModel, ids: list[int], last_only: bool) -> Tensor:
    """Return the logits after the last of these ids, of shape (vocabulary,)."""
    return model(_row(model, ids), use_cache=False, logits_to_keep=int(last_only)).logits[0, -1]


def _row(model: PreTrainedModel, ids: list[int]) -> Tensor:
    return torch.tensor([ids], device=model.device)


def _options(new_tokens: int, beams: int) -> GenerationConfig:
    return GenerationConfig(
        max_new_tokens=new_tokens,
        min_new_tokens=new_tokens,
        do_sample=False,
        num_beams=beams,
        num_return_sequences=beams,
        repetition_penalty=1.0,
        no_repeat_ngram_size=0,
        use_cache=True,
        return_dict_in_generate=True,
        **({"length_penalty": 1.0, "early_stopping": False} if beams > 1 else {}),
    )


def _generate(model: PreTrainedModel, rows: Tensor, prompt: int, options: GenerationConfig) -> Rows:
    output = model.generate(rows, attention_mask=torch.ones_like(rows), generation_config=options)
    return _rows(output.sequences[:, prompt:], output.past_key_values)


def _rows(tokens: Tensor, cache: Cache) -> Rows:
    keys = cache.layers[0].keys
    size = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    return Rows(tuple(map(tuple, tokens.tolist())), slots=keys.shape[0] * keys.shape[2], cache_bytes=size)
