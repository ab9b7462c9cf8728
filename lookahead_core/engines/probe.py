"""Does the cached engine fit a model? First its configuration is asked, then a small copy of its architecture is tried.

A trial on the model itself proves little: windows, chunks and rotation limits of 64 pass it at 50 tokens and are
wrong at 100. So the copy is narrow, has two layers of each kind, and every such limit is shrunk to 8.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import random
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import torch

from lookahead_core.engines.attention import ATTENTION
from lookahead_core.engines.cached import CachedEngine
from lookahead_core.engines.masks import MaskPlan
from lookahead_core.engines.uncached import LENGTH_DEPENDENT_ROPES, UncachedEngine, rope_types
from lookahead_core.tree import Node, TokenTree

LIMIT = 8
PROMPT, DEPTH, WAYS = 40, 12, 2
TOLERANCE = 1e-4
VOCABULARY = 96


@dataclass(frozen=True)
class ProbeResult:
    """Whether the cached engine fits, under which attention, and why not where it does not."""

    cached: bool
    attention: str = ""
    reason: str = ""


def fit(hf_model: Any) -> ProbeResult:
    """Decide for a model, without touching it."""
    config = hf_model.config
    if reason := _refused_by(config):
        return ProbeResult(False, reason=reason)
    reason = ""
    for attention in _candidates(hf_model):
        try:
            apart = _difference(hf_model, attention)
        except Exception as error:  # whatever a foreign model raises here, it only means that the cache does not fit
            named = ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
            reason = f"a small copy of it cannot be run that way ({named})"
            continue
        if apart <= TOLERANCE:
            return ProbeResult(True, attention)
        reason = f"a small copy of it differs from a plain forward by {apart:.1e}"
    return ProbeResult(False, reason=reason)


def _refused_by(config: Any) -> str:
    """Why the configuration alone rules the cache out, or nothing."""
    text = config.get_text_config(decoder=True)
    if growing := rope_types(config) & LENGTH_DEPENDENT_ROPES:
        return f"its rotation is {', '.join(sorted(growing))}: earlier keys change as the text grows"
    if getattr(text, "alibi", False) or getattr(text, "attn_config", None) is not None:
        return "its attention adds a slope over slots, not over depth"
    if getattr(text, "attention_chunk_size", None):
        return "its attention is cut into chunks"
    plan = MaskPlan.of(config)
    if not plan.supported:
        return f"it has layers of another kind ({', '.join(plan.kinds)})"
    return ""


def _candidates(hf_model: Any) -> list[str]:
    """Ways to attend, best first: ours, where the model lets attention be chosen; its own; the plain one."""
    own = str(hf_model.config._attn_implementation or "eager")
    ours = [ATTENTION] if getattr(hf_model, "_supports_attention_backend", False) else []
    plain = own if own in ("sdpa", "eager") else "eager"
    return list(dict.fromkeys([*ours, plain, "eager"]))


def small_config(config: Any) -> Any:
    """The same architecture, narrow and shallow, with every limit shrunk."""
    small = copy.deepcopy(config)
    text = small.get_text_config(decoder=True)
    _make_shallow(text)
    _make_narrow(text)
    _shrink_limits(text)
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        setattr(text, name, None)
    for part in (small, text):
        # What rounds the weights of the large model has nothing to do with how it attends.
        vars(part).pop("quantization_config", None)
    return small


def _make_shallow(text: Any) -> None:
    """Two layers of each kind, where there are kinds."""
    kinds = list(dict.fromkeys(getattr(text, "layer_types", None) or ("only",)))
    layers = [kind for kind in kinds for _ in range(2)]
    if getattr(text, "layer_types", None):
        text.layer_types = layers
    if getattr(text, "attention_layers", None):
        text.attention_layers = text.attention_layers[:2]
    text.num_hidden_layers = len(layers)


def _make_narrow(text: Any) -> None:
    """Four heads of sixteen; shared key heads stay shared."""
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
        # Some families compute these from others, and refuse to be told.
        with contextlib.suppress(AttributeError):
            if isinstance(getattr(text, name, None), int):
                setattr(text, name, value)


def _shrink_limits(text: Any) -> None:
    """Windows to 8, so that a short trial crosses them; room for the positions that the trial needs."""
    if getattr(text, "sliding_window", None):
        text.sliding_window = LIMIT
    if isinstance(getattr(text, "window_size", None), int):
        text.window_size = LIMIT
    text.max_position_embeddings = 2 * (PROMPT + DEPTH)


@dataclass(frozen=True)
class ProbeKey:
    """What the outcome of a trial depends on. Configurations are compared by their text."""

    model_class: type
    config: Any = field(compare=False)
    config_text: Hashable
    attention: str


def _difference(hf_model: Any, attention: str) -> float:
    config = small_config(hf_model.config)
    return difference(ProbeKey(type(hf_model), config, _text_of(config), attention))


def _text_of(config: Any) -> Hashable:
    """A configuration as JSON; where it holds what JSON cannot, something that equals nothing else."""
    try:
        return str(config.to_json_string(use_diff=False))
    except Exception:
        return object()


@functools.lru_cache(maxsize=64)
def difference(trial: ProbeKey) -> float:
    """The largest difference between cached and plain log-probabilities on two small trees, relative to their size.

    Remembered: models of one architecture have the same small copy, so only the first of them is tried.
    """
    own = trial.attention if trial.attention != ATTENTION else "sdpa"
    # The program's own random state is put back afterwards.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        model = trial.model_class._from_config(trial.config, attn_implementation=own, dtype=torch.float32).eval()
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.2)
            else:
                # Norms and biases as well: what is one, or nothing, hides who forgets it.
                parameter.data += 0.2 * torch.randn_like(parameter)
    # Two trees, so that passes that both share are tried as well.
    nodes = [*_trial_tree(seed=0), *_trial_tree(seed=1)]
    cached = CachedEngine(model, cache_bytes=1 << 30, attention=trial.attention)
    some = random.Random(1).sample(nodes, len(nodes))
    rows = torch.cat([cached.evaluate(some[start : start + 7]).clone() for start in range(0, len(some), 7)])
    plain = UncachedEngine(model).evaluate(some)
    if not (torch.isfinite(rows).all() and torch.isfinite(plain).all()):
        return float("inf")
    return float((rows - plain).abs().max() / plain.abs().max())


def _trial_tree(seed: int) -> list[Node]:
    """A prompt and two branches below it, deep enough to cross every shrunken limit."""
    dice, tree = random.Random(seed), TokenTree()
    head = tree.descend(tree.root, (dice.randrange(VOCABULARY) for _ in range(PROMPT)))
    tree.move_head(head)
    nodes = [head]
    for way in range(WAYS):
        node = tree.expand(head, way)
        for _ in range(DEPTH):
            nodes.append(node)
            node = tree.expand(node, dice.randrange(VOCABULARY))
    return nodes
