"""The text in its box: one history of what was typed and chosen, exact to the character, the caret and the mark."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.support.browser import importing
from tests.support.workbench import workbench

pytestmark = [pytest.mark.browser, pytest.mark.slow]

BODY = "<textarea id=box></textarea><textarea id=other></textarea><button id=branch>a token</button>"
MOUNT = importing("""async () => {
  const {TextOwner} = await import('/lookahead/web/ui/text_owner.js');
  window.box = document.getElementById('box');
  window.now = 1e12;
  Date.now = () => window.now;
  window.heard = [];
  window.draft = new TextOwner(box, {also: () => [document.getElementById('branch')]});
  draft.addEventListener('change', event => heard.push(event.detail));
}""")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with workbench(BODY) as url:
        yield url


@dataclass
class Box:
    """A page with nothing but a draft, two other fields' worth of distraction, and a clock of its own."""

    page: Any

    def do(self, script: str, argument: Any = None) -> Any:
        return self.page.evaluate(f"given => {{ {script} }}", argument)

    def get(self, expression: str) -> Any:
        return self.page.evaluate(f"() => {expression}")

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def select(self, start: int, end: int | None = None) -> None:
        """The browser tells of it a little later, and so it is told at once."""
        tell = "document.dispatchEvent(new Event('selectionchange'))"
        self.do(f"box.setSelectionRange(given[0], given[1]); {tell}", [start, start if end is None else end])

    def pause(self, milliseconds: int = 2000) -> None:
        self.do("now += given", milliseconds)

    def accept(self, text: str, **options: Any) -> bool:
        given = {"ids": [1], **options}
        return bool(self.do("return draft.accept(given[0], {revision: draft.sync(), ...given[1]})", [text, given]))

    def undo(self) -> None:
        self.press("Control+z")

    def redo(self) -> None:
        self.press("Control+Shift+z")

    @property
    def text(self) -> str:
        return str(self.get("box.value"))

    @property
    def caret(self) -> int:
        return int(self.get("box.selectionStart"))

    @property
    def kinds(self) -> list[str]:
        return list(self.get("heard.splice(0).map(detail => detail.kind)"))


@pytest.fixture
def box(page: Any, address: str) -> Iterator[Box]:
    mistakes: list[str] = []
    page.on("pageerror", lambda error: mistakes.append(str(error)))
    page.goto(address)
    page.evaluate(MOUNT)
    page.locator("#box").focus()
    yield Box(page)
    assert not mistakes


def compose(box: Box, *stages: str, end: str | None) -> None:
    """What an input method does: a text that changes before it is there, then is written, or given up."""
    session = box.page.context.new_cdp_session(box.page)
    for stage in stages:
        place = {"selectionStart": len(stage), "selectionEnd": len(stage)}
        session.send("Input.imeSetComposition", {"text": stage, **place})
    if end is not None:
        session.send("Input.insertText", {"text": end})
    session.detach()


def test_each_accept_is_one_step_and_typing_goes_together_until_a_pause(box: Box) -> None:
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


def test_turns_and_what_was_left_stay_to_be_found_however_many_words_are_chosen_after_them(box: Box) -> None:
    turn = "draft.turn({kind: 'send', text: '', spans: [], earlier: {messages: [given], role: 'user'}})"
    box.type("A question")
    box.do(turn, "one")
    box.accept(" left")
    box.undo()
    box.accept(" taken")
    box.do(turn, "two")
    for number in range(250):
        box.pause(10)
        assert box.accept(f" {number}")
    kinds = box.get("draft.moments.map(({kind}) => kind)")
    assert [kinds.count(kind) for kind in ("send", "left", "accepted")] == [2, 1, 200]
    before = box.get("draft.moments.filter(({kind}) => kind === 'send').map(({text}) => text)")
    assert before == [" taken", "A question"]


def test_a_long_run_of_typing_is_undone_by_words_and_a_deletion_is_a_step_of_its_own(box: Box) -> None:
    run = "one two three four five six seven eight nine ten eleven twelve"
    box.type(run)
    box.press("Backspace", "Backspace", "Backspace")
    box.undo()
    assert box.text == run
    box.undo()
    assert run.startswith(box.text)
    assert 40 <= len(box.text) < len(run)
    assert box.text.endswith(" ")


def test_accepting_in_the_middle_never_touches_what_follows_and_undo_brings_the_caret_back(box: Box) -> None:
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
def test_any_characters_are_inserted_and_undone_whole(box: Box, piece: str) -> None:
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


def test_accept_is_refused_for_another_revision_a_selection_and_in_a_composition(box: Box) -> None:
    box.type("Hello")
    seen = box.get("draft.sync()")
    box.type(" you")
    assert not box.do("return draft.accept(' there', {ids: [1], revision: given})", seen)
    # In one turn of the page's script: a caret that has settled counts.
    moved = "box.setSelectionRange(2, 2); return draft.accept(' there', {ids: [1], revision: draft.revision})"
    assert not box.do(moved), "the caret has moved"
    box.select(0, 5)
    assert not box.accept(" there")
    box.select(9)
    compose(box, "に", end=None)
    assert not box.accept(" there")
    compose(box, "日本", end="日本")
    assert box.text == "Hello you日本"
    assert box.accept(" there")
    assert not box.accept(""), "an ending inserts nothing"
    assert box.text == "Hello you日本 there"


def test_revisions_grow_with_every_change_and_stay_when_nothing_changed(box: Box) -> None:
    box.type("abc")
    before = box.get("draft.sync()")
    assert box.get("draft.sync()") == before
    # In one turn of the page's script, before the caret settles elsewhere.
    there_and_back = "box.setSelectionRange(2, 2); box.setSelectionRange(3, 3); return draft.sync()"
    assert box.do(there_and_back) == before, "the caret is where it was"
    box.press("ArrowLeft")
    assert box.get("draft.sync()") == before + 1
    box.select(0, 2)
    assert box.get("draft.sync()") == before + 1, "a selection is no place"
    box.do("box.setSelectionRange(3, 3); box.value = 'abcd'")
    assert box.get("draft.sync()") == before + 2, "what a script has written is noticed too"
    assert box.kinds == ["type", "type", "type", "caret", "replace"]
    box.undo()
    assert box.text == "abc"


def test_a_moved_caret_settles_before_it_counts(box: Box) -> None:
    box.type("abcdef")
    assert len(box.kinds) == 6
    before = box.get("draft.revision")
    # In one turn of the page's script, so that it cannot settle on its way.
    moved = "box.setSelectionRange(given, given); document.dispatchEvent(new Event('selectionchange'))"
    assert box.do(f"for (given of [5, 4, 3]) {{ {moved} }} return draft.revision") == before
    box.page.wait_for_function("heard.length === 1")
    assert box.kinds == ["caret"]
    assert box.get("[draft.revision, draft.before]") == [before + 1, "abc"]


def test_a_composition_is_one_step_and_nothing_happens_before_its_end(box: Box) -> None:
    box.type("a ")
    before = box.get("draft.revision")
    compose(box, "に", "にほ", "にほん", end=None)
    assert box.get("draft.composing")
    assert box.get("draft.sync()") == before
    compose(box, "日本", end="日本")
    assert box.text == "a 日本"
    assert box.get("draft.revision") == before + 1
    assert box.get("draft.steps.at(-1).kind") == "composition"
    box.undo()
    assert box.text == "a "
    box.redo()
    assert box.text == "a 日本"


def test_a_composition_told_by_events_alone_is_noticed_at_its_end(box: Box) -> None:
    box.do(
        """const say = (name, Kind, options) => box.dispatchEvent(new Kind(name, options));
        say('compositionstart', CompositionEvent, {});
        box.setRangeText('x', 0, 0, 'end');
        say('input', InputEvent, {inputType: 'insertCompositionText', isComposing: true, data: 'x'});"""
    )
    assert box.get("draft.revision") == 0
    box.do("box.dispatchEvent(new CompositionEvent('compositionend', {data: 'x'}))")
    assert box.get("[draft.revision, draft.steps.length]") == [1, 1]


def test_paste_and_cut_are_steps(box: Box) -> None:
    box.type("one two")
    box.press("Control+Shift+ArrowLeft", "Control+x")
    assert box.text == "one "
    box.press("Control+v", "Control+v")
    assert box.text == "one twotwo"
    assert box.get("draft.steps.map(step => step.kind)") == ["type", "cut", "paste", "paste"]
    for state in ("one two", "one ", "one two"):
        box.undo()
        assert box.text == state
    assert box.get("[box.selectionStart, box.selectionEnd]") == [4, 7], "what was selected is selected again"


def test_the_browsers_own_undo_is_the_drafts(box: Box) -> None:
    box.type("Hello")
    assert box.accept(" there")
    assert box.accept(" now")
    box.do("document.execCommand('undo')")
    assert box.text == "Hello there"
    box.undo()
    assert box.text == "Hello"
    box.redo()
    assert box.text == "Hello there"


def test_undo_works_from_the_branches_and_leaves_other_fields_alone(box: Box) -> None:
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


def test_the_trail_holds_what_was_chosen_until_something_reaches_into_it(box: Box) -> None:
    box.type("The keeper")
    since = box.get("draft.sync()")
    assert box.accept(" saw", ids=[5], healed=True)
    assert box.accept(" a ship", ids=[6, 7])
    first, second = [10, [5], True], [14, [6, 7], False]
    assert box.do("return draft.trail(given)", since) == [first, second]
    assert box.do("return draft.trail(given)", since + 1) == [second]
    box.type("!")
    assert box.do("return draft.trail(given)", since) == [first, second]
    box.press("Backspace", "Backspace")
    assert box.do("return draft.trail(given)", since) == [first]
    box.select(14)
    box.press("Home")
    box.type("So: ")
    assert box.get("draft.trail(0)") == [], "it lies behind the caret"
    box.press("End")
    box.get("draft.sync()")
    assert box.get("draft.trail(0)") == [[14, [5], True]]


def test_redoing_an_accept_puts_it_into_the_trail_again(box: Box) -> None:
    box.type("The keeper")
    assert box.accept(" saw", ids=[5])
    box.undo()
    assert box.get("draft.trail(0)") == []
    now = box.get("draft.revision")
    box.redo()
    assert box.do("return draft.trail(given)", now) == [[10, [5], False]]


def test_pieces_that_were_chosen_stay_pieces_through_edits(box: Box) -> None:
    assert box.accept(" climbed")
    assert box.accept(" up")
    assert box.get("draft.spans") == [[0, 8], [8, 11]]
    box.select(4)
    box.press("Delete")
    assert box.get("draft.spans") == [[0, 7], [7, 10]], "what was taken out of its middle leaves one piece"
    box.type("x")
    assert box.get("draft.spans") == [[0, 4], [5, 8], [8, 11]], "what was typed into it makes two"
    box.undo()
    box.undo()
    assert box.get("draft.spans") == [[0, 8], [8, 11]]


def test_what_was_left_behind_can_be_gone_back_to_as_one_step(box: Box) -> None:
    box.type("The keeper")
    assert box.accept(" climbed")
    assert box.accept(" the stairs")
    box.undo()
    box.undo()
    assert box.accept(" slept")
    assert box.get("draft.left.map(entry => entry.inserted)") == [" climbed the stairs"]
    box.undo()
    box.undo()
    box.type("A cat")
    left = box.get("draft.left.map(entry => entry.inserted)")
    assert sorted(left) == ["The keeper climbed the stairs", "The keeper slept"]
    moment = "draft.moments.find(moment => moment.kind === 'left' && moment.text.includes('stairs'))"
    assert box.get(f"draft.reenter({moment})")
    assert box.text == "The keeper climbed the stairs"
    assert box.get("draft.spans") == [[10, 18], [18, 29]], "what was chosen is known again"
    box.undo()
    assert box.text == "A cat"
    assert box.get("draft.spans") == []


def test_a_moment_that_was_accepted_can_be_gone_back_to(box: Box) -> None:
    box.type("The keeper")
    assert box.accept(" saw")
    box.type(" something else entirely")
    box.pause()
    assert box.get("draft.reenter(draft.moments.find(moment => moment.kind === 'accepted'))")
    assert box.text == "The keeper saw"
    box.undo()
    assert box.text == "The keeper saw something else entirely"


def test_state_and_load_bring_text_history_and_marks_back(box: Box) -> None:
    box.type("The 🙂")
    assert box.accept(" saw")
    assert box.accept(" it")
    box.undo()
    kept = box.do("return JSON.stringify(draft.state())")
    box.do("draft.load({text: 'Another'})")
    box.undo()
    assert box.text == "Another", "another document has no history of this one"
    box.do("draft.load(JSON.parse(given))", kept)
    assert box.text == "The 🙂 saw"
    assert box.get("draft.spans") == [[6, 10]]
    box.redo()
    assert box.text == "The 🙂 saw it"
    for _ in range(3):
        box.undo()
    assert box.text == ""
    assert box.kinds[-5:] == ["load", "redo", "undo", "undo", "undo"]


def test_a_history_that_does_not_fit_its_text_changes_nothing(box: Box) -> None:
    step = {"start": 2, "removed": "", "inserted": "zz", "before": [2, 2], "after": [4, 4], "kind": "type", "time": 1}
    step["marks"] = {"from": 0, "before": [], "after": []}
    box.do("draft.load({text: 'Hello', history: {steps: [given], position: 1}})", step)
    box.undo()
    box.redo()
    assert box.text == "Hello"
    box.type("!")
    box.undo()
    assert box.text == "Hello"


def test_the_history_is_bounded(box: Box) -> None:
    box.do(
        """for (let turn = 0; turn < 2100; turn += 1) {
          box.blur();
          draft.accept(' a', {ids: [1], revision: draft.sync()});
        }"""
    )
    assert box.get("draft.steps.length") == 2000
    box.do(
        """for (let turn = 0; turn < 60; turn += 1) {
          draft.undo();
          draft.accept(` b${turn}`, {revision: draft.sync()});
        }"""
    )
    assert box.get("draft.left.length") == 50
    assert box.get("(() => { while (draft.undo()); return draft.text.length; })()") == 200


def test_a_touch_does_not_bring_the_focus_into_the_box(box: Box) -> None:
    box.type("Hello")
    box.do("box.blur()")
    assert box.accept(" you", touch=True)
    assert box.text == "Hello you"
    assert box.caret == 9
    assert box.get("document.activeElement === document.body")


# A second, slow account of the same thing: characters with their marks, and a list of what was before and after.

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
class Account:
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
  for (const [from, to] of draft.spans) marks.fill(true, from, to);
  return [box.value, box.selectionStart, box.selectionEnd, marks];
})()"""


def move(box: Box, account: Account, dice: random.Random) -> None:
    length = len(account.state.characters)
    start, end = sorted((dice.randint(0, length), dice.randint(0, length)))
    end = end if dice.random() < 0.3 else start
    account.state = replace(account.state, start=start, end=end)
    box.select(account.state.units(start), account.state.units(end))


def write(box: Box, account: Account, dice: random.Random) -> None:
    text = dice.choices(LETTERS, k=dice.randint(1, 6))
    box.type("".join(text))
    account.step(account.state.put(text))


def rub(box: Box, account: Account, dice: random.Random) -> None:
    state, key = account.state, dice.choice(["Backspace", "Delete"])
    if state.start == state.end:
        back = key == "Backspace"
        start, end = (state.start - 1, state.end) if back else (state.start, state.end + 1)
        if start < 0 or end > len(state.characters):
            return
    else:
        start, end = state.start, state.end
    box.press(key)
    account.step(replace(state, start=start, end=end).put([]))


def choose(box: Box, account: Account, dice: random.Random) -> None:
    text = dice.choices(LETTERS, k=dice.randint(1, 4))
    if dice.random() < 0.3:
        box.do("box.blur()")
    done = box.accept("".join(text))
    box.page.locator("#box").focus()
    assert done == (account.state.start == account.state.end)
    if done:
        account.step(account.state.put(text, chosen=True))


def method(box: Box, account: Account, dice: random.Random) -> None:
    if account.state.start == account.state.end:
        compose(box, "に", "にほ", end="日本")
        account.step(account.state.put(["日", "本"]))


def paste(box: Box, account: Account, dice: random.Random) -> None:
    box.do(
        """const pasted = {inputType: 'insertFromPaste', data: given, bubbles: true};
        box.dispatchEvent(new InputEvent('beforeinput', {...pasted, cancelable: true}));
        box.setRangeText(given, box.selectionStart, box.selectionEnd, 'end');
        box.dispatchEvent(new InputEvent('input', pasted));""",
        "a\n🙂b",
    )
    account.step(account.state.put(["a", "\n", "🙂", "b"]))


def back(box: Box, account: Account, dice: random.Random) -> None:
    for _ in range(dice.randint(1, 4)):
        box.undo()
        account.undo()


def again(box: Box, account: Account, dice: random.Random) -> None:
    for _ in range(dice.randint(1, 3)):
        box.redo()
        account.redo()


@pytest.mark.parametrize("seed", range(6))
def test_any_sequence_of_edits_undos_and_redos_gives_what_the_slow_account_says(box: Box, seed: int) -> None:
    dice = random.Random(seed)
    account = Account()
    deeds = [move, write, write, rub, choose, choose, method, paste, back, again]
    for _ in range(80):
        deed = dice.choice(deeds)
        deed(box, account, dice)
        box.pause()
        assert box.get(SEEN) == account.state.seen, deed.__name__
    while account.position:
        box.undo()
        account.undo()
        assert box.get(SEEN) == account.state.seen
