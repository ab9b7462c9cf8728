"""What the command writes: text as it comes, tokens with their odds, tables, small trees, and JSON.

A terminal never gets a control character that a model wrote; anything that is no terminal gets texts as they are.
"""

from __future__ import annotations

import itertools
import math
import re
import shutil
import sys
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lookahead_core.analysis.agreement import Check
    from lookahead_core.document.results import BeamNode, Beams, Branch, Cost, Lookahead
    from lookahead_core.document.stream import StreamStep
    from lookahead_core.model import Model

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What would move a terminal's cursor, change its colours or turn its lines around; line breaks and tabs may stay."""
FINISHES = {
    "end": "the model ended it",
    "length": "as long as it may be",
    "stop": "a string or token that ends it has come",
    "words": "it has all its words",
}
"""Why a stream is over, in words."""
FEWEST_COLUMNS = 12
"""So much of a text is shown, however narrow the terminal."""
ALTERNATIVES = 3


def visible(text: str) -> str:
    """The text with its control characters written out, as `\\x1b`."""
    return UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(map(_column, text))


def _column(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, room: int, more: str = "…") -> str:
    """As much of a text as so many columns hold."""
    if columns(text) <= room:
        return text
    kept = sum(width <= room - len(more) for width in itertools.accumulate(map(_column, text)))
    return text[:kept] + more


def percent(share: float) -> str:
    if share < 0.0005:
        return "<0.1 %"
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"


class Screen:
    """Where the command writes: a terminal, or something that takes texts as they are."""

    def __init__(self, file: IO[str], *, colours: bool, width: int | None = None) -> None:
        self.file = file
        self.is_terminal = file.isatty()
        self.colours = colours and self.is_terminal
        self.width = width or shutil.get_terminal_size().columns
        self.more, self.fork, self.last, self.beside = self._signs()
        self._ends = "\n"

    def write(self, text: str, *, faint: bool = False) -> None:
        """Some text, now."""
        if text:
            shown = visible(text) if self.is_terminal else text
            self.file.write(self.faint(shown) if faint else shown)
            self.file.flush()
            self._ends = text[-1]

    def line(self, line: str) -> None:
        """A whole line, in which control characters are written out already."""
        self.file.write(f"{line}\n")
        self.file.flush()

    def end_line(self) -> None:
        if self._ends != "\n":
            self.write("\n")

    def faint(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self.colours else text

    def quoted(self, text: str, room: int) -> str:
        """A text in quotes, which show its spaces, everything unseen written out."""
        return cut(repr(text), max(room, FEWEST_COLUMNS), self.more)

    def _signs(self) -> tuple[str, str, str, str]:
        try:
            "…├└│─".encode(getattr(self.file, "encoding", None) or "utf-8")
        except UnicodeError:
            return "...", "|- ", "`- ", "|  "
        return "…", "├─ ", "└─ ", "│  "


def report(sentence: str, fraction: float | None = None) -> None:
    """How far loading has come, on one line of a terminal that the next report takes; without a sentence, none."""
    if sys.stderr.isatty():
        room = shutil.get_terminal_size().columns - 1
        said = cut(visible(sentence) + ("" if fraction is None else f" {fraction:.0%}"), room)
        sys.stderr.write(f"\r{said}{' ' * (room - columns(said))}\r{said}")
        sys.stderr.flush()


def told(cost: Cost) -> str:
    return f"{cost.passes} passes, {cost.tokens} tokens"


def told_average(texts: Iterable[Sequence[StreamStep]]) -> str:
    """The average token probability of each text."""
    from lookahead_core.document.results import average_probability

    averages = (average_probability([step.logprob for step in steps]) for steps in texts)
    return f"average token probability {', '.join(map(percent, averages))}"


def in_order(pairs: Iterable[tuple[int, StreamStep]], count: int) -> Iterator[tuple[int, StreamStep]]:
    """The steps of texts that grow side by side, one text after the other; those of the first as they come."""
    held: list[deque[StreamStep]] = [deque() for _ in range(count)]
    front = 0
    for index, step in pairs:
        held[index].append(step)
        while front < count and held[front]:
            step = held[front].popleft()
            yield front, step
            front += bool(step.finish)


class Writer:
    """Writes streams as they come: their text, or a line for each token."""

    def __init__(self, screen: Screen, prompt: str, count: int, model: Model | None = None) -> None:
        """With a model, tokens are shown with their odds."""
        self.screen = screen
        self.prompt = prompt
        self.count = count
        self.model = model
        self._begun = -1

    def hear(self, index: int, step: StreamStep) -> None:
        if index != self._begun:
            self._begin(index)
        if self.model is None:
            self.screen.write(step.text)
        else:
            self.screen.line(odds_line(step, self.model, self.screen))
        if step.finish and self.count > 1:
            self.screen.end_line()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        """However it ends, what comes next on a terminal begins on a line of its own."""
        if self.screen.is_terminal:
            self.screen.end_line()

    def _begin(self, index: int) -> None:
        self._begun = index
        if self.count > 1:
            self.screen.line(self.screen.faint(f"{index + 1} of {self.count}"))
        if self.model is not None:
            self.screen.line(self.screen.faint(cut(_ODDS_HEAD, self.screen.width, self.screen.more)))
        elif self.screen.is_terminal:
            self.screen.write(self.prompt, faint=True)


_ODDS_HEAD = f"{'token':20}{'odds':>8}{'rank':>7}{'entropy':>9}  first alternatives"


def odds_line(step: StreamStep, model: Model, screen: Screen) -> str:
    """A token, how likely it was, how many were likelier, how undecided the model was, and what else could come."""
    token = cut(token_text(step.token_id, model), 19, screen.more)
    facts = f"{percent(math.exp(step.logprob)):>8}{step.rank:>7,}{step.entropy:>9.2f}  "
    others = (one for one in step.alternatives if one.token_id != step.token_id)
    told = (
        f"{token_text(one.token_id, model)} {percent(math.exp(one.logprob))}"
        for one in itertools.islice(others, ALTERNATIVES)
    )
    line = token + " " * (20 - columns(token)) + facts + "  ".join(told)
    return cut(line, screen.width, screen.more)


def token_text(token_id: int, model: Model) -> str:
    """A token in quotes; as bytes, where they are no whole characters; an end, or a number, where it has no text."""
    spelled = model.codec.bytes_of(token_id)
    if not spelled:
        return "end" if token_id in model.end_token_ids else f"<{token_id}>"
    try:
        return repr(spelled.decode())
    except UnicodeDecodeError:
        return repr(spelled)


@dataclass(eq=False, slots=True)
class TreeRow:
    """A token of a tree to be drawn: how much it weighs, what it adds, and what is to be said of it."""

    weight: float = 0.0
    text: str = ""
    note: str = ""
    faint: bool = False
    children: dict[int, TreeRow] = field(default_factory=dict)
    stops: int = 0
    """How many branches stop here."""

    def straight(self) -> TreeRow:
        """It and what follows it up to the next fork, as one: it weighs as much as its first token."""
        text, twig = self.text, self
        while len(twig.children) == 1 and not twig.note:
            (twig,) = twig.children.values()
            text += twig.text
        return TreeRow(self.weight, text, twig.note, twig.faint, twig.children)


def drawn(top: TreeRow, weighed: Callable[[float], str], screen: Screen) -> Iterator[str]:
    """What hangs below the top, heaviest first, a line for each way from fork to fork."""
    waiting = _hung(top, "", screen)
    while waiting:
        twig, sign, below = waiting.pop()
        yield _twig_line(twig, f"{sign}{weighed(twig.weight)}  ", screen)
        waiting += _hung(twig, below, screen)


def _hung(twig: TreeRow, before: str, screen: Screen) -> list[tuple[TreeRow, str, str]]:
    """The ways from a fork, the last first: each with what its line begins with, and those below it."""
    ways = sorted((child.straight() for child in twig.children.values()), key=lambda way: way.weight)
    last, fork = (screen.last, " " * len(screen.last)), (screen.fork, screen.beside)
    signs = [last, *[fork] * (len(ways) - 1)]
    return [(way, before + sign, before + below) for way, (sign, below) in zip(ways, signs, strict=False)]


def _twig_line(twig: TreeRow, before: str, screen: Screen) -> str:
    room = screen.width - columns(before) - len(twig.note) - 2
    text = screen.quoted(twig.text, room) if twig.text or not twig.note else ""
    line = before + "  ".join(filter(None, (text, twig.note)))
    return screen.faint(line) if twig.faint else line


def lookahead_lines(prompt: str, result: Lookahead, screen: Screen) -> Iterator[str]:
    """Branches as a tree that shares their beginnings, what they hold together, and what they cost."""
    yield screen.faint(_end_of(prompt, screen))
    yield from drawn(_grown(result.branches), lambda share: f"{percent(share):>6}", screen)
    yield f"{_held(result)}; {told(result.cost)}"


def _end_of(prompt: str, screen: Screen) -> str:
    """As much of the end of the prompt as a line holds."""
    shown = re.sub("[\n\t]", lambda found: repr(found[0])[1:-1], visible(prompt))
    return cut(shown[::-1], screen.width, screen.more)[::-1] or "''"


def _held(result: Lookahead) -> str:
    count = len(result.branches)
    held = f"{'this' if count == 1 else 'these'} {count} {'holds' if count == 1 else 'hold'} {percent(result.coverage)}"
    return f"{held} of what begins with {result.given!r}" if result.given else held


def _grown(branches: Iterable[Branch]) -> TreeRow:
    top = TreeRow()
    for branch in branches:
        twig, texts = top, {piece.tokens: piece.text for piece in branch.pieces}
        for place, token_id in enumerate(branch.token_ids, start=1):
            share = math.exp(math.fsum(branch.logprobs[:place]))
            twig = twig.children.setdefault(token_id, TreeRow(share, texts.get(place, "")))
        twig.stops += 1
        twig.note = "  ".join(filter(None, ("end" * branch.ended, f"× {twig.stops}" * (twig.stops > 1))))
    for twig in _all(top):
        if twig.stops and twig.children:
            twig.note = "also stops here"
    return top


def _all(top: TreeRow) -> Iterator[TreeRow]:
    waiting = [top]
    while waiting:
        twig = waiting.pop()
        yield twig
        waiting += twig.children.values()


def beam_lines(beams: Beams, screen: Screen) -> Iterator[str]:
    """A table of what a beam search found, best first; `average` is the average token probability."""
    yield screen.faint(f"{'score':>9}{'log-prob.':>11}{'average':>9}  text")
    for beam in beams.branches:
        end = "  end" * beam.ended
        figures = f"{beam.score:>9.3f}{beam.logprob:>11.3f}{percent(beam.average_probability):>9}  "
        yield f"{figures}{screen.quoted(beam.text, screen.width - len(figures) - len(end))}{end}"


def beam_tree_lines(prompt: str, beams: Beams, every: bool, screen: Screen) -> Iterator[str]:
    """The tree of a beam search, with what became of each path; with `every`, of all candidates."""
    from lookahead_core.strategies.beam import OUTSCORED

    shown = {place: node for place, node in enumerate(beams.tree) if every or node.fate != OUTSCORED}
    yield ""
    yield screen.faint(_end_of(prompt, screen))
    yield from drawn(_searched(shown), lambda total: f"{total:8.3f}", screen)
    for fate, reason in {node.fate: node.reason for node in shown.values() if _note(node)}.items():
        yield screen.faint(f"{fate}: {reason}")


def _searched(nodes: Mapping[int, BeamNode]) -> TreeRow:
    from lookahead_core.strategies.beam import GREW, RETURNED

    top = TreeRow()
    twigs: dict[int | None, TreeRow] = {None: top}
    for place, node in nodes.items():
        faint = node.fate not in (GREW, RETURNED)
        twigs[place] = twigs[node.parent].children[place] = TreeRow(node.total, node.text, _note(node), faint)
    return top


def _note(node: BeamNode) -> str:
    """What became of a path, where it did not simply go on."""
    from lookahead_core.strategies.beam import GREW

    return "  ".join(filter(None, ("end" * node.ended, node.fate * (node.fate != GREW))))


def agreement_lines(prompts: Sequence[str], checks: Sequence[Check], model: Model, screen: Screen) -> Iterator[str]:
    """For each prompt how many tokens of the smaller model's text the model agrees with, and where they part."""
    for prompt, check in zip(prompts, checks, strict=True):
        yield screen.faint(_end_of(prompt, screen))
        figures = f"{check.agreed} of {len(check.token_ids)} tokens agree: "
        agreed = _spelled(prompt, check.token_ids[: check.agreed], model)
        yield figures + screen.quoted(agreed, screen.width - len(figures))
        if check.instead is not None:
            instead, written = (token_text(one, model) for one in (check.instead, check.token_ids[check.agreed]))
            yield cut(f"then {instead}, where the smaller model wrote {written}", screen.width, screen.more)
    count, passes = len(checks), checks[0].big_passes
    agree = f"{'text agrees' if count == 1 else 'texts agree'} in full"
    yield f"{sum(check.stands for check in checks)} of {count} {agree}; checked in {passes} pass{'es' * (passes != 1)}"


def _spelled(prompt: str, token_ids: Sequence[int], model: Model) -> str:
    """The whole characters that tokens add to a prompt."""
    from lookahead_core.text.passage import TextEnd

    spot, text = TextEnd(model.codec, b"", at_start=not prompt), ""
    for token_id in token_ids:
        piece, spot = spot.decode(token_id)
        text += piece
    return text


def check_as_json(prompt: str, check: Check) -> dict[str, Any]:
    return {"prompt": prompt, **_taken(check, ("text", "token_ids", "agreed", "stands", "instead"))}


def model_facts(model: Model) -> dict[str, Any]:
    engine = "uncached" if model.engine_reason else "cached"
    return {"name": model.name, "device": model.device, "dtype": model.dtype, "engine": engine}


def facts(cost: Cost, model: Model, options: Any) -> dict[str, Any]:
    """What stands in every document: the cost, the model, and all options as they held."""
    return {
        "cost": asdict(cost),
        "model": model_facts(model),
        "options": {each.name: getattr(options, each.name) for each in fields(options)},
    }


def stream_as_json(steps: list[StreamStep]) -> dict[str, Any]:
    from lookahead_core.document.results import average_probability

    return {
        "text": "".join(step.text for step in steps),
        "token_ids": [step.token_id for step in steps],
        "finish": steps[-1].finish,
        "average_probability": average_probability([step.logprob for step in steps]),
        "steps": [_step_as_json(step) for step in steps],
    }


def _step_as_json(step: StreamStep) -> dict[str, Any]:
    names = ("token_id", "text", "logprob", "chance", "rank", "entropy")
    return {**_taken(step, names), "alternatives": [asdict(one) for one in step.alternatives]}


def beams_as_json(beams: Beams) -> dict[str, Any]:
    shown = ("text", "token_ids", "score", "logprob", "average_probability", "ended")
    names = ("parent", "token_id", "text", "logprob", "total", "step", "ended", "fate", "reason")
    return {
        "branches": [_taken(beam, shown) for beam in beams.branches],
        "tree": [_taken(node, names) for node in beams.tree],
        "steps": beams.steps,
    }


def lookahead_as_json(result: Lookahead) -> dict[str, Any]:
    names = ("text", "token_ids", "logprobs", "share", "probability", "ended", "healed")
    return {
        "branches": [_taken(branch, names) for branch in result.branches],
        **_taken(result, ("coverage", "given", "seen_from")),
    }


def _taken(thing: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names}
