"""A conversation as tokens: a chat template split exactly, so that the last message is written on, and not answered."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lookahead_core.errors import LookaheadError, TextError
from lookahead_core.text.codec import SURROGATE, TextCodec, special_ids, split_bytes

LONGEST = 4000
"""How many characters an instruction may have."""
MOST_CHARACTERS = 200_000
"""How many characters all messages may have together."""
MOST_MESSAGES = 500
ROLES = ("system", "user", "assistant")
BLANK = "\u2003"
"""Stands around what stands in for a message: where a template takes it away, it trims the message."""
LAYOUT = "{role}:\n{content}\n\n"
"""What a message looks like to a model without a template; an answer begins with its role alone."""

Told = list[dict[str, str]]
_BLANKS = re.compile(rb"\s*")


@dataclass(frozen=True, slots=True)
class ChatToken:
    """A token of a conversation, and the characters of its text that it stands for."""

    token_id: int
    start: int
    end: int
    message: int | None
    """Which message has a character in it; None where all of it is the template's."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages as the model reads them, up to where the last one is written on: nothing follows it."""

    text: str
    """All of it, the template included."""
    tokens: tuple[ChatToken, ...]
    last_message: str
    """The last message, every character of it."""
    opening_length: int
    """How many tokens stand before the last message."""
    turn_end_ids: frozenset[int]
    """What would end the last message, where the template ends it with a token of its own."""
    turn_end_text: str
    """What would end it, where the template does so in plain words."""

    @property
    def token_ids(self) -> list[int]:
        return [token.token_id for token in self.tokens]

    @property
    def opening(self) -> tuple[int, ...]:
        """What stands before the last message: a document that opens with it has the message as its text."""
        return tuple(token.token_id for token in self.tokens[: self.opening_length])

    def find_turn_end(self, text: str) -> int | None:
        """Where, in what the model adds to the message, words of the template would begin."""
        if not self.turn_end_text:
            return None
        name = re.escape(self.turn_end_text.rstrip(":"))
        found = re.search(f"{re.escape(self.turn_end_text)}|{name}$", text)
        return found.start() if found else None


def tokenize_conversation(codec: TextCodec, messages: Sequence[Mapping[str, str]]) -> Conversation:
    """These messages, `{"role": …, "content": …}` each, with the last one half written.

    A model without a template reads them under their roles (see `LAYOUT`). A template that knows no system message
    gets it at the beginning of the first message. Of the messages before the last one a template may trim white space.
    """
    codec.require_tokenizer()
    roles, contents = _checked(messages)
    return _conversation(_Words(codec.tokenizer, codec), roles, contents)


def opening(tokenizer: Any, instruction: str) -> tuple[int, ...]:
    """The ids of one message with this instruction, up to where the model's answer begins.

    The person's words are plain text, whatever they spell: where they spell a special token, the template's parts are
    read apart from them; elsewhere all of it is read at once, as the model has learnt it.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise LookaheadError("This model has no chat template, so it takes no instruction; write the text to go on.")
    if not isinstance(instruction, str):
        raise ValueError(f"instruction is {type(instruction).__name__}, and must be a string.")
    roles, contents = _checked([{"role": "user", "content": instruction}, {"role": "assistant", "content": ""}])
    return _conversation(_Words(tokenizer), roles, contents).opening


def max_opening_tokens(context: int) -> int:
    """How many tokens may stand before a text: a quarter of what the model sees is left for it."""
    return context - context // 4


def _checked(messages: object) -> tuple[list[str], list[str]]:
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise ValueError('messages must be a list of {"role": …, "content": …}.')
    if not messages:
        raise ValueError("At least one message must be provided.")
    if len(messages) > MOST_MESSAGES:
        raise ValueError(f"There are {len(messages):,} messages, and {MOST_MESSAGES} are allowed: leave some out.")
    for number, message in enumerate(messages, start=1):
        if not isinstance(message, Mapping) or not isinstance(message.get("content"), str):
            raise ValueError(f'Message {number} must be {{"role": …, "content": …}}, with a string as its content.')
        if message.get("role") not in ROLES:
            raise ValueError(f"The role of message {number} must be one of {', '.join(ROLES)}.")
        if SURROGATE.search(message["content"]):
            raise TextError(f"Message {number} holds half of a pair of characters that belong together; remove it.")
    contents = [message["content"] for message in messages]
    if (length := sum(map(len, contents))) > MOST_CHARACTERS:
        raise ValueError(f"The messages have {length:,} characters, and may have at most {MOST_CHARACTERS:,}.")
    return [message["role"] for message in messages], contents


@dataclass(frozen=True, slots=True)
class _Part:
    """Characters that are one message's, or the template's."""

    text: str
    message: int | None = None


@dataclass
class _Words:
    """A tokenizer and its codec, which is made where it is needed: that takes a while."""

    tokenizer: Any
    given: TextCodec | None = None

    @functools.cached_property
    def codec(self) -> TextCodec:
        return self.given or TextCodec(self.tokenizer)

    @property
    def before(self) -> tuple[int, ...]:
        """What stands before all texts, where no template says it."""
        return () if getattr(self.tokenizer, "chat_template", None) else self.codec.start_ids


def _conversation(words: _Words, roles: list[str], contents: list[str]) -> Conversation:
    before, after = _split(words.tokenizer, roles)
    parts = _parts(before, contents)
    text, written = "".join(part.text for part in parts), contents[-1]
    tokens = [ChatToken(token_id, 0, 0, None) for token_id in words.before] + _read(words, parts)
    typed = words.codec.encode(written) if written else []
    own = [ChatToken(one.token_id, len(text) + one.start, len(text) + one.end, len(contents) - 1) for one in typed]
    end_ids, end_text = _end(words, after)
    return Conversation(text + written, (*tokens, *own), written, len(tokens), end_ids, end_text)


def _sign(number: int) -> str:
    """Characters of no meaning, to stand in for a message: a template sees nothing of what a person wrote."""
    return chr(0xE000 + number) * 3


def _split(tokenizer: Any, roles: list[str]) -> tuple[str, str]:
    """What the template puts before the last message, the earlier ones as their signs; and what would follow it."""
    contents = [f"{BLANK}{_sign(number)}{BLANK}" for number in range(len(roles) - 1)] + [_sign(len(roles) - 1)]
    told: Told = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=True)]
    try:
        return _laid_out(tokenizer, told)
    except LookaheadError:
        if roles[0] != "system":
            raise
    return _laid_out(tokenizer, _without_system(told))


def _without_system(told: Told) -> Told:
    """What a system message says, at the beginning of the first message of a person's."""
    first, *others = told
    if others and others[0]["role"] == "user":
        return [{"role": "user", "content": f"{first['content']}\n\n{others[0]['content']}"}, *others[1:]]
    return [{"role": "user", "content": first["content"]}, *others]


def _laid_out(tokenizer: Any, told: Told) -> tuple[str, str]:
    signs = re.findall(r"([\ue000-\uf8ff])\1\1", "".join(message["content"] for message in told))
    sign = signs[-1] * 3
    before, after = "", ""
    if told[-1]["role"] == "assistant" and told[:-1]:
        before, after = _answer(tokenizer, told, sign)
    else:
        before, found, after = _rendered(tokenizer, told).partition(sign)
        if not found:
            raise _unheld()
    if re.findall(r"([\ue000-\uf8ff])\1\1", before + sign) != signs or sign in after:
        raise _unheld()
    return before, after if after.strip() else _next_turn(tokenizer, told, sign)


def _answer(tokenizer: Any, told: Told, sign: str) -> tuple[str, str]:
    """Where an answer begins: where the template asks for one, else where it puts one.

    White space that it puts before an answer is the answer's to write.
    """
    earlier = told[:-1]
    bare, asked = _rendered(tokenizer, earlier), _rendered(tokenizer, earlier, answering=True)
    last = re.findall(r"([\ue000-\uf8ff])\1\1", bare)[-1:]
    if not last:
        raise _unheld()
    header, found, after = _rendered(tokenizer, told).partition(sign)
    rests = [text.rpartition(last[0] * 3)[2] for text in (bare, asked, header)]
    if rests[1] != rests[0]:
        return asked, after
    added = rests[2].removeprefix(rests[0])
    return (header if found and added.strip() else bare), after


def _next_turn(tokenizer: Any, told: Told, sign: str) -> str:
    """What stands between the last message and one that would follow it, where the template says so only then."""
    other = "assistant" if told[-1]["role"] == "user" else "user"
    following = _sign(MOST_MESSAGES)
    try:
        rendered = _rendered(tokenizer, [*told, {"role": other, "content": following}])
    except LookaheadError:
        return ""
    return rendered.partition(sign)[2].partition(following)[0]


def _unheld() -> LookaheadError:
    return LookaheadError(
        "The chat template of this model does not hold an instruction, or a message, as it is written; use a model "
        "that has another one, or go on with a plain text."
    )


def _rendered(tokenizer: Any, told: Told, *, answering: bool = False) -> str:
    """The messages in the model's template, or in our own where it has none."""
    if not getattr(tokenizer, "chat_template", None):
        shown = "".join(LAYOUT.format(role=one["role"].capitalize(), content=one["content"]) for one in told)
        return shown + (LAYOUT.partition("{content}")[0].format(role="Assistant") if answering else "")
    try:
        return str(tokenizer.apply_chat_template(told, add_generation_prompt=answering, tokenize=False))
    except Exception as error:
        raise LookaheadError(
            f"The chat template of this model cannot be used for these messages ({_reason(error)}); let user and "
            "assistant take turns, the user first, or go on with a plain text."
        ) from error


def _reason(error: Exception) -> str:
    """What a template says of itself when it gives up, or how it broke."""
    said = str(error) if type(error).__name__ == "TemplateError" else ""
    return said.strip(" .!")[:200] or type(error).__name__


def _parts(before: str, contents: list[str]) -> list[_Part]:
    """Template and messages in turn, each message as the template takes it: whole, or without the space around it."""
    pieces = re.split(f"({BLANK}?)([\ue000-\uf8ff])\\2\\2({BLANK}?)", before)
    parts = [_Part(pieces[0])]
    for left, sign, right, template in zip(*(pieces[start::4] for start in (1, 2, 3, 4)), strict=True):
        number = ord(sign) - 0xE000
        content = contents[number] if left else contents[number].lstrip()
        parts += [_Part(content if right else content.rstrip(), number), _Part(template)]
    return parts


def _read(words: _Words, parts: list[_Part]) -> list[ChatToken]:
    """The tokens of what stands before the last message."""
    whole = _tokens(words, "".join(part.text for part in parts))
    special = special_ids(words.tokenizer)
    template = [one for part in parts if part.message is None for one in _tokens(words, part.text)]
    if [one for one, _ in whole if one in special] != [one for one, _ in template if one in special]:
        whole = _apart(words, parts)
    owners = [part.message for part in parts for _ in part.text]
    ends = [*(start for _, start in whole[1:]), len(owners)]
    return [
        ChatToken(
            token_id, start, end, next((one for one in owners[start : max(end, start + 1)] if one is not None), None)
        )
        for (token_id, start), end in zip(whole, ends, strict=False)
    ]


def _tokens(words: _Words, text: str) -> list[tuple[int, int]]:
    """Ids of a text whose special tokens are meant as such, and where each begins."""
    options = {"add_special_tokens": False, "split_special_tokens": False, "verbose": False}
    if words.tokenizer.is_fast:
        encoded = words.tokenizer(text, return_offsets_mapping=True, **options)
        starts = itertools.accumulate((start for start, _ in encoded.offset_mapping), max)
        return list(zip(encoded.input_ids, starts, strict=True))
    ids = list(words.tokenizer(text, **options).input_ids)
    return list(zip(ids, _starts(words, ids, text.encode()), strict=True))


def _starts(words: _Words, ids: list[int], written: bytes) -> Iterator[int]:
    """Where each token begins, for tokenizers that do not tell: by what they spell, one after the other.

    Of tokens that spell one character together each begins with it. A space that the text does not have there is
    left out, and white space that no token spells belongs to the token before it.
    """
    place, characters, held = 0, 0, b""
    for token_id in ids:
        spelled = _spelled(words, token_id)
        until = place
        if not written.startswith(spelled, place):
            blank = _BLANKS.match(written, place)
            if written.startswith(spelled.removeprefix(b" "), place):
                spelled = spelled.removeprefix(b" ")
            elif blank is not None and written.startswith(spelled, blank.end()):
                until = blank.end()
        shown, held = split_bytes(held, written[place:until])
        characters += len(shown)
        yield characters
        place = until + len(spelled)
        shown, held = split_bytes(held, written[until:place])
        characters += len(shown)


def _spelled(words: _Words, token_id: int) -> bytes:
    """What a token stands for in a template: its text, or its name where it is a control token."""
    return words.codec.bytes_of(token_id) or str(words.tokenizer.convert_ids_to_tokens(token_id)).encode()


def _apart(words: _Words, parts: list[_Part]) -> list[tuple[int, int]]:
    """The template's parts as templates, messages as plain text that goes on where the part before it ends."""
    tokens: list[tuple[int, int]] = []
    place = 0
    for part in parts:
        if part.message is not None:
            tokens += [(one.token_id, place + one.start) for one in words.codec.encode(part.text, continuing=True)]
        else:
            # A tokenizer that puts a space before every text would double the one that is there.
            doubled = bool(tokens) and words.codec.adds_space and part.text.startswith(" ")
            found = _tokens(words, part.text[doubled:])
            tokens += [(token_id, place + doubled + start) for token_id, start in found]
        place += len(part.text)
    return tokens


def _end(words: _Words, after: str) -> tuple[frozenset[int], str]:
    """What ends a message, by what follows it: a control token, or the first words."""
    text = after.partition(_sign(MOST_MESSAGES))[0].replace(BLANK, "")
    special = special_ids(words.tokenizer)
    found = [token_id for token_id, _ in _tokens(words, text.lstrip())[:1] if token_id in special]
    if found:
        return frozenset(found), ""
    controls = [name for name in map(words.tokenizer.convert_ids_to_tokens, special) if name and name in text]
    plain = text[: min((text.index(name) for name in controls), default=len(text))]
    return frozenset(), plain.strip(" ").rstrip() if plain.strip() else ""
