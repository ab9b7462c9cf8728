"""The command `check-agreement`, and the average token probability that the other methods tell."""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

import lookahead_core
from lookahead_core import Document, Model, agreement_length
from lookahead_core.command import terminal, text_output
from lookahead_core.command.main import main
from tests.analysis.test_agreement import common
from tests.command.test_command import PROMPT, Terminal
from tests.support.families import greedy

OTHER = "The sea"
NAME = "check-agreement"


@pytest.fixture
def run(
    tiny_model: Model, draft_model: Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Calls the command in this process; both models are there already."""
    models = {"big": tiny_model, "little": draft_model}

    def called(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(lookahead_core, "load_model", lambda name, **options: models[name or "big"])
        try:
            status = main(words)
        except SystemExit as ending:
            status = int(str(ending.code))
        return status, *capsys.readouterr()

    return called


def texts_of(model: Model, prompt: str, ids: list[int]) -> str:
    """What ids add to a prompt, as the tokenizer itself spells both."""
    start = model.tokenizer(prompt).input_ids
    whole = model.tokenizer.decode([*start, *ids], clean_up_tokenization_spaces=False, skip_special_tokens=True)
    return whole[len(prompt) :]


def test_the_command_says_for_how_many_tokens_the_models_agree_and_how_they_part(
    run: Any, tiny_model: Model, draft_model: Model
) -> None:
    status, out, err = run(NAME, PROMPT, OTHER, "--draft-model", "little", "--max-new-tokens", "12", "--width", "200")
    assert (status, err) == (0, "")
    lines = iter(out.splitlines())
    agreed_in_full = 0
    for prompt in (PROMPT, OTHER):
        start = tiny_model.tokenizer(prompt).input_ids
        written, wanted = greedy(draft_model, start, 12), greedy(tiny_model, start, 12)
        agreed = common(written, wanted)
        assert next(lines) == prompt
        shown = texts_of(tiny_model, prompt, written[:agreed])
        assert next(lines) == f"{agreed} of {len(written)} tokens agree: {shown!r}"
        if agreed < len(written):
            named = [text_output.token_text(ids[agreed], tiny_model) for ids in (wanted, written)]
            assert next(lines) == f"then {named[0]}, where the smaller model wrote {named[1]}"
        agreed_in_full += agreed == len(written)
    assert next(lines) == f"{agreed_in_full} of 2 texts agree in full; checked in 1 pass"
    assert agreed_in_full < 2 and not list(lines)


def test_texts_that_agree_in_full_are_counted(run: Any) -> None:
    status, out, _ = run(NAME, PROMPT, "--draft-model", "big", "--max-new-tokens", "3")
    assert status == 0 and "3 of 3 tokens agree: " in out and "then " not in out
    assert out.splitlines()[-1] == "1 of 1 text agrees in full; checked in 1 pass"


def test_the_agreement_as_json(run: Any, tiny_model: Model, draft_model: Model) -> None:
    status, out, err = run(NAME, PROMPT, OTHER, "--draft-model", "little", "--max-new-tokens", "9", "--json")
    found = json.loads(out, parse_constant=lambda name: pytest.fail(name))
    assert (status, err, out.count("\n")) == (0, "", 1)
    assert (found["method"], found["big_passes"], found["options"]) == (NAME, 1, {"max_new_tokens": 9})
    assert found["model"]["name"] == tiny_model.name and found["draft_model"]["name"] == draft_model.name
    assert found["model"]["engine"] == "cached" and found["model"].keys() == found["draft_model"].keys()
    for prompt, check in zip((PROMPT, OTHER), found["checks"], strict=True):
        start = tiny_model.tokenizer(prompt).input_ids
        written, wanted = greedy(draft_model, start, 9), greedy(tiny_model, start, 9)
        agreed = common(written, wanted)
        assert (check["prompt"], check["token_ids"], check["agreed"]) == (prompt, written, agreed)
        assert check["agreed"] == agreement_length(tiny_model, draft_model, prompt, most=9)
        assert check["stands"] is (agreed == len(written))
        assert check["instead"] == (None if check["stands"] else wanted[agreed])
        ends = tiny_model.end_token_ids
        assert check["text"] == texts_of(tiny_model, prompt, [one for one in written if one not in ends])


def test_without_a_number_ten_tokens_are_written(run: Any) -> None:
    _, out, _ = run(NAME, PROMPT, "--draft-model", "big", "--json")
    assert json.loads(out)["options"] == {"max_new_tokens": 10}


def test_a_text_may_come_from_standard_input(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{PROMPT}\n".encode())))
    _, out, _ = run(NAME, "-", "--draft-model", "big", "--max-new-tokens", "2")
    assert out.splitlines()[0] == PROMPT


def test_what_a_terminal_gets_fits_its_width_without_control_characters(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", screen)
    words = ["--draft-model", "big", "--max-new-tokens", "40", "--width", "40"]
    run(NAME, f"\x1b[31m{PROMPT * 4}", *words)
    lines = screen.text.splitlines()
    assert lines[0].startswith("\x1b[2m…") and lines[0].endswith("\x1b[0m")
    assert max(map(terminal.columns, lines[1:2])) == 40 and lines[1].endswith("…")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([PROMPT], "The following arguments are required: --draft-model; see python -m lookahead_core check-agreement"),
        (["--draft-model", "little"], "The following arguments are required: prompt"),
        ([PROMPT, "--draft-model", "little", "--max-new-tokens", "0"], "max_new_tokens is 0, and must be a whole"),
        ([PROMPT, "--draft-model", "little", "--width", "3"], "width is 3, and must be a whole number from 20"),
        ([PROMPT, "--draft-model", "little", "--seed", "3"], "Unrecognized arguments: --seed 3"),
    ],
)
def test_what_cannot_be_checked_is_one_sentence_before_a_model_is_loaded(
    words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("lookahead_core.command.model_loading.load", lambda asked: pytest.fail("loaded"))
    try:
        status = main([NAME, *words])
    except SystemExit as ending:
        status = int(str(ending.code))
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.startswith(sentence) and err.count("\n") == 1


def test_a_prompt_that_is_the_name_of_a_command_can_be_given_after_an_option(run: Any) -> None:
    status, out, _ = run("--width", "80", "-k", "1", "--depth", "1", NAME)
    assert status == 0 and out.splitlines()[0] == NAME


def test_the_smaller_model_is_put_beside_the_model(
    tiny_model: Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []

    def load(source: Any, **options: Any) -> Model:
        asked.append((source, {name: value for name, value in options.items() if name != "report"}))
        return tiny_model

    monkeypatch.setattr(lookahead_core, "load_model", load)
    assert main([NAME, PROMPT, "--model", "big", "--dtype", "float32", "--draft-model", "little"]) == 0
    beside = {"device": "cpu", "dtype": "float32", "trust_remote_code": False}
    assert asked == [("big", {"dtype": "float32"}), ("little", beside)]


def test_progress_is_shown_before_the_models_are_loaded(
    run: Any, tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen, shown = Terminal(), []
    monkeypatch.setattr(sys, "stderr", screen)

    def load(source: Any, **options: Any) -> Model:
        shown.append(screen.text)
        return tiny_model

    monkeypatch.setattr(lookahead_core, "load_model", load)
    assert main([NAME, PROMPT, "--draft-model", "little", "--max-new-tokens", "2"]) == 0
    assert "Starting" in shown[0]


# The average token probability.


def average(logprobs: list[float]) -> float:
    """Seed 003: the exponential of the mean log-probability."""
    return torch.tensor(sum(logprobs) / len(logprobs)).exp().item()


def plain_logprobs(model: Model, prompt: str, ids: list[int]) -> list[float]:
    """Those of ids behind a prompt, by one plain forward."""
    path = [*model.tokenizer(prompt).input_ids, *ids]
    with torch.no_grad():
        rows = model.hf_model(torch.tensor([path])).logits[0].double().log_softmax(-1)
    first = len(path) - len(ids)
    return [float(rows[first + place - 1, token_id]) for place, token_id in enumerate(ids)]


def test_beams_and_streams_tell_the_average_token_probability(run: Any, tiny_model: Model) -> None:
    beams = Document(tiny_model, PROMPT).beam_search(num_beams=3, max_new_tokens=5).branches
    for beam in beams:
        expected = average(plain_logprobs(tiny_model, PROMPT, list(beam.token_ids)))
        assert beam.average_probability == pytest.approx(expected, rel=1e-4)
    _, out, _ = run(PROMPT, "--method", "beam", "--num-beams", "3", "--max-new-tokens", "5", "--width", "200")
    head, *lines = out.splitlines()
    assert head.split() == ["score", "log-prob.", "average", "text"]
    for beam, line in zip(beams, lines, strict=True):
        assert terminal.percent(beam.average_probability) in line
    _, out, _ = run(PROMPT, "--method", "beam", "--num-beams", "3", "--max-new-tokens", "5", "--json")
    told = [beam["average_probability"] for beam in json.loads(out)["branches"]]
    assert told == pytest.approx([beam.average_probability for beam in beams])


def test_a_stream_tells_the_average_token_probability(run: Any, tiny_model: Model) -> None:
    stream = Document(tiny_model, PROMPT).stream(max_new_tokens=7)
    assert stream.average_probability is None, "nothing has come yet"
    ids = [step.token_id for step in stream]
    expected = average(plain_logprobs(tiny_model, PROMPT, ids))
    assert stream.average_probability == pytest.approx(expected, rel=1e-4)
    words = [PROMPT, "--method", "greedy", "--max-new-tokens", "7"]
    assert json.loads(run(*words, "--json")[1])["average_probability"] == pytest.approx(expected, rel=1e-4)
    assert run(*words, "--verbose")[2].endswith(f"; average token probability {terminal.percent(expected)}\n")


def test_the_average_of_several_samples_is_that_of_each(run: Any, tiny_model: Model) -> None:
    words = [PROMPT, "--method", "sample", "--samples", "2", "--max-new-tokens", "4"]
    samples = json.loads(run(*words, "--json")[1])["samples"]
    averages = [average(plain_logprobs(tiny_model, PROMPT, one["token_ids"])) for one in samples]
    assert [one["average_probability"] for one in samples] == pytest.approx(averages, rel=1e-4)
    shown = ", ".join(map(terminal.percent, averages))
    assert run(*words, "--verbose")[2].endswith(f"; average token probability {shown}\n")


def test_a_branch_has_the_geometric_mean_of_its_tokens_probabilities(tiny_model: Model) -> None:
    for branch in Document(tiny_model, PROMPT).lookahead(k=3, depth=4).branches:
        expected = branch.probability ** (1 / len(branch.token_ids))
        assert branch.average_probability == pytest.approx(expected)
        assert branch.average_probability == pytest.approx(math.exp(sum(branch.logprobs) / len(branch.logprobs)))


def test_the_help_names_the_command_and_explains_it(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], [NAME, "--help"]):
        with pytest.raises(SystemExit):
            main(words)
        assert NAME in capsys.readouterr().out
