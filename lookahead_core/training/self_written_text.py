"""The model writes texts of its own, and leaves with each token the vector that it came from: heads learn from that."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import torch

from lookahead_core.document.document import Document
from lookahead_core.errors import LookaheadError
from lookahead_core.model import Model
from lookahead_core.text.chat import instruction_opening
from lookahead_core.tree import Node, TokenTree

TEMPERATURES = (0.0, 0.3, 0.5, 0.7, 0.7, 0.7, 0.8, 1.0)
"""Each start is gone on with so many times: once always with the likeliest token, else drawn."""
TREES = 8
"""So many starts are gone on with side by side."""
LENGTH = 128
"""How many tokens each text has at most."""
DRAWN_AMONG = 50
THOUGHTS = 8
"""So many of the likeliest tokens, with their odds, are kept of what the model thought before each token."""
PIECE, START = 192, 48
"""A text that is given is cut into pieces of so many tokens; the model goes on from so many of each."""

TOPICS = (
    "the sea", "a small village", "the history of bread", "learning to swim", "honest work", "a lost key", "volcanoes",
    "the first day at school", "growing tomatoes", "old bridges", "a cat and a dog", "how rivers change", "the moon",
    "saving money", "a letter to a friend", "train journeys", "music for children", "the human heart", "winter",
    "making a website", "sorting a list of numbers", "a good night's sleep", "coffee", "bees", "the Roman Empire",
    "electric cars", "painting a room", "an unexpected guest", "prime numbers", "healthy food",
)  # fmt: skip
INSTRUCTIONS = (
    "Write a short story about {}.", "Explain {} in simple words.", "Give me five tips about {}.",
    "What should I know about {}?", "Write an email to a colleague about {}.", "Summarise what is known about {}.",
    "Write a poem about {}.", "List the advantages and disadvantages of {}.", "Ask me three questions about {}.",
    "Write a Python function that has to do with {}, and explain it.", "Describe {} to someone from another country.",
    "Write a dialogue between two people about {}.", "Plan a lesson about {}.", "Tell me a surprising fact about {}.",
    "Rewrite this so that it is easier to read: it is often said that {} cannot be understood without patience.",
)  # fmt: skip
OPENINGS = (
    "Once upon a time, when nobody thought of {},", "There are three things to say about {}. First,",
    "# Notes on {}\n\n", "Dear Anna,\n\nyou asked me about {}.", "The most common mistake about {} is",
    "In the last ten years, {}", "She had never cared much for {}, but", "Question: What is {}?\nAnswer:",
    "Researchers who study {} have found that", "To begin with {}, you need:\n\n1.", "My grandmother said of {}:",
    "import math\n\n# This program is about {}.\ndef", "Breaking news about {}:", "A short guide to {}\n\nStep 1:",
)  # fmt: skip


@dataclass(slots=True)
class GrowingText:
    """A text on its way: its end in a tree, how it is drawn, and what it was given."""

    node: Node
    temperature: float
    start: int
    """The number of the start that it goes on from."""
    over: bool = False
    token_ids: list[int] = field(default_factory=list)
    vectors: list[torch.Tensor] = field(default_factory=list)
    thoughts: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    """Before each token the ids that the model thought likeliest, and how likely."""

    def take(
        self, token_id: int, vector: torch.Tensor, thought: tuple[torch.Tensor, torch.Tensor], ends: frozenset[int]
    ) -> None:
        self.token_ids.append(token_id)
        self.vectors.append(vector)
        self.thoughts.append(thought)
        self.over = token_id in ends or len(self.token_ids) >= LENGTH
        self.node = self.node.tree.expand(self.node, token_id)


def starts_of(model: Model, texts: Iterable[str] | None, seed: int) -> list[list[int]]:
    """What the model is to go on from, in an order that the seed gives."""
    starts = _own_starts(model) if texts is None else _starts_in(model, texts)
    if len(starts) < 2:
        raise ValueError(f"The texts hold less than two pieces of {START} tokens to go on from; give more of them.")
    order = torch.randperm(len(starts), generator=torch.Generator().manual_seed(seed))
    return [starts[place] for place in order.tolist()]


def _own_starts(model: Model) -> list[list[int]]:
    """Openings of many kinds; instructions as well, as many of them, where the model takes any."""
    model.codec.require_tokenizer()
    starts = [Document(model, words.format(topic)).token_ids for words, topic in itertools.product(OPENINGS, TOPICS)]
    if not getattr(model.tokenizer, "chat_template", None):
        return starts
    asked = [words.format(topic) for words, topic in itertools.product(INSTRUCTIONS, TOPICS)]
    return starts + [list(instruction_opening(model.tokenizer, instruction)) for instruction in asked]


def _starts_in(model: Model, texts: Iterable[str]) -> list[list[int]]:
    """The beginnings of the pieces of these texts; a last piece that is too short for one is left out."""
    starts = []
    for text in [texts] if isinstance(texts, str) else texts:
        token_ids = Document(model, text).token_ids
        before = list(model.codec.start_ids)
        words = token_ids[len(before) :]
        pieces = [words[first : first + START] for first in range(0, len(words), PIECE)]
        starts += [before + piece for piece in pieces if len(piece) == START]
    return starts


def write(
    model: Model, starts: Sequence[tuple[int, list[int]]], dice: torch.Generator, tick: Callable[[int], bool]
) -> list[GrowingText]:
    """Texts from these numbered starts, side by side; `tick` hears how many tokens came, and tells when to stop."""
    texts = []
    for number, token_ids in starts:
        tree = TokenTree()
        node = tree.descend(tree.root, token_ids)
        texts += [GrowingText(node, temperature, number) for temperature in TEMPERATURES]
    room = (model.context_length or 1 << 30) - max(len(token_ids) for _, token_ids in starts)
    for _ in range(min(LENGTH, room)):
        growing = [text for text in texts if not text.over]
        if not growing or tick(len(growing)):
            break
        _go_on(model, growing, dice)
    return texts


def _go_on(model: Model, texts: Sequence[GrowingText], dice: torch.Generator) -> None:
    """One token more for each text, in one pass: texts that are still the same share a node."""
    scores = model.engine.score(list(dict.fromkeys(text.node for text in texts)), hidden=True)
    if scores.hidden is None:
        raise LookaheadError(
            f"{model.name} runs without a cache here and does not show its vectors, so heads cannot be trained for it."
        )
    vectors = dict(zip(scores.nodes, scores.hidden.cpu(), strict=True))
    temperatures = torch.tensor([text.temperature for text in texts])
    rows = scores.logits_of([text.node for text in texts]).cpu()
    drawn = _draw(rows, temperatures, dice)
    odds, ids = rows.softmax(-1).topk(min(THOUGHTS, rows.shape[-1]))
    for text, token_id, thought in zip(texts, drawn.tolist(), zip(ids, odds, strict=True), strict=True):
        text.take(token_id, vectors[text.node], thought, model.end_token_ids)


def _draw(rows: torch.Tensor, temperatures: torch.Tensor, dice: torch.Generator) -> torch.Tensor:
    """A token from each row, among the likeliest ones."""
    values, token_ids = rows.topk(min(DRAWN_AMONG, rows.shape[-1]))
    odds = ((values - values[:, :1]) / temperatures.clamp_min(1e-6)[:, None]).softmax(-1)
    return token_ids.gather(1, odds.multinomial(1, generator=dice))[:, 0]
