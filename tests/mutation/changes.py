"""Changes of source files, drawn at random: equal seeds draw equal changes from unchanged code."""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.work_item import MutationSpec

from tests.mutation.behaviour import compiles, same_behaviour
from tests.mutation.operators import operators

PACKAGES = ("lookahead_core", "interface")
_CPU = "lookahead_core/engines/cpu"
LEFT_OUT = tuple(f"{_CPU}/{name}.py" for name in ("compiled_layers", "llvm_layers", "llvm_kernels", "llvm_builder"))
"""The compiled layers: a changed code generator can crash the process instead of failing a test."""


@dataclass(frozen=True)
class Change:
    """One change of one file."""

    key: str
    """A stable key: equal for the same change of the same line in every run with one seed."""
    spec: MutationSpec
    before: str
    after: str

    @property
    def path(self) -> str:
        return self.spec.module_path.as_posix()

    @property
    def line(self) -> int:
        return self.spec.start_pos[0]

    @property
    def diff(self) -> str:
        lines = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), self.path, self.path, lineterm="", n=2
        )
        return "\n".join(lines)


def files_to_change(root: Path, chosen: Iterable[str] = ()) -> list[str]:
    """The files of the product that begin with one of these names, or all, without the compiled layers."""
    names = (path.relative_to(root).as_posix() for package in PACKAGES for path in (root / package).rglob("*.py"))
    starts = tuple(chosen) or PACKAGES
    return sorted(name for name in names if name not in LEFT_OUT and name.startswith(starts))


def draw(root: Path, files: Iterable[str], seed: int) -> Iterator[Change]:
    """All changes in random order, at most one for each place in a file.

    Every place is as likely as any other, however many operators apply to it. The order is that of a hash of the
    seed and the line, so that a change elsewhere leaves it as it is.
    """
    places: list[tuple[str, list[MutationSpec]]] = []
    sources = {file: (root / file).read_text(encoding="utf-8") for file in files}
    for file, source in sources.items():
        places += _places(file, source, seed)
    for key, specs in sorted(places, key=lambda place: place[0]):
        change = _first_that_changes_behaviour(key, specs, sources[specs[0].module_path.as_posix()])
        if change:
            yield change


def _first_that_changes_behaviour(key: str, specs: list[MutationSpec], source: str) -> Change | None:
    for spec in sorted(specs, key=lambda spec: _hash(key, spec.operator_name, spec.occurrence)):
        after = mutate_code(source, operators()[spec.operator_name], spec.occurrence)
        if after is not None and compiles(after) and not same_behaviour(source, after):
            return Change(_hash(key, spec.operator_name, after), spec, source, after)
    return None


def _places(file: str, source: str, seed: int) -> Iterator[tuple[str, list[MutationSpec]]]:
    """Every place in a file where an operator applies: a key to order it by, and the changes possible there."""
    found: dict[tuple[tuple[int, int], tuple[int, int]], list[MutationSpec]] = defaultdict(list)
    for spec in _specs(file, source):
        found[spec.start_pos, spec.end_pos].append(spec)
    lines = source.splitlines()
    equal: Counter[tuple[object, ...]] = Counter()
    for position, specs in sorted(found.items()):
        (row, column), _ = position
        what = (specs[0].definition_name, lines[row - 1].strip(), column, len(specs))
        yield _hash(seed, file, *what, equal[what]), specs
        equal[what] += 1


def _specs(file: str, source: str) -> Iterator[MutationSpec]:
    """All that cosmic-ray could change in a file, as its own command `init` lists it."""
    nodes = list(ast_nodes(get_ast(source)))
    for name, operator in operators().items():
        positions = ((node, start, end) for node in nodes for start, end in operator.mutation_positions(node))
        for occurrence, (node, start, end) in enumerate(positions):
            if node.parent and node.parent.type == "parameters":
                continue  # a lone `*` or `/` between parameters is no product or quotient
            yield MutationSpec(file, name, occurrence, start, end, definition_name=ASTQuery(node).get_definition_name())


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
