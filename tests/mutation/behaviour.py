"""Whether two sources can behave differently: wording, types, help texts and docstrings do not count."""

from __future__ import annotations

import ast
from typing import Any

WORDING = {"help", "description", "metavar", "prog", "epilog"}
"""Arguments of calls that only hold text for people."""
CACHES = {"cache", "lru_cache", "cached_property", "overload", "override"}
"""Decorators that change how long something takes, or nothing."""
CHECKS = {("zip", "strict"), ("dataclass", "frozen"), ("dataclass", "slots")}
"""Arguments that only check for programming errors; correct code behaves the same without them."""
BLANK = ast.Constant(value=None)


def same_behaviour(before: str, after: str) -> bool:
    """Whether two sources differ in wording, annotations and the like only."""
    return _bare(before) == _bare(after)


def compiles(source: str) -> bool:
    try:
        compile(source, "changed", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def _bare(source: str) -> str:
    return ast.dump(_Bare().visit(ast.parse(source)))


class _Bare(ast.NodeTransformer):
    """Replace everything that only people and type checkers read by a blank constant."""

    def visit_FunctionDef(self, node: Any) -> ast.AST:
        node.returns = None
        node.decorator_list = [each for each in node.decorator_list if _called(each) not in CACHES]
        node.body = _without_docstring(node.body)
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = _without_docstring(node.body)
        return self.generic_visit(node)

    def visit_Module(self, node: ast.Module) -> ast.AST:
        node.body = _without_docstring(node.body)
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = BLANK
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        if isinstance(node.exc, ast.Call):
            node.exc = node.exc.func
        node.cause = None
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        node.msg = None
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        if _called(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if any(_called(target) == "__all__" for target in node.targets):
            node.value = BLANK
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        for keyword in node.keywords:
            if keyword.arg in WORDING or (_called(node.func), keyword.arg) in CHECKS:
                keyword.value = BLANK
        if _called(node.func) in ("warn", "TypeVar", "cast"):
            node.args = [BLANK for _ in node.args]
        return self.generic_visit(node)


def _called(node: ast.AST) -> str:
    """The last part of a name: `cache` of `functools.cache`, `@cache` and `cache(...)`."""
    if isinstance(node, ast.Call):
        return _called(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _without_docstring(body: list[Any]) -> list[Any]:
    """Strings that stand alone are documentation: of a module, a class, a function or a field."""
    kept = [each for each in body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    return kept or [ast.Pass()]
