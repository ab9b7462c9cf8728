"""A real vLLM gives what the local engine gives, in float32: branches, odds, beams and streams."""

from __future__ import annotations

import math
import os
import random
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.prompts import FRESH_IDS, Prompts
from lookahead_core import Document, Model, load_model
from lookahead_core.loading.sizing import GIBIBYTE, read_shape
from tests.support.vllm_server import model_folder, serving

pytestmark = pytest.mark.vllm
PROMPTS = 50


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """The file of what the server prints; None if it was not started here."""
    return None if os.environ.get("LOOKAHEAD_TEST_VLLM") else tmp_path_factory.mktemp("vllm") / "log"


@pytest.fixture(scope="module")
def address(log: Path | None) -> Iterator[str]:
    """The address of a vLLM: that of LOOKAHEAD_TEST_VLLM, or one that is started here."""
    if log is None:
        yield os.environ["LOOKAHEAD_TEST_VLLM"]
        return
    with serving(most_logprobs=-1, log=log) as found:
        yield found


@pytest.fixture(scope="module")
def remote(address: str) -> Iterator[Model]:
    model = load_model(address)
    yield model
    model.engine.close()  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def truncated(address: str) -> Iterator[Model]:
    """The same server, of which only the 20 likeliest tokens are used."""
    model = load_model(address)
    engine: Any = model.engine
    engine.most, engine.whole_rows = 20, False
    yield model
    engine.close()


@pytest.fixture(scope="module")
def texts(default_model: Model) -> list[str]:
    """Parts of English texts, of different lengths."""
    dice, prompts = random.Random(0), Prompts(default_model.tokenizer)
    drawn = [prompts.draw(dice.randrange(8, 200)) for _ in range(PROMPTS)]
    return [default_model.tokenizer.decode(ids[FRESH_IDS:]) for ids in drawn]


def test_branches_odds_and_beams_are_those_of_the_local_engine(
    truncated: Model, default_model: Model, texts: list[str]
) -> None:
    worst = 0.0
    for text in texts:
        local, found = (Document(model, text) for model in (default_model, truncated))
        expected, result = (document.lookahead(k=5, depth=10) for document in (local, found))
        assert result.cost.passes <= 2
        assert [branch.token_ids for branch in result.branches] == [branch.token_ids for branch in expected.branches]
        for mine, theirs in zip(result.branches, expected.branches, strict=True):
            pairs = zip(mine.logprobs, theirs.logprobs, strict=True)
            worst = max(worst, *(abs(math.exp(one) - math.exp(other)) for one, other in pairs))
        assert result.coverage == pytest.approx(expected.coverage, abs=1e-3)
        beams, wanted = (document.beam_search(num_beams=5, max_new_tokens=10).branches for document in (found, local))
        assert [beam.token_ids for beam in beams] == [beam.token_ids for beam in wanted]
        assert [beam.score for beam in beams] == pytest.approx([beam.score for beam in wanted], abs=1e-3)
    print(f"{len(texts)} prompts; the largest difference of odds is {worst:.1e}")
    assert worst <= 1e-3


@pytest.mark.parametrize(
    "options", [{"banned": {28, 260}}, {"heal": True}, {"mode": "sampled", "seed": 1}, {"mode": "every_level"}]
)
def test_with_all_log_probabilities_other_options_are_those_of_the_local_engine(
    remote: Model, default_model: Model, texts: list[str], options: dict[str, Any]
) -> None:
    for text in texts[:3]:
        expected = Document(default_model, text).lookahead(k=3, depth=4, **options)
        found = Document(remote, text).lookahead(k=3, depth=4, **options)
        assert [branch.token_ids for branch in found.branches] == [branch.token_ids for branch in expected.branches]
        assert found.coverage == pytest.approx(expected.coverage, abs=1e-3)


@pytest.mark.parametrize("server", ["remote", "truncated"])
def test_while_typed_words_are_completed_other_people_get_their_own_odds(
    server: str, default_model: Model, texts: list[str], request: pytest.FixtureRequest
) -> None:
    """The server computes the requests of several people in one batch, of which some allow matching tokens alone."""
    remote = request.getfixturevalue(server)
    cases = [(text[: 60 + 7 * number], bool(number % 2)) for number, text in enumerate(texts[:24])]

    def branches(model: Model, text: str, heal: bool) -> list[tuple[tuple[int, ...], list[float]]]:
        result = Document(model, text).lookahead(k=3, depth=6, heal=heal)
        return [(branch.token_ids, [round(each, 2) for each in branch.logprobs]) for branch in result.branches]

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda case: branches(remote, *case), cases))
    for case, each in zip(cases, found, strict=True):
        expected = branches(default_model, *case)
        assert [ids for ids, _ in each] == [ids for ids, _ in expected]
        for (_, mine), (_, theirs) in zip(each, expected, strict=True):
            assert mine == pytest.approx(theirs, abs=0.02)


def test_abandoning_a_lookahead_frees_the_server(remote: Model, address: str) -> None:
    def running() -> float:
        metrics = httpx.get(address.removesuffix("/v1") + "/metrics").text
        lines = [line for line in metrics.splitlines() if line.startswith("vllm:num_requests_running")]
        return float(lines[0].rsplit(" ")[-1])

    steps = Document(remote, "Once upon a time there was").lookahead_steps(k=5, depth=100)
    for step in steps:
        if max(len(branch.token_ids) for branch in step.result.branches) >= 3:
            break
    assert running() == 5
    steps.close()  # type: ignore[attr-defined]
    time.sleep(0.5)
    assert running() == 0


def test_a_long_text_is_read_from_the_prefix_cache(remote: Model, address: str, texts: list[str]) -> None:
    def counts() -> tuple[float, float]:
        lines = httpx.get(address.removesuffix("/v1") + "/metrics").text.splitlines()
        names = ("vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total")
        return tuple(float(next(line for line in lines if line.startswith(name)).rsplit(" ")[-1]) for name in names)  # type: ignore[return-value]

    document = Document(remote, " ".join(texts)[:2400])
    document.lookahead(k=5, depth=10)
    document.text += " again"
    before = counts()
    document.lookahead(k=5, depth=10)
    asked, hit = (after - earlier for after, earlier in zip(counts(), before, strict=True))
    print(f"{hit / asked:.1%} of {asked:.0f} prompt tokens came from the prefix cache")
    assert hit / asked >= 0.93


def test_a_document_reads_nothing_from_the_cache_of_another_with_the_same_text(remote: Model, texts: list[str]) -> None:
    """The salts differ: the time of an answer does not tell what others have written."""
    text = " ".join(reversed(texts))[:1200]
    engine: Any = remote.engine
    seconds = []
    for document in (Document(remote, text), other := Document(remote, text), other):
        document.tree.head.prediction = None
        started = time.perf_counter()
        engine.score([document.head])
        seconds.append(time.perf_counter() - started)
    print(f"read anew in {seconds[0]:.3f} s, by another person in {seconds[1]:.3f} s, and again in {seconds[2]:.3f} s")
    assert seconds[2] < seconds[1] / 2


def test_the_cache_of_a_server_holds_as_many_tokens_as_sizing_says(log: Path | None) -> None:
    if log is None:
        pytest.skip("the server was not started here")
    (tokens,) = re.findall(r"KV cache size: ([\d,]+) tokens", log.read_text(errors="replace"))
    expected = GIBIBYTE // read_shape(str(model_folder())).kv_bytes(1, 4)
    print(f"{tokens} tokens in one GiB, {expected:,} by sizing")
    assert expected - 64 <= int(tokens.replace(",", "")) <= expected


def test_the_environment_of_vllm_is_outside_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support.vllm_server import environment_folder

    monkeypatch.setenv("LOOKAHEAD_CACHE_DIR", str(tmp_path))
    assert environment_folder().parent == tmp_path
