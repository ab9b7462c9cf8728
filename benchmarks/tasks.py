"""The prompts of the speculation benchmark: texts made for it, as ids of a chat model's prompt.

The passages to be copied are ones that the default model does copy; it answers others as if they were addressed to it.
The task "summarising" uses the same passages, as did the measurement from which the target for passages comes. Passages
that the model retells more freely are a task of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TEXTS = Path(__file__).parent / "texts"
TASKS = ("copying", "summarising", "answering", "retelling", "code", "open", "chat", "translation")
PASSAGES = ("summarising", "answering")
"""The tasks with a passage that the answer draws on; they have one target speed together."""
Turns = tuple[str, ...]
"""The messages of a conversation, by user and assistant in turns."""


@dataclass(frozen=True)
class Prompt:
    """A prompt of a task."""

    task: str
    number: int
    """Its number within the task, from 0."""
    ids: tuple[int, ...]
    """Its token ids."""
    new_tokens: int
    """The most tokens to write after it."""


def read_task(name: str) -> list[Turns]:
    """Return the conversations of a task, one of TASKS: user and assistant in turns, the last message the user's."""
    found = _read_json(name)
    template = found.get("template", "")
    prompts = _read_json(found["texts_of"])["prompts"] if "texts_of" in found else found["prompts"]
    return [tuple(entry.get("turns") or [template.format(**entry)]) for entry in prompts]


def _read_json(name: str) -> Any:
    return json.loads((TEXTS / f"{name}.json").read_text(encoding="utf-8"))


def prompts_of(name: str, tokenizer: Any, new_tokens: int) -> Iterator[Prompt]:
    """Yield a prompt for each conversation of a task, made with the tokenizer's chat template.

    Each has the limit `new_tokens`.
    """
    for number, turns in enumerate(read_task(name)):
        yield Prompt(name, number, tuple(_ids(tokenizer, turns)), new_tokens)


def corpus_for(prompt: Prompt, answers: Mapping[Prompt, str]) -> list[str]:
    """Return the answers to the prompts of the same task whose number is even if this prompt's is odd, or odd if even.

    So the answer to the prompt itself is not among them.
    """
    others = [other for other in answers if other.task == prompt.task and (other.number - prompt.number) % 2]
    return [answers[other] for other in others]


def _ids(tokenizer: Any, turns: Sequence[str]) -> list[int]:
    roles = ("user", "assistant")
    messages = [{"role": roles[index % 2], "content": turn} for index, turn in enumerate(turns)]
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return list(tokenizer(text, add_special_tokens=False).input_ids)
