"""Conversations as token ids: the chat template is split exactly, so that the last message can be continued.

Each message is rendered as a placeholder first. What the template puts around the placeholders shows where messages
begin and end; then the messages' own characters are put in, which no template can change or read as control tokens.
"""

from __future__ import annotations

import functools
import itertools
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lookahead_core.errors import LookaheadError, TextError
from lookahead_core.text.codec import SURROGATE, TextCodec, special_ids, split_bytes

log = logging.getLogger(__name__)

MAX_INSTRUCTION = 4000
"""Characters of an instruction at most."""
MAX_CHARACTERS = 200_000
"""Characters of all messages together at most."""
MAX_MESSAGES = 500
ROLES = ("system", "user", "assistant")
BLANK = "\u2003"
"""White space around each placeholder: if the template removes it, the template trims messages."""
LAYOUT = "{role}:\n{content}\n\n"
"""The layout of a message for a model without a template; an answer begins after its role."""

Messages: TypeAlias = list[dict[str, str]]
"""Messages as `apply_chat_template` takes them."""
_BLANKS = re.compile(rb"\s*")
_PLACEHOLDERS = re.compile(r"([\ue000-\uf8ff])\1\1")


@dataclass(frozen=True, slots=True)
class ChatToken:
    """A token of a conversation, and the characters that it stands for: `text[start:end]` of `Conversation.text`."""

    token_id: int
    start: int
    end: int
    message: int | None
    """The index of the message that has a character in the token; None if the token is all template."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """The text and tokens of messages in a model's chat template; `tokenize_conversation` makes it.

    They reach to the end of the last message, which the model is to continue.
    """

    text: str
    """All characters, the template's included."""
    tokens: tuple[ChatToken, ...]
    last_message: str
    opening_length: int
    """The number of tokens before the last message."""
    turn_end_ids: frozenset[int]
    """The control tokens that end the last message; empty if the template ends it with plain text or with nothing."""
    turn_end_text: str
    """The plain text that ends the last message; "" if the template ends it with a control token or with nothing."""

    @property
    def token_ids(self) -> list[int]:
        """A new list of the ids of all tokens, to the end of the last message."""
        return [token.token_id for token in self.tokens]

    @property
    def opening(self) -> tuple[int, ...]:
        """The ids before the last message, with start tokens: the `opening` of `Document(model, last_message)`."""
        return tuple(token.token_id for token in self.tokens[: self.opening_length])

    def find_turn_end(self, text: str) -> int | None:
        """Return the index in `text` at which the template's plain text for the end of a message first begins.

        `text` is what the model has written so far. The plain text without its final colons is found too, but only at
        the end of `text`. None if nothing is found, or if no plain text ends messages (`turn_end_text` is "").
        """
        if not self.turn_end_text:
            return None
        name = re.escape(self.turn_end_text.rstrip(":"))
        found = re.search(f"{re.escape(self.turn_end_text)}|{name}$", text)
        return found.start() if found else None


def tokenize_conversation(codec: TextCodec, messages: Sequence[Mapping[str, str]]) -> Conversation:
    """Return messages `{"role": …, "content": …}` as the tokens of a conversation whose last message is continued.

    Without a chat template, messages are laid out as in `LAYOUT`. If the template takes no system message, that becomes
    the beginning of the user message after it, or a user message. Templates may trim white space of all messages but
    the last. Raises ValueError for no, too many, too long or malformed messages, LookaheadError if the template cannot
    be used for them, and TextError without a tokenizer and for half of a surrogate pair.
    """
    codec.require_tokenizer()
    roles, contents = _parse_messages(messages)
    return _conversation(_ChatTokenizer(codec.tokenizer, codec), roles, contents)


def instruction_opening(tokenizer: Any, instruction: str) -> tuple[int, ...]:
    """Return the ids of one user message with this instruction, up to where the model's answer begins.

    Special tokens that the instruction spells are encoded as plain text. Raises LookaheadError if there is no chat
    template, if it cannot be used, or for half of a surrogate pair; ValueError if the instruction is no string or
    longer than MAX_CHARACTERS. MAX_INSTRUCTION is not checked here.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise LookaheadError(
            "This model has no chat template, so it takes no instruction; write the beginning of a text instead."
        )
    if not isinstance(instruction, str):
        raise ValueError(f"instruction is {type(instruction).__name__}, and must be a string.")
    messages = [{"role": "user", "content": instruction}, {"role": "assistant", "content": ""}]
    return _conversation(_ChatTokenizer(tokenizer), *_parse_messages(messages)).opening


def max_opening_tokens(context: int) -> int:
    """Return how many tokens may come before a text in a context of `context` tokens: three quarters, rounded up."""
    return context - context // 4


def _parse_messages(messages: object) -> tuple[list[str], list[str]]:
    """Return the roles and the contents of messages, one of each per message.

    Raises ValueError if there are no messages, more than MAX_MESSAGES, or more than MAX_CHARACTERS characters in all,
    or if a message is malformed; TextError for half of a surrogate pair.
    """
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise ValueError('messages must be a list of {"role": …, "content": …}.')
    if not messages:
        raise ValueError("At least one message must be provided.")
    if len(messages) > MAX_MESSAGES:
        raise ValueError(f"There are {len(messages):,} messages, and {MAX_MESSAGES} are allowed; remove some.")
    for number, message in enumerate(messages, start=1):
        if not isinstance(message, Mapping) or not isinstance(message.get("content"), str):
            raise ValueError(f'Message {number} must be {{"role": …, "content": …}}, with a string as its content.')
        if message.get("role") not in ROLES:
            raise ValueError(f"The role of message {number} must be one of {', '.join(ROLES)}.")
        if SURROGATE.search(message["content"]):
            raise TextError(f"Message {number} contains half of a surrogate pair; remove it.")
    contents = [message["content"] for message in messages]
    if (length := sum(map(len, contents))) > MAX_CHARACTERS:
        raise ValueError(f"The messages have {length:,} characters, and may have at most {MAX_CHARACTERS:,}.")
    return [message["role"] for message in messages], contents


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the text before the last message: of the message with the index `message`, or None for the template."""

    text: str
    message: int | None = None


@dataclass
class _ChatTokenizer:
    """A tokenizer with its codec. A codec that is not given is made on first use, because that is slow."""

    tokenizer: Any
    existing_codec: TextCodec | None = None

    @functools.cached_property
    def codec(self) -> TextCodec:
        return self.existing_codec or TextCodec(self.tokenizer)

    @property
    def start_ids(self) -> tuple[int, ...]:
        """The start tokens to put before a conversation; none if there is a chat template, which writes them itself."""
        return () if getattr(self.tokenizer, "chat_template", None) else self.codec.start_ids


def _conversation(tokenizer: _ChatTokenizer, roles: list[str], contents: list[str]) -> Conversation:
    before, after = _split_template(tokenizer.tokenizer, roles)
    parts = _parts(before, contents)
    text, last_message = "".join(part.text for part in parts), contents[-1]
    opening = [ChatToken(token_id, 0, 0, None) for token_id in tokenizer.start_ids] + _opening_tokens(tokenizer, parts)
    typed = tokenizer.codec.encode(last_message) if last_message else []
    own = [ChatToken(one.token_id, len(text) + one.start, len(text) + one.end, len(contents) - 1) for one in typed]
    end_ids, end_text = _turn_end(tokenizer, after)
    return Conversation(text + last_message, (*opening, *own), last_message, len(opening), end_ids, end_text)


def _placeholder(number: int) -> str:
    """Return a private-use character, three times: it stands for message `number` while the template is rendered."""
    return chr(0xE000 + number) * 3


def _split_template(tokenizer: Any, roles: list[str]) -> tuple[str, str]:
    """Return the rendered template before the content of the last message, and after it.

    `roles` are those of all messages, at least one. In the first text, each earlier content is a `_placeholder` between
    two `BLANK`, which the template may have removed. If the template refuses the messages and the first is a system
    message, that becomes the beginning of a user message. Raises LookaheadError if the template cannot be used.
    """
    contents = [f"{BLANK}{_placeholder(number)}{BLANK}" for number in range(len(roles) - 1)]
    contents.append(_placeholder(len(roles) - 1))
    messages = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=True)]
    try:
        return _split_at_last(tokenizer, messages)
    except LookaheadError as error:
        if roles[0] != "system":
            raise
        log.debug("The chat template takes no system message: %s", error)
    return _split_at_last(tokenizer, _without_system(messages))


def _without_system(messages: Messages) -> Messages:
    """Return new messages, in which the first, a system message, is put at the beginning of the message after it.

    If the message after it is not the user's, or there is none, the system message becomes a user message of its own.
    """
    first, *others = messages
    if others and others[0]["role"] == "user":
        return [{"role": "user", "content": f"{first['content']}\n\n{others[0]['content']}"}, *others[1:]]
    return [{"role": "user", "content": first["content"]}, *others]


def _split_at_last(tokenizer: Any, messages: Messages) -> tuple[str, str]:
    """Render the messages, whose contents hold placeholders; return the text before and after the last placeholder.

    If the template puts only white space after it, the second text is what it would put before a next message. Raises
    LookaheadError if the template fails, or changes, drops or repeats a placeholder.
    """
    expected = _PLACEHOLDERS.findall("".join(message["content"] for message in messages))
    placeholder = expected[-1] * 3
    before, after = "", ""
    if messages[-1]["role"] == "assistant" and messages[:-1]:
        before, after = _split_at_answer(tokenizer, messages, placeholder)
    else:
        before, found, after = _render(tokenizer, messages).partition(placeholder)
        if not found:
            raise _unusable_template()
    if _PLACEHOLDERS.findall(before + placeholder) != expected or placeholder in after:
        raise _unusable_template()
    return before, after if after.strip() else _next_turn(tokenizer, messages, placeholder)


def _split_at_answer(tokenizer: Any, messages: Messages, placeholder: str) -> tuple[str, str]:
    """Return the rendered text before and after the content of an answer: the last message, which is not the only one.

    The answer begins where the generation prompt ends, or where the template puts it if it has no such prompt. White
    space that the template puts before an answer is left to the model. All contents are placeholders, `placeholder` the
    answer's. Raises LookaheadError if the template fails or drops the message before the answer.
    """
    earlier = messages[:-1]
    bare, prompted = _render(tokenizer, earlier), _render(tokenizer, earlier, generation_prompt=True)
    last = _PLACEHOLDERS.findall(bare)[-1:]
    if not last:
        raise _unusable_template()
    header, found, after = _render(tokenizer, messages).partition(placeholder)
    bare_rest, prompted_rest, header_rest = (text.rpartition(last[0] * 3)[2] for text in (bare, prompted, header))
    if prompted_rest != bare_rest:
        return prompted, after
    added = header_rest.removeprefix(bare_rest)
    return (header if found and added.strip() else bare), after


def _next_turn(tokenizer: Any, messages: Messages, placeholder: str) -> str:
    """Return what the template puts between the contents of the last message and a next one; "" if it refuses one.

    `placeholder` is the content of the last message. The next message is the user's, or an answer to a user's message.
    """
    other = "assistant" if messages[-1]["role"] == "user" else "user"
    following = _placeholder(MAX_MESSAGES)
    try:
        rendered = _render(tokenizer, [*messages, {"role": other, "content": following}])
    except LookaheadError as error:
        log.debug("The chat template takes no further message: %s", error)
        return ""
    return rendered.partition(placeholder)[2].partition(following)[0]


def _unusable_template() -> LookaheadError:
    return LookaheadError(
        "This model's chat template changes or drops an instruction or a message, so it cannot be used; load a model "
        "with another template, or write a plain text."
    )


def _render(tokenizer: Any, messages: Messages, *, generation_prompt: bool = False) -> str:
    """Return the messages as text in the model's template, or in `LAYOUT` if it has none.

    With `generation_prompt`, the header of an answer follows. Raises LookaheadError if the template raises any error.
    """
    if not getattr(tokenizer, "chat_template", None):
        shown = "".join(LAYOUT.format(role=one["role"].capitalize(), content=one["content"]) for one in messages)
        return shown + (LAYOUT.partition("{content}")[0].format(role="Assistant") if generation_prompt else "")
    try:
        return str(tokenizer.apply_chat_template(messages, add_generation_prompt=generation_prompt, tokenize=False))
    except Exception as error:
        raise LookaheadError(
            f"This model's chat template cannot be used for these messages ({_reason(error)}); let user and assistant "
            "take turns, the user first, or write a plain text."
        ) from error


def _reason(error: Exception) -> str:
    """Return the message of a Jinja `TemplateError`, which a template raises on purpose, to be put into a sentence.

    Spaces, dots and exclamation marks at both ends are left out, and it has at most 200 characters. For an error of
    another type, also a subclass, or where nothing is left of the message: the name of its type.
    """
    message = str(error) if type(error).__name__ == "TemplateError" else ""
    return message.strip(" .!")[:200] or type(error).__name__


def _parts(before: str, contents: list[str]) -> list[_Part]:
    """Split `before`, the rendered template up to the last message, at the placeholders of its messages.

    Returns template parts and message parts in turn, a template part first and last; these may be empty. A message part
    holds the message of `contents` that its placeholder numbers, stripped on the sides where the template removed the
    blank around the placeholder. `contents` are those of all messages, also of the last one.
    """
    pieces = re.split(f"({BLANK}?)([\ue000-\uf8ff])\\2\\2({BLANK}?)", before)
    parts = [_Part(pieces[0])]
    for left, character, right, template in zip(*(pieces[start::4] for start in (1, 2, 3, 4)), strict=True):
        number = ord(character) - 0xE000
        content = contents[number] if left else contents[number].lstrip()
        parts += [_Part(content if right else content.rstrip(), number), _Part(template)]
    return parts


def _opening_tokens(tokenizer: _ChatTokenizer, parts: list[_Part]) -> list[ChatToken]:
    """Return the tokens of a conversation up to its last message, without start tokens that the codec would add.

    `parts` is the text before the last message; the tokens' `start` and `end` count in the joined parts.

    All parts are tokenized at once, as chat models are trained. If messages spell special tokens, the parts are
    tokenized one by one, so that only the template's special tokens become control tokens.
    """
    tokens = _encode_template(tokenizer, "".join(part.text for part in parts))
    special = special_ids(tokenizer.tokenizer)
    template = [one for part in parts if part.message is None for one in _encode_template(tokenizer, part.text)]
    if [one for one, _ in tokens if one in special] != [one for one, _ in template if one in special]:
        tokens = _encode_by_part(tokenizer, parts)
    owners = [part.message for part in parts for _ in part.text]
    ends = [*(start for _, start in tokens[1:]), len(owners)]
    return [
        ChatToken(
            token_id, start, end, next((one for one in owners[start : max(end, start + 1)] if one is not None), None)
        )
        for (token_id, start), end in zip(tokens, ends, strict=False)
    ]


def _encode_template(tokenizer: _ChatTokenizer, text: str) -> list[tuple[int, int]]:
    """Return (id, start) for the tokens of a text; `start` is the index of a token's first character.

    Starts never decrease. They are the offsets of a fast tokenizer; for others they are found by the tokens' bytes, see
    `_starts_by_bytes`. Special tokens that the text spells become control tokens, and no start token is added.
    """
    options = {"add_special_tokens": False, "split_special_tokens": False, "verbose": False}
    if tokenizer.tokenizer.is_fast:
        encoded = tokenizer.tokenizer(text, return_offsets_mapping=True, **options)
        starts = itertools.accumulate((start for start, _ in encoded.offset_mapping), max)
        return list(zip(encoded.input_ids, starts, strict=True))
    ids = list(tokenizer.tokenizer(text, **options).input_ids)
    return list(zip(ids, _starts_by_bytes(tokenizer, ids, text.encode()), strict=True))


def _starts_by_bytes(tokenizer: _ChatTokenizer, ids: list[int], text: bytes) -> Iterator[int]:
    """Yield for each id, in order, the index of the character of `text` at which its token begins.

    For tokenizers without offsets: the tokens' bytes are looked up in `text`, in UTF-8, one after the other. Tokens
    that share a character all begin with it. A leading space of a token that the text does not have is dropped, and
    white space that no token spells belongs to the token before it. Other differences make the indices wrong.
    """
    position, characters, partial = 0, 0, b""
    for token_id in ids:
        spelled = _spelled(tokenizer, token_id)
        start = position
        if not text.startswith(spelled, position):
            blank = _BLANKS.match(text, position)
            if text.startswith(spelled.removeprefix(b" "), position):
                spelled = spelled.removeprefix(b" ")
            elif blank is not None and text.startswith(spelled, blank.end()):
                start = blank.end()
        shown, partial = split_bytes(partial, text[position:start])
        characters += len(shown)
        yield characters
        position = start + len(spelled)
        shown, partial = split_bytes(partial, text[start:position])
        characters += len(shown)


def _spelled(tokenizer: _ChatTokenizer, token_id: int) -> bytes:
    """Return the bytes of a token in a template: those of its text, or, for a control token, those of its name."""
    return tokenizer.codec.bytes_of(token_id) or str(tokenizer.tokenizer.convert_ids_to_tokens(token_id)).encode()


def _encode_by_part(tokenizer: _ChatTokenizer, parts: list[_Part]) -> list[tuple[int, int]]:
    """Return (id, start) for the tokens of all parts; `start` is a character's index in the joined parts.

    Each part is tokenized alone, and messages as plain text: only special tokens of the template become control tokens.
    """
    tokens: list[tuple[int, int]] = []
    length = 0
    for part in parts:
        if part.message is not None:
            typed = tokenizer.codec.encode(part.text, continuing=True)
            tokens += [(one.token_id, length + one.start) for one in typed]
        else:
            # A tokenizer that puts a space before every text would double the space that is there already.
            doubled = bool(tokens) and tokenizer.codec.adds_space and part.text.startswith(" ")
            encoded = _encode_template(tokenizer, part.text[doubled:])
            tokens += [(token_id, length + doubled + start) for token_id, start in encoded]
        length += len(part.text)
    return tokens


def _turn_end(tokenizer: _ChatTokenizer, after: str) -> tuple[frozenset[int], str]:
    """Return how the template ends a message: a set with the id of a control token, or else the plain text.

    `after` is what the template puts after the last message. A control token counts if only white space comes before
    it: then the text is "". Else the set is empty, and the text is what comes before the first control token, without
    spaces around it; "" if that is blank.
    """
    text = after.partition(_placeholder(MAX_MESSAGES))[0].replace(BLANK, "")
    special = special_ids(tokenizer.tokenizer)
    first = [token_id for token_id, _ in _encode_template(tokenizer, text.lstrip())[:1] if token_id in special]
    if first:
        return frozenset(first), ""
    controls = [name for name in map(tokenizer.tokenizer.convert_ids_to_tokens, special) if name and name in text]
    plain = text[: min((text.index(name) for name in controls), default=len(text))]
    return frozenset(), plain.strip(" ").rstrip() if plain.strip() else ""
