"""The page on shared GPUs: every view is computed by a forked worker that may be gone at the next call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from lookahead_core import Document, Model
from lookahead_core.errors import NoRoom
from tests.support import browser as browsers
from tests.support.browser import Visit, expect
from tests.support.forking_gpu import ForkingGpu, on_workers

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PROMPT = "The old lighthouse keeper"


@dataclass
class SharedPage:
    """The page, and the decorator that forks its workers."""

    visit: Visit
    gpu: ForkingGpu


@pytest.fixture(scope="module")
def shared(browser: Any, small_model: Model) -> Iterator[tuple[str, ForkingGpu]]:
    model, gpu = on_workers(small_model, kills=0.3, seed=2)
    with browsers.page_of(lambda report: model) as url:
        yield url, gpu
    gpu.close()


@pytest.fixture
def opened(page: Any, shared: tuple[str, ForkingGpu]) -> Iterator[SharedPage]:
    url, gpu = shared
    with browsers.visit_again(page, url) as visit:
        visit.wait_for_status("ready")
        yield SharedPage(visit, gpu)


def test_typing_and_clicks_give_the_local_branches_and_each_view_is_one_call(
    opened: SharedPage, small_model: Model
) -> None:
    visit, gpu = opened.visit, opened.gpu
    text = PROMPT
    visit.fill(text)
    visit.wait_until_settled()
    before, forks = len(gpu.calls), gpu.forks
    gpu.kill()
    for branch in (1, 0, 2):
        visit.wait_until_settled()
        piece = visit.pieces(branch)[0]
        visit.token(branch, 0).click()
        text += piece
        assert visit.text == text
    visit.fill(f"{PROMPT} climbed the stairs")
    visit.wait_until_settled()
    assert len(gpu.calls) - before <= 4
    expected = Document(small_model, visit.text).lookahead(k=5, depth=6, heal=True, stop_at_repetition=True)
    assert [visit.pieces(row)[0] for row in range(visit.rows)] == [
        branch.pieces[0].text for branch in expected.branches
    ]
    assert gpu.forks > forks, "a new worker has computed what followed"


def test_what_is_prefetched_comes_with_the_view_and_a_click_on_it_needs_no_call(opened: SharedPage) -> None:
    visit, gpu = opened.visit, opened.gpu
    visit.fill(PROMPT)
    visit.wait_until_settled()
    visit.wait_until_prefetched(visit.rows)
    calls = len(gpu.calls)
    piece = visit.pieces(1)[0]
    visit.token(1, 0).click()
    visit.page.wait_for_function("() => document.querySelectorAll('#branches [data-branch]').length > 0")
    assert visit.text == PROMPT + piece
    visit.wait_until_settled()
    assert len(gpu.calls) - calls <= 1, "one for the rest of the view and what comes after it"


def test_used_up_minutes_are_a_sentence_and_the_text_stays(opened: SharedPage) -> None:
    visit, gpu = opened.visit, opened.gpu
    gpu.refusal = NoRoom("Your minutes on the shared GPUs are used up; the next ones come in 3:20:10.")
    visit.fill(PROMPT)
    visit.wait_for_view("error")
    expect(visit.page.locator("#branches")).to_contain_text("minutes on the shared GPUs are used up")
    assert visit.text == PROMPT
    gpu.refusal = None
    visit.type(" saw")
    visit.wait_until_settled()
    assert visit.text == f"{PROMPT} saw"
    assert visit.rows == 5


def test_a_worker_that_ends_within_a_view_is_replaced_unseen(opened: SharedPage) -> None:
    visit, gpu = opened.visit, opened.gpu
    gpu.ends_after = 1
    visit.fill(f"{PROMPT} of the")
    visit.wait_until_settled()
    assert visit.rows == 5
