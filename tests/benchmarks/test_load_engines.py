"""The load benchmark of a page on a model's server beside a page with the local engine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import load_engines
from benchmarks.__main__ import parse
from benchmarks.load import DEFAULTS, main
from benchmarks.load_engines_report import Comparison, Trial, crossing_sentence, first_faster, report, save_plot
from benchmarks.load_report import Step
from lookahead_core import Model, load_model
from tests.support import browser as browsers
from tests.support.completions_server import CompletionsServer


@pytest.fixture
def server(tiny_model: Model) -> Iterator[CompletionsServer]:
    served = CompletionsServer(tiny_model.hf_model, most_logprobs=-1, most_tokens=2000)
    yield served
    served.close()


@pytest.mark.slow
def test_a_short_run_has_views_of_both_engines_in_turns_a_table_a_sentence_and_a_plot(
    tiny_model: Model, server: CompletionsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_engines, "PAUSE", 0.0)
    words = ["load", "--engine", "remote", "--people", "2", "--seconds", "1", "--repeats", "2", "--pace", "0.05"]
    arguments = parse(words)
    with (
        browsers.page_of(lambda report: tiny_model) as local,
        browsers.page_of(lambda report: load_model(server.address, tokenizer=tiny_model.tokenizer)) as remote,
    ):
        comparison = asyncio.run(load_engines.measure({"local": local, "remote": remote}, arguments))
    assert not comparison.errors
    turns = [(0, "local"), (0, "remote"), (1, "remote"), (1, "local")]
    assert [(trial.repeat, trial.engine) for trial in comparison.trials] == turns
    assert comparison.people == [2]
    assert all(trial.step.settled and trial.step.passes for trial in comparison.trials)
    shown = report(comparison)
    assert "No error, no character lost or mixed." in shown
    assert "By the median of the time to a complete view the remote engine is" in shown
    assert save_plot(comparison, tmp_path / "load.png").endswith("load.png.")
    assert (tmp_path / "load.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_command_starts_both_pages_on_a_server_that_runs_and_saves_figures_and_plot(
    tiny_folder: Path, server: CompletionsServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.models[0]["root"] = str(tiny_folder)
    words = ["load", "--engine", "remote", "--address", server.address, "--model", str(tiny_folder)]
    words += ["--people", "1", "3", "--seconds", "2", "--repeats", "1"]
    words += ["--json", str(tmp_path / "load.json"), "--plot", str(tmp_path / "load.png")]
    arguments = parse(words)
    assert arguments.main is main and main(arguments) == 0, capsys.readouterr().out
    assert "the remote engine is" in capsys.readouterr().out
    found = json.loads((tmp_path / "load.json").read_text())
    assert {(trial["engine"], trial["step"]["people"]) for trial in found["trials"]} == {
        (engine, people) for engine in ("local", "remote") for people in (1, 3)
    }
    assert (tmp_path / "load.png").stat().st_size > 10_000


def test_the_default_is_up_to_64_people_and_the_local_benchmark_is_as_before() -> None:
    assert max(DEFAULTS["remote"]["people"]) == 64
    arguments = parse(["load"])
    assert arguments.engine == "local" and DEFAULTS["local"]["people"] == [1, 2, 4, 8, 16, 30]


def comparison_of(seconds: Mapping[int, tuple[list[float], list[float]]]) -> Comparison:
    """Trials with one view each: by people, the seconds of the local and of the remote engine in each repeat."""
    trials = []
    for people, both in seconds.items():
        for engine, times in zip(("local", "remote"), both, strict=True):
            trials += [Trial(engine, repeat, step_of(people, [time])) for repeat, time in enumerate(times)]
    return Comparison(trials)


def step_of(people: int, settled: list[float]) -> Step:
    nothing: Any = dict.fromkeys(("worst", "refused", "rebuilt", "clicks", "known", "seen", "passes", "rows"), 0)
    return Step(people=people, seconds=1, first=[], settled=settled, errors={}, readings=[], **nothing)


def test_the_remote_engine_is_faster_from_the_number_after_which_it_is_never_slower() -> None:
    slower, faster = ([1.0, 1.0, 1.0], [2.0, 2.0, 0.1]), ([1.0, 1.0, 1.0], [0.5, 0.5, 9.0])
    assert first_faster(comparison_of({1: slower, 2: faster, 4: slower, 8: faster, 16: faster})) == 8
    assert first_faster(comparison_of({1: faster, 2: faster})) == 1
    assert first_faster(comparison_of({1: faster, 2: slower})) is None
    # A slow minute of the machine affects both engines of a repeat: ratios are taken within repeats.
    assert first_faster(comparison_of({1: ([1.0, 10.0, 1.0], [0.9, 9.0, 0.9])})) == 1


def test_the_sentence_says_from_how_many_people_on_and_by_how_much() -> None:
    slower, faster = ([1.0], [2.0]), ([1.0], [0.5])
    assert crossing_sentence(comparison_of({1: slower, 8: faster})).startswith(
        "By the median of the time to a complete view the remote engine is faster from 8 people on: "
        "with 8 it takes 0.50 times as long as the local one. By the 95th percentile"
    )
    assert "faster with every measured number" in crossing_sentence(comparison_of({1: faster, 8: faster}))
    assert "slower with the most people that were measured: with 8 it takes 2.00" in crossing_sentence(
        comparison_of({1: faster, 8: slower})
    )


def test_an_engine_without_a_view_is_neither_faster_nor_slower() -> None:
    comparison = Comparison([Trial("local", 0, step_of(4, [1.0])), Trial("remote", 0, step_of(4, []))])
    assert first_faster(comparison) is None and "nothing can be said" in crossing_sentence(comparison)
    assert "–" in report(comparison)
