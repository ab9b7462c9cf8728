"""The command: what may be asked, how texts, tables and trees look in a terminal and elsewhere, and how it ends."""

from __future__ import annotations

import io
import json
import math
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

import lookahead_core
from lookahead_core import Document, Model, ModelError
from lookahead_core.command import terminal, text_output
from lookahead_core.command.arguments import (
    CORE_OPTIONS,
    EARLY_STOPPING,
    METHODS,
    MODEL_OPTIONS,
    OUTPUT_OPTIONS,
    STREAMS,
    CommandOption,
    core_options,
    parse_arguments,
)
from lookahead_core.command.main import main
from lookahead_core.document.batch import stream_batch
from lookahead_core.document.document import StreamOptions
from lookahead_core.document.results import Branch, Cost, Lookahead, Piece
from lookahead_core.loading import load_model as models
from lookahead_core.loading.quantization import QUANTIZE
from lookahead_core.serving.json_values import json_safe
from lookahead_core.speculation.load_heads import FILE
from lookahead_core.strategies.beam import FATES
from lookahead_core.strategies.beam_options import BeamOptions
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from tests.conftest import CORPUS, byte_level, tiny_llama
from tests.speculation.test_heads import random_heads
from tests.support.scripted_model import parrot

ROOT = Path(__file__).parents[2]
PROMPT = "Once upon a time"
WILD = ["Wild", " \x1b[31m", "red\x07", "\r", "\x9b2J", "\u202eend", "\n\tline", " 中文🙂"]
"""What a model may write to move a cursor, to ring, or to turn a line around."""
KINDS: dict[str, Any] = {
    "greedy": StreamOptions,
    "sample": StreamOptions,
    "beam": BeamOptions,
    "diverse": BeamOptions,
    "lookahead": LookaheadOptions,
}
ROWS = [(methods, option) for methods, options in CORE_OPTIONS.items() for option in options]
FOR_CODE_ONLY = {
    "stream",
    "stop_when",
    "drafters",
    "source",
    *("speculate", "draft_model", "heads", "corpus"),
}


class Terminal(io.TextIOWrapper):
    """A file that says that it is a terminal, and remembers what each flush brought."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding, newline="")
        self.came: list[str] = []

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        super().flush()
        if not self.closed:
            self.came.append(self.text)

    @property
    def text(self) -> str:
        return self.buffer.getvalue().decode(self.encoding)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Ended:
    """What a call has come to."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Run = Callable[..., Ended]


@pytest.fixture
def run(tiny_model: Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls the command in this process; the model is there already."""

    def called(*words: str, model: Model = tiny_model, stdin: bytes | None = None, to: Any = None) -> Ended:
        monkeypatch.setattr(lookahead_core, "load_model", lambda *given, **options: model)
        monkeypatch.setattr(sys, "stdout", to or sys.stdout)
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        try:
            status = main(words)
        except SystemExit as ending:
            status = int(str(ending.code))
        return Ended(status, *capsys.readouterr())

    return called


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal with colours."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


@pytest.fixture(scope="module")
def wild() -> Model:
    return parrot(["".join(WILD)], WILD)


def plain_text(model: Model, prompt: str = PROMPT, **options: Any) -> str:
    return Document(model, prompt).stream(**options).write(io.StringIO())


def words_for(option: CommandOption) -> list[str]:
    """An argument with a value that it takes."""
    if option.kind is bool:
        return [option.flag]
    return [option.flag, option.choices[-1] if option.choices else "2"]


# What may be asked.


def test_help_explains_every_method_and_names_every_option_before_torch_is_imported() -> None:
    words = [sys.executable, "-X", "importtime", "-m", "lookahead_core", "--help"]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0
    assert "torch" not in ended.stderr and "argparse" in ended.stderr
    for name, meaning in METHODS.items():
        assert re.search(rf"^  {name} +{meaning}$", ended.stdout, re.M)
    for options in (*CORE_OPTIONS.values(), *OUTPUT_OPTIONS.values(), MODEL_OPTIONS):
        for option in options:
            assert re.search(rf"^  {option.flag}\b", ended.stdout, re.M), option.flag


@pytest.mark.parametrize("method", METHODS)
def test_the_table_of_options_is_the_cores_own(method: str) -> None:
    rows = {option.key: option for methods, option in ROWS if method in methods}
    known = {field.name: field.default for field in fields(KINDS[method])}
    missing = known.keys() - rows.keys() - FOR_CODE_ONLY
    if method == "greedy":
        missing -= {"temperature", "top_k", "top_p", "min_p", "typical_p", "min_tokens_to_keep", "seed"}
    assert not missing and rows.keys() <= known.keys()
    held = {("temperature", None): 1.0, ("seed", None): 0, ("early_stopping", False): "false"}
    for name, option in rows.items():
        default = held.get((name, known[name]), known[name])
        assert option.repeated or option.kind is bool or option.default == default, name


def test_what_only_one_mode_heeds_is_for_that_mode() -> None:
    heeded = {
        option.key: option.mode for option in CORE_OPTIONS[("lookahead",)] + CORE_OPTIONS[("sample", "lookahead")]
    }
    assert {name: mode for name, mode in heeded.items() if mode} == {
        "temperature": "sampled",
        "top_p": "sampled",
        "seed": "sampled",
        "branch_levels": "every_level",
        "branch_total": "every_level",
        "cutoff": "forks",
        "slope": "forks",
        "split_limit": "forks",
        "contrast": "diverse",
        "floor": "surprising",
        "budget": "best_first",
        "width": "best_first",
    }


def test_the_choices_are_the_cores_own() -> None:
    for option in MODEL_OPTIONS:
        allowed = {
            "device": models.DEVICES,
            "dtype": ("auto", *models.DTYPES),
            "engine": models.ENGINES,
            "quantize": QUANTIZE,
        }
        assert option.choices == allowed.get(option.key)
    for methods, option in ROWS:
        for choice in option.choices or ():
            KINDS[methods[0]](**{option.key: EARLY_STOPPING.get(choice, choice)})


def test_what_is_not_given_is_not_passed_on_and_what_makes_a_method_is() -> None:
    for method in ("greedy", "beam", "lookahead"):
        assert core_options(parse_arguments([PROMPT, "--method", method])) == {}
    assert core_options(parse_arguments([PROMPT])) == {}
    assert core_options(parse_arguments([PROMPT, "--method", "sample"])) == {"temperature": 1.0}
    assert core_options(parse_arguments([PROMPT, "--method", "sample", "--temperature", "0.5"])) == {"temperature": 0.5}
    assert core_options(parse_arguments([PROMPT, "--method", "diverse"])) == {
        "num_beam_groups": 5,
        "diversity_penalty": 1.0,
    }
    requested = parse_arguments([PROMPT, "--method", "diverse", "--num-beams", "4", "--diversity-penalty", "2"])
    assert core_options(requested) == {"num_beams": 4, "num_beam_groups": 4, "diversity_penalty": 2.0}


@pytest.mark.parametrize(("methods", "option"), ROWS, ids=lambda row: getattr(row, "flag", ""))
def test_each_option_reaches_the_core_with_each_method_that_knows_it(
    methods: tuple[str, ...], option: CommandOption
) -> None:
    for method in methods:
        mode = ["--mode", option.mode] if method == "lookahead" and option.mode else []
        found = core_options(parse_arguments([PROMPT, "--method", method, *mode, *words_for(option)]))
        value = "2" if option.kind is str else option.kind(2)
        value = EARLY_STOPPING.get(option.choices[-1], option.choices[-1]) if option.choices else value
        assert found[option.key] == ([value] if option.repeated else value)


def test_a_search_for_a_word_takes_the_budget_and_the_width_of_best_first() -> None:
    words = ["--towards", "sea", "--budget", "128", "--pass-width", "8"]
    assert core_options(parse_arguments([PROMPT, *words])) == {"towards": "sea", "budget": 128, "width": 8}


@pytest.mark.parametrize(("methods", "option"), ROWS, ids=lambda row: getattr(row, "flag", ""))
def test_an_option_of_another_method_is_refused_in_a_sentence(
    methods: tuple[str, ...], option: CommandOption, run: Run
) -> None:
    for method in METHODS.keys() - set(methods):
        ended = run(PROMPT, "--method", method, *words_for(option))
        assert (ended.status, ended.out) == (2, "")
        assert ended.err.startswith(f"{option.flag} is for ") and ended.err.count("\n") == 1
        assert all(name in ended.err for name in (*methods, method))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--seed", "3"], "--seed is for --mode sampled, and the mode is likely"),
        (["--mode", "forks", "--budget", "3"], "--budget is for --mode best_first, and the mode is forks"),
        (["--method", "beam", "--odds"], "--odds is for greedy and sample, and the method is beam"),
        (["--method", "greedy", "--samples", "2"], "--samples is for sample, and the method is greedy"),
        (["--tree"], "--tree is for beam and diverse, and the method is lookahead"),
        (["--method", "beam", "--all"], "--all is about the tree; give --tree as well"),
        (["--method", "guess"], "Argument --method: invalid choice: 'guess'"),
        (["--depth", "deep"], "Argument --depth: invalid int value: 'deep'"),
        (["--depth", "0"], "depth is 0, and must be a whole number from 1 to 100."),
        (["--method", "sample", "--top-p", "nan"], "top_p is nan, and must be a number"),
        (["--method", "sample", "--samples", "0"], "samples is 0, and must be a whole number from 1"),
        (["--width", "3"], "width is 3, and must be a whole number from 20"),
        (["--method", "beam", "--num-beams", "2", "--num-return-sequences", "3"], "num_return_sequences is 3, and"),
        (["--nonsense\x1b[31m"], "Unrecognized arguments: --nonsense\\x1b[31m"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_before_a_model_is_loaded(
    words: list[str], sentence: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookahead_core.command.model_loading.load", lambda requested: pytest.fail("loaded"))
    ended = run(PROMPT, *words)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(sentence) and ended.err.count("\n") == 1


def test_options_of_the_model_go_to_load_model_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[Any] = []

    def load(source: str | None, **options: Any) -> Model:
        assert options.pop("report") is terminal.report
        requested.append((source, options))
        raise ModelError("Not today.")

    monkeypatch.setattr(lookahead_core, "load_model", load)
    main([PROMPT])
    choices = ["--revision", "r", "--device", "cpu", "--dtype", "float32", "--engine", "cached"]
    main([PROMPT, "--model", "here", *choices])
    reported = {"revision": "r", "device": "cpu", "dtype": "float32", "engine": "cached"}
    assert requested == [(None, {}), ("here", reported)]
    main([PROMPT, "--device-map", '{"": "cpu"}', "--trust-remote-code"])
    assert requested[2:] == [(None, {"device_map": '{"": "cpu"}', "trust_remote_code": True})]


def test_a_model_that_drafts_is_put_beside_the_model_and_trusted_as_it_is(
    run: Run, tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words, trusted in (([], False), (["--trust-remote-code"], True)):
        requested: list[Any] = []

        def load(source: Any, requested: list[Any] = requested, **options: Any) -> Model:
            requested.append((source, options))
            return tiny_model

        monkeypatch.setattr("lookahead_core.command.model_loading.load", lambda requested: tiny_model)
        monkeypatch.setattr(lookahead_core, "load_model", load)
        words = [PROMPT, "--method", "greedy", "--max-new-tokens", "2", "--draft-model", "little", *words]
        assert main(words) == 0
        reported = {"device": "cpu", "dtype": "float32", "trust_remote_code": trusted, "report": terminal.report}
        assert requested == [("little", reported)]


def test_heads_and_texts_for_drafts_are_loaded_or_refused_with_a_sentence(
    run: Run, tiny_model: Model, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    greedy = ["--method", "greedy", "--max-new-tokens", "5"]
    for flag in ("--heads", "--corpus"):
        ended = run(PROMPT, *greedy, flag, str(empty))
        assert ended.status == 2 and "empty" in ended.err and ended.out == ""
    random_heads(tiny_model).save(tmp_path / FILE)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "one.txt").write_text("Once upon a time")
    ended = run(PROMPT, *greedy, "--heads", str(tmp_path), "--corpus", str(tmp_path / "texts"))
    assert ended.out == plain_text(tiny_model, max_new_tokens=5)


def test_a_token_id_may_end_a_text(run: Run, tiny_model: Model) -> None:
    ids = [step.token_id for step in Document(tiny_model, PROMPT).stream(max_new_tokens=12)]
    end = next(token_id for place, token_id in enumerate(ids) if place > 3 and token_id not in ids[:place])
    words = ["--method", "greedy", "--max-new-tokens", "12", "--stop-id", "399", "--stop-id", str(end)]
    ended = run(PROMPT, *words, "--verbose")
    assert ended.out == plain_text(tiny_model, max_new_tokens=ids.index(end) + 1)
    assert "; stop string or token reached; " in ended.err
    assert read(run(PROMPT, *words, "--json"))["options"]["stop_ids"] == [[399], [end]]
    refused = run(PROMPT, "--method", "greedy", "--stop-id", "-1")
    assert (refused.status, refused.out) == (2, "") and refused.err.startswith("stop_ids holds -1, and must hold")


def test_a_prompt_may_come_from_standard_input_without_its_last_line_break(run: Run, tiny_model: Model) -> None:
    expected = plain_text(tiny_model, "The sea 中文", max_new_tokens=5)
    for word in (["-"], []):
        for ending in ("", "\n", "\r\n"):
            stdin = f"The sea 中文{ending}".encode()
            assert run(*word, "--method", "greedy", "--max-new-tokens", "5", stdin=stdin).out == expected
    ended = run("-", stdin=b"\xff")
    assert (ended.status, ended.err) == (2, "Byte 0 of standard input is not UTF-8; give it as UTF-8.\n")


def test_a_prompt_may_be_empty(run: Run, tiny_model: Model) -> None:
    assert run("", "--method", "greedy").out == plain_text(tiny_model, "")
    assert run("").lines[0] == "''"


def test_without_a_prompt_a_terminal_gets_a_sentence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    ended = run()
    assert ended.status == 2 and ended.err.startswith("Give a text to continue, or - to read it")


# How it ends.


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (
            ModelError("There is no \x1b[31m such\nmodel: choose another."),
            2,
            "There is no \\x1b[31m such model: choose",
        ),
        (ValueError("This cannot be."), 2, "This cannot be."),
        (OSError(28, "No space left"), 2, "That could not be written or read: No space left."),
        (KeyError("inner"), 2, "An unexpected error has occurred, KeyError: 'inner'"),
        (KeyboardInterrupt(), 130, "Stopped."),
    ],
)
def test_every_error_is_a_sentence(
    error: BaseException, status: int, sentence: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(requested: Any) -> Model:
        raise error

    monkeypatch.setattr("lookahead_core.command.model_loading.load", fail)
    ended = run(PROMPT)
    assert (ended.status, ended.out) == (status, "")
    assert ended.err.startswith(sentence) and ended.err.count("\n") == 1


def test_an_interrupt_keeps_what_was_written(
    run: Run, tiny_model: Model, screen: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: Any, **options: Any) -> Iterator[Any]:
        yield from list(stream_batch(*given, **options))[:4]
        raise KeyboardInterrupt

    monkeypatch.setattr("lookahead_core.document.batch.stream_batch", interrupted)
    ended = run(PROMPT, "--method", "greedy", to=screen)
    written = terminal.visible(plain_text(tiny_model, max_new_tokens=4))
    assert (ended.status, ended.err) == (130, "Stopped.\n")
    assert screen.text == f"\x1b[2m{PROMPT}\x1b[0m{written}" + "\n" * (not written.endswith("\n"))


# Texts.


@pytest.mark.parametrize("method", STREAMS)
def test_a_stream_is_written_exactly_as_it_is(method: str, run: Run, tiny_model: Model) -> None:
    options = {} if method == "greedy" else {"temperature": 1.0, "seed": 3}
    words = [] if method == "greedy" else ["--seed", "3"]
    ended = run(PROMPT, "--method", method, *words)
    assert (ended.status, ended.out, ended.err) == (0, plain_text(tiny_model, **options), "")


def test_a_terminal_gets_the_prompt_faint_and_each_token_as_it_comes(
    run: Run, tiny_model: Model, screen: Terminal
) -> None:
    run(PROMPT, "--method", "greedy", "--max-new-tokens", "12", to=screen)
    text, so_far = f"\x1b[2m{PROMPT}\x1b[0m", []
    for step in Document(tiny_model, PROMPT).stream(max_new_tokens=12):
        text += terminal.visible(step.text)
        so_far.append(text)
    assert set(so_far) <= set(screen.came) and len(set(so_far)) > 6
    assert screen.text == text + "\n" * (not text.endswith("\n"))


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_where_colours_are_not_wanted_there_are_none(
    name: str, value: str, run: Run, screen: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    for words in (["--method", "greedy"], ["--method", "beam", "--tree"], []):
        run(PROMPT, *words, to=screen)
    assert PROMPT in screen.text and "\x1b" not in screen.text


def test_what_is_no_terminal_gets_no_escape_codes(run: Run) -> None:
    for words in (["--method", "greedy", "--odds"], ["--method", "beam", "--tree"], []):
        assert "\x1b" not in run(PROMPT, *words).out


def test_a_terminal_never_gets_a_control_character(run: Run, wild: Model, screen: Terminal) -> None:
    shown = " \\x1b[31mred\\x07\\r\\x9b2J\\u202eend\n\tline 中文🙂\n"
    run(WILD[0], "--method", "greedy", model=wild, to=screen)
    assert screen.text == f"\x1b[2mWild\x1b[0m{shown}"
    run(f"\x1b[2J{WILD[0]}", "--method", "greedy", model=wild, to=screen)
    assert screen.text.endswith(f"\x1b[2m\\x1b[2JWild\x1b[0m{shown}")
    for words in (["--method", "greedy", "--odds"], ["--method", "beam", "--tree"], ["--depth", "8"], ["--json"]):
        run(f"\x1b[2J{WILD[0]}", *words, model=wild, to=screen)
    assert not re.search(r"\x1b(?!\[[02]m)|[\x07\r\x9b\u202e]", screen.text)


def test_what_is_no_terminal_gets_control_characters_as_they_are(run: Run, wild: Model) -> None:
    assert run(WILD[0], "--method", "greedy", model=wild).out == "".join(WILD[1:])


def test_characters_that_the_output_has_no_code_for_are_written_out(run: Run, wild: Model) -> None:
    made = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="")
    assert run(WILD[0], "--method", "greedy", model=wild, to=made).status == 0
    assert made.buffer.getvalue().endswith(b"line \\u4e2d\\u6587\\U0001f642")  # type: ignore[attr-defined]


def samples(model: Model, count: int) -> list[str]:
    texts = [""] * count
    for index, step in stream_batch([Document(model, PROMPT)] * count, temperature=1.0, max_new_tokens=6):
        texts[index] += step.text
    return texts


def ended_line(text: str) -> str:
    return text + "\n" * (not text.endswith("\n"))


def test_several_samples_are_written_one_after_the_other(run: Run, tiny_model: Model) -> None:
    ended = run(PROMPT, "--method", "sample", "--samples", "3", "--max-new-tokens", "6")
    texts = samples(tiny_model, 3)
    assert len(set(texts)) == 3
    assert ended.out == "".join(f"{place} of 3\n{ended_line(text)}" for place, text in enumerate(texts, start=1))


def test_the_first_of_several_samples_comes_as_it_grows_and_those_behind_it_wait() -> None:
    @dataclass
    class Step:
        finish: str

    pairs: Any = [(0, Step("")), (1, Step("")), (1, Step("end")), (0, Step("end")), (2, Step("length"))]
    seen: list[int] = []
    before: list[int] = []

    def reported() -> Iterator[Any]:
        for pair in pairs:
            before.append(len(seen))
            yield pair

    for index, _ in text_output.in_order(reported(), 3):
        seen.append(index)
    assert seen == [0, 0, 1, 1, 2]
    assert before == [0, 1, 1, 1, 4], "how many had come out when each went in"


def test_with_odds_each_token_has_a_line(run: Run, tiny_model: Model) -> None:
    ended = run(PROMPT, "--method", "greedy", "--odds", "--max-new-tokens", "8", "--width", "120")
    steps = list(Document(tiny_model, PROMPT).stream(max_new_tokens=8))
    assert ended.lines[0].split() == ["token", "odds", "rank", "entropy", "first", "alternatives"]
    assert len(ended.lines) == 1 + len(steps)
    for step, line in zip(steps, ended.lines[1:], strict=True):
        second = next(one for one in step.alternatives if one.token_id != step.token_id)
        assert line.startswith(text_output.token_text(step.token_id, tiny_model))
        facts = [terminal.percent(math.exp(step.logprob)), "1", f"{step.entropy:.2f}"]
        facts += [text_output.token_text(second.token_id, tiny_model), terminal.percent(math.exp(second.logprob))]
        assert re.search(r"\s+".join(map(re.escape, facts)), line), line


def test_a_token_is_shown_by_its_text_its_bytes_its_end_or_its_number(tiny_model: Model, byte_tokenizer: Any) -> None:
    ids = byte_tokenizer("\U000e0041\n", add_special_tokens=False).input_ids
    assert text_output.token_text(ids[-1], tiny_model) == r"'\n'"
    assert text_output.token_text(ids[0], tiny_model) == r"b'\xf3'"
    assert [text_output.token_text(token_id, tiny_model) for token_id in (0, 1)] == ["end", "<1>"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--method", "greedy", "--max-new-tokens", "3"], "maximum length reached"),
        (["--method", "greedy", "--max-words", "1"], "maximum number of words reached"),
        (["--method", "greedy", "--stop", "l"], "stop string or token reached"),
        (["--method", "greedy"], "the model ended it"),
        (["--method", "beam", "--max-new-tokens", "3"], "3 levels"),
        ([], ""),
    ],
)
def test_verbose_tells_the_cost_and_why_it_is_over(words: list[str], reason: str, run: Run, wild: Model) -> None:
    ended = run(WILD[0], *words, "--verbose", model=wild)
    average = "; average token probability [0-9.]+ %" if "greedy" in words else ""
    reported = f"; {reason}" if reason else ""
    assert re.fullmatch(rf"\d+ passes, \d+ tokens, \d+\.\d\d s{reported}{average}\n", ended.err)
    assert run(WILD[0], *words, model=wild).err == ""


# Tables and trees.


def test_beams_are_a_table_best_first(run: Run, tiny_model: Model) -> None:
    ended = run(PROMPT, "--method", "beam", "--num-beams", "3", "--max-new-tokens", "6", "--width", "200")
    beams = Document(tiny_model, PROMPT).beam_search(num_beams=3, max_new_tokens=6).branches
    assert ended.lines[0].split() == ["score", "log-prob.", "average", "text"]
    for beam, line in zip(beams, ended.lines[1:], strict=True):
        assert line.split()[:2] == [f"{beam.score:.3f}", f"{beam.logprob:.3f}"]
        assert line.endswith(f"{beam.text!r}{'  end' * beam.ended}")


def test_tables_and_trees_mark_an_end_token(run: Run, wild: Model) -> None:
    message = "' 中文🙂'"
    ended = run("".join(WILD[:-1]), "--method", "beam", "--num-beams", "2", "--tree", model=wild)
    assert re.search(f"{message}  end$", ended.lines[1])
    assert re.search(r"─ +-\d\.\d+  end  returned$", ended.out, re.M)
    tree = run("".join(WILD[:-1]), "-k", "2", "--depth", "3", model=wild)
    assert re.search(f"├─ .* %  {message}  end$", tree.out, re.M)


def test_the_tree_of_a_search_shows_why_paths_were_dropped_and_outscored_ones_on_request_only(
    run: Run, tiny_model: Model
) -> None:
    words = [PROMPT, "--method", "beam", "--num-beams", "3", "--max-new-tokens", "6", "--width", "300", "--tree"]
    nodes = Document(tiny_model, PROMPT).beam_search(num_beams=3, max_new_tokens=6).tree
    assert {node.fate for node in nodes} >= {"grew", "outscored", "overtaken", "returned"}
    for more, unshown in (([], {"outscored"}), (["--all"], set[str]())):
        out = run(*words, *more).out
        tree = out[out.index(PROMPT) :]
        for fate in {node.fate for node in nodes} - {"grew"}:
            count = sum(node.fate == fate for node in nodes) * (fate not in unshown)
            assert len(re.findall(rf"─ .*  {re.escape(fate)}$", tree, re.M)) == count, fate
            assert (f"\n{fate}: {FATES[fate]}" in tree) == bool(count)


def test_dead_beams_are_faint(run: Run, screen: Terminal) -> None:
    run(PROMPT, "--method", "beam", "--num-beams", "3", "--max-new-tokens", "6", "--tree", "--width", "300", to=screen)
    lines = screen.text.splitlines()
    assert all(line.startswith("\x1b[2m") for line in lines if line.endswith("overtaken\x1b[0m"))
    assert any("overtaken\x1b[0m" in line for line in lines)
    assert all("\x1b" not in line for line in lines if line.endswith("returned"))


def test_diverse_beams_begin_apart(run: Run, tiny_model: Model) -> None:
    ended = run(PROMPT, "--method", "diverse", "--num-beams", "3", "--max-new-tokens", "4", "--json")
    options = {"num_beams": 3, "num_beam_groups": 3, "diversity_penalty": 1.0, "max_new_tokens": 4}
    beams = Document(tiny_model, PROMPT).beam_search(**options).branches
    assert [beam["token_ids"] for beam in json.loads(ended.out)["branches"]] == [list(one.token_ids) for one in beams]


def branch(*tokens: tuple[int, str, float], ended: bool = False) -> Branch:
    """A made branch of tokens: their ids, what they add, and how likely they are."""
    ids, logprobs = [token[0] for token in tokens], [math.log(token[2]) for token in tokens]
    pieces = [
        Piece(text, (token_id,), odds, place) for place, (token_id, text, odds) in enumerate(tokens, start=1) if text
    ]
    return Branch(tuple(ids), tuple(logprobs), tuple(pieces), 0.0, 0.0, ended)


def drawing(
    *branches: Branch, given: str = "", coverage: float = 0.71, width: int = 60, encoding: str = "utf-8"
) -> str:
    result = Lookahead(branches, coverage, Cost(8, 41, 0.5, 0, 0), given)
    screen = terminal.Screen(Terminal(encoding), colours=False, width=width)
    return "\n".join(text_output.lookahead_lines("Before\nit", result, screen))


BRANCHES = (
    branch((1, " a", 0.5), (2, " b", 0.9), (3, " c", 0.6), (4, " d", 0.9)),
    branch((1, " a", 0.5), (2, " b", 0.9), (5, "", 0.04), (6, "é", 1.0), ended=True),
    branch((7, " z", 0.2), (8, "", 0.9), ended=True),
    branch((9, "", 0.0002), ended=True),
)
TREE = """\
Before\\nit
├─   50 %  ' a b'
│  ├─   27 %  ' c d'
│  └─  1.8 %  'é'  end
├─   20 %  ' z'  end
└─ <0.1 %  end
these 4 hold 71 %; 8 passes, 41 tokens"""


def test_branches_are_drawn_as_a_tree_that_shares_their_beginnings() -> None:
    assert drawing(*BRANCHES) == TREE


def test_where_boxes_cannot_be_written_the_tree_is_ascii() -> None:
    ascii = TREE.replace("├─", "|-").replace("└─", "`-").replace("│", "|")
    assert drawing(*BRANCHES, encoding="ascii") == ascii


def test_equal_branches_and_those_that_stop_on_the_way_of_another_are_marked() -> None:
    short, long = branch((1, " a", 0.5)), branch((1, " a", 0.5), (2, " b", 0.5))
    assert "├─" not in drawing(short, short) and "└─   50 %  ' a'  × 2\n" in drawing(short, short)
    expected = "└─   50 %  ' a'  also stops here\n   └─   25 %  ' b'\n"
    assert expected in drawing(short, long) and expected in drawing(long, short)


def test_what_was_typed_stands_with_what_the_branches_hold(run: Run) -> None:
    line = drawing(short := branch((1, " a", 0.5)), given=" Bef").splitlines()[-1]
    assert line == "this 1 holds 71 % of what begins with ' Bef'; 8 passes, 41 tokens"
    assert short.text == " a"
    assert "of what begins with ' tim'" in run("Once upon a tim", "--heal").lines[-1]


def test_the_tree_of_a_model_has_every_branch_and_its_share(run: Run, tiny_model: Model) -> None:
    result = Document(tiny_model, PROMPT).lookahead(k=4, depth=3)
    ended = run(PROMPT, "-k", "4", "--depth", "3", "--width", "200")
    assert ended.lines[0] == PROMPT and len(ended.lines) == 6
    for branch, line in zip(result.branches, ended.lines[1:], strict=False):
        assert f"{terminal.percent(branch.share)}  {branch.text!r}" in line
    assert ended.lines[-1].startswith(f"these 4 hold {terminal.percent(result.coverage)}; ")


def test_what_is_too_long_for_a_line_is_cut_and_texts_never_are(run: Run, tiny_model: Model) -> None:
    prompt = PROMPT * 5
    for words in (["--depth", "40"], ["--method", "beam"], ["--method", "greedy", "--odds"]):
        lines = run(prompt, *words, "--width", "50").lines
        assert max(map(terminal.columns, lines)) == 50, words
        assert any(line.endswith("…") for line in lines)
    assert run(prompt, "--width", "50").lines[0] == "…" + prompt[-49:]
    assert run(prompt, "--method", "greedy", "--width", "20").out == plain_text(tiny_model, prompt)


def test_the_width_is_the_terminals_without_the_option(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    assert max(map(terminal.columns, run(PROMPT, "--depth", "40").lines[1:-1])) == 44


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("中文字", 6, "中文字"),
        ("中文字", 5, "中文…"),
        ("e\u0301e\u0301", 2, "e\u0301e\u0301"),
    ],
)
def test_wide_characters_take_two_columns_and_accents_none(text: str, room: int, shown: str) -> None:
    assert terminal.cut(text, room) == shown


@pytest.mark.parametrize(
    ("text", "columns"),
    [("", 0), ("abc", 3), ("中a", 3), ("ｱＡ", 3), ("e\u0301", 1), ("a\u200db", 2), ("e\u20dd", 1), ("🙂", 2)],
)
def test_columns_are_counted_by_character(text: str, columns: int) -> None:
    assert terminal.columns(text) == columns


def test_a_file_that_knows_no_encoding_gets_all_signs() -> None:
    screen = terminal.Screen(io.StringIO(), colours=True)
    assert (screen.ellipsis, screen.fork, screen.last, screen.beside) == ("…", "├─ ", "└─ ", "│  ")
    assert not screen.is_terminal and not screen.colours


def test_percentages_have_about_two_digits() -> None:
    shares = (1.0, 0.996, 0.71, 0.0996, 0.0994, 0.0006, 0.0004, 0.0)
    assert [*map(terminal.percent, shares)] == ["100 %", "100 %", "71 %", "10 %", "9.9 %", "0.1 %", "<0.1 %", "<0.1 %"]


# JSON.


def read(ended: Ended) -> dict[str, Any]:
    """The document; there is nothing else, and nothing that is not JSON."""
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.isascii() and ended.out.count("\n") == 1
    return json.loads(ended.out, parse_constant=lambda name: pytest.fail(name))


def test_a_stream_as_json(run: Run, tiny_model: Model) -> None:
    found = read(run(PROMPT, "--method", "greedy", "--max-new-tokens", "5", "--json", "--stop", "中"))
    stream = Document(tiny_model, PROMPT).stream(max_new_tokens=5)
    steps = list(stream)
    assert (found["prompt"], found["method"], found["text"]) == (PROMPT, "greedy", stream.text)
    assert (found["token_ids"], found["finish"]) == (stream.token_ids, stream.finish)
    for step, reported in zip(steps, found["steps"], strict=True):
        assert [reported[name] for name in ("token_id", "text", "rank")] == [step.token_id, step.text, step.rank]
        odds = [step.logprob, step.chance, step.entropy]
        assert [reported[name] for name in ("logprob", "chance", "entropy")] == pytest.approx(odds)
        assert reported["alternatives"][0].keys() == {"token_id", "text", "logprob"}
    assert found["cost"]["passes"] == 5 and found["cost"].keys() == {field.name for field in fields(Cost)}
    assert found["model"]["dtype"] == "float32" and found["model"]["engine"] == "cached"
    assert (found["options"]["max_new_tokens"], found["options"]["stop"]) == (5, ["中"])


def test_samples_as_json_are_a_list_however_many(run: Run, tiny_model: Model) -> None:
    for count in (1, 3):
        words = ["--method", "sample", "--samples", str(count), "--max-new-tokens", "6", "--json"]
        found = read(run(PROMPT, *words))
        assert [sample["text"] for sample in found["samples"]] == samples(tiny_model, count)


def test_describe_tells_which_model_is_loaded_and_how_it_computes(run: Run, tiny_model: Model) -> None:
    lines = run("--describe").out.splitlines()
    assert lines == tiny_model.describe(details=True).splitlines()
    assert lines[0] == tiny_model.describe() and lines[1:] == tiny_model.computation.lines()
    assert re.match(r"(all passes|passes of .* rows): .", lines[1])
    assert "--describe takes no text" in run("--describe", PROMPT).err


def test_beams_as_json(run: Run, tiny_model: Model) -> None:
    found = read(run(PROMPT, "--method", "beam", "--max-new-tokens", "4", "--early-stopping", "true", "--json"))
    beams = Document(tiny_model, PROMPT).beam_search(max_new_tokens=4, early_stopping=True)
    for beam, reported in zip(beams.branches, found["branches"], strict=True):
        assert (reported["text"], reported["token_ids"], reported["ended"]) == (
            beam.text,
            list(beam.token_ids),
            beam.ended,
        )
        assert [reported["score"], reported["logprob"]] == pytest.approx([beam.score, beam.logprob])
    assert [(node["parent"], node["fate"]) for node in found["tree"]] == [
        (node.parent, node.fate) for node in beams.tree
    ]
    assert all(node["reason"] == FATES[node["fate"]] for node in found["tree"])
    assert found["options"]["early_stopping"] is True and found["cost"]["passes"] == beams.cost.passes


def test_a_lookahead_as_json(run: Run, tiny_model: Model) -> None:
    found = read(run(PROMPT, "-k", "3", "--ban", "9", "--ban", "7", "--json"))
    result = Document(tiny_model, PROMPT).lookahead(k=3, banned={7, 9})
    for branch, reported in zip(result.branches, found["branches"], strict=True):
        assert (reported["text"], reported["token_ids"], reported["ended"]) == (
            branch.text,
            list(branch.token_ids),
            branch.ended,
        )
        odds = [*branch.logprobs, branch.share, branch.probability]
        assert [*reported["logprobs"], reported["share"], reported["probability"]] == pytest.approx(odds)
    assert found["coverage"] == pytest.approx(result.coverage)
    assert found["options"]["banned"] == [7, 9] and found["cost"]["passes"] == result.cost.passes


def test_numbers_that_are_none_are_null_in_json() -> None:
    made = {"a": (-math.inf, [math.nan]), "b": frozenset({2, 1}), "c": True, "d": None, "e": 0.5}
    assert json_safe(made) == {"a": [None, [None]], "b": [1, 2], "c": True, "d": None, "e": 0.5}


# Progress.


def test_progress_goes_to_a_terminal_on_standard_error_and_is_wiped(
    run: Run, tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("COLUMNS", "30")
    terminal.report("Loading \x1b[31mTiny", 0.5)
    assert screen.text == "\rLoading \\x1b[31mTiny 50 %".replace(" %", "%").ljust(30) + "\rLoading \\x1b[31mTiny 50%"
    run(PROMPT)
    assert "Starting" in screen.text and "\x1b" not in screen.text
    assert screen.text.endswith("\r" + " " * 29 + "\r")


# Real processes.


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny model and its tokenizer, saved."""
    place = tmp_path_factory.mktemp("tiny")
    tokenizer = byte_level(CORPUS)
    tiny_llama(len(tokenizer), max_position_embeddings=8192).save_pretrained(place)
    tokenizer.save_pretrained(place)
    return str(place)


def _heed_interrupts() -> None:
    """What a shell has put into the background is told to ignore them, and so is all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.slow
def test_a_real_terminal_gets_the_text_as_it_comes_and_keeps_it_when_interrupted(folder: str) -> None:
    words = ["--method", "greedy", "--min-new-tokens", "6000", "--max-new-tokens", "6000", "--dtype", "float32"]
    command = [sys.executable, "-m", "lookahead_core", PROMPT, "--model", folder, *words]
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    master, slave = pty.openpty()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=slave,
        stdout=slave,
        stderr=subprocess.PIPE,
        preexec_fn=_heed_interrupts,
    )
    os.close(slave)
    head = f"\x1b[2m{PROMPT}\x1b[0m".encode()
    came = b""
    while len(came) < len(head) + 50:
        came += os.read(master, 100)
    assert process.poll() is None and came.startswith(head)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    os.close(master)
    assert process.returncode == 130 and err.endswith(b"Stopped.\n") and b"Traceback" not in err


def test_a_pipe_that_is_closed_while_text_comes_ends_it_quietly(run: Run) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as pipe:
        assert run(PROMPT, "--method", "greedy", to=pipe) == Ended(0, "", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_full_disk_is_a_sentence(run: Run) -> None:
    with open("/dev/full", "w") as full:
        ended = run(PROMPT, "--method", "greedy", to=full)
    assert ended == Ended(2, "", "That could not be written or read: No space left on device.\n")


def test_a_pipe_that_is_closed_before_anything_comes_leaves_no_complaint_at_the_end() -> None:
    words = [sys.executable, "-m", "lookahead_core", "--help"]
    reading, writing = os.pipe()
    os.close(reading)
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    ended = subprocess.run(words, cwd=ROOT, env=buffered, stdout=writing, stderr=subprocess.PIPE, timeout=300)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("method", "options"), [("greedy", StreamOptions), ("beam", BeamOptions), ("lookahead", LookaheadOptions)]
)
def test_the_defaults_that_the_help_names_are_those_of_the_library(method: str, options: Any) -> None:
    defaults = {field.name: field.default for field in fields(options)} | {"early_stopping": "false"}
    named = [
        (option.key, option.default)
        for methods, listed in CORE_OPTIONS.items()
        for option in listed
        if method in methods and option.default is not None
    ]
    assert len(named) > 5
    assert named == [(name, defaults[name]) for name, _ in named]
