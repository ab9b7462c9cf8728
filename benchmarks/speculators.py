"""The methods of the speculation benchmark: ours and its variants, those of transformers, and a trie (trie.py)."""

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
from benchmarks.trie import FreePasses, Trie, TrieDrafter
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
"""The names of the methods that write at every prompt by default; HEADS only if heads are passed."""
LAYERS = 1 / 3
"""The share of a model's layers that make its assistant model if no smaller model is passed."""


@dataclass(frozen=True)
class Written:
    """The tokens that a method wrote, end token included, and its passes; none for methods that do not report them."""

    token_ids: tuple[int, ...]
    passes: tuple[Pass, ...] = ()


Ready = Callable[[], Written]
"""The timed part of a method: it writes the text of one prompt."""


@dataclass(frozen=True)
class SpeculationMethod:
    """A method of writing a text after a prompt."""

    name: str
    prepare: Callable[[Prompt, Sequence[str]], Ready]
    """A function that takes a prompt and the texts of a corpus, and returns the timed part."""


class SpeculationMethods:
    """All methods with the weights of one model in one dtype."""

    def __init__(self, model: Model, draft_model: Model | None = None, heads: Any = None) -> None:
        """`draft_model` and `heads` add variants of ours; without a draft model, `generate` uses the first layers."""
        self.model = model
        self.peer = peers_model(model.hf_model)
        self.assistant = first_layers(self.peer, LAYERS) if draft_model is None else peers_model(draft_model.hf_model)
        # Better for the peer than its default of twenty draft tokens, of which the last are seldom right.
        self.assistant.generation_config = GenerationConfig(
            num_assistant_tokens=5,
            num_assistant_tokens_schedule="heuristic_transient",
            assistant_confidence_threshold=0.4,
        )
        self._options: dict[str, dict[str, Any]] = {OURS: {}, SUFFIX: {"drafters": ("suffix",)}}
        self._options[RECYCLED] = {"drafters": ("recycled",)}
        self._options |= {HEADS: {"heads": heads}} if heads is not None else {}
        self._options |= {DRAFT: {"draft_model": draft_model}} if draft_model is not None else {}

    def contestants(self) -> list[SpeculationMethod]:
        """Return all methods, those of transformers first; GREEDY, plain `generate`, is always among them."""
        theirs = {
            GREEDY: {},
            LOOKUP: {"prompt_lookup_num_tokens": 10, "max_matching_ngram_size": 2},
            ASSISTED: {"assistant_model": self.assistant},
        }
        return [
            *(SpeculationMethod(name, self._theirs(options)) for name, options in theirs.items()),
            *(SpeculationMethod(name, self._ours(options)) for name, options in self._options.items()),
            SpeculationMethod(PLAIN, self._ours({"speculate": False})),
            SpeculationMethod(CORPUS, self._ours_warm),
            SpeculationMethod(TRIE, lambda prompt, texts: self._trie(prompt, ())),
            SpeculationMethod(TRIE_CORPUS, self._trie),
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

        def run() -> Written:
            with unlimited_drafts(self.model.engine):
                return write(self.model, prompt, drafters=[TrieDrafter(trie)])

        return run

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
    """Write a text after a prompt, greedily, with our stream in a new document, and return it with its passes.

    `options` are those of `Document.stream`; `speculate` is True by default.
    """
    document = Document(model, token_ids=list(prompt.ids))
    stream = document.stream(max_new_tokens=prompt.new_tokens, **{"speculate": True, **options})
    for _ in stream:
        pass
    return Written(tuple(stream.token_ids), tuple(stream.passes))


def first_layers(model: PreTrainedModel, share: float) -> PreTrainedModel:
    """Return a model of the first layers only, with the same parameters; `share` of the layers, at least one."""
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
def unlimited_drafts(engine: Any) -> Iterator[None]:
    """Context manager: in its body the engine assumes that all passes cost the same, so that no draft is cut."""
    costs, engine.pass_costs = engine.pass_costs, FreePasses()
    try:
        yield
    finally:
        engine.pass_costs = costs
