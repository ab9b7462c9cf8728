"""The token ids and the text of a document, changed together. Knows no model and no tree."""

from __future__ import annotations

import copy
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from lookahead_core.text.codec import TextCodec, split_bytes

T = TypeVar("T")
CONTINUABLE = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Zs"})
"""Unicode categories after which a word, or white space, may go on: letters, marks, digits, spaces."""
LONGEST_WORD = 64
"""Tokens that an edit goes back at most to find the beginning of a word; some scripts have no spaces."""


@dataclass(frozen=True, slots=True)
class PassageToken:
    """A token of a `Passage`: its id, the index in the text of the character after it, and whether it was typed."""

    token_id: int
    end: int
    """The number of characters of the text up to and including this token."""
    partial: bytes = b""
    """The bytes of an incomplete character at the token's end, which the text does not show yet."""
    typed: bool = False
    """Whether it was typed, not accepted from a branch."""
    replaced: PassageToken | None = None
    """The typed token that this one replaced when it was accepted."""


@dataclass(frozen=True, slots=True)
class TextEnd:
    """The state at the end of a text, as `Passage.end` returns it: what is needed to decode the next token."""

    codec: TextCodec
    partial: bytes
    """The bytes of an incomplete character, which the text does not show yet."""
    at_start: bool
    """Whether the text is empty; some tokenizers drop a leading space there."""

    def decode(self, token_id: int, skip: int = 0) -> tuple[str, TextEnd]:
        """Return the complete characters that a token adds here, "" if none, and the new end; this one does not change.

        The token's first `skip` bytes are left out.
        """
        spelled = self.codec.first_bytes_of(token_id) if self.at_start else self.codec.bytes_of(token_id)
        text, partial = split_bytes(self.partial, spelled[skip:])
        return text, TextEnd(self.codec, partial, self.at_start and not (text or partial))


class Passage:
    """The tokens and the text of a document, which makes one; empty at first, without start tokens.

    Typed characters stay as they were typed; accepted tokens add what they decode to. `edit` and `accept` put tokens
    before the text (start tokens, or the opening of a chat template) at the beginning of `tokens`, with `end` 0.
    """

    def __init__(
        self, codec: TextCodec, start_ids: tuple[int, ...] = (), opening: tuple[int, ...] | None = None
    ) -> None:
        self.codec = codec
        self.text = ""
        self.tokens: list[PassageToken] = []
        self.removals = 0
        """How often tokens were removed. While it stays the same, the tokens were only appended to."""
        self.start_ids = start_ids if opening is None else opening
        """The ids that an empty text starts from."""
        self._before_text = codec.start_ids if opening is None else opening

    def with_codec(self, codec: TextCodec) -> Passage:
        """Return a copy with another codec of the same tokenizer; changes to one do not change the other."""
        made = copy.copy(self)
        made.codec, made.tokens = codec, list(self.tokens)
        return made

    @property
    def token_ids(self) -> list[int]:
        """A new list of the ids of all tokens; if there are none, of those that an empty text starts from."""
        return [token.token_id for token in self.tokens] or list(self.start_ids)

    @property
    def start_count(self) -> int:
        """The number of start tokens or opening tokens before the text; 0 if the token ids begin with others."""
        count = len(self.start_ids)
        return count if tuple(self.token_ids[:count]) == self.start_ids else 0

    @property
    def end(self) -> TextEnd:
        """The end of the text, from which the next token is decoded."""
        partial = self.tokens[-1].partial if self.tokens else b""
        return TextEnd(self.codec, partial, at_start=not (self.text or partial))

    def edit(self, text: str) -> int:
        """Replace the text; return how many tokens at the beginning were kept, those before the text included.

        The same text keeps all, and so does one that is cut where an accepted token ends. Otherwise the tokens before
        the first changed character are kept, except the last of them and the typed tokens of the word that the change
        is in: a word typed letter by letter must end as the tokens that the model knows it by. If none of these has a
        character of the text, 0 is returned, and also the tokens before the text are made anew. Raises TextError if the
        rest cannot be encoded; nothing is changed then.
        """
        if text == self.text:
            return len(self.tokens)
        keep = self._unchanged_tokens(common_prefix_length(self.text, text))
        if not self._is_cut_after_accepted(keep, text):
            # New text may merge with the last token.
            keep = self._word_start(max(keep - 1, 0), text)
        start = self.tokens[keep - 1].end if keep else 0
        if not start:
            keep = 0
        rest = self._encode(text[start:], start)
        first = [] if keep else _tokens_before_text(self._before_text)
        self.removals += 1
        self.tokens[keep:] = [*first, *rest]
        self.text = text
        return keep

    def _encode(self, text: str, start: int) -> list[PassageToken]:
        """Return the tokens of `text`, typed from character `start` of the passage on, from which their ends count.

        A token may end within a character, but not the last one. Raises TextError as `TextCodec.encode`.
        """
        tokens, end = [], TextEnd(self.codec, b"", at_start=not start)
        encoded = self.codec.encode(text, continuing=start > 0)
        for token in encoded:
            _, end = end.decode(token.token_id)
            partial = b"" if token is encoded[-1] else end.partial
            tokens.append(PassageToken(token.token_id, start + token.end, partial, typed=True))
        return tokens

    def _unchanged_tokens(self, unchanged: int) -> int:
        """Return the number of tokens within the first `unchanged` characters.

        Those before the text count too; tokens at the end that end within a character do not.
        """
        keep = len(self.tokens)
        while keep and (self.tokens[keep - 1].end > unchanged or self.tokens[keep - 1].partial):
            keep -= 1
        return keep

    def _is_cut_after_accepted(self, keep: int, text: str) -> bool:
        """Whether `text` ends with the last of the first `keep` tokens, and that one is accepted.

        False for a token that was accepted in place of a typed one with the same characters: without what was accepted
        after it, the text ends in the typed one.
        """
        if not keep or self.tokens[keep - 1].typed or self.tokens[keep - 1].end != len(text):
            return False
        last, replaced = self.tokens[keep - 1], self.tokens[keep - 1].replaced
        return replaced is None or replaced.end < last.end

    def _word_start(self, keep: int, text: str) -> int:
        """Return how many of the first `keep` tokens remain without those of the word that the text goes on with.

        `text` is the new text, in which a word begins at white space. From the `keep`th token backwards, at most
        `LONGEST_WORD` typed tokens are left out, down to one that ends where a word begins, or to an accepted one. Then
        tokens that end within a character are left out too.
        """
        for _ in range(LONGEST_WORD):
            if not keep or not self.tokens[keep - 1].typed or _begins_word(text, self.tokens[keep - 1].end):
                break
            keep -= 1
        while keep and self.tokens[keep - 1].partial:
            keep -= 1
        return keep

    def accept(self, token_ids: Sequence[int], *, replace_last: bool) -> str:
        """Append tokens, or with `replace_last` replace the last token by them; return the inserted characters.

        If there are no tokens yet, those that an empty text starts from come first. With `replace_last`, the first of
        `token_ids`, at least one, must begin with `reopened_bytes`, which must not be empty; these bytes are not
        inserted again. This is not checked.
        """
        if not self.tokens:
            self.tokens = _tokens_before_text(self.start_ids)
        before, skip = len(self.text), 0
        self.removals += replace_last
        replaced = self.tokens.pop() if replace_last else None
        if replaced is not None:
            skip = len(self.text[self._decoded_length :].encode())
        self.append(token_ids, skip, replaced)
        return self.text[before:]

    def append(self, token_ids: Sequence[int], skip: int = 0, replaced: PassageToken | None = None) -> None:
        """Append tokens as accepted ones, and the characters that they decode to; adds no start tokens.

        The first token's first `skip` bytes are in the text already. `replaced` is the token that it replaces, which
        the caller has removed from `tokens`, but not from the text: `pop` brings it back.
        """
        end, pieces, length = self.end, [], len(self.text)
        for token_id in token_ids:
            piece, end = end.decode(token_id, skip)
            pieces.append(piece)
            length += len(piece)
            self.tokens.append(PassageToken(token_id, length, end.partial, replaced=replaced))
            skip, replaced = 0, None
        self.text += "".join(pieces)

    def pop(self, count: int) -> None:
        """Remove the last `count` tokens and their text; a typed token that a removed one had replaced comes back.

        One that comes back is then the last token, and is removed too if `count` is not reached yet. `count` must not
        exceed the number of tokens, those before the text included: else IndexError is raised, all tokens are gone, and
        the text is unchanged.
        """
        text = self.text
        self.removals += count > 0
        for _ in range(count):
            removed = self.tokens.pop()
            if removed.replaced is not None:
                self.tokens.append(removed.replaced)
        self.text = text[: self._decoded_length]

    @property
    def _decoded_length(self) -> int:
        """The number of complete characters up to the end of the last token; 0 without tokens."""
        return self.tokens[-1].end if self.tokens else 0

    def reopened_bytes(self) -> bytes:
        """Return the bytes of the last token if healing may re-open it, so that branches may continue it; else b"".

        It may if the token was typed, spells exactly its characters, and the text ends in a letter, mark, number,
        space, tab or apostrophe.
        """
        if not self.text or not self.tokens or not self.tokens[-1].typed or self.tokens[-1].partial:
            return b""
        if unicodedata.category(self.text[-1]) not in CONTINUABLE and self.text[-1] not in "'’\t":
            return b""
        start = self.tokens[-2].end if len(self.tokens) > 1 else 0
        # The token may spell more than was typed (a space that the tokenizer adds). No candidate would match then.
        typed, spelled = self.text[start:].encode(), self.codec.bytes_of(self.tokens[-1].token_id)
        return typed if spelled == typed else b""

    def check(self) -> None:
        """Raise AssertionError unless token ends ascend and the last, if any, is the end of the text; for tests."""
        ends = [token.end for token in self.tokens]
        assert ends == sorted(ends), "tokens are in order"
        assert self._decoded_length == len(self.text) or not self.tokens, "the last token reaches the end of the text"


def _tokens_before_text(token_ids: Sequence[int]) -> list[PassageToken]:
    """Return these tokens for the place before the text: typed, with `end` 0, whatever they spell."""
    return [PassageToken(token_id, 0, typed=True) for token_id in token_ids]


def _begins_word(text: str, index: int) -> bool:
    """Whether white space after a character that is none begins at `index`: a word counts with the space before it.

    False at both ends of the text.
    """
    return 0 < index < len(text) and text[index].isspace() and not text[index - 1].isspace()


def common_prefix_length(one: Sequence[T], other: Sequence[T]) -> int:
    """Return the length of the longest common prefix of two texts, or two id sequences of one type, by bisection."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
