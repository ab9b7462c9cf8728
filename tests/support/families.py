"""Tiny random models of all families that the laws are tested on, and reference computations with them."""

from __future__ import annotations

from typing import Any

import torch
import transformers

VOCABULARY = 96
NO_IDS: dict[str, Any] = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
PLAIN: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": VOCABULARY,
    "intermediate_size": 96,
    "max_position_embeddings": 512,
    **NO_IDS,
}
GROUPED = PLAIN | {"num_key_value_heads": 2}
OLD: dict[str, Any] = {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": VOCABULARY, "n_positions": 512, **NO_IDS}

CACHED: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2Config", OLD),
    "gptj": ("GPTJConfig", OLD | {"rotary_dim": 8}),
    "gpt_neox": ("GPTNeoXConfig", PLAIN),
    "llama": ("LlamaConfig", GROUPED),
    "mistral": ("MistralConfig", GROUPED | {"sliding_window": "limit"}),
    "mixtral": ("MixtralConfig", GROUPED | {"sliding_window": "limit", "num_local_experts": 4}),
    "qwen2": ("Qwen2Config", GROUPED),
    "qwen2_sliding": (
        "Qwen2Config",
        GROUPED | {"use_sliding_window": True, "sliding_window": "limit", "max_window_layers": 1},
    ),
    "qwen3": ("Qwen3Config", GROUPED | {"head_dim": 16}),
    "gemma2": ("Gemma2Config", GROUPED | {"head_dim": 16, "sliding_window": "limit"}),
    "gemma3": ("Gemma3TextConfig", GROUPED | {"head_dim": 16, "num_hidden_layers": 6, "sliding_window": "limit"}),
    "phi3": ("Phi3Config", GROUPED | {"sliding_window": "limit"}),
    "opt": (
        "OPTConfig",
        {
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "ffn_dim": 96,
            "word_embed_proj_dim": 64,
            "vocab_size": VOCABULARY,
            "max_position_embeddings": 512,
            **NO_IDS,
        },
    ),
    "falcon": (
        "FalconConfig",
        {
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "alibi": False,
            "vocab_size": VOCABULARY,
            **NO_IDS,
        },
    ),
    "glm4": ("Glm4Config", GROUPED | {"head_dim": 16}),
    "olmo2": ("Olmo2Config", GROUPED),
    "granite": ("GraniteConfig", GROUPED),
}

UNCACHED: dict[str, tuple[str, dict[str, Any]]] = {
    "bloom": ("BloomConfig", {"hidden_size": 64, "n_layer": 2, "n_head": 4, "vocab_size": VOCABULARY, **NO_IDS}),
    "mamba": (
        "MambaConfig",
        {"hidden_size": 64, "num_hidden_layers": 2, "state_size": 4, "vocab_size": VOCABULARY, **NO_IDS},
    ),
    "mpt": ("MptConfig", {"d_model": 64, "n_layers": 2, "n_heads": 4, "max_seq_len": 512, "vocab_size": VOCABULARY}),
    "gpt_neo": (
        "GPTNeoConfig",
        {
            "hidden_size": 64,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": "limit",
            "max_position_embeddings": 512,
            "vocab_size": VOCABULARY,
            **NO_IDS,
        },
    ),
    "llama_dynamic_rope": (
        "LlamaConfig",
        GROUPED
        | {
            "max_position_embeddings": "limit",
            "rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0},
        },
    ),
    "phi3_longrope": (
        "Phi3Config",
        GROUPED
        | {
            "original_max_position_embeddings": "limit",
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 10000.0,
                "short_factor": [1.0] * 8,
                "long_factor": [2.0] * 8,
            },
        },
    ),
}
FAMILIES = CACHED | UNCACHED


def make(family: str, limit: int = 8, seed: int = 0) -> Any:
    """A random model of a family with windows and rope limits of `limit` tokens, and with peaked distributions."""
    class_name, options = FAMILIES[family]
    fields = {name: limit if value == "limit" else value for name, value in options.items()}
    fields = {name: dict(value) if isinstance(value, dict) else value for name, value in fields.items()}
    config = getattr(transformers, class_name)(**fields)
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.15)
    model.generation_config = transformers.GenerationConfig()
    return model


def plain_rows(model: Any, paths: list[list[int]]) -> list[torch.Tensor]:
    """The reference: the logits after each path, each from one plain forward pass with reset rotary embeddings."""
    rows = []
    with torch.no_grad():
        for path in paths:
            forget_rotation(model)
            rows.append(model(torch.tensor([path], device=model.device), use_cache=False).logits[0, -1].float())
    return rows


def plain_rows_by_length(model: Any, paths: list[list[int]]) -> list[torch.Tensor]:
    """The same as `plain_rows` in fewer forward passes: paths of one length form a batch without padding."""
    rows: dict[int, torch.Tensor] = {}
    with torch.no_grad():
        for length in {len(path) for path in paths}:
            indices = [index for index, path in enumerate(paths) if len(path) == length]
            forget_rotation(model)
            batch = torch.tensor([paths[index] for index in indices], device=model.device)
            logits = model(batch, use_cache=False).logits
            rows |= dict(zip(indices, logits[:, -1].float(), strict=True))
    return [rows[index] for index in range(len(paths))]


def forget_rotation(model: Any) -> None:
    """Reset length-dependent rotary embeddings, in which transformers keeps the longest text's frequencies."""
    for module in model.modules():
        if hasattr(module, "max_seq_len_cached") and hasattr(module, "original_inv_freq"):
            module.max_seq_len_cached = module.original_max_seq_len
            module.inv_freq = module.original_inv_freq.clone()


def greedy(model: Any, ids: list[int], tokens: int) -> list[int]:
    """Greedy decoding by the transformers model with its own cache: up to `tokens` ids, the end token included."""
    found: list[int] = []
    new, cache = list(ids), None
    with torch.inference_mode():
        while len(found) < tokens and model.end_token_ids.isdisjoint(found):
            output = model.hf_model(
                torch.tensor([new], device=model.hf_model.device), past_key_values=cache, use_cache=True
            )
            cache, new = output.past_key_values, [int(output.logits[0, -1].argmax())]
            found += new
    return found
