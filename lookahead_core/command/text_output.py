"""Results as text for people: streams as they grow, tokens with their probabilities, tables and trees."""

from __future__ import annotations

import itertools
import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lookahead_core.command.terminal import Screen, columns, cut, percent, visible
from lookahead_core.command.tree_drawing import TreeRow, tree_lines

if TYPE_CHECKING:
    from lookahead_core.analysis.agreement import Check
    from lookahead_core.document.results import BeamNode, Beams, Branch, Cost, Lookahead
    from lookahead_core.document.stream import StreamStep
    from lookahead_core.model import Model

FINISHES = {
    "end": "the model ended it",
    "length": "maximum length reached",
    "stop": "stop string or token reached",
    "words": "maximum number of words reached",
}
"""Why a stream has ended, as an English phrase, by `StreamStep.finish`."""
ALTERNATIVES = 3
"""Number of other tokens in a line of `--odds`."""
_ODDS_HEAD = f"{'token':20}{'odds':>8}{'rank':>7}{'entropy':>9}  first alternatives"


def cost_phrase(cost: Cost) -> str:
    """Return passes and tokens as a phrase such as "3 passes, 40 tokens"."""
    return f"{cost.passes} passes, {cost.tokens} tokens"


def average_phrase(texts: Iterable[Sequence[StreamStep]]) -> str:
    """Return a phrase such as "average token probability 41 %, 38 %", with one percentage per text.

    Each text is the steps of one stream, at least one; the average is the geometric mean of the model's probabilities.
    """
    from lookahead_core.document.results import average_probability

    averages = (average_probability([step.logprob for step in steps]) for steps in texts)
    return f"average token probability {', '.join(map(percent, averages))}"


def in_order(pairs: Iterable[tuple[int, StreamStep]], count: int) -> Iterator[tuple[int, StreamStep]]:
    """Yield the steps of `count` streams that grow side by side, with their stream's index, one stream after another.

    Steps of the first stream that has not ended are yielded as they come; those of a later stream are held until all
    before it have ended, by a step with a `finish`.
    """
    held: list[deque[StreamStep]] = [deque() for _ in range(count)]
    front = 0
    for index, step in pairs:
        held[index].append(step)
        while front < count and held[front]:
            step = held[front].popleft()
            yield front, step
            front += bool(step.finish)


class StreamWriter:
    """A context manager that writes streams to a screen: their text, or one line per token with its probability.

    `add` takes the steps as they come, one stream after another (see `in_order`). Several streams get a numbered
    heading each. Texts, but not lines of tokens, come after the prompt on a terminal.
    """

    def __init__(self, screen: Screen, prompt: str, count: int, model: Model | None = None) -> None:
        """`count` is the number of streams. With their model, each token gets a line with its probability."""
        self.screen = screen
        self.prompt = prompt
        self.count = count
        self.model = model
        self._begun = -1

    def add(self, index: int, step: StreamStep) -> None:
        """Write the next step of stream `index`: its text, or with a model an `odds_line`.

        All steps of one stream must come before those of the next. Before a stream's first step comes its heading if
        there are several streams, then the table's head with a model, or without one the prompt on a terminal.
        """
        if index != self._begun:
            self._begin(index)
        if self.model is None:
            self.screen.write(step.text)
        else:
            self.screen.line(odds_line(step, self.model, self.screen))
        if step.finish and self.count > 1:
            self.screen.end_line()

    def __enter__(self) -> StreamWriter:
        return self

    def __exit__(self, *_: object) -> None:
        """End the line on a terminal, also after an error."""
        if self.screen.is_terminal:
            self.screen.end_line()

    def _begin(self, index: int) -> None:
        self._begun = index
        if self.count > 1:
            self.screen.line(self.screen.faint(f"{index + 1} of {self.count}"))
        if self.model is not None:
            self.screen.line(self.screen.faint(cut(_ODDS_HEAD, self.screen.width, self.screen.ellipsis)))
        elif self.screen.is_terminal:
            self.screen.write(self.prompt, faint=True)


def odds_line(step: StreamStep, model: Model, screen: Screen) -> str:
    """Return a line with a token, its probability, its rank, the entropy in nats, and the likeliest other tokens.

    These are at most `ALTERNATIVES`, with their probabilities. The line is cut to the screen's width.
    """
    token = cut(token_text(step.token_id, model), 19, screen.ellipsis)
    facts = f"{percent(math.exp(step.logprob)):>8}{step.rank:>7,}{step.entropy:>9.2f}  "
    others = (one for one in step.alternatives if one.token_id != step.token_id)
    alternatives = (
        f"{token_text(one.token_id, model)} {percent(math.exp(one.logprob))}"
        for one in itertools.islice(others, ALTERNATIVES)
    )
    line = token + " " * (20 - columns(token)) + facts + "  ".join(alternatives)
    return cut(line, screen.width, screen.ellipsis)


def token_text(token_id: int, model: Model) -> str:
    """Return a token's text as `repr` writes it, or its bytes if it is no whole characters.

    A token without text is "end" if it is an end token, else its id as in "<7>".
    """
    spelled = model.codec.bytes_of(token_id)
    if not spelled:
        return "end" if token_id in model.end_token_ids else f"<{token_id}>"
    try:
        return repr(spelled.decode())
    except UnicodeDecodeError:
        return repr(spelled)


def lookahead_lines(prompt: str, result: Lookahead, screen: Screen) -> Iterator[str]:
    """Yield the lines of a lookahead: the end of the prompt, a tree of its branches, then their coverage and cost."""
    yield screen.faint(_end_of(prompt, screen))
    yield from tree_lines(_branch_tree(result.branches), lambda share: f"{percent(share):>6}", screen)
    if result.word is not None:
        odds = f"{percent(result.word.low)} to {percent(result.word.high)}"
        yield f"{result.word.word!r}: {odds} within {result.word.within} tokens"
    yield f"{_coverage_phrase(result)}; {cost_phrase(result.cost)}"


def _end_of(prompt: str, screen: Screen) -> str:
    """Return the end of the prompt, as much as fits on a line, with control characters escaped; two quotes if empty."""
    shown = re.sub("[\n\t]", lambda found: repr(found[0])[1:-1], visible(prompt))
    return cut(shown[::-1], screen.width, screen.ellipsis)[::-1] or "''"


def _coverage_phrase(result: Lookahead) -> str:
    count = len(result.branches)
    phrase = (
        f"{'this' if count == 1 else 'these'} {count} {'holds' if count == 1 else 'hold'} {percent(result.coverage)}"
    )
    return f"{phrase} of what begins with {result.given!r}" if result.given else phrase


def _branch_tree(branches: Iterable[Branch]) -> TreeRow:
    top = TreeRow()
    for branch in branches:
        row, texts = top, {piece.tokens: piece.text for piece in branch.pieces}
        for index, token_id in enumerate(branch.token_ids, start=1):
            share = math.exp(math.fsum(branch.logprobs[:index]))
            row = row.children.setdefault(token_id, TreeRow(share, texts.get(index, "")))
        row.stops += 1
        end = "end" * branch.ended + "repeats" * branch.repeats
        row.note = "  ".join(filter(None, (end, f"× {row.stops}" * (row.stops > 1))))
    for row in _all(top):
        if row.stops and row.children:
            row.note = "also stops here"
    return top


def _all(top: TreeRow) -> Iterator[TreeRow]:
    waiting = [top]
    while waiting:
        row = waiting.pop()
        yield row
        waiting += row.children.values()


def beam_lines(beams: Beams, screen: Screen) -> Iterator[str]:
    """Yield a heading, and a line per beam, best first: score, log-probability, average token probability, text."""
    yield screen.faint(f"{'score':>9}{'log-prob.':>11}{'average':>9}  text")
    for beam in beams.branches:
        end = "  end" * beam.ended
        figures = f"{beam.score:>9.3f}{beam.logprob:>11.3f}{percent(beam.average_probability):>9}  "
        yield f"{figures}{screen.quoted(beam.text, screen.width - len(figures) - len(end))}{end}"


def beam_tree_lines(prompt: str, beams: Beams, every: bool, screen: Screen) -> Iterator[str]:
    """Yield the lines of the tree of a beam search with the fate of each path, and a line that explains each fate.

    An empty line and the end of the prompt come first. Candidates that were outscored at their own level are shown only
    with `every`.
    """
    from lookahead_core.strategies.beam import OUTSCORED

    shown = {index: node for index, node in enumerate(beams.tree) if every or node.fate != OUTSCORED}
    yield ""
    yield screen.faint(_end_of(prompt, screen))
    yield from tree_lines(_search_tree(shown), lambda total: f"{total:8.3f}", screen)
    for fate, reason in {node.fate: node.reason for node in shown.values() if _note(node)}.items():
        yield screen.faint(f"{fate}: {reason}")


def _search_tree(nodes: Mapping[int, BeamNode]) -> TreeRow:
    from lookahead_core.strategies.beam import GREW, RETURNED

    top = TreeRow()
    rows: dict[int | None, TreeRow] = {None: top}
    for index, node in nodes.items():
        faint = node.fate not in (GREW, RETURNED)
        rows[index] = rows[node.parent].children[index] = TreeRow(node.total, node.text, _note(node), faint)
    return top


def _note(node: BeamNode) -> str:
    """Return "end" if the path ended, and its fate unless it was continued, as a note; empty if neither."""
    from lookahead_core.strategies.beam import GREW

    return "  ".join(filter(None, ("end" * node.ended, node.fate * (node.fate != GREW))))


def agreement_lines(prompts: Sequence[str], checks: Sequence[Check], model: Model, screen: Screen) -> Iterator[str]:
    """Yield lines that say, per prompt, how many of the smaller model's tokens the model agrees with, then a total.

    A prompt's lines are its end, the tokens that agree, and the first ones that differ, if any. `checks` are those of
    the prompts, in order, at least one; `model` is the bigger model.
    """
    for prompt, check in zip(prompts, checks, strict=True):
        yield screen.faint(_end_of(prompt, screen))
        figures = f"{check.agreed} of {len(check.token_ids)} tokens agree: "
        agreed = _decoded(prompt, check.token_ids[: check.agreed], model)
        yield figures + screen.quoted(agreed, screen.width - len(figures))
        if check.instead is not None:
            instead, written = (token_text(one, model) for one in (check.instead, check.token_ids[check.agreed]))
            yield cut(f"then {instead}, where the smaller model wrote {written}", screen.width, screen.ellipsis)
    count, passes = len(checks), checks[0].big_passes
    agree = f"{'text agrees' if count == 1 else 'texts agree'} in full"
    yield f"{sum(check.stands for check in checks)} of {count} {agree}; checked in {passes} pass{'es' * (passes != 1)}"


def _decoded(prompt: str, token_ids: Sequence[int], model: Model) -> str:
    """Return the whole characters that tokens add after a prompt; without those of the prompt."""
    from lookahead_core.text.passage import TextEnd

    text_end, text = TextEnd(model.codec, b"", at_start=not prompt), ""
    for token_id in token_ids:
        piece, text_end = text_end.decode(token_id)
        text += piece
    return text
