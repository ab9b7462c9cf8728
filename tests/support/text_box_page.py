"""A page with one text box and its `TextOwner`, for tests of the text, its history and its caret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.support.browser import importing

BODY = "<textarea id=box></textarea><textarea id=other></textarea><button id=branch>a token</button>"
MOUNT = importing("""async () => {
  const {TextOwner} = await import('/lookahead/web/ui/text_owner.js');
  window.box = document.getElementById('box');
  window.now = 1e12;
  Date.now = () => window.now;
  window.changes = [];
  window.owner = new TextOwner(box, {also: () => [document.getElementById('branch')]});
  owner.addEventListener('change', event => changes.push(event.detail));
}""")


@dataclass
class TextBoxPage:
    """A page with one text box and its `TextOwner`, another text box, a button, and a clock that tests set."""

    page: Any

    def do(self, script: str, argument: Any = None) -> Any:
        return self.page.evaluate(f"argument => {{ {script} }}", argument)

    def get(self, expression: str) -> Any:
        return self.page.evaluate(f"() => {expression}")

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def select(self, start: int, end: int | None = None) -> None:
        """Select; the browser reports it a little later, so the event is dispatched at once."""
        report = "document.dispatchEvent(new Event('selectionchange'))"
        self.do(f"box.setSelectionRange(argument[0], argument[1]); {report}", [start, start if end is None else end])

    def pause(self, milliseconds: int = 2000) -> None:
        self.do("now += argument", milliseconds)

    def accept(self, text: str, **options: Any) -> bool:
        argument = {"ids": [1], **options}
        return bool(
            self.do("return owner.accept(argument[0], {revision: owner.sync(), ...argument[1]})", [text, argument])
        )

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
        return list(self.get("changes.splice(0).map(detail => detail.kind)"))


def compose(box: TextBoxPage, *stages: str, end: str | None) -> None:
    """What an input compose_text does: a text that changes before it is there, then is written, or argument up."""
    session = box.page.context.new_cdp_session(box.page)
    for stage in stages:
        caret = {"selectionStart": len(stage), "selectionEnd": len(stage)}
        session.send("Input.imeSetComposition", {"text": stage, **caret})
    if end is not None:
        session.send("Input.insertText", {"text": end})
    session.detach()
