"""Mutation testing on a package of one file, where the changes that tests notice are known beforehand."""

from __future__ import annotations

import shutil
import subprocess
from itertools import islice
from pathlib import Path

import pytest
from cosmic_ray.mutating import mutate_code

from tests.mutation import __main__ as command
from tests.mutation import trial
from tests.mutation.behaviour import compiles, same_behaviour
from tests.mutation.changes import LEFT_OUT, draw, files_to_change
from tests.mutation.operators import DeleteStatement, operators
from tests.mutation.reach import _promising_first
from tests.mutation.records import Records, Test, _lines_then
from tests.mutation.report import Result
from tests.mutation.trial import Fate

PRODUCT = """
from __future__ import annotations

LIMIT = 10


def larger(a: int | None, b: int) -> int:
    return a if a > b else b


def within(number: int) -> bool:
    return number < LIMIT


def called_but_not_checked(number: int) -> int:
    return number + 7


def never_called(number: int) -> int:
    return -number


def countdown(number: int) -> None:
    while number:
        number -= 1
"""

TESTS = """
from lookahead_core.small import called_but_not_checked, countdown, larger, within


def test_larger():
    assert larger(5, 3) == larger(3, 5) == 5


def test_within():
    assert within(9) and not within(10)


def test_nothing():
    called_but_not_checked(1)
    countdown(4)


def test_that_fails_in_any_case():
    called_but_not_checked(1)
    assert False
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    for file, text in {"lookahead_core/small.py": PRODUCT, "tests/test_small.py": TESTS}.items():
        (root / file).parent.mkdir()
        (root / file).write_text(text)
    (root / ".gitignore").write_text("__pycache__\n.mutation\n")
    (root / "tests/__init__.py").touch()
    shutil.copytree(Path(__file__).parent, root / "tests/mutation", ignore=shutil.ignore_patterns("test_*"))
    subprocess.run(["git", "init", "--quiet", root], check=True)
    return root


@pytest.fixture(scope="module")
def results(repository: Path) -> list[Result]:
    """What became of every possible change of the small package."""
    patch = pytest.MonkeyPatch()
    found: list[Result] = []
    with patch.context() as patched:
        patched.setattr(trial, "SLACK", 2.0)
        patched.setattr(command, "report", lambda results: found.extend(results) or "")
        words = ["--changes", "1000", "--folder", str(repository / ".mutation")]
        assert command.main(words, root=repository, imports=()) == 0
    return found


def test_the_files_that_are_left_out_exist() -> None:
    root = Path(__file__).parents[2]
    assert [name for name in LEFT_OUT if not (root / name).is_file()] == []
    assert not set(LEFT_OUT) & set(files_to_change(root))


def fates(results: list[Result], old: str) -> dict[str, Fate]:
    """The fates of the changes of one line, by what it became."""
    number = PRODUCT.splitlines().index(old) + 1
    chosen = [(change, verdict.fate) for change, verdict in results if change.line == number]
    return {change.after.splitlines()[number - 1].strip(): fate for change, fate in chosen}


@pytest.mark.slow
def test_a_change_that_a_test_checks_is_caught(results: list[Result]) -> None:
    assert set(fates(results, "    return a if a > b else b").values()) == {Fate.CAUGHT}
    assert set(fates(results, "    return number < LIMIT").values()) == {Fate.CAUGHT}


@pytest.mark.slow
def test_a_changed_constant_is_tested_by_the_tests_of_its_users(results: list[Result]) -> None:
    assert set(fates(results, "LIMIT = 10").values()) == {Fate.CAUGHT}


@pytest.mark.slow
def test_a_change_that_no_test_checks_survives(results: list[Result]) -> None:
    found = fates(results, "    return number + 7")
    assert found and set(found.values()) == {Fate.SURVIVED}


@pytest.mark.slow
def test_a_line_that_no_test_executes_is_unreached(results: list[Result]) -> None:
    assert set(fates(results, "    return -number").values()) == {Fate.UNREACHED}


@pytest.mark.slow
def test_an_endless_loop_times_out(results: list[Result]) -> None:
    assert Fate.TIMED_OUT in fates(results, "        number -= 1").values()


@pytest.mark.slow
def test_a_change_of_a_type_is_not_drawn(results: list[Result]) -> None:
    assert not fates(results, "def larger(a: int | None, b: int) -> int:")


@pytest.mark.slow
def test_the_repository_is_left_as_it_was(repository: Path, results: list[Result]) -> None:
    assert (repository / "lookahead_core/small.py").read_text() == PRODUCT
    assert not list((repository / ".mutation").glob("copy-*"))


def test_separators_between_parameters_are_not_changed(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text("def f(a, *, b):\n    return a * b\n")
    assert {change.spec.start_pos for change in draw(tmp_path, ["small.py"], 1)} == {(2, 13)}


def test_a_seed_always_draws_the_same_changes(repository: Path) -> None:
    def drawn(seed: int) -> list[str]:
        return [change.key for change in islice(draw(repository, ["lookahead_core/small.py"], seed), 10)]

    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_the_order_of_changes_does_not_depend_on_other_lines(tmp_path: Path) -> None:
    def drawn(source: str) -> list[tuple[str, str]]:
        (tmp_path / "small.py").write_text(source)
        changes = draw(tmp_path, ["small.py"], 1)
        return [(change.spec.operator_name, change.spec.definition_name or "") for change in changes]

    more = "def first(a):\n    return a * 2\n\n\n"
    assert [
        each for each in drawn(more + PRODUCT.replace("from __future__ import annotations", "")) if each[1] != "first"
    ] == drawn(PRODUCT)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(a: int | str): pass", "def f(a: int & str): pass"),
        ("def f(a) -> int | str: pass", "def f(a) -> int & str: pass"),
        ("class A:\n    field: int | str = 1", "class A:\n    field: int & str = 1"),
        ("raise ValueError(f'{1 + 1}') from error", "raise ValueError(f'{1 - 1}') from None"),
        ("parser.add_argument('--a', help='1' + '2')", "parser.add_argument('--a', help='1' * '2')"),
        ("@lru_cache(maxsize=2)\ndef f(): pass", "def f(): pass"),
        ("zip(a, b, strict=True)", "zip(a, b, strict=False)"),
        ("'''A docstring.'''\na = 1", "a = 1"),
    ],
)
def test_messages_and_types_do_not_count_as_behaviour(before: str, after: str) -> None:
    assert same_behaviour(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("raise ValueError('a')", "raise KeyError('a')"),
        ("a = 1 + 1", "a = 1 - 1"),
        ("field: int = 1", "field: int = 2"),
        ("parser.add_argument('--a', default=1)", "parser.add_argument('--a', default=2)"),
        ("if a: pass", "if not a: pass"),
    ],
)
def test_statements_and_values_count_as_behaviour(before: str, after: str) -> None:
    assert not same_behaviour(before, after)


def test_a_change_that_is_invalid_python_is_not_drawn() -> None:
    assert compiles("def f(*, a): pass")
    assert not compiles("def f(-, a): pass")


@pytest.mark.parametrize("example", DeleteStatement.examples(), ids=lambda example: example.pre_mutation_code.strip())
def test_a_statement_is_replaced_by_pass(example: object) -> None:
    assert mutate_code(example.pre_mutation_code, DeleteStatement(), 0) == example.post_mutation_code


@pytest.mark.parametrize(
    "kept", ["a = 1\n", "a: int = 1\n", "'''A docstring.'''\n", "def f():\n    return 1\n", "pass\n"]
)
def test_a_statement_that_every_test_needs_is_not_removed(kept: str) -> None:
    assert mutate_code(kept, DeleteStatement(), 0) is None


def test_absurd_operators_are_left_out() -> None:
    names = operators()
    assert "core/ReplaceBinaryOperator_Add_Sub" in names
    assert "core/ReplaceBinaryOperator_Add_Pow" not in names
    assert "lookahead/DeleteStatement" in names


def test_the_tests_in_all_folders_are_recorded_and_kept_apart(tmp_path: Path) -> None:
    for file in ("tests/test_a.py", "tests/text/test_a.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    records = Records(tmp_path, tmp_path / "records")
    outdated = records.outdated()
    assert [file for file, _ in outdated] == ["tests/test_a.py", "tests/text/test_a.py"]
    assert len({records._path(part, "json") for part in outdated}) == 2


def test_a_line_is_found_again_after_the_source_changed() -> None:
    then = "first\nsecond\nthird\n"
    assert _lines_then(then, "new\nfirst\nsecond\nthird\n")[1:] == [{1}, {2}, {3}]
    # What is new or changed counts as the lines around it.
    assert _lines_then(then, "first\nother\nthird\n")[1] == {1, 2, 3}


def test_tests_of_different_kinds_come_before_many_of_one_kind() -> None:
    names = ["test_a.py::test_many[1]", "test_a.py::test_many[2]", "test_a.py::test_many[3]", "test_a.py::test_other"]
    tests = [Test(name, seconds, {}) for name, seconds in zip(names, (1.0, 1.1, 1.2, 2.0), strict=True)]
    assert [test.name for test in _promising_first(tests)] == [names[0], names[3], names[1], names[2]]
