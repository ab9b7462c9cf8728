"""For tests of the whole page: models that may fail or wait, a bigram model with known words, and a script in the page
that records which branches were pressed and which presses were refused."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from lookahead_core import Document, Model, load_model
from lookahead_core.engines.engine import NodeScores
from lookahead_core.tree import Node
from tests.support.scripted_model import parrot

REFUSAL = "That branch was for another text: it was not inserted."
SAID = [
    "The old keeper climbed the stairs again and saw the sea.",
    "The sea was grey and the ship was small.",
    "He saw the lamp and the old ship again.",
]
WORDS = [" the", " sea", " old", " ship", " keeper", " saw", " lamp", " again", " stairs", " grey"]

# Records each press of a branch, by pointer or by Alt and a digit: its text, whether the branch was marked as inert or
# pinned, whether the page showed a refusal, and whether it waits until the branch is complete.
WITNESS = """
window.witness = {presses: [], notes: [], refused: 0};
witness.take = () => {
  const {presses, notes} = witness;
  Object.assign(witness, {presses: [], notes: []});
  return {presses, notes};
};
const upTo = button => {
  const all = [...button.closest('[data-branch]').querySelectorAll('[data-token]')];
  return all.slice(0, all.indexOf(button) + 1).map(one => one.dataset.text).join('');
};
const rowOf = ({altKey, code}) => {
  const digit = /^Digit([1-9])$/.exec(code);
  return digit && altKey ? document.querySelector(`#branches [data-branch="${digit[1] - 1}"]`) : null;
};
const ofKeys = (row, {shiftKey}) => {
  const pieces = [...(row?.querySelectorAll('[data-token]') ?? [])].map(one => one.dataset.text);
  const ends = shiftKey ? -1 : pieces.slice(1).findIndex(piece => !/^[\\p{L}\\p{M}]/u.test(piece));
  return (ends < 0 ? pieces : pieces.slice(0, ends + 1)).join('');
};
let pressed = '', inert = false, pinned = false, before = 0;
const began = (text, row) => [pressed, inert, pinned, before] =
  [text, Boolean(row?.matches('[data-inert]')), Boolean(row?.matches('[data-pinned]')), witness.refused];
const waits = () => document.querySelector('#branches').matches('[data-awaits]');
const ended = () => {
  if (pressed) witness.presses.push({text: pressed, inert, pinned, refused: witness.refused > before, waits: waits()});
  pressed = '';
};
addEventListener('pointerdown', ({target}) => {
  const button = target.closest('#branches [data-token]');
  began(button ? upTo(button) : '', button?.closest('[data-branch]'));
}, true);
addEventListener('click', ended);
addEventListener('keydown', event => began(ofKeys(rowOf(event), event), rowOf(event)), true);
addEventListener('keydown', ended);
new MutationObserver(changes => {
  for (const {target} of changes) {
    if (target.dataset.refused === undefined) continue;
    witness.refused += 1;
    witness.notes.push(target.querySelector('.note').textContent);
  }
}).observe(document, {subtree: true, attributeFilter: ['data-refused']});
"""


class EngineWithHook:
    """A wrapper around an engine that calls `before` before each forward pass."""

    def __init__(self, engine: Any, before: Callable[[], None]) -> None:
        self.engine = engine
        self.before = before

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def evaluate(self, nodes: Sequence[Node]) -> torch.Tensor:
        self.before()
        return self.engine.evaluate(nodes)

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        self.before()
        return self.engine.score(nodes, hidden=hidden)

    def prefill(self, nodes: Sequence[Node]) -> None:
        self.before()
        self.engine.prefill(nodes)

    def roll_out(self, nodes: Sequence[Node], depth: int, stop: frozenset[int]) -> Iterator[list[Node]]:
        for frontier in self.engine.roll_out(nodes, depth, stop):
            self.before()
            yield frontier


def around(model: Model, before: Callable[[], None]) -> Model:
    """A copy of a model whose engine calls `before` before each forward pass."""
    return replace(model, engine=EngineWithHook(model.engine, before))


def talker(texts: Sequence[str] = SAID, words: Sequence[str] = WORDS) -> Model:
    """A bigram model that predicts these words after every token, the first ones with the highest probability."""
    model = parrot(texts, words)
    ids = [model.tokenizer.convert_tokens_to_ids(word) for word in words]
    weight = model.hf_model.lm_head.weight
    with torch.no_grad():
        for place, token_id in enumerate(ids):
            weight[token_id] += (14.5 - 0.2 * place) / weight.shape[1] ** 0.5
    # Engines may keep weights in their own layout, so the changed model is loaded again.
    return load_model(model.hf_model, tokenizer=model.tokenizer)


def packed(value: object) -> str:
    """The fragment of a link that carries `value`, made without this project's code."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    content = packer.compress(json.dumps(value).encode()) + packer.flush()
    return "#t=" + base64.urlsafe_b64encode(content).decode().rstrip("=")


def unpacked(link: str) -> dict[str, Any]:
    """The value that a link carries, read without this project's code."""
    content = link.split("#t=")[1]
    content += "=" * (-len(content) % 4)
    return dict(json.loads(zlib.decompress(base64.urlsafe_b64decode(content), -15)))


def rows_of(model: Model, text: str, **options: Any) -> list[str]:
    """The texts of the branches after a text, computed without a page, in the page's order: by share.

    A token that replaces the typed one counts for the depth only where it inserts characters.
    """
    document = Document(model, text)
    options = {"k": 5, "depth": 5} | options
    depth = options.pop("depth")
    found = document.lookahead(heal=True, stop_at_repetition=True, depth=depth + bool(document.reopens), **options)
    texts = []
    for branch in sorted(found.branches, key=lambda one: -one.share):
        kept = bool(branch.pieces) and branch.healed and branch.pieces[0].tokens > 1
        texts.append("".join(piece.text for piece in branch.pieces if piece.tokens <= depth + kept))
    return texts
