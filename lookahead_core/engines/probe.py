"""Decide whether the cached engine fits a model: by its configuration, then by a probe on a small random model.

A probe on the model itself proves little: a window, chunk or rope limit of 64 tokens passes a probe with 50 tokens, and
is wrong with 100. The small model has the same architecture, two narrow layers of each type, and limits of 8 tokens.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import logging
import random
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import PreTrainedModel

from lookahead_core.engines.attention import ATTENTION
from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.masks import MaskPlan
from lookahead_core.engines.uncached import LENGTH_DEPENDENT_ROPES, UncachedEngine, rope_types
from lookahead_core.tree import Node, TokenTree

log = logging.getLogger(__name__)

LIMIT = 8
"""The width, in tokens, of the small model's sliding windows."""
PROMPT, DEPTH, BRANCHES = 40, 12, 2
"""Of each of the probe's trees: tokens of the prompt, evaluated tokens per branch, branches."""
TOLERANCE = 1e-4
"""The largest accepted difference of log-probabilities, as a share of the largest log-probability."""
VOCABULARY = 96
"""Tokens in the small model's vocabulary."""


@dataclass(frozen=True)
class ProbeResult:
    """Whether the cached engine fits a model, and with which attention or why not; `fit` returns it."""

    cached: bool
    """Whether it fits."""
    attention: str = ""
    """The attention implementation to use, by its name in transformers; "" if the cached engine does not fit."""
    reason: str = ""
    """Why the cached engine does not fit, as a clause after "because"; "" if it fits."""


def fit(hf_model: Any) -> ProbeResult:
    """Decide whether the cached engine fits a transformers model, and with which attention implementation.

    After a check of the configuration, a small model of the same architecture runs in both engines with each of
    `_candidates`; the first with log-probabilities within `TOLERANCE` is taken. The model is not changed. An error of
    the small model is not raised: the cached engine then does not fit with that attention.
    """
    config = hf_model.config
    if reason := _refused_by(config):
        return ProbeResult(False, reason=reason)
    reason = ""
    for attention in _candidates(hf_model):
        try:
            error_size = _difference(hf_model, attention)
        except Exception as error:  # any error of an unknown model means only that the cached engine does not fit
            log.debug("The probe with attention %s failed", attention, exc_info=True)
            message = ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
            reason = f"a small model of its architecture fails with a cache ({message})"
            continue
        if error_size <= TOLERANCE:
            return ProbeResult(True, attention)
        reason = f"a small model of its architecture differs from a plain forward pass by {error_size:.1e}"
        log.debug("The probe with attention %s refused the model: %s", attention, reason)
    return ProbeResult(False, reason=reason)


def why_no_graphs(hf_model: Any, attention: str) -> str:
    """Return why the cached engine with this attention cannot use CUDA graphs for a model, as a clause; "" if it can.

    The model must be on a GPU. A small model of the same architecture runs there with graphs and without.
    """
    try:
        error_size = _difference(hf_model, attention, str(hf_model.device))
    except Exception as error:
        log.debug("The probe of CUDA graphs failed", exc_info=True)
        return f"a small model of its architecture fails with them ({type(error).__name__})"
    if error_size > TOLERANCE:
        return f"a small model of its architecture differs with them by {error_size:.1e}"
    return ""


def _refused_by(config: Any) -> str:
    """Return why the configuration alone rules the cached engine out, as a clause; "" if it does not."""
    text = config.get_text_config(decoder=True)
    if ropes := rope_types(config) & LENGTH_DEPENDENT_ROPES:
        return f"its rope type is {', '.join(sorted(ropes))}, with which earlier keys change as the text grows"
    if getattr(text, "alibi", False) or getattr(text, "attn_config", None) is not None:
        return "its attention adds ALiBi slopes, which follow cache slots instead of positions"
    if getattr(text, "attention_chunk_size", None):
        return "its attention is chunked"
    plan = MaskPlan.of(config)
    if not plan.supported:
        return f"it has layers of an unsupported type ({', '.join(plan.kinds)})"
    return ""


def _candidates(hf_model: Any) -> list[str]:
    """Return the names of attention implementations to try, best first.

    These are this project's, if the model supports it; the model's own, if that is "sdpa"; and "eager".
    """
    own = str(hf_model.config._attn_implementation or "eager")
    ours = [ATTENTION] if getattr(hf_model, "_supports_attention_backend", False) else []
    plain = own if own in ("sdpa", "eager") else "eager"
    return list(dict.fromkeys([*ours, plain, "eager"]))


def small_config(config: Any) -> Any:
    """Return a changed copy of a transformers configuration, for a small model of the same architecture.

    It has two layers of each type, four heads, `VOCABULARY` tokens, no special tokens, and no quantization; sliding
    windows, if there are any, have `LIMIT` tokens.
    """
    small = copy.deepcopy(config)
    text = small.get_text_config(decoder=True)
    _make_shallow(text)
    _make_narrow(text)
    _shrink_limits(text)
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        setattr(text, name, None)
    for part in (small, text):
        # Quantization of the weights has no influence on attention.
        vars(part).pop("quantization_config", None)
    return small


def _make_shallow(text: Any) -> None:
    """Change a text configuration in place to two layers of each layer type, or two layers if it names no types."""
    kinds = list(dict.fromkeys(getattr(text, "layer_types", None) or ("only",)))
    layers = [kind for kind in kinds for _ in range(2)]
    if getattr(text, "layer_types", None):
        text.layer_types = layers
    if getattr(text, "attention_layers", None):
        text.attention_layers = text.attention_layers[:2]
    text.num_hidden_layers = len(layers)


def _make_narrow(text: Any) -> None:
    """Change a text configuration in place to four heads of width 16 and other small sizes.

    Key heads become four if they were as many as the heads, one if they were one, and otherwise two. Most sizes are set
    only if the configuration has them.
    """
    heads = text.num_attention_heads
    shared = getattr(text, "num_key_value_heads", None)
    text.num_attention_heads = 4
    if isinstance(shared, int):
        text.num_key_value_heads = 4 if shared == heads else 1 if shared == 1 else 2
    if isinstance(getattr(text, "num_kv_heads", None), int):
        text.num_kv_heads = 4 if text.num_kv_heads == heads else 1 if text.num_kv_heads == 1 else 2
    text.hidden_size = 64
    text.vocab_size = VOCABULARY
    small = {"head_dim": 16, "intermediate_size": 96, "n_inner": 96, "ffn_dim": 96, "ffn_hidden_size": 96}
    small |= {"rotary_dim": 8, "word_embed_proj_dim": 64, "num_local_experts": 4, "num_experts": 4}
    small |= {"moe_intermediate_size": 32, "shared_expert_intermediate_size": 32, "num_experts_per_tok": 2}
    for name, value in small.items():
        # Some families compute these attributes from others and cannot set them.
        with contextlib.suppress(AttributeError):
            if isinstance(getattr(text, name, None), int):
                setattr(text, name, value)


def _shrink_limits(text: Any) -> None:
    """Change a text configuration in place: give the sliding windows that it has `LIMIT` tokens.

    Also set its number of positions, to more than the longest path in the probe's trees has.
    """
    if getattr(text, "sliding_window", None):
        text.sliding_window = LIMIT
    if isinstance(getattr(text, "window_size", None), int):
        text.window_size = LIMIT
    text.max_position_embeddings = 2 * (PROMPT + DEPTH)


@dataclass(frozen=True)
class ProbeKey:
    """The inputs of `difference`, as a key of its cache: equal if class, configuration's text and attention are."""

    model_class: type[PreTrainedModel]
    config: Any = field(compare=False)
    """The small model's configuration, which keys do not compare."""
    config_text: Hashable
    """The configuration's JSON, which keys compare in its place."""
    attention: str
    """The name of the attention implementation of the cached engine."""
    graphs_on: str = ""
    """The GPU on which both engines run, the cached one with CUDA graphs; "" for the CPU, without graphs."""


def _difference(hf_model: Any, attention: str, graphs_on: str = "") -> float:
    """Return `difference` for a small random model of the architecture of `hf_model`; see `ProbeKey` for the rest.

    The cached engine's error is a share of the largest log-probability. Raises any error of the small model.
    """
    config = small_config(hf_model.config)
    return difference(ProbeKey(type(hf_model), config, _text_of(config), attention, graphs_on))


def _text_of(config: Any) -> Hashable:
    """Return a configuration as a JSON string; if it cannot be serialised, a new object, which equals no other."""
    try:
        return str(config.to_json_string(use_diff=False))
    except Exception:
        log.debug("A configuration cannot be serialised, so its probe is not cached", exc_info=True)
        return object()


@functools.lru_cache(maxsize=64)
def difference(key: ProbeKey) -> float:
    """Return the largest difference between the log-probabilities of the cached engine and of the uncached one.

    It is a share of the uncached engine's largest absolute log-probability. Both evaluate two random trees on a model
    of the key's configuration with random weights. Infinite if a log-probability is not finite. Raises any error of the
    model. Results are cached by key, errors are not.
    """
    own = key.attention if key.attention != ATTENTION else "sdpa"
    # The program's own random state is restored afterwards.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        model = key.model_class._from_config(key.config, attn_implementation=own, dtype=torch.float32).eval()
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.2)
            else:
                # Norms and biases of 1 or 0 would hide code that ignores them.
                parameter.data += 0.2 * torch.randn_like(parameter)
    # Two trees, so that passes over several trees are probed as well.
    nodes = [*_probe_tree(seed=0), *_probe_tree(seed=1)]
    if key.graphs_on:
        model.to(key.graphs_on)
    cached = CachedEngine(model, cache_bytes=1 << 30, attention=key.attention)
    if key.graphs_on:
        cached.use_graphs(record_at=1)
    shuffled = random.Random(1).sample(nodes, len(nodes))
    rows = torch.cat([cached.evaluate(shuffled[start : start + 7]).clone() for start in range(0, len(shuffled), 7)])
    plain = UncachedEngine(model).evaluate(shuffled)
    if cached.graphs is not None and cached.graphs.failure:
        raise RuntimeError(cached.graphs.failure)
    if not (torch.isfinite(rows).all() and torch.isfinite(plain).all()):
        return float("inf")
    return float((rows - plain).abs().max() / plain.abs().max())


def _probe_tree(seed: int) -> list[Node]:
    """Return nodes to evaluate in a new tree of random tokens: the last of the prompt, then one branch after the other.

    The tree has a prompt of `PROMPT` tokens and `BRANCHES` branches of `DEPTH` + 1 nodes below it, whose ends are not
    returned. `DEPTH` exceeds `LIMIT`, so sliding windows end within a branch. Equal seeds give equal trees.
    """
    generator, tree = random.Random(seed), TokenTree()
    head = tree.descend(tree.root, (generator.randrange(VOCABULARY) for _ in range(PROMPT)))
    tree.move_head(head)
    nodes = [head]
    for token_id in range(BRANCHES):
        node = tree.expand(head, token_id)
        for _ in range(DEPTH):
            nodes.append(node)
            node = tree.expand(node, generator.randrange(VOCABULARY))
    return nodes
