"""The options of a stream, checked when they are made, and the log-probabilities that it samples from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import torch

from lookahead_core.speculation.drafters.registry import checked_drafters
from lookahead_core.strategies.lookahead_options import MAX_SEED
from lookahead_core.strategies.rules import (
    MAX_GENERATED_TOKENS,
    LogitRules,
    ModelRules,
    Phrase,
    checked_phrases,
    require_allowed_token,
)
from lookahead_core.strategies.sampling import apply_temperature_and_cuts
from lookahead_core.text.codec import SURROGATE
from lookahead_core.validation import check_choice, check_integer, check_number, short_repr

if TYPE_CHECKING:
    from lookahead_core.model import Model
    from lookahead_core.speculation.corpus import Corpus
    from lookahead_core.speculation.drafters.protocol import Drafter
    from lookahead_core.speculation.heads_file import Heads

REJECTION = "rejection"
"""The value of `speculate` that accepts drafts by rejection sampling."""
NOT_FOR_CHOICE = (
    "stop", "stop_ids", "stop_when", "max_words", "speculate", "drafters", "draft_model", "heads", "corpus", "source",
)  # fmt: skip
"""Options that do not influence which token is chosen: they end the text or save forward passes.

The exception is `speculate="rejection"`, whose choices are therefore never reused.
"""


@dataclass(frozen=True)
class StreamOptions(LogitRules):
    """The options of a stream; `StreamKeywords` explains each.

    Making them raises a ValueError for a wrong value, or for options that contradict each other.
    """

    temperature: float | None = None
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    typical_p: float = 1.0
    min_tokens_to_keep: int = 1
    seed: int | None = None
    stream: int = 0
    stop: str | Collection[str] = ()
    stop_ids: Collection[Phrase] = ()
    stop_when: Callable[[Sequence[int]], bool] | None = None
    max_words: int | None = None
    speculate: bool | Literal["rejection"] | None = None
    drafters: Collection[str | Drafter] = ("suffix", "recycled")
    draft_model: Model | None = None
    heads: Heads | None = None
    corpus: Corpus | None = None
    source: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature is not None:
            check_number("temperature", self.temperature, 0, 100)
        check_integer("top_k", self.top_k, 0, 10**9)
        check_number("top_p", self.top_p, 0, 1, above=True)
        check_number("min_p", self.min_p, 0, 1)
        check_number("typical_p", self.typical_p, 0, 1, above=True)
        check_integer("min_tokens_to_keep", self.min_tokens_to_keep, 1, 10**9)
        if self.seed is not None:
            check_integer("seed", self.seed, 0, MAX_SEED)
        check_integer("stream", self.stream, 0, MAX_SEED)
        if self.max_words is not None:
            check_integer("max_words", self.max_words, 1, MAX_GENERATED_TOKENS)
        for name in ("stop", "stop_ids"):
            object.__setattr__(self, name, checked_phrases(name, getattr(self, name)))
        if numbers := [phrase for phrase in self.stop if not isinstance(phrase, str)]:
            raise ValueError(
                f"stop holds {short_repr(list(numbers[0]))}, and must hold strings; token ids belong into stop_ids."
            )
        if strings := [phrase for phrase in self.stop_ids if isinstance(phrase, str)]:
            raise ValueError(
                f"stop_ids holds {short_repr(strings[0])}, and must hold token ids; strings belong to stop."
            )
        check_choice("speculate", self.speculate, (None, True, False, REJECTION))
        object.__setattr__(self, "drafters", checked_drafters(self.drafters))
        if not isinstance(self.source, str):
            raise ValueError(f"source is {type(self.source).__name__}, and must be a string.")
        if SURROGATE.search(self.source):
            raise ValueError("source holds half of a surrogate pair; remove it.")
        if self.stop_when is not None and not callable(self.stop_when):
            raise ValueError(f"stop_when is {short_repr(self.stop_when)}, and must be a function of the ids so far.")
        for stop in self.stop:
            for phrase in self.forced:
                if isinstance(phrase, str) and stop in phrase:
                    raise ValueError(
                        f"stop holds {short_repr(stop)}, which the forced {short_repr(phrase)} would end at; "
                        "change one of them."
                    )

    @property
    def applied_temperature(self) -> float:
        """The temperature in force: the option `temperature` unless it is None.

        Then 1 if `seed`, `top_k`, `top_p`, `min_p` or `typical_p` has another value than its default, and 0 otherwise.
        """
        if self.temperature is not None:
            return float(self.temperature)
        asks_for_sampling = (self.top_k, self.top_p < 1, self.min_p, self.typical_p < 1, self.seed is not None)
        return 1.0 if any(asks_for_sampling) else 0.0

    @property
    def for_choice(self) -> StreamOptions:
        """A copy in which the options of `NOT_FOR_CHOICE`, which do not influence the chosen tokens, have defaults.

        After equal texts, options with equal copies choose equal tokens, except with `speculate="rejection"`.
        """
        defaults: dict[str, Any] = {each.name: each.default for each in fields(self) if each.name in NOT_FOR_CHOICE}
        return replace(self, **defaults)

    def sampling_logprobs(self, scores: torch.Tensor, rules: ModelRules, path: Sequence[int], new: int) -> torch.Tensor:
        """Return the log-probabilities to sample from, with all options applied: float64 on the CPU, one per token id.

        `scores` are the model's logits after `path`, of shape (vocabulary,). `path` holds the token ids of the prompt
        and the generated ones, which are the last `new`. The result is normalised, with -inf for excluded tokens. A
        RuledOutError is raised if the rules exclude every token.
        """
        if not rules.changes_nothing:
            scores = rules.apply(scores, path, new)
            require_allowed_token(scores, new)
        return self.cut_logprobs(scores)

    def cut_logprobs(self, scores: torch.Tensor) -> torch.Tensor:
        """Return the log-probabilities to sample from: temperature and cuts applied to the scores of one row.

        The rules must have been applied to `scores`, of shape (vocabulary,), and at least one must be finite. The
        result is normalised, float64 on the CPU, with -inf for excluded tokens.
        """
        return apply_temperature_and_cuts(
            scores,
            temperature=self.applied_temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            typical_p=self.typical_p,
            keep=self.min_tokens_to_keep,
        ).log_softmax(-1)
