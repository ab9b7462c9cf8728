"""Keyword arguments of the public functions, typed and explained for editors.

Each class here belongs to an options dataclass, which holds the defaults and checks the values. A test compares the
names and types of the two.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

if TYPE_CHECKING:
    from lookahead_core.model import Model
    from lookahead_core.speculation.corpus import Corpus
    from lookahead_core.speculation.drafters.protocol import Drafter
    from lookahead_core.speculation.heads_file import Heads
    from lookahead_core.strategies.lookahead_options import Mode, Odds, Until
    from lookahead_core.strategies.rules import Phrase

F = TypeVar("F", bound=Callable[..., Any])


def takes_options(kind: type) -> Callable[[F], F]:
    """Return a decorator: `help` and `inspect.signature` then list the fields of the dataclass `kind`, not `**options`.

    The decorator sets the function's `__signature__` and returns the function, not a wrapper. The function must check
    the names and values of its options itself.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        listed = [
            inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
            for each in fields(kind)
        ]
        function.__signature__ = signature.replace(parameters=[*own, *listed])  # type: ignore[attr-defined]
        return function

    return decorate


class LookaheadKeywords(TypedDict, total=False):
    """The keyword arguments of a lookahead, for type checkers. `LookaheadOptions` holds their defaults."""

    k: int
    """Number of branches, 1 to 20. With `every_level`, number of branches at each of those levels."""
    depth: int
    """Maximum number of tokens per branch, the first included, 1 to 100."""
    mode: Mode
    """How branches are chosen. `likely`: the k likeliest first tokens, each continued greedily. `every_level`: k tokens
    at each of the first `branch_levels` levels. `forks`: a new branch wherever another token has at least `cutoff`;
    of these the k with the highest shares. `best_first`: extend the most probable paths first, up to `budget` nodes.
    `sampled`: k independent samples. `diverse`: likely branches that share few words and little meaning. `surprising`:
    the likeliest branch, and branches that are likely enough but unlike it. The last two compare hidden states and
    words; see `Lookahead.compared_by`."""
    until: Until
    """Where a branch ends if it gets there within `depth` tokens: at the end of a `word`, `clause`, `sentence` or
    `line`. `tokens`: only at `depth` tokens. An end token always ends a branch."""
    branch_levels: int
    """`every_level` only: number of levels that branch, 1 to 8."""
    branch_total: int
    """`every_level` only: number of branches in all, up to 400 (64 on one level), shared among the first levels as
    evenly as possible; of five branches on two levels, three first tokens have two, two and one. 0: no total, but `k`
    at each level."""
    cutoff: float
    """`forks` only: the probability from which another token starts a branch of its own, 0 to 1."""
    slope: float
    """`forks` only: the factor by which the cutoff grows with each level, 1 to 100."""
    split_limit: int
    """`forks` only: maximum number of branches at one node, 1 to 20."""
    budget: int
    """`best_first` and `towards` only: maximum number of nodes whose next tokens are evaluated, 1 to 4,096."""
    width: int
    """`best_first` and `towards` only: nodes per forward pass, 1 to 256. Sixteen cost little more than one."""
    temperature: float
    """0 to 2; 0 always takes the likeliest token. `sampled`: that of the draws. `likely` with `heal`: that at which
    tokens that replace the typed one are compared with those after it; probabilities stay those of temperature 1."""
    top_p: float
    """Above 0 and up to 1: `sampled` draws among the likeliest tokens that together have this probability, and `likely`
    with `heal` compares these."""
    seed: int
    """`sampled` only: the same seed, 0 to 2**53, draws the same branches."""
    banned: Collection[int]
    """Token ids that no branch may contain, at most 1,000. All probabilities are renormalised without them."""
    heal: bool
    """Whether to re-open the last typed token if the text ends inside a word or in spaces."""
    speculate: bool
    """Whether to draft continuations from the text and verify several tokens per pass. The branches are the same."""
    contrast: float
    """`diverse` only: the weight of differences against probability, 0 to 100; 0 ignores them. It is multiplied with
    the similarity, 0 to 1, to the most similar branch before, and subtracted from the log-probability."""
    floor: float
    """`surprising` only: minimum probability of the tokens that set a branch apart from the others, 0 to 1. The first
    branch may have less, and there may be fewer than k branches."""
    stop_at_repetition: bool
    """Whether a branch ends where its next tokens, at least three, would repeat those just before them. Its `repeats`
    is then True. A branch that repeats the last tokens of the text ends after these tokens."""
    towards: str
    """A word or phrase of at most 40 characters: branches are the likeliest paths to it, found with `budget` and
    `width`, and `Lookahead.word` has the probability that it comes within `depth` tokens. `mode` has no effect, and
    `until` only if no path is found."""
    avoid: str
    """A word or phrase that no branch may contain, at most 40 characters. All probabilities are renormalised without
    the tokens that would spell it."""
    odds: Odds
    """What a share is the probability of. `tokens`: the tokens that set the branch apart from the others. `words`: its
    first whole word, in all tokenizations; the branches then begin with the k likeliest words. `words` needs the mode
    `likely`, temperature 1 and top-p 1, and neither `towards` nor `avoid`."""


class RuleKeywords(TypedDict, total=False):
    """Options that streams and beam searches share. `LogitRules` holds their defaults."""

    max_new_tokens: int
    """Maximum number of new tokens, an end token included, 1 to 65,536."""
    min_new_tokens: int
    """Number of new tokens before an end token is allowed. Stop strings do not wait for it."""
    repetition_penalty: float
    """Divides the positive scores of tokens that are in the text already and multiplies the negative ones; 1 is off."""
    frequency_penalty: float
    """Subtracted from a token's score once for each occurrence of the token in the text, the prompt included."""
    presence_penalty: float
    """Subtracted once from the score of each token that is in the text, the prompt included."""
    no_repeat_ngram_size: int
    """No new token completes an n-gram of this many tokens that is in the text, the prompt included; 0 is off."""
    forbidden: Collection[Phrase]
    """Strings that the new text must not bring about, however they are tokenized; single token ids; or sequences of
    token ids."""
    forced: Collection[Phrase]
    """Words or sequences of token ids that must come before an end token or the maximum length ends the text."""


class StreamKeywords(RuleKeywords, total=False):
    """The keyword arguments of a stream, for type checkers. `StreamOptions` holds their defaults."""

    temperature: float | None
    """0 takes the likeliest token. None means 1 if a seed or one of the cuts below is set, and 0 otherwise."""
    top_k: int
    """Sample among this many likeliest tokens; 0 is off."""
    top_p: float
    """Sample among the likeliest tokens that together have this probability, the token that reaches it included."""
    min_p: float
    """Sample among tokens with at least this share of the likeliest token's probability."""
    typical_p: float
    """Sample among the tokens whose surprise is closest to the entropy, until they have this probability together."""
    min_tokens_to_keep: int
    """Minimum number of tokens that each cut leaves."""
    seed: int | None
    """The same seed draws the same text. None means 0."""
    stream: int
    """Number of the random stream of this seed: each draws a text of its own."""
    stop: str | Collection[str]
    """Strings that end the text. They may span tokens, and may begin before the new text; they are not part of it."""
    stop_ids: Collection[Phrase]
    """Sequences of token ids that end the text; the model must have each id."""
    stop_when: Callable[[Sequence[int]], bool] | None
    """Called after each token with all ids that the model reads, those of the text included; True ends the text."""
    max_words: int | None
    """Maximum number of words, one that the text had begun included; None is off."""
    speculate: bool | Literal["rejection"] | None
    """Whether to draft tokens and verify several per pass, with the same text as without. None: if the engine gains by
    it. "rejection": accept drafts by rejection sampling (arXiv 2302.01318), which gives another text, as probable."""
    drafters: Collection[str | Drafter]
    """The drafters: `suffix` (what followed earlier occurrences of the text's end), `recycled` (predictions of earlier
    passes), or objects of your own with the methods of `Drafter`."""
    draft_model: Model | None
    """A smaller model with the same tokenizer, from `load_model`, that drafts as well."""
    heads: Heads | None
    """Draft heads trained for this model, from `load_heads`, that draft as well."""
    corpus: Corpus | None
    """Texts to draft from, from `load_corpus`."""
    source: str
    """A text that will probably be quoted, to draft from."""


class BeamKeywords(RuleKeywords, total=False):
    """The keyword arguments of a beam search, for type checkers. `BeamOptions` holds their defaults."""

    num_beams: int
    """Number of beams, 1 to 100."""
    num_return_sequences: int | None
    """Number of beams to return; None returns all."""
    length_penalty: float
    """The sum of log-probabilities is divided by the length to this power; 0 leaves the plain sum."""
    early_stopping: bool | Literal["never"]
    """True: stop when enough beams have ended. False: when no growing beam looks better. "never": when none can."""
    num_beam_groups: int
    """Number of groups, searched one after another at each level; each avoids the tokens of the groups before it."""
    diversity_penalty: float
    """Subtracted from a token's score for each beam of an earlier group that took the token at this level."""
    stopping: Literal["transformers", "seed"]
    """The rules that score beams and stop the search: "transformers" equals its `generate`. "seed", as in the project's
    prototype notebooks, adds up log-probabilities and stops when enough beams have ended."""
