"""`python -m tests.support.draw_docstrings --count 30 --seed 1`: random docstrings to be judged without their code.

Prints the name, the signature and the docstring of functions, methods and classes of `lookahead_core` and `interface`.
A reader says what each takes, returns and guarantees, and then compares the answer with the code.
"""

from __future__ import annotations

import argparse
import ast
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]


def documented(path: Path) -> Iterator[tuple[str, str]]:
    """(signature, docstring) of each documented function, method and class of a file, nested functions left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    waiting = [(node, "") for node in tree.body]
    while waiting:
        node, owner = waiting.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        text = ast.get_docstring(node)
        if isinstance(node, ast.ClassDef):
            waiting += [(member, f"{owner}{node.name}.") for member in node.body]
            signature = class_signature(node, owner)
            text = text and "\n".join([text, *field_docstrings(node)])
        else:
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
            signature = f"{decorators(node)}{kind} {owner}{node.name}({ast.unparse(node.args)}){returns}"
        if text:
            yield f"{path.relative_to(ROOT)}: {signature}", text


def decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    """The decorators as written, each followed by a space."""
    return "".join(f"@{ast.unparse(decorator)} " for decorator in node.decorator_list)


def field_docstrings(node: ast.ClassDef) -> list[str]:
    """A line for each annotated field that is followed by a docstring, as pages made from the code show them."""
    lines = []
    for field, following in pairwise(node.body):
        is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        if isinstance(field, ast.AnnAssign) and is_text:
            lines.append(f"  {ast.unparse(field.target)}: {following.value.value}")  # type: ignore[attr-defined]
    return lines


def class_signature(node: ast.ClassDef, owner: str) -> str:
    """A class as an editor shows it: its bases, and the arguments of its constructor or its annotated fields."""
    bases = ", ".join(map(ast.unparse, node.bases))
    made = [member for member in node.body if isinstance(member, ast.FunctionDef) and member.name == "__init__"]
    fields = [ast.unparse(member) for member in node.body if isinstance(member, ast.AnnAssign)]
    arguments = ast.unparse(made[0].args).removeprefix("self, ") if made else ", ".join(fields)
    return f"{decorators(node)}class {owner}{node.name}({bases}), made from ({arguments})"


def main() -> None:
    """Print the drawn docstrings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=30, help="how many (30)")
    parser.add_argument("--seed", type=int, default=1, help="which (1)")
    options = parser.parse_args()
    files = sorted(file for package in ("lookahead_core", "interface") for file in (ROOT / package).rglob("*.py"))
    found = [entry for file in files for entry in documented(file)]
    for number, (signature, text) in enumerate(random.Random(options.seed).sample(found, options.count), 1):
        print(f"{number}. {signature}\n    " + text.replace("\n", "\n    ") + "\n")


if __name__ == "__main__":
    main()
