"""Conversion between token ids and text, byte by byte, so that an incomplete character is never shown."""

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
from lookahead_core.text.token_beginnings import TokenBeginnings
from lookahead_core.validation import short_repr

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
MAX_SEARCHES = 1000
"""The number of strings for which `TextCodec.tokens_containing` remembers its result."""
SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair: not a character, and not encodable as UTF-8."""


@dataclass(frozen=True, slots=True)
class TypedToken:
    """A token of a text, and the characters of the text that it stands for: `text[start:end]`."""

    token_id: int
    start: int
    end: int


def split_bytes(partial: bytes, more: bytes) -> tuple[str, bytes]:
    """Decode `partial + more` as UTF-8; return the complete characters, and the bytes of an incomplete one at the end.

    Both may be empty. Bytes that are not UTF-8 become replacement characters.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(partial + more)
    return text, decoder.getstate()[0]


def is_complete_utf8(spelled: bytes) -> bool:
    """Whether these bytes are valid UTF-8 without an incomplete character; True for no bytes."""
    try:
        spelled.decode()
    except UnicodeDecodeError:
        return False
    return True


def check_text(text: object) -> None:
    """Raise ValueError unless a text is a string, and TextError if it holds half of a surrogate pair."""
    if not isinstance(text, str):
        raise ValueError(f"text is {type(text).__name__}, and must be a string.")
    if half := SURROGATE.search(text):
        raise TextError(f"Character {half.start()} of the text is half of a surrogate pair; remove it.")


class TextCodec:
    """A tokenizer, which is copied, as a map between bytes and ids.

    Special tokens have no text, and text is never encoded as a special token. The tokenizer may be None: then encoding
    a text raises TextError, tokens have no bytes, and tokens cannot be searched.

    `vocabulary` is the number of ids that the model has: a tokenizer may have more, which are treated as unknown ids.
    None is no limit.
    """

    def __init__(self, tokenizer: Any | None, vocabulary: int | None = None) -> None:
        # A copy, because `split_special_tokens` changes the tokenizer's state, and the caller may be using theirs.
        self.tokenizer = copy.deepcopy(tokenizer)
        self.start_ids: tuple[int, ...] = ()
        """The special tokens that the tokenizer puts before every text."""
        self.adds_space = False
        """Whether the tokenizer puts a space before every text."""
        self._containing: dict[bytes, frozenset[int]] = {}
        if tokenizer is None:
            return
        self._spelled_by: dict[int, bytes] = {}
        self._limit = vocabulary
        self._size = len(tokenizer) if vocabulary is None else min(len(tokenizer), vocabulary)
        self._special = special_ids(tokenizer)
        self._byte_level = "ByteLevel" in _decoder_of(tokenizer)
        first = self._encode_plain("a")[0]
        self._anchor = self._encode_plain("a")[-1:]
        self._anchor_text = self._decode(self._anchor)
        self.adds_space = self.bytes_of(first).startswith(b" ")
        self.start_ids = self._find_start_ids()

    def encode(self, text: str, continuing: bool = False) -> list[TypedToken]:
        """Return the tokens of a text, in order; no start tokens, and none for an empty text.

        Their spans cover the text without gaps or overlaps; if tokens share a character, the last one has it, and the
        others may have an empty span. With `continuing`, the text follows other text, so that the tokenizer puts no
        space before it. Raises TextError for half of a surrogate pair, for a text if there is no tokenizer, and for one
        with a token that the model does not have.
        """
        check_text(text)
        if not text:
            return []
        if continuing and self.adds_space:
            tokens = self._encode_continuation(text)
        else:
            tokens = _tiled(self._encode_with_spans(text), text)
        for token in tokens:
            if self._limit is not None and token.token_id >= self._limit:
                raise TextError(f"The model has no token for {short_repr(text[token.start : token.end])}; remove it.")
        return tokens

    def bytes_of(self, token_id: int) -> bytes:
        """Return the bytes that a token adds within a text; b"" for special tokens, unknown ids, and no tokenizer."""
        if self.tokenizer is None or token_id in self._special or not 0 <= token_id < self._size:
            return b""
        spelled = self._spelled_by.get(token_id)
        if spelled is None:
            spelled = self._spelled_by[token_id] = self._spell(token_id)
        return spelled

    def first_bytes_of(self, token_id: int) -> bytes:
        """Return the bytes that a token adds to an empty text, where some tokenizers drop a leading space.

        b"" where `bytes_of` is, and also for a token of only that space.
        """
        spelled = self.bytes_of(token_id)
        if not spelled:
            return b""
        return spelled[1:] if self.adds_space and spelled.startswith(b" ") else spelled

    def tokens_starting_with(self, prefix: bytes) -> Sequence[int]:
        """Return the ids of all tokens whose bytes begin with `prefix`, sorted by their bytes; needs a tokenizer.

        Special tokens have no bytes, so only an empty `prefix` finds them.
        """
        spelled, token_ids = self._vocabulary
        low = bisect.bisect_left(spelled, prefix)
        high = bisect.bisect_left(spelled, prefix + b"\xff" * 8)
        return token_ids[low:high]

    def tokens_containing(self, text: bytes) -> frozenset[int]:
        """Return the ids of all tokens whose bytes contain the bytes `text`; needs a tokenizer.

        Special tokens have no bytes, so only an empty `text` finds them.
        """
        found = self._containing.get(text)
        if found is None:
            if len(self._containing) >= MAX_SEARCHES:
                self._containing.clear()
            spelled, token_ids = self._vocabulary
            pairs = zip(spelled, token_ids, strict=True)
            found = self._containing[text] = frozenset(token_id for piece, token_id in pairs if text in piece)
        return found

    @functools.cached_property
    def beginnings(self) -> TokenBeginnings:
        """The index of how all tokens begin, made at first use. Raises TextError without a tokenizer."""
        self.require_tokenizer()
        return TokenBeginnings([self.bytes_of(token_id) for token_id in range(self._size)])

    @functools.cached_property
    def _vocabulary(self) -> tuple[list[bytes], list[int]]:
        """The bytes of all tokens, sorted, and their ids in the same order; special tokens have b""."""
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
        """Return the tokenizer; raise TextError if there is none."""
        if self.tokenizer is None:
            raise TextError("This model was loaded without a tokenizer, so there are token ids and no text.")
        return self.tokenizer

    def _encode_plain(self, text: str) -> list[int]:
        return list(self.require_tokenizer()(text, add_special_tokens=False, split_special_tokens=True).input_ids)

    def _decode(self, token_ids: Sequence[int]) -> str:
        options = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
        return str(self.require_tokenizer().decode(list(token_ids), **options))

    def _find_start_ids(self) -> tuple[int, ...]:
        """Return the ids of the start tokens that the tokenizer puts before the text "a", and so before every text.

        Empty if it puts none.
        """
        bare = self._encode_plain("a")
        full = list(self.require_tokenizer()("a").input_ids)
        for start in range(len(full) - len(bare) + 1):
            if full[start : start + len(bare)] == bare:
                return tuple(full[:start])
        return ()

    def _encode_with_spans(self, text: str) -> list[TypedToken]:
        """Return the tokens of a text with the tokenizer's own offsets, or with spans by their bytes if it has none.

        The spans are in characters, and may have gaps and overlaps. No start tokens are added.
        """
        if self.require_tokenizer().is_fast:
            encoded = self.require_tokenizer()(
                text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True, verbose=False
            )
            pairs = zip(encoded.input_ids, encoded.offset_mapping, strict=True)
            return [TypedToken(token_id, start, end) for token_id, (start, end) in pairs]
        return self._spans_by_bytes(self._encode_plain(text), text)

    def _spans_by_bytes(self, token_ids: list[int], text: str) -> list[TypedToken]:
        """Return a token for each id, with the span that follows from its bytes; the first one begins the text.

        If the bytes add up to more or fewer characters than the text (the tokenizer normalises it), each span is the
        whole text. A character belongs to the token that completes it.
        """
        tokens: list[TypedToken] = []
        end, partial = 0, b""
        for token_id in token_ids:
            spelled = self.bytes_of(token_id) if tokens else self.first_bytes_of(token_id)
            piece, partial = split_bytes(partial, spelled)
            tokens.append(TypedToken(token_id, end, end + len(piece)))
            end += len(piece)
        if end == len(text):
            return tokens
        return [TypedToken(token.token_id, 0, len(text)) for token in tokens]

    def _encode_continuation(self, text: str) -> list[TypedToken]:
        """Return the tokens of a text that follows other text, for a tokenizer that would put a space before it.

        Their spans cover the text, which must not be empty.
        """
        if text.startswith(" ") and len(text) > 1:
            tokens = [TypedToken(t.token_id, t.start + 1, t.end + 1) for t in self._encode_with_spans(text[1:])]
            return _tiled(tokens, text)
        # The added space goes before the line break, which is a token of its own and is then dropped.
        with_break = self._encode_with_spans("\n" + text)
        tokens = [TypedToken(t.token_id, t.start - 1, t.end - 1) for t in with_break if t.start > 0]
        return _tiled(tokens or self._encode_with_spans(text), text)


def _spell_byte_level(token: str) -> bytes:
    """Return the bytes of a token in a byte-level vocabulary, in which each character stands for a byte.

    A token with a character that is not in `_byte_table` is returned in UTF-8 as a whole.
    """
    table = _byte_table()
    if all(character in table for character in token):
        return bytes(table[character] for character in token)
    return token.encode()


@functools.cache
def _byte_table() -> dict[str, int]:
    """Return GPT-2's table from characters to bytes, one character for each of the 256 bytes; do not change it.

    Printable Latin-1 characters without the spaces and the soft hyphen stand for their own byte; characters from 256
    on stand for the other bytes, in ascending order.
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + index): byte for index, byte in enumerate(others)}


def special_ids(tokenizer: Any) -> frozenset[int]:
    """Return the ids of all special tokens: `all_special_ids`, and added tokens that are marked as special."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    return frozenset(tokenizer.all_special_ids) | {index for index, token in added.items() if token.special}


def _decoder_of(tokenizer: Any) -> str:
    """Return the `repr` of the decoder of a fast tokenizer; "None" for other tokenizers and those without a decoder."""
    return repr(getattr(getattr(tokenizer, "backend_tokenizer", None), "decoder", None))


def _tiled(tokens: list[TypedToken], text: str) -> list[TypedToken]:
    """Return the tokens with spans that cover the text without gaps or overlaps; some spans may be empty.

    The tokens are in the order of their starts. If several tokens share a character, the last one gets it. A gap goes
    to the token after it, and one at the end to the last token.
    """
    tiled: list[TypedToken] = []
    start = 0
    for index, token in enumerate(tokens):
        following = tokens[index + 1].start if index + 1 < len(tokens) else len(text)
        end = max(start, min(token.end, following)) if index + 1 < len(tokens) else len(text)
        tiled.append(TypedToken(token.token_id, start, end))
        start = end
    return tiled
