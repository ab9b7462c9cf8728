"""`WordTokens`: the role of each token in the search for a word: it completes the word, begins it, or neither."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lookahead_core.text.codec import TextCodec, split_bytes
from lookahead_core.text.word_matcher import WordMatcher, WordState
from lookahead_core.tree import Node

MAX_STATES = 1000
"""Maximum number of states whose roles a `WordTokens` keeps."""


@dataclass(frozen=True, slots=True)
class TokenRoles:
    """The tokens that have a role for a word after a text in some state."""

    completing: tuple[int, ...]
    """Tokens that complete the word and show that it has ended."""
    spelling: frozenset[int]
    """Tokens after which the text ends with the word; the next token shows whether the word ends there."""
    leading: dict[int, WordState]
    """The tokens in `spelling`, and those after which the text ends with a beginning of the word; with the state after
    each."""


class WordTokens:
    """The tokens of a tokenizer that begin, continue, spell or complete one word: their roles, see `TokenRoles`.

    A token's role depends on the `WordState` of the text before it. Roles are computed on first use for each state, and
    cached. End tokens and tokens without text have no role.
    """

    def __init__(self, word: str, codec: TextCodec, end_token_ids: frozenset[int], vocabulary: int) -> None:
        """Raises TextError if the codec has no tokenizer. Ids from `vocabulary` on are left out."""
        codec.require_tokenizer()
        self.matcher = WordMatcher(word)
        self._codec = codec
        self._end_token_ids = end_token_ids
        self._vocabulary = vocabulary
        self._roles: dict[WordState, TokenRoles] = {}
        self._touching: list[int] | None = None
        self._bounding: tuple[list[int], list[int]] | None = None

    @functools.cached_property
    def is_token(self) -> bool:
        """Whether a token spells the whole word, with or without white space before it."""
        touching = self._codec.tokens_containing(self.matcher.word.encode())
        return any(
            self._codec.bytes_of(token_id).decode(errors="replace").strip() == self.matcher.word
            for token_id in touching
        )

    def advance(self, state: WordState, token_id: int, known: int = 0) -> WordState:
        """Return the state after one more token, whose first `known` bytes are in the text already."""
        return self.matcher.advance(state, self._codec.bytes_of(token_id)[known:])

    def state_of(self, node: Node) -> WordState:
        """Return the state at the end of a node's path. A word inside the path does not count as found."""
        spelled, wanted = b"", 4 * len(self.matcher.word) + 8
        current: Node | None = node
        while current is not None and current.depth and len(spelled) < wanted:
            spelled = self._codec.bytes_of(current.token_id) + spelled
            current = current.parent
        return self.matcher.start(spelled)

    def tokens_of_word(self, token_ids: Sequence[int]) -> int:
        """Return how many tokens at the end of a path hold the word; the last token must complete it.

        The number of all tokens if the word begins before the path.
        """
        word, spelled = self.matcher.word.encode(), b""
        for count, token_id in enumerate(reversed(token_ids), start=1):
            spelled = self._codec.bytes_of(token_id) + spelled
            if word in spelled:
                return count
        return len(token_ids)

    def roles_after(self, state: WordState) -> TokenRoles:
        """Return the roles of all tokens after a text in this state, in which `found` must be False.

        If the text ends with the word already (`WordMatcher.is_spelled`), tokens whose only effect is to end it have no
        role; `bounding` returns them.
        """
        roles = self._roles.get(state)
        if roles is None:
            if len(self._roles) >= MAX_STATES:
                self._roles.clear()
            roles = self._roles[state] = self._find_roles(state)
        return roles

    @property
    def bounding(self) -> tuple[list[int], list[int]]:
        """Two lists of token ids: those that end the word if they follow its last letter, and those that leave it open.

        The first are end tokens and tokens that begin with a character which cannot continue the word. The second begin
        with an incomplete character, or have no text. All other tokens make a longer word of it.
        """
        if self._bounding is None:
            ends: list[int] = []
            undecided: list[int] = []
            for token_id in range(self._vocabulary):
                character = _first_character(self._codec.bytes_of(token_id))
                if token_id in self._end_token_ids or (character and not self.matcher.continues_word(character)):
                    ends.append(token_id)
                elif not character:
                    undecided.append(token_id)
            self._bounding = ends, undecided
        return self._bounding

    def excluded_after(self, state: WordState) -> frozenset[int]:
        """Return the tokens that would add the last letter of the word, after a text in this state.

        The option `avoid` excludes them, even if the word could go on to a longer one.
        """
        roles = self.roles_after(state)
        return roles.spelling.union(roles.completing)

    def excluded_among(self, state: WordState, token_ids: Sequence[int], known: int) -> frozenset[int]:
        """Return those of these tokens that would spell the word; their first `known` bytes are in the text already."""
        return frozenset(token_id for token_id in token_ids if self._spells(self.advance(state, token_id, known)))

    def _spells(self, state: WordState) -> bool:
        return state.found or self.matcher.is_spelled(state)

    def _find_roles(self, state: WordState) -> TokenRoles:
        completing: list[int] = []
        leading: dict[int, WordState] = {}
        for token_id in sorted(set(self._candidates(state))):
            if token_id >= self._vocabulary or token_id in self._end_token_ids:
                continue
            if _only_bounds(self.matcher, state, self._codec.bytes_of(token_id)):
                continue
            after = self.advance(state, token_id)
            if after.found:
                completing.append(token_id)
            elif self.matcher.is_spelled(after) or self.matcher.is_begun(after):
                leading[token_id] = after
        spelling = frozenset(token_id for token_id, after in leading.items() if self.matcher.is_spelled(after))
        return TokenRoles(tuple(completing), spelling, leading)

    def _candidates(self, state: WordState) -> Iterator[int]:
        """Yield all tokens that have a role after this state, some of them twice, and some that have none."""
        if self._touching is None:
            self._touching = list(self._find_touching())
        yield from self._touching
        for missing in self.matcher.open_beginnings(state):
            yield from self._codec.tokens_starting_with(missing)
            yield from self._codec.beginnings.prefixes(missing)

    def _find_touching(self) -> Iterator[int]:
        """Yield the tokens that contain the word or end with a beginning of it."""
        word = self.matcher.word.encode()
        beginnings = tuple(word[:size] for size in range(1, len(word)))
        for token_id in range(self._vocabulary):
            spelled = self._codec.bytes_of(token_id)
            if word in spelled or spelled.endswith(beginnings):
                yield token_id


def _only_bounds(matcher: WordMatcher, state: WordState, spelled: bytes) -> bool:
    """Whether the text ends with the word already, and the token's first character shows that the word ends there."""
    if not matcher.is_spelled(state) or state.partial:
        return False
    character = _first_character(spelled)
    return bool(character) and not matcher.continues_word(character)


def _first_character(spelled: bytes) -> str:
    """Return the first character of UTF-8 bytes; "" if there is no whole one."""
    if spelled and spelled[0] < 128:
        return chr(spelled[0])
    return split_bytes(b"", spelled[:8])[0][:1]
