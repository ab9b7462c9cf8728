"""The mutation operators in use: plausible mistakes from cosmic-ray, and the deletion of a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from cosmic_ray.operators.operator import Argument, Example, Operator
from cosmic_ray.plugins import OPERATOR_PROVIDERS, get_operator, operator_names
from parso.python.tree import Name

LEFT_OUT = re.compile(
    # Between numbers or tensors these raise a TypeError or give absurd values, which any test notices.
    r"core/ReplaceBinaryOperator_(Add|Sub|Mul|Div|FloorDiv|Mod|Pow)_(Pow|RShift|LShift|BitOr|BitAnd|BitXor|Mod)$"
    r"|core/ReplaceBinaryOperator_(RShift|LShift|BitOr|BitAnd|BitXor)_(Add|Sub|Mul|Div|FloorDiv|Mod|Pow)$"
    # Of two small numbers, True or False, identity and equality are the same.
    r"|core/ReplaceComparisonOperator_(Eq|NotEq|Lt|LtE|Gt|GtE)_(Is|IsNot)$"
    r"|core/ReplaceComparisonOperator_(Is|IsNot)_(Eq|NotEq|Lt|LtE|Gt|GtE)$"
    # Python's syntax has no such thing for most values.
    r"|core/ReplaceUnaryOperator_\w+_(UAdd|Invert|Not)$"
)
"""Operators of cosmic-ray that are not used: a share of them would only make the figures look better."""


class DeleteStatement(Operator):
    """Replace a statement by `pass`: a call, an assignment to a field or an item, `raise`, `del`, an early `return`.

    What any test notices stays: an assignment to a plain name (the next line raises a NameError without it), and the
    last `return` of a function.
    """

    def mutation_positions(self, node: Any) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        if node.type == "simple_stmt" and _deletable(node.children[0]):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        statement = node.children[0]
        node.children[0] = Name("pass", statement.start_pos, prefix=statement.get_first_leaf().prefix)
        return node

    @classmethod
    def arguments(cls) -> Sequence[Argument]:
        return ()

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (
            Example("self.seconds = 0\n", "pass\n"),
            Example("items.clear()\n", "pass\n"),
            Example("total += 1\n", "pass\n"),
            Example("if a:\n    return 1\n", "if a:\n    pass\n"),
        )


def _deletable(statement: Any) -> bool:
    if statement.type == "expr_stmt":
        target, operator = statement.children[:2]
        return operator.type != "annassign" and (target.type == "atom_expr" or operator.get_code().strip() != "=")
    if statement.type == "keyword":
        return statement.value == "continue"
    if statement.type == "return_stmt":
        return statement.parent.parent.parent.type != "funcdef"
    return statement.type in ("atom_expr", "raise_stmt", "del_stmt")


class _Provider(dict[str, type[Operator]]):
    """The form in which cosmic-ray takes further operators."""


OPERATOR_PROVIDERS["lookahead"] = _Provider(DeleteStatement=DeleteStatement)


def operators() -> dict[str, Operator]:
    """The operators in use, by the name that cosmic-ray's work database keeps."""
    classes = {name: get_operator(name) for name in operator_names() if not LEFT_OUT.match(name)}
    return {name: each() for name, each in classes.items() if not each.arguments()}
