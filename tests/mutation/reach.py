"""Which tests reach a line, the most promising first."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from tests.mutation.records import Record, Test

Functions = (ast.FunctionDef, ast.AsyncFunctionDef)


class Reach:
    """Finds the tests that a change of a line can be noticed by."""

    def __init__(self, records: Iterable[Record], sources: Mapping[str, str]) -> None:
        self._records = list(records)
        self._sources = sources
        self._trees = {path: ast.parse(source) for path, source in sources.items()}
        self._mentions: dict[str, set[tuple[str, int]]] = defaultdict(set)
        for path, tree in self._trees.items():
            for name, line in _names(tree):
                self._mentions[name].add((path, line))

    def tests(self, path: str, line: int) -> list[Test]:
        """The tests that execute the statement around a line, the cheapest and those of different kinds first.

        What is executed when a module is imported (a constant, a default, a decorator) is reached by every test:
        there, the tests count that execute a line which mentions the name defined. The same holds for functions
        that no test executes, since they may be compiled (TorchScript).
        """
        statements = _around(self._trees[path], line)
        function = next((each for each in statements if isinstance(each, Functions)), None)
        inside = function is not None and line >= function.body[0].lineno
        found = self._executing(path, _header(statements[-1])) if inside else set()
        if not found and not (inside and self._executing(path, _whole(function))):
            found = self._mentioning(statements)
            found |= self._executing(path, _whole(function)) if function else set()
        if not found and not inside:
            found = self._executing(path, range(1, len(self._sources[path].splitlines()) + 1))
        return _promising_first(found)

    def _mentioning(self, statements: list[ast.stmt]) -> set[Test]:
        names = next((names for each in reversed(statements) if (names := _defined(each))), set())
        places = {place for name in names for place in self._mentions[name]}
        return {test for path, line in places for test in self._executing(path, [line])}

    def _executing(self, path: str, lines: Iterable[int]) -> set[Test]:
        source = self._sources[path]
        return {test for line in lines for each in self._records for test in each.reaching(path, line, source)}


def _promising_first(tests: Iterable[Test]) -> list[Test]:
    """Cheap tests first; of one function with many parameters, each further one counts as so much dearer."""
    counts: Counter[str] = Counter()
    costs: dict[Test, float] = {}
    for test in sorted(tests, key=lambda test: (test.alone, test.name)):
        function = test.name.partition("[")[0]
        counts[function] += 1
        costs[test] = test.alone * counts[function]
    return sorted(costs, key=lambda test: (costs[test], test.name))


def _around(tree: ast.Module, line: int) -> list[ast.stmt]:
    """The statements around a line, from the outermost to the innermost."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and line in _whole(node):
            found.append(node)
    return sorted(found, key=lambda node: len(_whole(node)), reverse=True)


def _whole(node: ast.stmt) -> range:
    decorators = getattr(node, "decorator_list", [])
    return range(min([node.lineno, *(each.lineno for each in decorators)]), (node.end_lineno or node.lineno) + 1)


def _header(node: ast.stmt) -> range:
    """The lines of a statement before the statements inside it."""
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    first = getattr(body[0], "lineno", None) or body[0].pattern.lineno if body else _whole(node).stop
    return range(_whole(node).start, max(first, node.lineno + 1))


def _defined(node: ast.stmt) -> set[str]:
    """The names that a statement gives a meaning."""
    if isinstance(node, (*Functions, ast.ClassDef)):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return {each.id for target in targets if target for each in ast.walk(target) if isinstance(each, ast.Name)}


def _names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every name in a source, with its line."""
    for node in ast.walk(tree):
        name = (
            getattr(node, "id", None)
            or getattr(node, "attr", None)
            or (node.arg if isinstance(node, ast.keyword) else None)
        )
        if name:
            yield name, node.lineno
