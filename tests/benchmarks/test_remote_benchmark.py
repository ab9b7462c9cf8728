"""The benchmark of a lookahead on a model's server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.__main__ import parse
from benchmarks.remote import BranchesAtOnce, BranchesInTurn, EveryLevel, Timing, TwoRequests, measure, report
from lookahead_core import Model, load_model
from tests.support.completions_server import CompletionsServer


@pytest.fixture
def server(tiny_model: Model) -> Iterator[CompletionsServer]:
    served = CompletionsServer(tiny_model.hf_model)
    yield served
    served.close()


@pytest.mark.slow
def test_each_way_makes_its_requests_and_finds_the_same_branches(tiny_model: Model, server: CompletionsServer) -> None:
    arguments = parse(["remote", "--prompt", "40", "--k", "3", "--depth", "4", "--repeats", "2"])
    model = load_model(server.address, tokenizer=tiny_model.tokenizer)
    timings = measure(model, arguments)
    model.engine.close()  # type: ignore[attr-defined]
    requests = {(timing.name, timing.requests) for timing in timings}
    assert requests == {
        (TwoRequests.name, 2),
        (EveryLevel.name, 4),
        (BranchesInTurn.name, 4),
        (BranchesAtOnce.name, 4),
    }
    assert len(timings) == 8 and all(timing.same and timing.cached is None for timing in timings)
    lengths: dict[str, list[int]] = {}
    for body in server.bodies:
        if "cache_salt" in body:
            lengths.setdefault(body["cache_salt"], []).append(len(body["prompt"][0]))
    # Each way has sent its prompt without the word before, and nobody else's.
    assert len(lengths) == 12 and all(sent[0] == 40 < sent[len(sent) // 2] for sent in lengths.values())


def test_the_table_has_medians_ratios_to_ours_and_the_least_share_from_the_cache() -> None:
    ours = [
        Timing(TwoRequests.name, one, seconds, 2, True, 0.9 + one / 100) for one, seconds in enumerate([0.3, 0.1, 0.2])
    ]
    level = [Timing(EveryLevel.name, 0, 0.5, 10, False)]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in report([*level, *ours]).splitlines()[2:]]
    assert lines == [
        [TwoRequests.name, "2", "0.200", "1.00", "90.0%", "3 of 3"],
        [EveryLevel.name, "10", "0.500", "2.50", "–", "0 of 1"],
    ]
