"""The owner of a text box's text: accepts, revisions, compositions, marks and earlier texts."""

from __future__ import annotations

import pytest

from tests.support.text_box_page import TextBoxPage, compose

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_turns_and_abandoned_texts_stay_listed_however_many_words_are_accepted_after_them(
    box: TextBoxPage,
) -> None:
    turn = "owner.turn({kind: 'send', text: '', spans: [], earlier: {messages: [argument], role: 'user'}})"
    box.type("A question")
    box.do(turn, "one")
    box.accept(" left")
    box.undo()
    box.accept(" taken")
    box.do(turn, "two")
    for number in range(250):
        box.pause(10)
        assert box.accept(f" {number}")
    kinds = box.get("owner.moments.map(({kind}) => kind)")
    assert [kinds.count(kind) for kind in ("send", "left", "accepted")] == [2, 1, 200]
    before = box.get("owner.moments.filter(({kind}) => kind === 'send').map(({text}) => text)")
    assert before == [" taken", "A question"]


def test_accept_is_refused_for_another_revision_a_selection_and_in_a_composition(box: TextBoxPage) -> None:
    box.type("Hello")
    seen = box.get("owner.sync()")
    box.type(" you")
    assert not box.do("return owner.accept(' there', {ids: [1], revision: argument})", seen)
    # In one turn of the page's script: a caret that has settled counts.
    moved = "box.setSelectionRange(2, 2); return owner.accept(' there', {ids: [1], revision: owner.revision})"
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


def test_revisions_grow_with_every_change_and_stay_when_nothing_changed(box: TextBoxPage) -> None:
    box.type("abc")
    before = box.get("owner.sync()")
    assert box.get("owner.sync()") == before
    # In one turn of the page's script, before the caret settles elsewhere.
    there_and_back = "box.setSelectionRange(2, 2); box.setSelectionRange(3, 3); return owner.sync()"
    assert box.do(there_and_back) == before, "the caret is where it was"
    box.press("ArrowLeft")
    assert box.get("owner.sync()") == before + 1
    box.select(0, 2)
    assert box.get("owner.sync()") == before + 1, "a selection is no place"
    box.do("box.setSelectionRange(3, 3); box.value = 'abcd'")
    assert box.get("owner.sync()") == before + 2, "what a script has written is noticed too"
    assert box.kinds == ["type", "type", "type", "caret", "replace"]
    box.undo()
    assert box.text == "abc"


def test_a_moved_caret_settles_before_it_counts(box: TextBoxPage) -> None:
    box.type("abcdef")
    assert len(box.kinds) == 6
    before = box.get("owner.revision")
    # In one turn of the page's script, so that it cannot settle on its way.
    moved = "box.setSelectionRange(argument, argument); document.dispatchEvent(new Event('selectionchange'))"
    assert box.do(f"for (argument of [5, 4, 3]) {{ {moved} }} return owner.revision") == before
    box.page.wait_for_function("changes.length === 1")
    assert box.kinds == ["caret"]
    assert box.get("[owner.revision, owner.before]") == [before + 1, "abc"]


def test_a_composition_is_one_step_and_nothing_happens_before_its_end(box: TextBoxPage) -> None:
    box.type("a ")
    before = box.get("owner.revision")
    compose(box, "に", "にほ", "にほん", end=None)
    assert box.get("owner.composing")
    assert box.get("owner.sync()") == before
    compose(box, "日本", end="日本")
    assert box.text == "a 日本"
    assert box.get("owner.revision") == before + 1
    assert box.get("owner.steps.at(-1).kind") == "composition"
    box.undo()
    assert box.text == "a "
    box.redo()
    assert box.text == "a 日本"


def test_a_composition_reported_by_events_alone_is_noticed_at_its_end(box: TextBoxPage) -> None:
    box.do(
        """const say = (name, Kind, options) => box.dispatchEvent(new Kind(name, options));
        say('compositionstart', CompositionEvent, {});
        box.setRangeText('x', 0, 0, 'end');
        say('input', InputEvent, {inputType: 'insertCompositionText', isComposing: true, data: 'x'});"""
    )
    assert box.get("owner.revision") == 0
    box.do("box.dispatchEvent(new CompositionEvent('compositionend', {data: 'x'}))")
    assert box.get("[owner.revision, owner.steps.length]") == [1, 1]


def test_the_trail_lists_accepted_pieces_until_an_edit_changes_them(box: TextBoxPage) -> None:
    box.type("The keeper")
    since = box.get("owner.sync()")
    assert box.accept(" saw", ids=[5], healed=True)
    assert box.accept(" a ship", ids=[6, 7])
    first, second = [10, [5], True], [14, [6, 7], False]
    assert box.do("return owner.trail(argument)", since) == [first, second]
    assert box.do("return owner.trail(argument)", since + 1) == [second]
    box.type("!")
    assert box.do("return owner.trail(argument)", since) == [first, second]
    box.press("Backspace", "Backspace")
    assert box.do("return owner.trail(argument)", since) == [first]
    box.select(14)
    box.press("Home")
    box.type("So: ")
    assert box.get("owner.trail(0)") == [], "it lies behind the caret"
    box.press("End")
    box.get("owner.sync()")
    assert box.get("owner.trail(0)") == [[14, [5], True]]


def test_a_space_is_put_behind_an_accepted_word_and_one_undo_takes_both_back(box: TextBoxPage) -> None:
    box.type("He walked.")
    box.select(3)
    assert box.do("return owner.accept('is', {ids: [5], gap: ' ', revision: owner.sync()})")
    assert (box.text, box.caret, box.get("owner.spans")) == ("He is walked.", 5, [[3, 5]])
    assert box.get("owner.trail(0, 0)") == [[3, [5], False]]
    box.undo()
    assert (box.text, box.caret) == ("He walked.", 3)
    box.redo()
    assert (box.text, box.caret, box.get("owner.trail(0, 0)")) == ("He is walked.", 5, [[3, [5], False]])


def test_accepted_pieces_stay_marked_through_edits(box: TextBoxPage) -> None:
    assert box.accept(" climbed")
    assert box.accept(" up")
    assert box.get("owner.spans") == [[0, 8], [8, 11]]
    box.select(4)
    box.press("Delete")
    assert box.get("owner.spans") == [[0, 7], [7, 10]], "what was taken out of its middle leaves one piece"
    box.type("x")
    assert box.get("owner.spans") == [[0, 4], [5, 8], [8, 11]], "what was typed into it makes two"
    box.undo()
    box.undo()
    assert box.get("owner.spans") == [[0, 8], [8, 11]]


def test_an_abandoned_text_can_be_restored_as_one_step(box: TextBoxPage) -> None:
    box.type("The keeper")
    assert box.accept(" climbed")
    assert box.accept(" the stairs")
    box.undo()
    box.undo()
    assert box.accept(" slept")
    assert box.get("owner.left.map(entry => entry.inserted)") == [" climbed the stairs"]
    box.undo()
    box.undo()
    box.type("A cat")
    left = box.get("owner.left.map(entry => entry.inserted)")
    assert sorted(left) == ["The keeper climbed the stairs", "The keeper slept"]
    moment = "owner.moments.find(moment => moment.kind === 'left' && moment.text.includes('stairs'))"
    assert box.get(f"owner.reenter({moment})")
    assert box.text == "The keeper climbed the stairs"
    assert box.get("owner.spans") == [[10, 18], [18, 29]], "what was chosen is known again"
    box.undo()
    assert box.text == "A cat"
    assert box.get("owner.spans") == []


def test_the_text_after_an_accept_can_be_restored(box: TextBoxPage) -> None:
    box.type("The keeper")
    assert box.accept(" saw")
    box.type(" something else entirely")
    box.pause()
    assert box.get("owner.reenter(owner.moments.find(moment => moment.kind === 'accepted'))")
    assert box.text == "The keeper saw"
    box.undo()
    assert box.text == "The keeper saw something else entirely"


def test_a_touch_does_not_bring_the_focus_into_the_box(box: TextBoxPage) -> None:
    box.type("Hello")
    box.do("box.blur()")
    assert box.accept(" you", touch=True)
    assert box.text == "Hello you"
    assert box.caret == 9
    assert box.get("document.activeElement === document.body")


def test_returning_to_a_text_of_the_history_is_one_change_and_loses_nothing(box: TextBoxPage) -> None:
    box.type("Once")
    box.pause()
    for piece in (" upon", " a", " time"):
        box.accept(piece)
    before = box.get("[owner.revision, owner.spans]")
    assert box.kinds[-1] == "accept"
    assert box.do("return owner.goTo('Once upon')")
    assert (box.text, box.caret, box.kinds) == ("Once upon", 9, ["reenter"])
    assert box.get("owner.spans") == [[4, 9]]
    assert box.get("owner.trail(-1, 0)") == [[4, [1], False]]
    assert box.do("return owner.goTo('Once upon a time')")
    assert (box.text, box.kinds) == ("Once upon a time", ["reenter"])
    assert [box.get("owner.revision"), box.get("owner.spans")] == [before[0] + 2, before[1]]
    assert box.get("owner.trail(-1, 0)") == [[4, [1], False], [9, [1], False], [11, [1], False]]


def test_undo_after_returning_to_a_text_brings_back_the_one_that_was_left_and_redo_returns_again(
    box: TextBoxPage,
) -> None:
    box.type("Once")
    box.pause()
    for piece in (" upon", " a", " time"):
        box.accept(piece)
    box.undo()
    box.pause()
    box.type(" tree stood")
    box.accept(" there")
    look = "[owner.text, owner.selection, owner.spans, owner.authors, owner.trail(-1, 0)]"
    left, others = box.get(look), ["Once upon a time", "Once upon a", "Once upon", "Once", ""]
    for text in others:
        assert box.do("return owner.goTo(argument)", text)
        assert (box.text, box.caret) == (text, len(text))
        there = box.get(look)
        box.undo()
        assert box.get(look) == left, text
        box.redo()
        assert box.get(look) == there
        box.undo()
    box.undo()
    box.undo()
    assert box.text == "Once upon a"
    undone, later = box.get(look), "Once upon a tree stood there"
    assert box.do("return owner.goTo(argument)", later), "a text that was undone"
    assert box.get(look)[2:] == left[2:]
    box.undo()
    assert box.get(look) == undone
    box.redo()
    assert box.text == later


def test_what_was_accepted_is_known_after_undo_of_two_returns_to_earlier_texts(box: TextBoxPage) -> None:
    for piece in ("Once", " upon", " a"):
        box.accept(piece)
    box.do("owner.goTo('Once'); owner.goTo('Once upon a')")
    trail = box.get("owner.trail(-1, 0)")
    assert trail == [[0, [1], False], [4, [1], False], [9, [1], False]]
    box.do("owner.goTo('')")
    for _ in ("as it is", "after it was stored and opened"):
        box.undo()
        assert (box.text, box.get("owner.trail(-1, 0)")) == ("Once upon a", trail)
        box.redo()
        assert (box.text, box.get("owner.trail(-1, 0)")) == ("", [])
        box.do("owner.load(JSON.parse(JSON.stringify(owner.state())))")


def test_a_text_that_was_left_stays_listed_and_can_be_returned_to(box: TextBoxPage) -> None:
    box.type("Once")
    box.pause()
    box.accept(" upon")
    box.accept(" a")
    box.do("owner.goTo('Once')")
    box.accept(" more")
    assert box.get("owner.moments.map(({text}) => text)") == [" more", " a", " upon"]
    assert {"Once", "Once more", "Once upon a"} <= set(box.get("owner.pastTexts.map(({text}) => text)"))
    assert box.do("return owner.goTo('Once upon a')")
    assert (box.text, box.get("owner.spans")) == ("Once upon a", [[4, 9], [9, 11]])
    box.undo()
    assert box.text == "Once more"


def test_returning_to_the_beginning_of_a_text_is_one_step_and_keeps_the_text_after_the_caret(box: TextBoxPage) -> None:
    box.type("Once upon a time. The end")
    box.select(17)
    box.pause()
    assert box.do("return owner.goTo('Once upon')")
    assert (box.text, box.caret) == ("Once upon The end", 9)
    box.undo()
    assert box.text == "Once upon a time. The end"
    assert not box.do("return owner.goTo('Twice')")
    assert box.text == "Once upon a time. The end"
