"""Documents by the person they belong to: bounded, expiring, and never another's."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lookahead_core.branches import Branch, Lookahead
    from lookahead_core.document import Document


class Held:
    """One person's document: who may touch it, what was asked for last, and what was shown last."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.lock = threading.Lock()
        """Taken for each pass and let go between passes, so that newer work never waits for older."""
        self._noting = threading.Lock()
        self.newest = 0
        """The newest revision of the text that anybody asked about; it only grows."""
        self.shown: Lookahead | None = None
        self.used = 0.0

    def note(self, revision: int) -> None:
        """Tell whoever works on an older revision to stop after this pass."""
        with self._noting:
            self.newest = max(self.newest, revision)

    def take(self, text: str, accepted: tuple[int, ...] = ()) -> None:
        """Bring the document to this text; tokens that were accepted from the latest view keep their ids."""
        branch = self._branch_of(accepted)
        if branch is not None and text.startswith(self.document.text + _beginning(branch, len(accepted))):
            self.document.accept(branch, tokens=len(accepted))
        self.shown = None
        self.document.text = text

    def _branch_of(self, accepted: tuple[int, ...]) -> Branch | None:
        """The branch of the latest view that begins with these tokens and still hangs below the text."""
        branches = self.shown.branches if self.shown and accepted else ()
        for branch in branches:
            if branch.token_ids[: len(accepted)] == accepted and branch.origin is self.document.head:
                return branch
        return None


class DocumentStore:
    """At most so many documents; the longest unused ones go first, and idle ones after a while."""

    def __init__(
        self,
        make: Callable[[], Document],
        *,
        most: int = 64,
        seconds: float = 3600.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._held: OrderedDict[str, Held] = OrderedDict()

    def hold(self, key: str) -> Held:
        """The document of this person, made if there is none; whoever has no key gets one that nobody else can."""
        if not key:
            return Held(self._make())
        with self._lock:
            self._forget_idle()
            held = self._held.get(key) or Held(self._make())
            held.used = self._clock()
            self._held[key] = held
            self._held.move_to_end(key)
            while len(self._held) > self._most:
                self._held.popitem(last=False)
            return held

    def __len__(self) -> int:
        return len(self._held)

    def _forget_idle(self) -> None:
        oldest = self._clock() - self._seconds
        for key, held in list(self._held.items()):
            if held.used >= oldest:
                break
            del self._held[key]


def _beginning(branch: Branch, tokens: int) -> str:
    """What the first tokens of a branch insert."""
    return "".join(piece.text for piece in branch.pieces if piece.tokens <= tokens)
