"""When a page's session begins and ends: from its first request until an hour without one, or until room is needed."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from interface.server.callers import CALLER
from interface.server.model_loading import ModelLoader
from interface.server.page_session import PageSession
from interface.server.request_progress import RequestProgress
from lookahead_core.serving.expiring_store import ExpiringStore
from lookahead_core.settings import MEBIBYTE

if TYPE_CHECKING:
    from lookahead_core import Model

MOST_PAGES = 256
"""The most pages of a service that have a session at once; if all wait for an answer, a further page is refused."""
MOST_TREE_BYTES = 512 * MEBIBYTE
"""Bytes that the trees of all sessions of a service may have, see `PageSession.tree_bytes`. Each service (one for
Write, Rewrite and Type assistant, one for each other tab and each page of the Lab) has as many. Their KV caches are
bounded by the engine, which clears those that were unused for longest."""
MAX_IDLE_SECONDS = 3600.0
"""Seconds without a request after which a session ends, with the text and the tree that it holds."""


class OpenPage:
    """A page with a session: the session, the progress of its latest request, and which requests it has stopped.

    `OpenPages` makes it; `PageService` sets `progress` and `stopped`.
    """

    def __init__(self, session: PageSession, address: str = "") -> None:
        self.session = session
        self.address = address
        """The address of the caller that opened the page."""
        self.progress: RequestProgress | None = None
        """The progress of the latest request; None before the first one."""
        self.stopped = -1
        """The highest number of a request that the page has stopped; -1 if it has stopped none."""

    def progress_of(self, number: int) -> RequestProgress | None:
        """Return the progress of the latest request if it has that number; None otherwise."""
        latest = self.progress
        return latest if latest is not None and latest.request.number == number else None

    @property
    def busy(self) -> bool:
        """Whether the page still needs its latest request, see `RequestProgress.wanted`; False if it has none.

        The session of a busy page does not end to make room.
        """
        return self.progress is not None and self.progress.wanted


class OpenPages(ExpiringStore[OpenPage]):
    """The pages that have a session, as OpenPage by page id; `get_or_make` begins a session, `find` only looks it up.

    A session ends, with its work, if neither was called for its page for MAX_IDLE_SECONDS; this is noticed at the next
    such call for any page, and by `forget_idle`, see `idle_texts.py`. When a new page needs room, the session that
    `_chosen` returns ends; if that is None, `get_or_make` raises NoRoom. Sessions that are not `busy` also end, the
    longest unused first, while their trees have more than `most_bytes` together. A page whose session has ended gets a
    new one for its own text at its next request.
    """

    def __init__(
        self,
        loader: ModelLoader,
        make_session: Callable[[Model], PageSession],
        most: int,
        most_bytes: int = MOST_TREE_BYTES,
    ) -> None:
        """`make_session` makes a session on the loaded model; at most `most` pages have one at once.

        The model must be loaded before `get_or_make` is called.
        """
        self._loader = loader
        self._make_session = make_session
        super().__init__(
            self._begin_session,
            capacity=most,
            max_idle_seconds=MAX_IDLE_SECONDS,
            max_bytes=most_bytes,
            bytes_of=lambda page: page.session.tree_bytes,
            is_busy=lambda page: page.busy,
            choose=functools.partial(_chosen, most),
            on_forget=self._end_session,
        )

    def _begin_session(self) -> OpenPage:
        assert self._loader.model is not None
        return OpenPage(self._make_session(self._loader.model), CALLER.get().address)

    def renew(self, page: OpenPage) -> None:
        """Give a page a new session, after an unexpected error that may have left its document in any state."""
        page.session = self._begin_session().session

    def end_work(self, page_id: str, page: OpenPage) -> None:
        """Stop the passes of a page that is no longer present, and end its request; its session stays.

        If the page comes back, its request is unknown, and the page sends it again.
        """
        self._end_session(page_id, page)
        page.progress = None

    def _end_session(self, page_id: str, page: OpenPage) -> None:
        """End the work of a page whose session has ended: stop its passes and end its request, without an error."""
        self._loader.scheduler.stop(page_id)
        if page.progress is not None and not page.progress.over:
            page.progress.finish()


def _chosen(most: int, pages: Mapping[str, OpenPage]) -> str | None:
    """Return the id of the page whose session ends for a new page of the present caller; None if there is none.

    `pages` are all `most` pages with a session, the longest unused first. It is the first one that is not busy; one of
    the same address, if this one has more pages than others and more than a quarter of all. If all are busy, it is the
    first one of the address that has most pages, if the caller's has at least two fewer.
    """
    counts = Counter(page.address for page in pages.values())
    own, (greediest, count) = CALLER.get().address, counts.most_common(1)[0]
    idle = [key for key, page in pages.items() if not page.busy]
    if counts[own] == count and count > most // 4:
        idle.sort(key=lambda key: pages[key].address != own)
    if idle:
        return idle[0]
    if counts[own] + 1 < count:
        return next(key for key, page in pages.items() if page.address == greediest)
    return None
