"""The check of a folder before it is pushed to a Space: this repository passes, broken folders are refused."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import gradio
import pytest

from interface.check_space import front_matter, platforms, problems, requirements
from interface.check_space.__main__ import main as check_space_command
from interface.check_space.resolution import index_options
from interface.check_space.resolution import problems as resolution_problems

ROOT = Path(__file__).parents[3]
CARD = """\
---
title: Example
emoji: 🌿
sdk: gradio
sdk_version: 6.31.0
python_version: "3.12"
app_file: app.py
---
# Example
"""
OWN = "/".join(["", "home", "me"])
"""A folder of one computer. Written in one piece, this file would be refused."""
APP = "import gradio as gr\nwith gr.Blocks() as demo:\n    gr.Markdown('Hello')\n"
DOCUMENTED = """\
title emoji colorFrom colorTo header fullWidth thumbnail short_description pinned tags sdk sdk_version python_version
app_file app_port base_path startup_duration_timeout preload_from_hub models datasets suggested_hardware hf_oauth
hf_oauth_scopes hf_oauth_expiration_minutes hf_oauth_authorized_org disable_embedding custom_headers
"""
"""The fields in the Hub's configuration reference of Spaces, August 2026."""


@pytest.fixture
def space(tmp_path: Path) -> Path:
    """A folder that starts as a Space."""
    (tmp_path / "README.md").write_text(CARD, encoding="utf-8")
    (tmp_path / "requirements.txt").write_text("gradio==6.31.0\ntorch>=2.10  # any\n\n# a comment\n")
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def edit(file: str, old: str, new: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        text = (folder / file).read_text(encoding="utf-8")
        assert old in text
        (folder / file).write_text(text.replace(old, new), encoding="utf-8")

    return change


def write(file: str, content: str) -> Callable[[Path], object]:
    return lambda folder: (folder / file).write_text(content, encoding="utf-8")


BROKEN: dict[str, Callable[[Path], object]] = {
    "README.md cannot be read: FileNotFoundError.": lambda folder: (folder / "README.md").unlink(),
    "README.md does not begin with a block of YAML between two lines of ---.": write("README.md", "# Example\n"),
    "The front matter of README.md is not valid YAML": edit("README.md", "title: Example", "title: [Example"),
    "The front matter of README.md has no fields.": write("README.md", "---\n- a\n---\n"),
    "The front matter has no app_file.": edit("README.md", "app_file: app.py\n", ""),
    "The front matter has colour, which is not a field of Spaces.": edit("README.md", "emoji: 🌿", "colour: red"),
    "python_version in the front matter is '3.11', and must be": edit("README.md", '"3.12"', '"3.11"'),
    "python_version in the front matter is 3.1, and must be": edit("README.md", '"3.12"', "3.10"),
    "app_file in the front matter is '/srv/app.py', and must be": edit("README.md", "app.py", "/srv/app.py"),
    "emoji in the front matter is 'leaf', and must be one emoji.": edit("README.md", "🌿", "leaf"),
    "short_description in the front matter is": edit("README.md", "emoji: 🌿", f"short_description: {'long ' * 13}"),
    "suggested_hardware in the front matter is 'gpu', and": edit("README.md", "emoji: 🌿", "suggested_hardware: gpu"),
    "There is no requirements.txt.": lambda folder: (folder / "requirements.txt").unlink(),
    "Line 1 of requirements.txt is 'gradio=6': it is not a requirement.": write("requirements.txt", "gradio=6\n"),
    "Line 1 of requirements.txt is '-r dev.txt': a Space's build has no other file": write(
        "requirements.txt", "-r dev.txt\n"
    ),
    "Line 2 of requirements.txt is './wheels/own.whl': it names a path": write(
        "requirements.txt", "torch>=2.10\n./wheels/own.whl\n"
    ),
    "requirements.txt allows no torch that shared GPUs have": edit("requirements.txt", ">=2.10", "==2.13.0"),
    "requirements.txt allows no gradio 6.31.0, which is the sdk_version": edit("requirements.txt", "6.31.0", "5.50.0"),
    "There is no app.py, which app_file in the front matter names.": lambda folder: (folder / "app.py").unlink(),
    "Line 1 of app.py has an absolute path of one computer.": write("app.py", f'PATH = "{OWN}/model"\n'),
    "large.bin has 11 MiB: outside Git LFS the Hub takes files of up to 10 MiB.": lambda folder: (
        folder / "large.bin"
    ).write_bytes(bytes(11 * 1024**2)),
    "weights is a link to a file outside of the folder.": lambda folder: (folder / "weights").symlink_to(ROOT),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_broken_folder_is_refused_for_its_reason_and_no_other(space: Path, reason: str) -> None:
    BROKEN[reason](space)
    (problem,) = problems(space)
    assert problem.startswith(reason)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (APP, None),
        (APP.replace("demo", "page"), "app.py has no `demo` that is a gr.Blocks: it is NoneType."),
        ("import torhc\n", "app.py cannot be imported: ModuleNotFoundError: No module named 'torhc'."),
        ("import os\nos.environ['LOOKAHEAD_MODEL']\n", "app.py cannot be imported: KeyError: 'LOOKAHEAD_MODEL'."),
    ],
)
def test_an_app_file_is_imported_as_a_space_would(
    space: Path, code: str, reason: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOKAHEAD_MODEL", "of this computer")
    (space / "app.py").write_text(code)
    assert list(problems(space)) == ([reason] if reason else [])


@pytest.mark.slow
def test_this_repository_starts_as_a_space() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "interface.check_space", "."], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.endswith(": ready for a Space\n")


def test_the_command_prints_the_problems_and_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["check_space", str(tmp_path / "none"), "--resolve"])
    assert check_space_command() == 1
    printed = capsys.readouterr()
    assert printed.err.strip().endswith("none is not a folder.") and printed.out == "none: 1 problem\n"


def test_the_front_matter_has_documented_fields_with_valid_values_and_a_python_of_shared_gpus() -> None:
    fields = front_matter.read(ROOT / "README.md")
    assert list(front_matter.problems(fields)) == []
    # `license` is a field of every repository of the Hub.
    assert set(front_matter.FIELDS) - {"license"} == set(DOCUMENTED.split())
    assert fields["python_version"] in platforms.SHARED_GPU_PYTHON
    assert fields["sdk_version"] == gradio.__version__


def test_requirements_allow_two_versions_of_torch_that_shared_gpus_have() -> None:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    parsed = [requirements.requirement(line) for line in lines if line and not line.startswith("#")]
    assert requirements.allowed(parsed, "torch", platforms.SHARED_GPU_TORCH) == ["2.10.0", "2.11.0"]
    assert list(requirements.problems(ROOT / "requirements.txt", "6.31.0")) == []


def test_only_files_that_git_tracks_are_checked_where_there_is_git(space: Path) -> None:
    BROKEN["large.bin has 11 MiB: outside Git LFS the Hub takes files of up to 10 MiB."](space)
    for words in (["init", "-q"], ["add", "README.md", "app.py", "requirements.txt"]):
        subprocess.run(["git", "-C", space, *words], check=True)
    write("app.py", "import nothing_of_that_name\n")(space)
    (problem,) = problems(space)
    assert "nothing_of_that_name" in problem


CONFIGURATION = r"""
:env:.cert='/etc/certificates.crt'
:env:.find-links='/wheels'
global.extra-index-url='file:///one/simple file:///two/simple'
global.find-links='/replaced'
install.index-url='https://index.example/simple'
"""


def test_uv_gets_the_indexes_of_pip() -> None:
    extra = ["--extra-index-url", "file:///one/simple", "--extra-index-url", "file:///two/simple"]
    assert index_options(CONFIGURATION) == [
        *extra, "--find-links", "/wheels", "--index-url", "https://index.example/simple",
    ]  # fmt: skip
    assert index_options("global.no-index='true'\n" + CONFIGURATION) == ["--no-index", "--find-links", "/wheels"]
    assert index_options("") == []


def wheel(folder: Path, name: str, version: str, *needs: str, python: str = ">=3.10") -> None:
    """Write a wheel without code, for the resolver."""
    import zipfile

    info = f"{name}-{version}.dist-info"
    lines = [
        f"Name: {name}",
        f"Version: {version}",
        f"Requires-Python: {python}",
        *(f"Requires-Dist: {n}" for n in needs),
    ]
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{info}/METADATA", "\n".join(["Metadata-Version: 2.1", *lines, ""]))
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def test_requirements_without_a_solution_for_a_python_and_a_torch_are_refused_for_these(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for version in ("2.10.0", "2.11.0", "2.13.0"):
        wheel(tmp_path, "torch", version)
    wheel(tmp_path, "library", "1.0", "torch>=2.11")
    wheel(tmp_path, "library", "2.0", python=">=3.12")
    file, index = tmp_path / "requirements.txt", ["--no-index", "--find-links", str(tmp_path)]
    file.write_text("torch>=2.10\nlibrary==1.0\n")
    found = [re.sub(r": .*", "", problem) for problem in resolution_problems(file, index)]
    sentence = "requirements.txt has no solution for Python {} with torch 2.10.0"
    assert found == [sentence.format("3.10"), sentence.format("3.12")]
    # Markers are those of the Python that is asked for, not of the one that runs this test.
    file.write_text('torch>=2.10\nlibrary==2.0; python_version >= "3.12"\n')
    capsys.readouterr()
    assert list(resolution_problems(file, index)) == []
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("Python 3.10 with torch 2.10.0: 1 packages, torch 2.10.0")
    assert printed[5].startswith("Python 3.12 with the newest torch: 2 packages, torch 2.13.0")
