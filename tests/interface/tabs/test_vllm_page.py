"""The writer's tab on a real vLLM: rows of the local engine, and views that are computed before a click."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lookahead_core import Document, Model, load_model
from tests.support import browser as browsers
from tests.support.browser import PATIENCE, Visit
from tests.support.vllm_server import serving
from tests.support.witness import rows_of

pytestmark = [pytest.mark.browser, pytest.mark.vllm]

TEXT = "The old keeper climbed the stairs and saw"
CLICK = """async () => {
  const branches = document.querySelector('#branches');
  branches.querySelector('[data-token]').click();
  for (let frame = 0; frame < 2; frame += 1) await new Promise(done => requestAnimationFrame(done));
  return [branches.dataset.stale, branches.querySelectorAll('[data-branch]').length];
}"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of LOOKAHEAD_TEST_VLLM, or of a vLLM that is started here."""
    if found := os.environ.get("LOOKAHEAD_TEST_VLLM"):
        yield found
        return
    with serving(most_logprobs=-1) as started:
        yield started


@pytest.fixture
def visit(browser: object, address: str) -> Iterator[Visit]:
    with browsers.page_of(lambda report: load_model(address)) as url, browsers.visit(browser, url) as opened:
        opened.wait_for_status("ready")
        yield opened


def rows(visit: Visit) -> list[str]:
    return ["".join(visit.pieces(row)) for row in range(visit.rows)]


def test_rows_are_those_of_the_local_engine_and_a_click_shows_a_view_that_is_there(
    visit: Visit, default_model: Model
) -> None:
    visit.type(TEXT)
    visit.wait_until_settled()
    assert rows(visit) == rows_of(default_model, TEXT, odds="words")
    visit.page.wait_for_selector("#branches[data-ahead-ready='5']", timeout=PATIENCE)
    assert visit.page.evaluate(CLICK) == ["false", 5], "two frames after the click the rows are those of the new text"
    visit.wait_until_settled()
    document = Document(default_model, TEXT)
    likeliest = max(document.lookahead(k=5, depth=5, odds="words").branches, key=lambda branch: branch.share)
    document.accept(likeliest, tokens=1)
    assert visit.text == document.text
    (first, *_) = document.lookahead(k=5, depth=5, odds="words", stop_at_repetition=True).branches
    assert rows(visit)[0] == "".join(piece.text for piece in first.pieces)
