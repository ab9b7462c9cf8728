"""Sizing: bytes of weights and KV caches against figures worked out by hand, and against real caches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    DeepseekV3Config,
    Gemma2Config,
    GPT2Config,
    LlamaConfig,
    MambaConfig,
    MistralConfig,
    Qwen2Config,
)

from lookahead_core import Model
from lookahead_core.errors import ModelError
from lookahead_core.loading.sizing import GIBIBYTE, Demand, ModelShape, ReplicaMemory, read_shape, shape_of, size

DEFAULT = LlamaConfig(
    vocab_size=49152,
    hidden_size=576,
    intermediate_size=1536,
    num_hidden_layers=30,
    num_attention_heads=9,
    num_key_value_heads=3,
    tie_word_embeddings=True,
)
"""The config of the default model, SmolLM2-135M."""
LLAMA_8B = LlamaConfig(
    vocab_size=128256,
    hidden_size=4096,
    intermediate_size=14336,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=8,
    tie_word_embeddings=False,
)


def test_the_default_model_and_an_eight_billion_model_have_the_known_sizes() -> None:
    small, large = shape_of(DEFAULT), shape_of(LLAMA_8B)
    assert small.parameters == 134_515_008 and large.parameters == 8_030_261_248
    # Keys and values, of 30 layers with 3 heads of 64 numbers, two bytes each.
    assert small.kv_bytes(1, 2) == 2 * 30 * 3 * 64 * 2 == 23_040
    assert large.kv_bytes(1, 2) == 2 * 32 * 8 * 128 * 2 == 131_072
    assert small.kv_bytes(1000, 4) == 46_080_000


def test_models_without_grouped_queries_have_a_head_of_keys_for_each_query() -> None:
    shape = shape_of(GPT2Config())
    assert shape.parameters == 124_439_808
    assert shape.kv_bytes(1, 4) == 2 * 12 * 12 * 64 * 4


def test_layers_with_sliding_windows_keep_their_windows_only() -> None:
    # Every second of 42 layers slides over 4,096 tokens; 8 heads of 256 numbers.
    gemma = shape_of(Gemma2Config(num_hidden_layers=42, num_key_value_heads=8, head_dim=256, sliding_window=4096))
    layer = 2 * 8 * 256 * 2
    assert gemma.kv_bytes(1000, 2) == 42 * 1000 * layer
    assert gemma.kv_bytes(8192, 2) == (21 * 8192 + 21 * 4096) * layer == 2_113_929_216
    mistral = shape_of(MistralConfig(sliding_window=4096))
    assert mistral.kv_bytes(100_000, 2) == 32 * 4096 * 2 * 8 * 128 * 2
    assert shape_of(MistralConfig(sliding_window=None)).windows == (None,) * 32
    assert set(shape_of(Qwen2Config(sliding_window=4096, use_sliding_window=False)).windows) == {None}


@pytest.mark.parametrize("config", [DeepseekV3Config(num_hidden_layers=2), MambaConfig(num_hidden_layers=2)])
def test_other_memory_than_keys_and_values_is_a_sentence(config: Any) -> None:
    with pytest.raises(ModelError, match="keeps something else than keys and values of each token"):
        shape_of(config)


def test_keys_and_values_are_as_large_as_those_of_a_real_cache(tiny_model: Model, tmp_path: Path) -> None:
    tiny_model.hf_model.config.save_pretrained(tmp_path)
    shape = read_shape(str(tmp_path))
    cache = tiny_model.hf_model(torch.arange(3, 40).unsqueeze(0), use_cache=True).past_key_values
    real = sum(each.nbytes for layer in cache.layers for each in (layer.keys, layer.values))
    assert shape.kv_bytes(37, 4) == real
    assert shape.parameters == sum(each.numel() for each in tiny_model.hf_model.parameters())


def test_documents_and_replicas_are_those_worked_out_by_hand() -> None:
    shape = ModelShape(parameters=1_000_000, kv_heads=2, head_dim=8, windows=(None,) * 4)
    demand = Demand(people=100, tokens=90, branches=3, depth=10)
    # 90 tokens take six blocks of 16, and each branch two: twelve blocks of 16 tokens of 256 bytes.
    memory = ReplicaMemory(bytes=4_000_000, share=0.9, overhead=100_000)
    found = size(shape, demand, memory)
    assert demand.cached_tokens == 12 * 16
    assert (found.weights, found.kv_per_token, found.kv_per_document) == (2_000_000, 256, 12 * 16 * 256)
    assert found.kv_room == 3_600_000 - 2_000_000 - 100_000
    assert found.documents_per_replica == 1_500_000 // 49_152 == 30
    assert found.replicas == 4
    assert size(shape, demand, memory, weight_bytes=0.5).weights == 500_000
    assert size(shape, demand, memory, kv_bytes=1).documents_per_replica == 61


def test_a_replica_without_room_for_weights_or_a_document_holds_none() -> None:
    shape = shape_of(DEFAULT)
    for memory in (ReplicaMemory(GIBIBYTE // 8, overhead=0), ReplicaMemory(300_000_000, share=1.0, overhead=0)):
        found = size(shape, Demand(people=1, tokens=1_000_000), memory)
        assert found.documents_per_replica == 0 and found.replicas is None


def test_a_location_without_a_config_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot be read .*: give a folder or Hub id that has a config\.json"):
        read_shape(str(tmp_path))
