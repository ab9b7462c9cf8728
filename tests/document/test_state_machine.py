"""Random edits, accepts, rewinds, prunes and lookaheads, against a plain model of the same operations."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lookahead_core import Document, load_model
from lookahead_core.settings import Settings
from tests.conftest import CORPUS, byte_level, tiny_llama
from tests.support.families import plain_rows
from tests.support.spelling import tokens_as_bytes

# The default run is short; the continuous integration asks for ten thousand steps (examples times steps).
EXAMPLES = int(os.environ.get("LOOKAHEAD_STATE_EXAMPLES", "12"))
STEPS = 40
TOKENIZER = byte_level(CORPUS)
SPELLED = tokens_as_bytes(TOKENIZER)
SLOT_BYTES = 2 * 2 * 2 * 8 * 4
MODEL = load_model(
    tiny_llama(len(TOKENIZER), max_position_embeddings=96),
    tokenizer=TOKENIZER,
    settings=Settings(cache_mb=1),
)
# So small a bound that forgetting and closing gaps are part of every run.
MODEL.engine.cache_bytes = 260 * SLOT_BYTES  # type: ignore[attr-defined]
KNOWN: dict[tuple[int, ...], torch.Tensor] = {}

WORDS = st.sampled_from(["the ", "keeper", " sea", "🫠", "中文", "a", " ", "\n", "once upon ", "x=1;", "é"])


def reference(ids: list[int]) -> torch.Tensor:
    """Logits of a plain forward, remembered."""
    key = tuple(ids)
    if key not in KNOWN:
        (KNOWN[key],) = plain_rows(MODEL.hf_model, [ids])
    return KNOWN[key]


class DocumentMachine(RuleBasedStateMachine):
    """The document, beside what a plain list of ids and a string would be."""

    def __init__(self) -> None:
        super().__init__()
        self.document = Document(MODEL, "the sea")
        self.text = "the sea"
        self.past: list[tuple[str, list[int], int]] = []
        """(text, ids, tokens accepted) before each accept since the last edit."""
        self.result: Any = None
        self.accepted = 0

    def teardown(self) -> None:
        # Hypothesis keeps what it samples from, and with it a document: what the next one forgets must not depend on
        # that one.
        if self.document.tree.cache is not None:
            self.document.tree.cache.clear()

    @initialize(text=st.lists(WORDS, max_size=6).map("".join))
    def start(self, text: str) -> None:
        self.edit(text)

    def edit(self, text: str) -> None:
        self.document.text = self.text = text
        self.result, self.past = None, []

    @rule(words=st.lists(WORDS, min_size=1, max_size=3).map("".join))
    def type_at_the_end(self, words: str) -> None:
        self.edit((self.text + words)[-200:])

    @rule(data=st.data(), words=WORDS)
    def edit_in_the_middle(self, data: st.DataObject, words: str) -> None:
        start = data.draw(st.integers(0, len(self.text)))
        end = data.draw(st.integers(start, min(len(self.text), start + 12)))
        self.edit(self.text[:start] + words + self.text[end:])

    @rule()
    def clear(self) -> None:
        self.edit("")

    @rule(
        k=st.integers(1, 6),
        depth=st.integers(1, 8),
        mode=st.sampled_from(["likely", "likely", "every_level", "forks", "best_first", "diverse", "surprising"]),
        heal=st.booleans(),
    )
    def look_ahead(self, k: int, depth: int, mode: str, heal: bool) -> None:
        k = min(k, 3) if mode == "every_level" else k
        self.result = self.document.lookahead(k=k, depth=depth, mode=mode, heal=heal, budget=20, branch_levels=2)
        assert sum(branch.share for branch in self.result.branches) <= 1 + 1e-6
        if mode == "likely" and not self.result.given:
            self.check_greedy(k, depth)

    def check_greedy(self, k: int, depth: int) -> None:
        window = [node.token_id for node in self.document.tree.path(self.document.head)]
        firsts = reference(window).topk(k).indices.tolist()
        for first, branch in zip(firsts, self.result.branches, strict=True):
            path = [first]
            while len(path) < depth and path[-1] not in MODEL.end_token_ids:
                path.append(int(reference(window + path).argmax()))
            assert list(branch.token_ids) == path

    @rule(stop_after=st.integers(1, 4))
    def look_ahead_and_stop(self, stop_after: int) -> None:
        steps = self.document.lookahead_steps(k=4, depth=6)
        for _, step in zip(range(stop_after), steps, strict=False):
            self.result = step.result
        steps.close()

    @precondition(lambda self: self.result is not None and self.result.branches)
    @rule(data=st.data())
    def accept(self, data: st.DataObject) -> None:
        branch = data.draw(st.sampled_from(self.result.branches))
        tokens = data.draw(st.integers(0, len(branch.token_ids)))
        before = self.document.token_ids
        inserted = self.document.accept(branch, tokens)
        taken = [token_id for token_id in branch.token_ids[:tokens] if token_id not in MODEL.end_token_ids]
        if not taken:
            assert inserted == ""
            return
        kept = before[:-1] if branch.healed else before
        assert self.document.token_ids == kept + taken
        assert branch.text.startswith(inserted)
        self.past.append((self.text, before, len(taken)))
        self.text += inserted
        self.result = None

    @precondition(lambda self: self.past)
    @rule()
    def rewind_an_accept(self) -> None:
        text, ids, count = self.past.pop()
        self.document.rewind(count)
        self.text, self.result = text, None
        assert self.document.text == text
        assert self.document.token_ids == ids

    @rule()
    def prune(self) -> None:
        self.document.prune()

    @rule()
    def compact(self) -> None:
        self.document.compact()

    @invariant()
    def everything_holds(self) -> None:
        self.document.check()
        assert self.document.text == self.text
        spelled = b"".join(SPELLED[token_id] for token_id in self.document.token_ids)
        whole = self.text.encode()
        assert (spelled.startswith(whole) and len(spelled) - len(whole) <= 3) or "\ufffd" in self.text

    @invariant()
    def the_head_says_what_a_plain_forward_says(self) -> None:
        window = [node.token_id for node in self.document.tree.path(self.document.head)]
        logits = reference(window)
        said = self.document.predict()
        assert said.token_ids[0] == int(logits.argmax())
        expected = torch.log_softmax(logits, -1)[list(said.token_ids)]
        assert float((torch.tensor(said.logprobs) - expected).abs().max()) <= 1e-5 * float(logits.abs().max())


DocumentMachine.TestCase.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestDocument = pytest.mark.state_machine(DocumentMachine.TestCase)
