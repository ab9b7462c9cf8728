"""Training texts that the model writes itself, each token with the hidden state that it was sampled from.

A text continues a prompt. Prompts come from texts that the caller passes, or are built in.
"""

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
"""Each prompt is continued once at each of these temperatures; 0 is greedy."""
PROMPTS_PER_ROUND = 8
"""Number of prompts per round, which are continued side by side."""
MAX_LENGTH = 128
"""Maximum number of tokens per text, without its prompt."""
TOP_K = 50
"""Tokens are sampled among this many most probable ones."""
CANDIDATES = 8
"""Number of the model's most probable tokens that are stored for each sampled one, with their probabilities."""
PIECE_LENGTH, PROMPT_LENGTH = 192, 48
"""A text from the caller is cut into pieces of PIECE_LENGTH tokens; the first PROMPT_LENGTH of each are a prompt."""

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
    """A text that `write_texts` writes: its last node, its tokens, and the data that heads learn from."""

    node: Node
    """Its last node; the prompt's last one while the text is empty."""
    temperature: float
    prompt_number: int
    over: bool = False
    """Whether it has ended, by an end token or at MAX_LENGTH."""
    token_ids: list[int] = field(default_factory=list)
    """Its tokens, without the prompt's."""
    hidden_states: list[torch.Tensor] = field(default_factory=list)
    """The hidden state that each token was sampled from, of shape (hidden size,)."""
    candidates: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    """For each token, the model's CANDIDATES most probable ids where it was sampled, and their probabilities at
    temperature 1."""

    def append(
        self,
        token_id: int,
        hidden_state: torch.Tensor,
        candidates: tuple[torch.Tensor, torch.Tensor],
        end_token_ids: frozenset[int],
    ) -> None:
        """Append a token, an end token too, with the data of the position where it was sampled; move `node` to it.

        `hidden_state` and `candidates` are as in the lists of the same names. An end token or MAX_LENGTH sets `over`.
        """
        self.token_ids.append(token_id)
        self.hidden_states.append(hidden_state)
        self.candidates.append(candidates)
        self.over = token_id in end_token_ids or len(self.token_ids) >= MAX_LENGTH
        self.node = self.node.tree.expand(self.node, token_id)


def make_prompts(model: Model, texts: Iterable[str] | None, seed: int) -> list[list[int]]:
    """Return the token ids of each prompt to continue, start tokens included, shuffled by the seed.

    They are the beginnings of pieces of `texts`, or built-in openings of many kinds if it is None. Raises ValueError
    if there are fewer than two, a text is no string or a prompt fills the model's context, TextError without a
    tokenizer, and LookaheadError if the model's chat template cannot be used for built-in ones.
    """
    prompts = _built_in_prompts(model) if texts is None else _prompts_in(model, texts)
    if len(prompts) < 2:
        raise ValueError(
            f"The texts hold less than two pieces of {PROMPT_LENGTH} tokens to go on from; give more of them."
        )
    longest = max(map(len, prompts))
    if model.context_length is not None and longest >= model.context_length:
        raise ValueError(
            f"{model.name} reads {model.context_length} tokens at once, and prompts here have up to {longest}: there is"
            " no room for a text after them; train heads for a model with a longer context."
        )
    order = torch.randperm(len(prompts), generator=torch.Generator().manual_seed(seed))
    return [prompts[index] for index in order.tolist()]


def _built_in_prompts(model: Model) -> list[list[int]]:
    """Return the token ids of each built-in prompt: openings of texts of many kinds about many topics.

    If the tokenizer has a chat template, instructions in that template are added. Start tokens are included. Raises
    TextError without a tokenizer, and LookaheadError if the template cannot be used.
    """
    prompts = [Document(model, words.format(topic)).token_ids for words, topic in itertools.product(OPENINGS, TOPICS)]
    if not getattr(model.tokenizer, "chat_template", None):
        return prompts
    instructions = [words.format(topic) for words, topic in itertools.product(INSTRUCTIONS, TOPICS)]
    return prompts + [list(instruction_opening(model.tokenizer, instruction)) for instruction in instructions]


def _prompts_in(model: Model, texts: Iterable[str]) -> list[list[int]]:
    """Return a prompt for each piece of the texts: start tokens, and the piece's first PROMPT_LENGTH token ids.

    Each text is cut into pieces of PIECE_LENGTH tokens; those shorter than PROMPT_LENGTH are left out. A single string
    counts as a list of one. Raises ValueError if a text is no string, and TextError without a tokenizer.
    """
    prompts = []
    for text in [texts] if isinstance(texts, str) else texts:
        token_ids = Document(model, text).token_ids
        start_ids = list(model.codec.start_ids)
        text_ids = token_ids[len(start_ids) :]
        pieces = [text_ids[first : first + PROMPT_LENGTH] for first in range(0, len(text_ids), PIECE_LENGTH)]
        prompts += [start_ids + piece for piece in pieces if len(piece) == PROMPT_LENGTH]
    return prompts


def write_texts(
    model: Model,
    prompts: Sequence[tuple[int, list[int]]],
    generator: torch.Generator,
    should_stop: Callable[[int], bool],
) -> list[GrowingText]:
    """Return texts that continue these prompts, (number, token ids) pairs: one for each entry of TEMPERATURES.

    They are in the order of prompts, then of TEMPERATURES, and grow side by side until an end token or MAX_LENGTH, or
    until the longest prompt and its text fill the model's context. There must be a prompt, and none may be empty.
    `generator` draws the samples. `should_stop` is called before each token with the number of texts that get one;
    True stops the writing, so that texts may be unfinished or empty. A LookaheadError is raised if the engine returns
    no hidden states.
    """
    texts = []
    for number, token_ids in prompts:
        tree = TokenTree()
        node = tree.descend(tree.root, token_ids)
        texts += [GrowingText(node, temperature, number) for temperature in TEMPERATURES]
    free = (model.context_length or 1 << 30) - max(len(token_ids) for _, token_ids in prompts)
    for _ in range(min(MAX_LENGTH, free)):
        growing = [text for text in texts if not text.over]
        if not growing or should_stop(len(growing)):
            break
        _add_token(model, growing, generator)
    return texts


def _add_token(model: Model, texts: Sequence[GrowingText], generator: torch.Generator) -> None:
    """Sample a token for each text, none of which has ended, and append it with the data that heads learn from.

    All are computed in one call of the engine; equal texts of one prompt share a node there. A LookaheadError is raised
    if the engine returns no hidden states.
    """
    scores = model.engine.score(list(dict.fromkeys(text.node for text in texts)), hidden=True)
    if scores.hidden is None:
        raise LookaheadError(
            f"{model.name} runs without a cache here and gives no hidden states, so heads cannot be trained for it."
        )
    hidden_states = dict(zip(scores.nodes, scores.hidden.cpu(), strict=True))
    temperatures = torch.tensor([text.temperature for text in texts])
    rows = scores.logits_of([text.node for text in texts]).cpu()
    sampled = _sample(rows, temperatures, generator)
    probabilities, ids = rows.softmax(-1).topk(min(CANDIDATES, rows.shape[-1]))
    for text, token_id, candidates in zip(texts, sampled.tolist(), zip(ids, probabilities, strict=True), strict=True):
        text.append(token_id, hidden_states[text.node], candidates, model.end_token_ids)


def _sample(rows: torch.Tensor, temperatures: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return one sampled token id per row of logits, among the row's TOP_K most probable tokens.

    `rows` has shape (texts, vocabulary), `temperatures` and the result (texts,). A temperature of 0 takes the most
    probable token.
    """
    values, token_ids = rows.topk(min(TOP_K, rows.shape[-1]))
    odds = ((values - values[:, :1]) / temperatures.clamp_min(1e-6)[:, None]).softmax(-1)
    return token_ids.gather(1, odds.multinomial(1, generator=generator))[:, 0]
