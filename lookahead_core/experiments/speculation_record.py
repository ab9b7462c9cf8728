"""A record of speculative decoding: each pass's draft tree, what the model accepted and added, and the plain text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import torch

from lookahead_core.document.document import Document
from lookahead_core.document.drafting import draft_chooser, require_same_tokens
from lookahead_core.document.generation_start import GenerationStart
from lookahead_core.document.stream import StreamStep, stream_steps
from lookahead_core.engines.engine import Engine
from lookahead_core.engines.pass_costs import PassCosts
from lookahead_core.experiments.cache_experiment import require_cache
from lookahead_core.experiments.decoding_experiment import DecodingOptions, OddsOfToken, odds_after_options
from lookahead_core.model import Model
from lookahead_core.speculation.acceptance import Acceptance
from lookahead_core.speculation.draft_tree import DraftTree
from lookahead_core.speculation.draft_value import PassLoad
from lookahead_core.speculation.drafters.draft_model_drafter import DraftModelDrafter
from lookahead_core.speculation.drafters.protocol import Drafter
from lookahead_core.steps import last_step
from lookahead_core.strategies.stream_options import REJECTION, StreamOptions
from lookahead_core.tree import Node
from lookahead_core.validation import check_integer, parse_options

MAX_TOKENS = 60
"""The most tokens of a recorded text: the record is for a figure of each pass."""
DRAWS = 1_000
"""Draws of `rejection_steps` unless another number is given."""
DRAWS_IN_STEP = 10
"""Draws between two of its steps."""

AddedKind = Literal["correction", "bonus", "alone"]
"""Why the model itself added a token: see `AddedToken.kind`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeculationOptions:
    """The options of `speculation_record`; a wrong one raises ValueError."""

    tokens: int = 40
    """Tokens of the text at most, 2 to MAX_TOKENS: before the last token there is nothing to draft."""
    drafters: Collection[str | Drafter] = ("suffix", "recycled")
    """Names of the library's drafters, or drafters of one's own; may be empty if there is a `draft_model`."""
    draft_model: Model | None = None
    """A smaller model with the same tokens, whose guesses are drafted too; None for none."""
    temperature: float = 0.0
    """0 for the likeliest token each time; above 0 tokens are drawn, with noise that the seed fixes."""
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("tokens", self.tokens, 2, MAX_TOKENS)
        self.stream_options()
        if not self.drafters and self.draft_model is None:
            raise ValueError("Choose at least one drafter: without one no token is drafted.")

    def stream_options(self, **others: Any) -> StreamOptions:
        """Return the options of the text's stream; `others` are further ones, or other values of these."""
        chosen: dict[str, Any] = {
            "max_new_tokens": self.tokens,
            "drafters": self.drafters,
            "draft_model": self.draft_model,
            "speculate": True,
            "temperature": self.temperature,
            "top_k": self.top_k,
            "top_p": self.top_p,
            "seed": self.seed,
        }
        return StreamOptions(**(chosen | others))


@dataclass(frozen=True, slots=True)
class DraftedToken:
    """A node of a draft tree: a token that drafters proposed, and whether the model accepted it."""

    token_id: int
    text: str
    """Its characters; U+FFFD stands for parts of a character."""
    parent: int | None
    """The index of the node before it in the draft; None if it follows the text."""
    depth: int
    """Its number in the row of drafted tokens, from 1."""
    drafters: tuple[str, ...]
    """The names of all drafters that proposed it here."""
    odds: float
    """The probability, as estimated before the pass, that it and all before it are accepted."""
    accepted: bool


@dataclass(frozen=True, slots=True)
class AddedToken:
    """The token that the model itself added at the end of a pass."""

    token_id: int
    text: str
    """Its characters; U+FFFD stands for parts of a character."""
    kind: AddedKind
    """"correction": in place of drafted tokens, all of which were rejected. "bonus": after the last drafted token of a
    path that was accepted to its end. "alone": nothing was drafted."""


@dataclass(frozen=True, slots=True)
class VerifiedPass:
    """A forward pass that verified a draft: the draft tree, and what the text gained."""

    number: int
    """The number of the pass, from 1."""
    before: int
    """Tokens of the text before it, without the prompt's."""
    nodes: tuple[DraftedToken, ...]
    """The draft, each node after its parent; empty if nothing was drafted."""
    added: AddedToken

    @property
    def accepted(self) -> int:
        """The number of drafted tokens that were accepted."""
        return sum(node.accepted for node in self.nodes)


@dataclass(frozen=True, slots=True)
class SpeculationRecord:
    """The result of `speculation_record`, or the part of it that is known while it runs."""

    drafters: tuple[str, ...] = ()
    """The names of the drafters in use, in order; the draft model's is "model"."""
    prompt_tokens: int = 0
    passes: tuple[VerifiedPass, ...] = ()
    token_ids: tuple[int, ...] = ()
    """The tokens of the text that was drafted and verified, with an end token if it ended."""
    texts: tuple[str, ...] = ()
    """The text that each of these tokens adds; may be empty."""
    ended: bool = False
    """Whether the last of these tokens is an end token."""
    plain_token_ids: tuple[int, ...] = ()
    """The tokens of the plain text: the same prompt and options, without drafts, in a cache of its own."""
    plain_texts: tuple[str, ...] = ()
    plain_passes: int = 0
    """The forward passes of the plain text."""
    equal: bool | None = None
    """Whether both texts have the same tokens; None until both are complete."""

    @property
    def text(self) -> str:
        """The whole text that was drafted and verified."""
        return "".join(self.texts)

    @property
    def plain_text(self) -> str:
        """The whole plain text."""
        return "".join(self.plain_texts)


@dataclass(frozen=True, slots=True)
class RejectionDraws:
    """First tokens drawn by rejection sampling, beside the odds that they should have."""

    odds: tuple[OddsOfToken, ...]
    """The likeliest tokens after the prompt, with the model's odds and those that tokens are drawn with."""
    counts: Mapping[int, int] = field(default_factory=dict)
    """How often each token came, by its id."""
    drafted: int = 0
    """The draws in which at least one token was drafted."""
    accepted: int = 0
    """The draws in which a drafted token was accepted."""

    @property
    def number(self) -> int:
        """The number of draws so far."""
        return sum(self.counts.values())


def speculation_record(model: Model, prompt: str, **options: Any) -> SpeculationRecord:
    """Continue a prompt by speculative decoding and without drafts; return all passes of the first, and both texts.

    `options` are those of `SpeculationOptions`. How much is drafted follows the assumed costs of passes, those of a new
    `PassCosts`, and not measured ones, so that the same call gives the same record. Raises ValueError for a wrong
    option, LookaheadError for an empty prompt if the model has no start token, and ModelError if the engine has no
    cache, or the draft model has other tokens.
    """
    return last_step(speculation_steps(model, prompt, **options))


def speculation_steps(model: Model, prompt: str, **options: Any) -> Iterator[SpeculationRecord]:
    """Do the same as `speculation_record`, as a generator: yield the record so far after every pass of either text.

    All tokens that the recorded passes won are in the record. Only the last one has `equal` set.
    """
    checked = parse_options(SpeculationOptions, options, "speculation_record")
    require_cache(model)
    document = Document(model, prompt)
    passes: list[VerifiedPass] = []

    def observe(draft: DraftTree, accepted: Sequence[Node], token_id: int) -> None:
        passes.append(_verified_pass(model, passes, draft, accepted, token_id))

    stream = checked.stream_options()
    reader = document.generation_start(stream).stream_reader(stream)
    found = SpeculationRecord(_names(checked), len(document.token_ids))
    speculation = reader.continuation.speculation
    if speculation is not None:
        speculation.costs, speculation.observer = PassCosts(), observe
    steps: list[StreamStep] = []
    for _, step in stream_steps(model.engine, [reader]):
        steps.append(step)
        if len(steps) == _won(passes):
            found = replace(
                found,
                passes=tuple(passes),
                token_ids=_ids(steps),
                texts=_texts(steps),
                ended=step.finish == "end",
            )
            yield found
    plain = Document(model, prompt).stream(**_plain_options(checked))
    for _ in plain:
        found = replace(
            found,
            plain_token_ids=_ids(plain.steps),
            plain_texts=_texts(plain.steps),
            plain_passes=len(plain.passes),
        )
        yield found
    yield replace(found, equal=found.token_ids == found.plain_token_ids)


def rejection_steps(model: Model, prompt: str, draws: int = DRAWS, **options: Any) -> Iterator[RejectionDraws]:
    """Draw the first token after a prompt again and again by rejection sampling; yield the draws so far.

    A generator with a step before the first draw, after each DRAWS_IN_STEP, and at the end. Each draw has a draft of
    its own, made by the drafters of `options`, which are those of `SpeculationOptions`. The draws are those of the
    streams 0, 1, 2, … with `speculate="rejection"`, with the costs that `speculation_record` assumes. Raises
    ValueError at temperature 0, and the errors of `speculation_record`.
    """
    checked = parse_options(SpeculationOptions, options, "speculation_record")
    if not checked.temperature:
        raise ValueError("temperature is 0, where nothing is drawn: choose one above 0 for draws.")
    require_cache(model)
    document = Document(model, prompt)
    shared = {name: getattr(checked, name) for name in ("temperature", "top_k", "top_p", "seed")}
    found = RejectionDraws(odds_after_options(document, DecodingOptions(**shared)))
    yield found
    stream = checked.stream_options(speculate=REJECTION, max_new_tokens=2)
    start = document.generation_start(stream)
    choices = _Choices(start, stream)
    drafters = [*checked.drafters, *choices.drafters]
    logprobs = start.odds(stream)
    counts: dict[int, int] = {}
    drafted = accepted = 0
    for number in range(draws):
        choices.stream = number
        own = replace(stream, stream=number, drafters=drafters, draft_model=None)
        acceptance, tokens = _draw(start, own, logprobs)
        counts[acceptance.token_id] = counts.get(acceptance.token_id, 0) + 1
        drafted += tokens > 0
        accepted += acceptance.accepted
        if (number + 1) % DRAWS_IN_STEP == 0 or number + 1 == draws:
            found = replace(found, counts=dict(counts), drafted=drafted, accepted=accepted)
            yield found


class _Choices:
    """The draft model's guesses of the first token, one for each stream, from a single row of log-probabilities.

    Without this, each draw would make the draft model read the prompt again.
    """

    def __init__(self, start: GenerationStart, options: StreamOptions) -> None:
        """`options` have the draft model, if there is one, which must have the same tokens."""
        self.stream = 0
        """The stream whose noise the next guess is chosen with."""
        self.drafters: list[Drafter] = []
        """The drafter of the draft model; empty without one."""
        self._options = options
        self._unread = len(start.token_ids) - start.head.depth
        self._rows: dict[Node, torch.Tensor] = {}
        draft_model = options.draft_model
        if draft_model is not None:
            require_same_tokens(start.model, draft_model)
            self._engine = draft_model.engine
            once = replace(draft_model, engine=cast("Engine", self))
            self.drafters = [DraftModelDrafter(once, start.model.vocabulary, self._choose, start.drafting.accuracy)]

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        """Return the rows of `Engine.evaluate`; each node is evaluated once."""
        for node in nodes:
            if node not in self._rows:
                self._rows[node] = self._engine.evaluate([node])[0].clone()
        return torch.stack([self._rows[node] for node in nodes])

    def free(self, nodes: Sequence[Node]) -> None:
        self._engine.free(nodes)

    def _choose(self, row: torch.Tensor, path: Sequence[int]) -> tuple[int, torch.Tensor | None]:
        return draft_chooser(replace(self._options, stream=self.stream), self._unread)(row, path)


def _draw(start: GenerationStart, options: StreamOptions, logprobs: torch.Tensor) -> tuple[Acceptance, int]:
    """Return the first token of a stream that uses rejection, and how many tokens were drafted for it.

    `logprobs` are those that the token is drawn with. The draft is removed from the tree again.
    """
    continuation = start.stream_reader(options).continuation
    speculation = continuation.speculation
    assert speculation is not None
    speculation.costs = PassCosts()
    continuation.nodes_to_evaluate(PassLoad(1))
    tokens = len(speculation.drafted_below(start.head))
    acceptance = continuation.sample_by_rejection(logprobs, start.head)
    start.head.tree.prune_unevaluated(speculation.discard_draft())
    return acceptance, tokens


def _verified_pass(
    model: Model, passes: Sequence[VerifiedPass], draft: DraftTree, accepted: Sequence[Node], token_id: int
) -> VerifiedPass:
    """Return the pass after `passes`; the arguments after it are those of a `DraftObserver`."""

    def text_of(node_id: int) -> str:
        return model.codec.bytes_of(node_id).decode("utf-8", "replace")

    drafted = [node for node in draft.nodes if node is not draft.root.node]
    index = {node: number for number, node in enumerate(drafted)}
    nodes = []
    for node in drafted:
        known = draft.by_node[node]
        above = None if node.parent is None else index.get(node.parent)
        nodes.append(
            DraftedToken(
                node.token_id, text_of(node.token_id), above, known.depth, known.drafters, known.odds, node in accepted
            )
        )
    kind: AddedKind = "alone"
    if nodes:
        kind = "correction" if draft.by_node[accepted[-1]].children else "bonus"
    return VerifiedPass(len(passes) + 1, _won(passes), tuple(nodes), AddedToken(token_id, text_of(token_id), kind))


def _won(passes: Sequence[VerifiedPass]) -> int:
    """Return the number of tokens that these passes have added to the text."""
    return sum(one.accepted + 1 for one in passes)


def _names(options: SpeculationOptions) -> tuple[str, ...]:
    """Return the names of the drafters, that of the draft model included."""
    names = [one if isinstance(one, str) else one.name for one in options.drafters]
    return (*names, *([DraftModelDrafter.name] if options.draft_model is not None else []))


def _plain_options(options: SpeculationOptions) -> dict[str, Any]:
    """Return the keyword arguments of `Document.stream` for the plain text."""
    names = ("temperature", "top_k", "top_p", "seed")
    return {name: getattr(options, name) for name in names} | {"max_new_tokens": options.tokens, "speculate": False}


def _ids(steps: Sequence[StreamStep]) -> tuple[int, ...]:
    return tuple(step.token_id for step in steps)


def _texts(steps: Sequence[StreamStep]) -> tuple[str, ...]:
    return tuple(step.text for step in steps)
