"""What stands in a document: token ids, and the characters each of them stands for. No model and no tree."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from lookahead_core.text.codec import TextCodec, split_bytes

T = TypeVar("T")
INSIDE = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Zs"})
"""The kinds of characters after which a word, or white space, may go on: letters, marks, digits, spaces."""
LONGEST_WORD = 64
"""How many tokens an edit goes back at most to find the beginning of a word; some scripts have no spaces."""


@dataclass(frozen=True, slots=True)
class PassageToken:
    """A token that stands in the text, up to which character it reaches, and the bytes that wait for the next one."""

    token_id: int
    end: int
    partial: bytes = b""
    typed: bool = False
    replaced: PassageToken | None = None
    """The typed token that this one was accepted in place of."""


@dataclass(frozen=True, slots=True)
class TextEnd:
    """The end of a text, as far as it matters to how the next tokens read."""

    codec: TextCodec
    partial: bytes
    """The beginning of a character that the text does not show yet."""
    at_start: bool

    def decode(self, token_id: int, skip: int = 0) -> tuple[str, TextEnd]:
        """The whole characters that a token adds here, its first bytes left out where they stand already."""
        spelled = self.codec.first_bytes_of(token_id) if self.at_start else self.codec.bytes_of(token_id)
        text, held = split_bytes(self.partial, spelled[skip:])
        return text, TextEnd(self.codec, held, self.at_start and not (text or held))


class Passage:
    """The ids and the text of a document, changed together."""

    def __init__(
        self, codec: TextCodec, start_ids: tuple[int, ...] = (), opening: tuple[int, ...] | None = None
    ) -> None:
        self.codec = codec
        self.text = ""
        self.tokens: list[PassageToken] = []
        self.removals = 0
        """How often something that stood was taken away: as long as that stays, what stood stands."""
        self.start_ids = start_ids if opening is None else opening
        """What an empty text starts from."""
        self._before_text = codec.start_ids if opening is None else opening

    @property
    def token_ids(self) -> list[int]:
        """The ids that stand; where none do, those that an empty text starts from."""
        return [stand.token_id for stand in self.tokens] or list(self.start_ids)

    @property
    def start_count(self) -> int:
        """How many tokens stand before all text, and are no text themselves."""
        first = self.start_ids
        return len(first) if tuple(self.token_ids[: len(first)]) == first else 0

    @property
    def end(self) -> TextEnd:
        """Where the next token would stand."""
        held = self.tokens[-1].partial if self.tokens else b""
        return TextEnd(self.codec, held, at_start=not (self.text or held))

    def edit(self, text: str) -> int:
        """Take a new text; returns how many tokens are kept.

        Those are the ones before the change, less the last, and less what was typed of the word that the change is in:
        a word typed letter by letter must end as the tokens that the model knows it by.
        """
        if text == self.text:
            return len(self.tokens)
        keep = self._word_start(self._kept(common_prefix_length(self.text, text)), text)
        start = self.tokens[keep - 1].end if keep else 0
        if not start:
            keep = 0
        rest = self._typed(text[start:], start)
        first = [] if keep else _unsaid(self._before_text)
        self.removals += 1
        self.tokens[keep:] = [*first, *rest]
        self.text = text
        return keep

    def _typed(self, text: str, start: int) -> list[PassageToken]:
        """Tokens for what is typed from a character on; one may end within a character, but not the last."""
        stands, spot = [], TextEnd(self.codec, b"", at_start=not start)
        tokens = self.codec.encode(text, continuing=start > 0)
        for token in tokens:
            _, spot = spot.decode(token.token_id)
            held = b"" if token is tokens[-1] else spot.partial
            stands.append(PassageToken(token.token_id, start + token.end, held, typed=True))
        return stands

    def _kept(self, same: int) -> int:
        """How many tokens stay when so many characters do: they end on a whole character, and one less for luck."""
        keep = len(self.tokens)
        while keep and (self.tokens[keep - 1].end > same or self.tokens[keep - 1].partial):
            keep -= 1
        return max(keep - 1, 0)

    def _word_start(self, keep: int, text: str) -> int:
        """Back over typed tokens to where a word begins; tokens accepted by a click stay as they are."""
        for _ in range(LONGEST_WORD):
            if not keep or not self.tokens[keep - 1].typed or _begins_word(text, self.tokens[keep - 1].end):
                break
            keep -= 1
        while keep and self.tokens[keep - 1].partial:
            keep -= 1
        return keep

    def accept(self, token_ids: Sequence[int], *, replace_last: bool) -> str:
        """Let tokens stand at the end, or in place of the last one; returns the characters that this inserts."""
        if not self.tokens:
            self.tokens = _unsaid(self.start_ids)
        before, skip = len(self.text), 0
        self.removals += replace_last
        replaced = self.tokens.pop() if replace_last else None
        if replaced is not None:
            skip = len(self.text[self._end :].encode())
        self.append(token_ids, skip, replaced)
        return self.text[before:]

    def append(self, token_ids: Sequence[int], skip: int = 0, replaced: PassageToken | None = None) -> None:
        """Put tokens at the end as they are, the first bytes of the first left out where they stand already."""
        spot = self.end
        for token_id in token_ids:
            piece, spot = spot.decode(token_id, skip)
            self.text += piece
            self.tokens.append(PassageToken(token_id, len(self.text), spot.partial, replaced=replaced))
            skip, replaced = 0, None

    def pop(self, count: int) -> None:
        """Take the last tokens away; a typed token that one of them had replaced stands again."""
        text = self.text
        self.removals += count > 0
        for _ in range(count):
            gone = self.tokens.pop()
            if gone.replaced is not None:
                self.tokens.append(gone.replaced)
        self.text = text[: self._end]

    @property
    def _end(self) -> int:
        return self.tokens[-1].end if self.tokens else 0

    def reopened_bytes(self) -> bytes:
        """The text of the last token, where it was typed and the text ends inside a word or in spaces; else nothing."""
        if not self.text or not self.tokens or not self.tokens[-1].typed or self.tokens[-1].partial:
            return b""
        if unicodedata.category(self.text[-1]) not in INSIDE and self.text[-1] not in "'’\t":
            return b""
        start = self.tokens[-2].end if len(self.tokens) > 1 else 0
        # The token may spell more than was typed (a space that the tokenizer adds): candidates must begin alike.
        typed, spelled = self.text[start:].encode(), self.codec.bytes_of(self.tokens[-1].token_id)
        return typed if spelled == typed else b""

    def check(self) -> None:
        """Raise AssertionError if anything that must always hold does not."""
        ends = [stand.end for stand in self.tokens]
        assert ends == sorted(ends), "tokens stand in order"
        assert self._end == len(self.text) or not self.tokens, "the last token reaches the end of the text"


def _unsaid(token_ids: Sequence[int]) -> list[PassageToken]:
    """What stands before all text, and is no text, whatever it spells."""
    return [PassageToken(token_id, 0, typed=True) for token_id in token_ids]


def _begins_word(text: str, place: int) -> bool:
    """Whether a word, with the white space before it, begins at this character."""
    return 0 < place < len(text) and text[place].isspace() and not text[place - 1].isspace()


def common_prefix_length(one: Sequence[T], other: Sequence[T]) -> int:
    """How many characters, or tokens, two texts of one type have in common at their beginning, found by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
