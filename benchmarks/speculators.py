"""Who writes in the speculation benchmark: ours and its variants, transformers' ways, and the trie of seed 001."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import GenerationConfig, PreTrainedModel

from benchmarks.peers import peers_model
from benchmarks.tasks import Prompt
from benchmarks.trie import Trie, TrieDrafter, Unheeded
from lookahead_core import Document, Model, load_corpus
from lookahead_core.speculation.draft_and_verify import Pass

GREEDY = "generate"
LOOKUP = "prompt lookup"
ASSISTED = "assisted"
OURS = "ours"
PLAIN = "ours, plain"
SUFFIX = "ours, suffix"
RECYCLED = "ours, recycled"
CORPUS = "ours, corpus"
HEADS = "ours, heads"
DRAFT = "ours, draft model"
TRIE = "trie"
TRIE_CORPUS = "trie, corpus"
MAIN = (GREEDY, LOOKUP, OURS, HEADS)
"""Who writes at every prompt; heads where some are given."""
LAYERS = 1 / 3
"""The share of a model's own layers that assists it where there is no smaller sister."""


@dataclass(frozen=True)
class Written:
    """What a contestant has written, end token included, and its passes where it tells them."""

    token_ids: tuple[int, ...]
    passes: tuple[Pass, ...] = ()


Ready = Callable[[], Written]
"""What is timed; what may be done before a prompt is known is done already."""


@dataclass(frozen=True)
class Contestant:
    """A name, and how it gets ready for a prompt, given texts of the same kind."""

    name: str
    ready: Callable[[Prompt, Sequence[str]], Ready]


class Company:
    """All that write with the same weights in the same type."""

    def __init__(self, model: Model, draft_model: Model | None = None, heads: Any = None) -> None:
        self.model = model
        self.peer = peers_model(model.hf_model)
        self.assistant = first_layers(self.peer, LAYERS) if draft_model is None else peers_model(draft_model.hf_model)
        # Kinder than twenty tokens each time, as transformers has it: its guesses are seldom right so far ahead.
        self.assistant.generation_config = GenerationConfig(
            num_assistant_tokens=5,
            num_assistant_tokens_schedule="heuristic_transient",
            assistant_confidence_threshold=0.4,
        )
        self._given: dict[str, dict[str, Any]] = {OURS: {}, SUFFIX: {"drafters": ("suffix",)}}
        self._given[RECYCLED] = {"drafters": ("recycled",)}
        self._given |= {HEADS: {"heads": heads}} if heads is not None else {}
        self._given |= {DRAFT: {"draft_model": draft_model}} if draft_model is not None else {}

    def contestants(self) -> list[Contestant]:
        """Everybody there is."""
        theirs = {
            GREEDY: {},
            LOOKUP: {"prompt_lookup_num_tokens": 10, "max_matching_ngram_size": 2},
            ASSISTED: {"assistant_model": self.assistant},
        }
        return [
            *(Contestant(name, self._theirs(options)) for name, options in theirs.items()),
            *(Contestant(name, self._ours(options)) for name, options in self._given.items()),
            Contestant(PLAIN, self._ours({"speculate": False})),
            Contestant(CORPUS, self._ours_warm),
            Contestant(TRIE, lambda prompt, texts: self._trie(prompt, ())),
            Contestant(TRIE_CORPUS, self._trie),
        ]

    def _ours(self, options: dict[str, Any]) -> Callable[[Prompt, Sequence[str]], Ready]:
        return lambda prompt, texts: lambda: write(self.model, prompt, **options)

    def _ours_warm(self, prompt: Prompt, texts: Sequence[str]) -> Ready:
        corpus = load_corpus(self.model, list(texts))
        return lambda: write(self.model, prompt, corpus=corpus)

    def _trie(self, prompt: Prompt, texts: Sequence[str]) -> Ready:
        trie = Trie(ends=self.model.end_token_ids)
        for text in texts:
            trie.add_text(self.model.tokenizer(text, add_special_tokens=False).input_ids)

        def ready() -> Written:
            with unheeded(self.model.engine):
                return write(self.model, prompt, drafters=[TrieDrafter(trie)])

        return ready

    def _theirs(self, options: dict[str, Any]) -> Callable[[Prompt, Sequence[str]], Ready]:
        return lambda prompt, texts: lambda: self._generate(prompt, **options)

    @torch.inference_mode()
    def _generate(self, prompt: Prompt, assistant_model: PreTrainedModel | None = None, **options: Any) -> Written:
        row = torch.tensor([prompt.ids], device=self.peer.device)
        ends = sorted(self.model.end_token_ids)
        config = GenerationConfig(
            max_new_tokens=prompt.new_tokens,
            do_sample=False,
            num_beams=1,
            repetition_penalty=1.0,
            no_repeat_ngram_size=0,
            use_cache=True,
            eos_token_id=ends or None,
            pad_token_id=ends[0] if ends else None,
            **options,
        )
        rows = self.peer.generate(
            row, attention_mask=torch.ones_like(row), generation_config=config, assistant_model=assistant_model
        )
        return Written(tuple(rows[0, row.shape[1] :].tolist()))


def write(model: Model, prompt: Prompt, **options: Any) -> Written:
    """Ours, cold: a new document, and all of its stream."""
    document = Document(model, token_ids=list(prompt.ids))
    stream = document.stream(max_new_tokens=prompt.new_tokens, **{"speculate": True, **options})
    for _ in stream:
        pass
    return Written(tuple(stream.token_ids), tuple(stream.passes))


def first_layers(model: PreTrainedModel, share: float) -> PreTrainedModel:
    """The model without its later layers, on the same parameters."""
    kept = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    assistant = copy.deepcopy(model, kept)
    count = max(1, round(share * model.config.num_hidden_layers))
    decoder = assistant.get_decoder()
    decoder.layers = decoder.layers[:count]
    for config in {id(config): config for config in (assistant.config, decoder.config)}.values():
        config.num_hidden_layers = count
        if getattr(config, "layer_types", None):
            config.layer_types = config.layer_types[:count]
    return assistant


@contextmanager
def unheeded(engine: Any) -> Iterator[None]:
    """Drafts are as long as what is found for them, and what passes take is not learnt from them."""
    costs, engine.pass_costs = engine.pass_costs, Unheeded()
    try:
        yield
    finally:
        engine.pass_costs = costs
