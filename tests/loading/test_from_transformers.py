"""Whether the Hub answers for a repository, before anything is loaded from it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from huggingface_hub import errors

from lookahead_core.loading import from_transformers
from lookahead_core.loading.from_transformers import hub_answers


def refusing(kind: type[Exception]) -> Callable[..., None]:
    """A request for a file's metadata that ends with this error."""

    def request(*arguments: Any, **options: Any) -> None:
        response = httpx.Response(404, request=httpx.Request("HEAD", "https://hub.example/config.json"))
        raise kind("refused", response=response) if issubclass(kind, errors.HfHubHTTPError) else kind("refused")

    return request


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., None]], bool]:
    """Returns whether the Hub answers if its request for a file's metadata is this function."""
    monkeypatch.setattr(from_transformers, "is_offline_mode", lambda: False)

    def answers(request: Callable[..., None], timeout: float = 60.0) -> bool:
        monkeypatch.setattr(from_transformers, "get_hf_file_metadata", request)
        return hub_answers("some/model", None, timeout)

    return answers


def test_the_hub_answers_if_it_has_the_repository_with_or_without_the_file(answer: Any) -> None:
    assert answer(lambda *arguments, **options: None)
    assert answer(refusing(errors.EntryNotFoundError))


@pytest.mark.parametrize("kind", [errors.RepositoryNotFoundError, errors.RevisionNotFoundError])
def test_a_repository_or_revision_that_the_hub_does_not_have_is_an_error(answer: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        answer(refusing(kind))


def test_the_hub_does_not_answer_offline_after_another_error_or_after_the_timeout(
    answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not answer(refusing(ConnectionError))
    ended = threading.Event()
    assert not answer(lambda *arguments, **options: ended.wait(60), timeout=0.01)
    ended.set()
    monkeypatch.setattr(from_transformers, "is_offline_mode", lambda: True)
    assert not answer(lambda *arguments, **options: pytest.fail("requested"))
