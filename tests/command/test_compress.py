"""The command `compress`: the kept text on standard output, figures and errors on standard error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lookahead_core
from lookahead_core import Model, compress
from lookahead_core.command import terminal
from lookahead_core.command.main import main
from tests.analysis.test_compression import TEXT

PROGRAM = "python -m lookahead_core compress"


@pytest.fixture
def run(
    tiny_model: Model, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Calls the command in this process; the model is there already."""

    def called(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(lookahead_core, "load_model", lambda name, **options: tiny_model)
        try:
            status = main(["compress", *words])
        except SystemExit as ending:
            status = int(str(ending.code))
        return status, *capsys.readouterr()

    return called


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "report.txt"
    path.write_bytes(TEXT.encode())
    return str(path)


def test_the_kept_text_is_written_and_nothing_else(run: Any, file: str, tiny_model: Model) -> None:
    for words, ratio in (([], 0.25), (["--ratio", "0.5"], 0.5)):
        assert run(file, *words) == (0, f"{compress(tiny_model, TEXT, ratio).text}\n", "")


def test_figures_go_to_standard_error(run: Any, file: str, tiny_model: Model) -> None:
    status, out, err = run(file, "--ratio", "0.5", "--verbose")
    found = compress(tiny_model, TEXT, 0.5)
    assert (status, out) == (0, f"{found.text}\n")
    assert err.startswith(f"{found.tokens_after:,} of {found.tokens_before:,} tokens kept; ")
    assert "tokens evaluated in 1 pass, " in err


def test_the_result_as_json(run: Any, file: str, tiny_model: Model) -> None:
    status, out, err = run(file, "--ratio", "0.5", "--json")
    answer, found = json.loads(out), compress(tiny_model, TEXT, 0.5)
    assert (status, err, answer["method"]) == (0, "", "compress")
    assert answer["text"] == found.text and answer["options"] == {"ratio": 0.5}
    assert [TEXT[span["start"] : span["end"]] for span in answer["spans"] if span["kept"]] == [
        TEXT[span.start : span.end] for span in found.kept
    ]
    assert answer["cost"]["tokens"] <= 1.05 * answer["tokens_before"]


def test_a_text_is_read_from_standard_input(run: Any, monkeypatch: pytest.MonkeyPatch, tiny_model: Model) -> None:
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{TEXT}\n".encode())))
    assert run("-") == (0, f"{compress(tiny_model, TEXT).text}\n", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--ratio", "2"], "ratio is 2.0, and must be a number more than 0, and at most 1."),
        (["--ratio", "nan"], "ratio is nan, and must be a number more than 0, and at most 1."),
        (["--ratio", "much"], f"Argument --ratio: invalid float value: 'much'; see {PROGRAM} --help."),
    ],
)  # fmt: skip
def test_a_wrong_ratio_is_a_sentence(run: Any, file: str, words: list[str], sentence: str) -> None:
    assert run(file, *words) == (2, "", f"{sentence}\n")


def test_a_file_that_cannot_be_read_is_a_sentence(run: Any, tmp_path: Path) -> None:
    missing = tmp_path / "none.txt"
    sentence = f"That could not be written or read: {missing}: No such file or directory.\n"
    assert run(str(missing)) == (2, "", sentence)
    wrong = tmp_path / "latin.txt"
    wrong.write_bytes(b"caf\xe9 au lait")
    assert run(str(wrong)) == (2, "", f"Byte 3 of {wrong} is not UTF-8; give it as UTF-8.\n")
    wrong.write_bytes(b"")
    assert run(str(wrong)) == (2, "", "There is no text to shorten yet: write or paste one.\n")


def test_reading_shows_its_progress_after_each_pass_and_can_be_interrupted(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / "long.txt"
    long.write_text(TEXT * 15, encoding="utf-8")
    reported: list[tuple[str, float | None]] = []
    monkeypatch.setattr(terminal, "report", lambda *words: reported.append((*words, None)[:2]))
    assert run(str(long))[0] == 0
    shares = [share for sentence, share in reported if sentence == "Reading" and share is not None]
    assert len(shares) > 3 and shares == sorted(shares) and shares[-1] == 1
    assert 0 < shares[0] < 0.5, "the first pass reads a part of the text"

    def interrupt(sentence: str, share: float | None = None) -> None:
        if share is not None:
            raise KeyboardInterrupt

    monkeypatch.setattr(terminal, "report", interrupt)
    assert run(str(long)) == (130, "", "Stopped.\n")
