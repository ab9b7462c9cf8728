"""A chat model told an instruction: the tokens that stand before the text, in the template that it was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lookahead_core.errors import LookaheadError
from lookahead_core.text import TextCodec, special_ids

LONGEST = 4000
"""How many characters an instruction may have."""


def opening(tokenizer: Any, instruction: str) -> tuple[int, ...]:
    """The ids of one message with this instruction, up to where the model's answer begins.

    The person's words are plain text, whatever they spell: where they spell a special token, the template's parts are
    read apart from them; elsewhere all of it is read at once, as the model has learnt it.
    """
    _check(instruction)
    sign = _stand_in(instruction)
    before, found, after = _rendered(tokenizer, sign).partition(sign)
    if not found or sign in after:
        raise LookaheadError(
            "The chat template of this model does not hold an instruction as it is written; use a model that has "
            "another one, or go on without an instruction."
        )
    whole = _ids(tokenizer, _rendered(tokenizer, instruction))
    special = special_ids(tokenizer)
    own = [token_id for part in (before, after) for token_id in _ids(tokenizer, part) if token_id in special]
    if [token_id for token_id in whole if token_id in special] == own:
        return tuple(whole)
    return _apart(tokenizer, before, instruction, after)


def _check(instruction: object) -> None:
    if not isinstance(instruction, str):
        raise ValueError(f"instruction is {type(instruction).__name__}, and must be a string.")
    if len(instruction) > LONGEST:
        raise ValueError(f"instruction has {len(instruction):,} characters, and may have at most {LONGEST:,}.")


def _stand_in(instruction: str) -> str:
    """Characters of no meaning that the instruction does not hold, to stand in its place."""
    private = (chr(0xE000 + place) * 3 for place in range(LONGEST))
    return next(sign for sign in private if sign[0] not in instruction)


def _rendered(tokenizer: Any, content: str) -> str:
    """The template with one message of a person's, and the beginning of the answer."""
    if not getattr(tokenizer, "chat_template", None):
        raise LookaheadError("This model has no chat template, so it takes no instruction; write the text to go on.")
    messages = [{"role": "user", "content": content}]
    try:
        return str(tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))
    except Exception as error:
        raise LookaheadError(
            f"The chat template of this model cannot be used ({type(error).__name__}); go on without an instruction."
        ) from error


def _ids(tokenizer: Any, text: str) -> list[int]:
    """Ids of a text whose special tokens are meant as such."""
    return list(tokenizer(text, add_special_tokens=False, split_special_tokens=False, verbose=False).input_ids)


def _apart(tokenizer: Any, before: str, instruction: str, after: str) -> tuple[int, ...]:
    """The template's parts as templates, the instruction as plain text that goes on where the first of them ends."""
    codec = TextCodec(tokenizer)
    words: Sequence[int] = [token.token_id for token in codec.encode(instruction, continuing=True)]
    # A tokenizer that puts a space before every text would double the one that is there.
    rest = after[1:] if codec.adds_space and after.startswith(" ") else after
    return (*_ids(tokenizer, before), *words, *_ids(tokenizer, rest))
