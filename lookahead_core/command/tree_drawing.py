"""Trees drawn with lines of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from lookahead_core.command.terminal import Screen, columns


@dataclass(eq=False, slots=True)
class TreeRow:
    """A node of a tree to draw: a token's text, its weight, and a note at the end of its line."""

    weight: float = 0.0
    """Siblings are drawn in the order of their weights, largest first."""
    text: str = ""
    note: str = ""
    faint: bool = False
    children: dict[int, TreeRow] = field(default_factory=dict)
    stops: int = 0
    """Number of branches that end at this node."""

    def straight(self) -> TreeRow:
        """Return a new node with the joined texts of this one and its descendants down to the next fork, note or leaf.

        It has this node's weight, and the note, colour and children of the last of them.
        """
        text, row = self.text, self
        while len(row.children) == 1 and not row.note:
            (row,) = row.children.values()
            text += row.text
        return TreeRow(self.weight, text, row.note, row.faint, row.children)


def tree_lines(root: TreeRow, format_weight: Callable[[float], str], screen: Screen) -> Iterator[str]:
    """Yield the lines of the tree below the root, depth first, the heaviest child first.

    A line is a run of nodes as `TreeRow.straight` joins them: a run ends at a fork, a note or a leaf. `format_weight`
    makes the text of a weight, with which each line begins after the tree's signs. The root itself has no line. Texts
    are quoted and cut to the screen's width.
    """
    waiting = _children(root, "", screen)
    while waiting:
        row, sign, indent = waiting.pop()
        yield _line(row, f"{sign}{format_weight(row.weight)}  ", screen)
        waiting += _children(row, indent, screen)


def _children(row: TreeRow, indent: str, screen: Screen) -> list[tuple[TreeRow, str, str]]:
    """Return a row's children, each joined by `TreeRow.straight`, the lightest first, with the beginnings of lines.

    The first string is the beginning of the child's own line, the second that of the lines of its descendants. Both
    start with `indent`.
    """
    children = sorted((child.straight() for child in row.children.values()), key=lambda child: child.weight)
    last, fork = (screen.last, " " * len(screen.last)), (screen.fork, screen.beside)
    signs = [last, *[fork] * (len(children) - 1)]
    return [(child, indent + sign, indent + below) for child, (sign, below) in zip(children, signs, strict=False)]


def _line(row: TreeRow, beginning: str, screen: Screen) -> str:
    room = screen.width - columns(beginning) - len(row.note) - 2
    text = screen.quoted(row.text, room) if row.text or not row.note else ""
    line = beginning + "  ".join(filter(None, (text, row.note)))
    return screen.faint(line) if row.faint else line
