"""Undo and redo of a text box: one history of typed and accepted text, exact to the character, caret and marks."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.support.text_box_page import TextBoxPage, compose

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_each_accept_is_one_step_and_typing_goes_together_until_a_pause(box: TextBoxPage) -> None:
    box.type("The keeper")
    for piece in (" saw", " a", " ship"):
        assert box.accept(piece)
    box.type(", he")
    box.pause()
    box.type(" said")
    ship = "The keeper saw a ship"
    states = [f"{ship}, he said", f"{ship}, he", ship, "The keeper saw a", "The keeper saw", "The keeper", ""]
    seen = [box.text]
    for _ in states[1:]:
        box.undo()
        seen.append(box.text)
        assert box.caret == len(seen[-1])
    assert seen == states
    box.undo()
    assert box.text == ""
    for state in reversed(states[:-1]):
        box.redo()
        assert box.text == state
        assert box.caret == len(state)
    box.redo()
    assert box.text == states[0]


def test_a_long_run_of_typing_is_undone_by_words_and_a_deletion_is_a_step_of_its_own(box: TextBoxPage) -> None:
    run = "one two three four five six seven eight nine ten eleven twelve"
    box.type(run)
    box.press("Backspace", "Backspace", "Backspace")
    box.undo()
    assert box.text == run
    box.undo()
    assert run.startswith(box.text)
    assert 40 <= len(box.text) < len(run)
    assert box.text.endswith(" ")


def test_accepting_in_the_middle_never_touches_what_follows_and_undo_brings_the_caret_back(box: TextBoxPage) -> None:
    box.type("Once upon. The end.")
    box.select(9)
    assert box.accept(" a")
    assert box.accept(" time")
    assert box.text == "Once upon a time. The end."
    assert box.caret == 16
    box.undo()
    box.undo()
    assert box.text == "Once upon. The end."
    assert box.caret == 9


PIECES = ["👩‍👩‍👧", "é", "中文", " مرحبا", "\n\n", "<img src=x onerror=alert(1)>", "${1}{{2}}`"]


@pytest.mark.parametrize("piece", PIECES)
def test_any_characters_are_inserted_and_undone_whole(box: TextBoxPage, piece: str) -> None:
    box.type("🙂")
    box.pause()
    assert box.accept(piece)
    assert box.text == "🙂" + piece
    box.type("!")
    box.undo()
    box.undo()
    assert box.text == "🙂"
    box.redo()
    assert box.text == "🙂" + piece


def test_paste_and_cut_are_steps(box: TextBoxPage) -> None:
    box.type("one two")
    box.press("Control+Shift+ArrowLeft", "Control+x")
    assert box.text == "one "
    box.press("Control+v", "Control+v")
    assert box.text == "one twotwo"
    assert box.get("owner.steps.map(step => step.kind)") == ["type", "cut", "paste", "paste"]
    for state in ("one two", "one ", "one two"):
        box.undo()
        assert box.text == state
    assert box.get("[box.selectionStart, box.selectionEnd]") == [4, 7], "what was selected is selected again"


def test_the_browsers_own_undo_undoes_the_text_owners_last_step(box: TextBoxPage) -> None:
    box.type("Hello")
    assert box.accept(" there")
    assert box.accept(" now")
    box.do("document.execCommand('undo')")
    assert box.text == "Hello there"
    box.undo()
    assert box.text == "Hello"
    box.redo()
    assert box.text == "Hello there"


def test_undo_works_from_the_branches_and_leaves_other_fields_alone(box: TextBoxPage) -> None:
    box.type("Hello")
    box.page.locator("#branch").focus()
    assert box.accept(" there")
    assert box.get("document.activeElement.id") == "branch", "the focus stays where it was"
    box.undo()
    assert box.text == "Hello"
    assert box.get("document.activeElement.id") == "branch"
    box.press("Control+y")
    assert box.text == "Hello there"
    box.page.locator("#other").focus()
    box.type("mine")
    box.undo()
    assert box.text == "Hello there"
    assert box.get("document.getElementById('other').value") == "", "there it is the browser's"


def test_redoing_an_accept_puts_it_into_the_trail_again(box: TextBoxPage) -> None:
    box.type("The keeper")
    assert box.accept(" saw", ids=[5])
    box.undo()
    assert box.get("owner.trail(0)") == []
    now = box.get("owner.revision")
    box.redo()
    assert box.do("return owner.trail(argument)", now) == [[10, [5], False]]


def test_state_and_load_bring_text_history_and_marks_back(box: TextBoxPage) -> None:
    box.type("The 🙂")
    assert box.accept(" saw")
    assert box.accept(" it")
    box.undo()
    kept = box.do("return JSON.stringify(owner.state())")
    box.do("owner.load({text: 'Another'})")
    box.undo()
    assert box.text == "Another", "another document has no history of this one"
    box.do("owner.load(JSON.parse(argument))", kept)
    assert box.text == "The 🙂 saw"
    assert box.get("owner.spans") == [[6, 10]]
    box.redo()
    assert box.text == "The 🙂 saw it"
    for _ in range(3):
        box.undo()
    assert box.text == ""
    assert box.kinds[-5:] == ["load", "redo", "undo", "undo", "undo"]


def test_a_history_that_does_not_fit_its_text_changes_nothing(box: TextBoxPage) -> None:
    step = {"start": 2, "removed": "", "inserted": "zz", "before": [2, 2], "after": [4, 4], "kind": "type", "time": 1}
    step["marks"] = {"from": 0, "before": [], "after": []}
    box.do("owner.load({text: 'Hello', history: {steps: [argument], position: 1}})", step)
    box.undo()
    box.redo()
    assert box.text == "Hello"
    box.type("!")
    box.undo()
    assert box.text == "Hello"


def test_the_history_is_bounded(box: TextBoxPage) -> None:
    box.do(
        """for (let turn = 0; turn < 2100; turn += 1) {
          box.blur();
          owner.accept(' a', {ids: [1], revision: owner.sync()});
        }"""
    )
    assert box.get("owner.steps.length") == 2000
    box.do(
        """for (let turn = 0; turn < 60; turn += 1) {
          owner.undo();
          owner.accept(` b${turn}`, {revision: owner.sync()});
        }"""
    )
    assert box.get("owner.left.length") == 50
    assert box.get("(() => { while (owner.undo()); return owner.text.length; })()") == 200


# A slow reference: characters with their marks, and a list of the states before and after each step.

LETTERS = ["a", "b", " ", "é", "🙂", "中", "ا", "."]


@dataclass(frozen=True)
class State:
    characters: tuple[tuple[str, bool], ...] = ()
    start: int = 0
    end: int = 0

    def put(self, text: list[str], chosen: bool = False) -> State:
        new = tuple((character, chosen) for character in text)
        place = self.start + len(new)
        return State(self.characters[: self.start] + new + self.characters[self.end :], place, place)

    def units(self, place: int) -> int:
        return sum(len(character.encode("utf-16-le")) // 2 for character, _ in self.characters[:place])

    @property
    def seen(self) -> list[Any]:
        text = "".join(character for character, _ in self.characters)
        marks = [mark for character, mark in self.characters for _ in range(len(character.encode("utf-16-le")) // 2)]
        return [text, self.units(self.start), self.units(self.end), marks]


@dataclass
class ReferenceHistory:
    state: State = field(default_factory=State)
    steps: list[tuple[State, State]] = field(default_factory=list)
    position: int = 0

    def step(self, after: State) -> None:
        self.steps[self.position :] = [(self.state, after)]
        self.position += 1
        self.state = after

    def undo(self) -> None:
        if self.position:
            self.position -= 1
            self.state = self.steps[self.position][0]

    def redo(self) -> None:
        if self.position < len(self.steps):
            self.state = self.steps[self.position][1]
            self.position += 1


SEEN = """(() => {
  const marks = Array(box.value.length).fill(false);
  for (const [from, to] of owner.spans) marks.fill(true, from, to);
  return [box.value, box.selectionStart, box.selectionEnd, marks];
})()"""


def move(box: TextBoxPage, reference: ReferenceHistory, rng: random.Random) -> None:
    length = len(reference.state.characters)
    start, end = sorted((rng.randint(0, length), rng.randint(0, length)))
    end = end if rng.random() < 0.3 else start
    reference.state = replace(reference.state, start=start, end=end)
    box.select(reference.state.units(start), reference.state.units(end))


def write(box: TextBoxPage, reference: ReferenceHistory, rng: random.Random) -> None:
    text = rng.choices(LETTERS, k=rng.randint(1, 6))
    box.type("".join(text))
    reference.step(reference.state.put(text))


def delete(box: TextBoxPage, reference: ReferenceHistory, rng: random.Random) -> None:
    state, key = reference.state, rng.choice(["Backspace", "Delete"])
    if state.start == state.end:
        back = key == "Backspace"
        start, end = (state.start - 1, state.end) if back else (state.start, state.end + 1)
        if start < 0 or end > len(state.characters):
            return
    else:
        start, end = state.start, state.end
    box.press(key)
    reference.step(replace(state, start=start, end=end).put([]))


def choose(box: TextBoxPage, reference: ReferenceHistory, rng: random.Random) -> None:
    text = rng.choices(LETTERS, k=rng.randint(1, 4))
    if rng.random() < 0.3:
        box.do("box.blur()")
    done = box.accept("".join(text))
    box.page.locator("#box").focus()
    assert done == (reference.state.start == reference.state.end)
    if done:
        reference.step(reference.state.put(text, chosen=True))


def compose_text(box: TextBoxPage, reference: ReferenceHistory, rng: random.Random) -> None:
    if reference.state.start == reference.state.end:
        compose(box, "に", "にほ", end="日本")
        reference.step(reference.state.put(["日", "本"]))


def paste(box: TextBoxPage, reference: ReferenceHistory, rng: random.Random) -> None:
    box.do(
        """const pasted = {inputType: 'insertFromPaste', data: argument, bubbles: true};
        box.dispatchEvent(new InputEvent('beforeinput', {...pasted, cancelable: true}));
        box.setRangeText(argument, box.selectionStart, box.selectionEnd, 'end');
        box.dispatchEvent(new InputEvent('input', pasted));""",
        "a\n🙂b",
    )
    reference.step(reference.state.put(["a", "\n", "🙂", "b"]))


def undo_some(box: TextBoxPage, reference: ReferenceHistory, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 4)):
        box.undo()
        reference.undo()


def redo_some(box: TextBoxPage, reference: ReferenceHistory, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 3)):
        box.redo()
        reference.redo()


@pytest.mark.parametrize("seed", range(6))
def test_any_sequence_of_edits_undos_and_redos_equals_the_slow_reference(box: TextBoxPage, seed: int) -> None:
    rng = random.Random(seed)
    reference = ReferenceHistory()
    actions = [move, write, write, delete, choose, choose, compose_text, paste, undo_some, redo_some]
    for _ in range(80):
        action = rng.choice(actions)
        action(box, reference, rng)
        box.pause()
        assert box.get(SEEN) == reference.state.seen, action.__name__
    while reference.position:
        box.undo()
        reference.undo()
        assert box.get(SEEN) == reference.state.seen
