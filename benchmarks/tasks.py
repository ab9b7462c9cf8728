"""What is written in the speculation benchmark: texts made for it, as the ids that a chat model answers to.

Where a passage is to be copied it is one that the small default model does copy: others it answers, as if they had been
told to it. Those passages are also the ones to be summarised, as by the measurement that the bar for passages comes
from; others, which that model retells more freely, are a task of their own.
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
"""The tasks in which a passage is given that the answer draws on, and for which there is a bar."""
Turns = tuple[str, ...]


@dataclass(frozen=True)
class Prompt:
    """What everybody gets, which of its task's prompts it is, and how many tokens may be added."""

    task: str
    number: int
    ids: tuple[int, ...]
    new_tokens: int


def read_task(name: str) -> list[Turns]:
    """The conversations of a task: a person's turn, the answer, and so on, the last turn a person's."""
    found = _told(name)
    template = found.get("template", "")
    prompts = _told(found["texts_of"])["prompts"] if "texts_of" in found else found["prompts"]
    return [tuple(entry.get("turns") or [template.format(**entry)]) for entry in prompts]


def _told(name: str) -> Any:
    return json.loads((TEXTS / f"{name}.json").read_text(encoding="utf-8"))


def prompts_of(name: str, tokenizer: Any, new_tokens: int) -> Iterator[Prompt]:
    """A task's conversations through the model's own chat template."""
    for number, turns in enumerate(read_task(name)):
        yield Prompt(name, number, tuple(_ids(tokenizer, turns)), new_tokens)


def like(prompt: Prompt, answers: Mapping[Prompt, str]) -> list[str]:
    """Texts of the same kind as what will be answered: the answers to the other half of the task's prompts."""
    others = [other for other in answers if other.task == prompt.task and (other.number - prompt.number) % 2]
    return [answers[other] for other in others]


def _ids(tokenizer: Any, turns: Sequence[str]) -> list[int]:
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": turn} for place, turn in enumerate(turns)]
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return list(tokenizer(text, add_special_tokens=False).input_ids)
