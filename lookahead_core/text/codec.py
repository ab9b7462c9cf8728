"""Between token ids and what a person reads, byte by byte, so that half a character is never shown."""

from __future__ import annotations

import bisect
import codecs
import copy
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lookahead_core.errors import TextError

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
MAX_SEARCHES = 1000
"""For how many strings the tokens that hold them are remembered."""
SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a pair of code units: no character, and not to be encoded."""


@dataclass(frozen=True, slots=True)
class TypedToken:
    """A token of a typed text, and the characters of that text that it stands for."""

    token_id: int
    start: int
    end: int


def split_bytes(held: bytes, more: bytes) -> tuple[str, bytes]:
    """The whole characters in these bytes, and the beginning of a character that may still be completed."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(held + more)
    return text, decoder.getstate()[0]


def is_complete_utf8(spelled: bytes) -> bool:
    """Whether these bytes are whole characters and nothing else."""
    try:
        spelled.decode()
    except UnicodeDecodeError:
        return False
    return True


class TextCodec:
    """A tokenizer, seen as a map between bytes and ids. Special tokens have no text and are never made from text."""

    def __init__(self, tokenizer: Any | None) -> None:
        # A copy: reading special tokens as plain text is a switch on the tokenizer, and others may be using theirs.
        self.tokenizer = copy.deepcopy(tokenizer)
        self.start_ids: tuple[int, ...] = ()
        self.adds_space = False
        """Whether the tokenizer puts a space before every text."""
        self._containing: dict[bytes, frozenset[int]] = {}
        if tokenizer is None:
            return
        self._spelled_by: dict[int, bytes] = {}
        self._size = len(tokenizer)
        self._special = special_ids(tokenizer)
        self._byte_level = "ByteLevel" in _decoder_of(tokenizer)
        first = self._plain("a")[0]
        self._anchor = self._plain("a")[-1:]
        self._anchor_text = self._decode(self._anchor)
        self.adds_space = self.bytes_of(first).startswith(b" ")
        self.start_ids = self._start_ids()

    def encode(self, text: str, continuing: bool = False) -> list[TypedToken]:
        """The tokens of a typed text, or of one that goes on where another ends; their spans tile the text."""
        if half := SURROGATE.search(text):
            raise TextError(f"Character {half.start()} of the text is half of a pair that belongs together; remove it.")
        if not text:
            return []
        if continuing and self.adds_space:
            return self._encode_rest(text)
        return _tiled(self._tokens(text), text)

    def bytes_of(self, token_id: int) -> bytes:
        """What a token spells, within a text: nothing, for special tokens and ids that the tokenizer does not know."""
        if self.tokenizer is None or token_id in self._special or not 0 <= token_id < self._size:
            return b""
        spelled = self._spelled_by.get(token_id)
        if spelled is None:
            spelled = self._spelled_by[token_id] = self._spell(token_id)
        return spelled

    def first_bytes_of(self, token_id: int) -> bytes:
        """What a token spells at the very beginning of a text, where some tokenizers leave a space out."""
        spelled = self.bytes_of(token_id)
        if not spelled:
            return b""
        return spelled[1:] if self.adds_space and spelled.startswith(b" ") else spelled

    def tokens_starting_with(self, prefix: bytes) -> Sequence[int]:
        """All tokens whose text begins with these bytes."""
        spelled, token_ids = self._vocabulary
        low = bisect.bisect_left(spelled, prefix)
        high = bisect.bisect_left(spelled, prefix + b"\xff" * 8)
        return token_ids[low:high]

    def tokens_containing(self, text: bytes) -> frozenset[int]:
        """All tokens whose text has these bytes in it."""
        found = self._containing.get(text)
        if found is None:
            if len(self._containing) >= MAX_SEARCHES:
                self._containing.clear()
            spelled, token_ids = self._vocabulary
            pairs = zip(spelled, token_ids, strict=True)
            found = self._containing[text] = frozenset(token_id for piece, token_id in pairs if text in piece)
        return found

    @functools.cached_property
    def _vocabulary(self) -> tuple[list[bytes], list[int]]:
        pairs = sorted((self.bytes_of(token_id), token_id) for token_id in range(self._size))
        return [spelled for spelled, _ in pairs], [token_id for _, token_id in pairs]

    def _spell(self, token_id: int) -> bytes:
        token = self.require_tokenizer().convert_ids_to_tokens(token_id)
        if self._byte_level:
            return _spell_byte_level(token)
        if match := _BYTE_TOKEN.fullmatch(token):
            return bytes([int(match[1], 16)])
        return self._decode([*self._anchor, token_id])[len(self._anchor_text) :].encode()

    def require_tokenizer(self) -> Any:
        """The tokenizer, or a sentence where there is none."""
        if self.tokenizer is None:
            raise TextError("This model was given without a tokenizer, so there are token ids and no text.")
        return self.tokenizer

    def _plain(self, text: str) -> list[int]:
        return list(self.require_tokenizer()(text, add_special_tokens=False, split_special_tokens=True).input_ids)

    def _decode(self, token_ids: Sequence[int]) -> str:
        return str(
            self.require_tokenizer().decode(
                list(token_ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
        )

    def _start_ids(self) -> tuple[int, ...]:
        """What the tokenizer puts before every text."""
        bare = self._plain("a")
        full = list(self.require_tokenizer()("a").input_ids)
        for start in range(len(full) - len(bare) + 1):
            if full[start : start + len(bare)] == bare:
                return tuple(full[:start])
        return ()

    def _tokens(self, text: str) -> list[TypedToken]:
        """Tokens with the tokenizer's own offsets, or with offsets by spelling where it has none."""
        if self.require_tokenizer().is_fast:
            encoded = self.require_tokenizer()(
                text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True, verbose=False
            )
            pairs = zip(encoded.input_ids, encoded.offset_mapping, strict=True)
            return [TypedToken(token_id, start, end) for token_id, (start, end) in pairs]
        return self._spelled(self._plain(text), text)

    def _spelled(self, token_ids: list[int], text: str) -> list[TypedToken]:
        tokens, place, held = [], 0, b""
        for token_id in token_ids:
            spelled = self.bytes_of(token_id) if tokens else self.first_bytes_of(token_id)
            piece, held = split_bytes(held, spelled)
            tokens.append(TypedToken(token_id, place, place + len(piece)))
            place += len(piece)
        if place == len(text):
            return tokens
        # It does not spell what was typed (it normalises): the whole text belongs to its last token.
        return [TypedToken(token.token_id, 0, len(text)) for token in tokens]

    def _encode_rest(self, text: str) -> list[TypedToken]:
        """The rest of a text, for a tokenizer that would put a space before it."""
        if text.startswith(" ") and len(text) > 1:
            tokens = [TypedToken(t.token_id, t.start + 1, t.end + 1) for t in self._tokens(text[1:])]
            return _tiled(tokens, text)
        # A line break stands apart from what follows it, and takes the unwanted space upon itself.
        tokens = [TypedToken(t.token_id, t.start - 1, t.end - 1) for t in self._tokens("\n" + text) if t.start > 0]
        return _tiled(tokens or self._tokens(text), text)


def _spell_byte_level(token: str) -> bytes:
    """The bytes behind a token of byte-level vocabularies, where each printable character stands for a byte."""
    table = _byte_table()
    if all(character in table for character in token):
        return bytes(table[character] for character in token)
    return token.encode()


@functools.cache
def _byte_table() -> dict[str, int]:
    """Printable Latin-1 characters stand for themselves; the other bytes for characters from 256 on, in order."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + index): byte for index, byte in enumerate(others)}


def special_ids(tokenizer: Any) -> frozenset[int]:
    """Ids that are control tokens, whichever way the tokenizer declares them."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    return frozenset(tokenizer.all_special_ids) | {index for index, token in added.items() if token.special}


def _decoder_of(tokenizer: Any) -> str:
    return repr(getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None))


def _tiled(tokens: list[TypedToken], text: str) -> list[TypedToken]:
    """Spans without gaps or overlaps: of tokens that share a character the last one has it, a gap goes to the next."""
    tiled: list[TypedToken] = []
    place = 0
    for index, token in enumerate(tokens):
        following = tokens[index + 1].start if index + 1 < len(tokens) else len(text)
        end = max(place, min(token.end, following)) if index + 1 < len(tokens) else len(text)
        tiled.append(TypedToken(token.token_id, place, end))
        place = end
    return tiled
