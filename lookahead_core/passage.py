"""What stands in a document: token ids, and the characters each of them stands for. No model and no tree."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from lookahead_core.text import TextCodec, split_bytes


@dataclass(frozen=True, slots=True)
class Stand:
    """A token that stands in the text, up to which character it reaches, and the bytes that wait for the next one."""

    token_id: int
    end: int
    held: bytes = b""
    typed: bool = False
    replaced: Stand | None = None
    """The typed token that this one was accepted in place of."""


@dataclass(frozen=True, slots=True)
class Spot:
    """The end of a text, as far as it matters to how the next tokens read."""

    codec: TextCodec
    held: bytes
    """The beginning of a character that the text does not show yet."""
    at_start: bool

    def then(self, token_id: int, skip: int = 0) -> tuple[str, Spot]:
        """The whole characters that a token adds here, its first bytes left out where they stand already."""
        spelled = self.codec.first_bytes_of(token_id) if self.at_start else self.codec.bytes_of(token_id)
        text, held = split_bytes(self.held, spelled[skip:])
        return text, Spot(self.codec, held, self.at_start and not (text or held))


class Passage:
    """The ids and the text of a document, changed together."""

    def __init__(self, codec: TextCodec) -> None:
        self.codec = codec
        self.text = ""
        self.stands: list[Stand] = []

    @property
    def token_ids(self) -> list[int]:
        return [stand.token_id for stand in self.stands]

    @property
    def started(self) -> int:
        """How many tokens stand before all text, put there by the tokenizer."""
        first = self.codec.start_ids
        return len(first) if tuple(stand.token_id for stand in self.stands[: len(first)]) == first else 0

    @property
    def spot(self) -> Spot:
        """Where the next token would stand."""
        held = self.stands[-1].held if self.stands else b""
        return Spot(self.codec, held, at_start=not (self.text or held))

    def edit(self, text: str) -> int:
        """Take a new text; ids are kept up to the last token boundary before the change, less one. Returns how many."""
        if text == self.text:
            return len(self.stands)
        keep = self._kept(len(os.path.commonprefix([self.text, text])))
        start = self.stands[keep - 1].end if keep else 0
        rest = self.codec.encode(text[start:], continuing=start > 0)
        first = [] if keep else [Stand(token_id, 0, typed=True) for token_id in self.codec.start_ids]
        self.stands[keep:] = [*first, *(Stand(token.token_id, start + token.end, typed=True) for token in rest)]
        self.text = text
        return keep

    def _kept(self, same: int) -> int:
        """How many tokens stay when so many characters do: they end on a whole character, and one less for luck."""
        keep = len(self.stands)
        while keep and (self.stands[keep - 1].end > same or self.stands[keep - 1].held):
            keep -= 1
        keep -= 1
        # Tokens without text of their own belong to the character that follows them.
        while keep > 0 and self._is_silent(keep - 1):
            keep -= 1
        return max(keep, 0)

    def _is_silent(self, index: int) -> bool:
        return self.stands[index].end == (self.stands[index - 1].end if index else 0)

    def append(self, token_ids: Sequence[int], replace_last: bool = False) -> str:
        """Let tokens stand at the end, or in place of the last one; returns the characters that this inserts."""
        before, spot, skip = len(self.text), self.spot, 0
        replaced = self.stands.pop() if replace_last else None
        if replaced is not None:
            skip = len(self.text[self._end :].encode())
        for token_id in token_ids:
            piece, spot = spot.then(token_id, skip)
            self.text += piece
            self.stands.append(Stand(token_id, len(self.text), spot.held, replaced=replaced))
            skip, replaced = 0, None
        return self.text[before:]

    def pop(self, count: int) -> None:
        """Take the last tokens away; a typed token that one of them had replaced stands again."""
        text = self.text
        for _ in range(count):
            gone = self.stands.pop()
            if gone.replaced is not None:
                self.stands.append(gone.replaced)
        self.text = text[: self._end]

    @property
    def _end(self) -> int:
        return self.stands[-1].end if self.stands else 0

    def reopened(self) -> bytes:
        """The text of the last token, where it was typed and the text ends inside a word or in spaces; else nothing."""
        if not self.text or not self.stands or not self.stands[-1].typed or self.stands[-1].held:
            return b""
        last = self.text[-1]
        if not (last.isalnum() or last in " \t\u00a0"):
            return b""
        start = self.stands[-2].end if len(self.stands) > 1 else 0
        # The token may spell more than was typed (a space that the tokenizer adds): candidates must begin alike.
        typed, spelled = self.text[start:].encode(), self.codec.bytes_of(self.stands[-1].token_id)
        return typed if spelled == typed else b""

    def check(self) -> None:
        """Raise AssertionError if anything that must always hold does not."""
        ends = [stand.end for stand in self.stands]
        assert ends == sorted(ends), "tokens stand in order"
        assert self._end == len(self.text) or not self.stands, "the last token reaches the end of the text"
