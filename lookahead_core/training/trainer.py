"""Heads taught on what the model writes itself; the model stays as it is, and only the heads are trained."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import torch
from torch.nn import functional

from lookahead_core.errors import LookaheadError
from lookahead_core.model import Model
from lookahead_core.speculation.heads import FILE, HeadsProduct, bend
from lookahead_core.speculation.heads_file import Heads, embedded, output_matrix, untrained
from lookahead_core.strategies.keywords import takes_options
from lookahead_core.training.checkpoint import Checkpoint
from lookahead_core.training.dataset import HeadDataset, measure
from lookahead_core.training.self_written_text import TREES, GrowingText, starts_of, write
from lookahead_core.validation import check_integer, check_number, parse_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

Report = Callable[[str, "float | None"], None]

RATE = 1e-3
BATCH = 256
"""How many vectors a step learns from."""
WRITING = 0.7
"""How much of the minutes is for writing texts."""
SECONDS_BETWEEN = 15.0
"""How often the state of the heads is kept."""
LESSONS = 2
"""What is kept of an unfinished training is of this form."""
FEWEST = 64
"""With fewer vectors to learn from, nothing is trained."""


class TrainingKeywords(TypedDict, total=False):
    """Options of `train_heads`. `TrainingPlan` holds their defaults."""

    tokens: int
    """Number of tokens that the model writes as training text."""
    count: int
    """Number of heads; the n-th predicts the token n + 1 positions ahead."""
    epochs: int
    """Number of passes over the training text."""
    kept: int
    """Size of the heads' vocabulary: this many of the most frequent tokens."""
    minutes: float | None
    """Approximate time limit; None sets none. With a limit, the same seed need not give the same heads."""
    seed: int
    """Seed of the written texts and of the initial weights."""


@dataclass(frozen=True)
class TrainingPlan:
    """The checked options of `train_heads`; `TrainingKeywords` explains each."""

    tokens: int = 300_000
    count: int = 3
    epochs: int = 3
    kept: int = 4096
    minutes: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("tokens", self.tokens, FEWEST * 4, 1_000_000_000)
        check_integer("count", self.count, 1, 16)
        check_integer("epochs", self.epochs, 1, 1000)
        check_integer("kept", self.kept, 8, 1_000_000)
        check_integer("seed", self.seed, 0, 2**63 - 1)
        if self.minutes is not None:
            check_number("minutes", self.minutes, 0, math.inf, above=True)


@takes_options(TrainingPlan)
def train_heads(
    model: Model,
    *,
    texts: Iterable[str] | None = None,
    into: str | os.PathLike[str] | None = None,
    report: Report = lambda sentence, fraction: None,
    **options: Unpack[TrainingKeywords],
) -> Heads:
    """Heads for this model, taught on texts that it writes: on from `texts`, or from openings of many kinds.

    `into` is the folder that gets `heads.safetensors`. What is unfinished is kept there, and the same call goes on with
    it. The options are those of `TrainingPlan`.
    """
    plan = parse_options(TrainingPlan, options, "train_heads")
    folder = None if into is None else Path(into).expanduser()
    starts = starts_of(model, texts, plan.seed)
    unfinished = Checkpoint(folder)
    try:
        unfinished.begin(_asked(model, plan, starts))
        heads = TrainingRun(model, plan, starts, unfinished, report).run()
        if folder is not None:
            heads = dataclasses.replace(heads, name=folder.name)
            heads.save(folder / FILE)
            unfinished.clear()
    finally:
        unfinished.let_go()
    return heads


def _asked(model: Model, plan: TrainingPlan, starts: Sequence[Sequence[int]]) -> dict[str, Any]:
    """What makes two trainings the same one; there may be more or fewer minutes for it."""
    texts = hashlib.sha256(json.dumps(starts).encode()).hexdigest()
    facts = {"model": untrained(model, 1).fingerprint, "dtype": model.dtype, "starts": texts, "lessons": LESSONS}
    return facts | {name: value for name, value in dataclasses.asdict(plan).items() if name != "minutes"}


class TrainingRun:
    """One training: what is spent of its time, and where it stands."""

    def __init__(
        self, model: Model, plan: TrainingPlan, starts: list[list[int]], unfinished: Checkpoint, report: Report
    ) -> None:
        self.model, self.plan, self.starts, self.report = model, plan, starts, report
        self.unfinished = unfinished
        self._began = time.monotonic()
        self._came = 0

    @property
    def spent(self) -> float:
        """Seconds, those before an interruption included."""
        return time.monotonic() - self._began

    @property
    def used(self) -> float:
        """Which part of the time is spent; 0 where there is no bound."""
        return self.spent / (60 * self.plan.minutes) if self.plan.minutes else 0.0

    def run(self) -> Heads:
        """Write, learn, and see what it is worth."""
        lessons = HeadDataset.of(self.written(), self.plan.count, self.plan.kept)
        if len(lessons.vectors) < FEWEST or not len(lessons.held_vectors):
            raise LookaheadError(
                "Too little text came to learn from: give more minutes or more tokens, or texts to go on from."
            )
        heads = self.taught(lessons)
        self.report("Trying them on texts kept apart", None)
        right = measure(HeadsProduct(heads, self.model), lessons)
        notes = {**heads.notes, "held_out": json.dumps([[round(share, 4) for share in pair] for pair in right])}
        return dataclasses.replace(heads, notes=notes)

    def written(self) -> list[dict[str, Any]]:
        """Round after round of texts, those from before an interruption first."""
        rounds: list[dict[str, Any]] = []
        over = self.unfinished.kept("heads") is not None
        while (found := self.unfinished.kept(f"texts-{len(rounds)}")) or not (over or self._enough()):
            if not found:
                found = self._round(len(rounds))
                self.unfinished.keep(f"texts-{len(rounds)}", found)
            rounds.append(found)
            self._came = sum(len(one["token_ids"]) for one in rounds)
            self._resume(found["spent"])
        return rounds

    def _resume(self, spent: float) -> None:
        """At least so many seconds have gone."""
        self._began = min(self._began, time.monotonic() - spent)

    def _enough(self) -> bool:
        return self._came >= self.plan.tokens or self.used >= WRITING

    def _round(self, number: int) -> dict[str, Any]:
        """Some texts side by side, and their vectors; each round has dice of its own, so that it can be repeated."""
        dice = torch.Generator().manual_seed((self.plan.seed + 1) * 1_000_003 + number)
        places = [place % len(self.starts) for place in range(number * TREES, (number + 1) * TREES)]
        numbered = [(place, self.starts[place]) for place in dict.fromkeys(places)]
        texts = write(self.model, numbered, dice, self._tick)
        return _packed(texts) | {"spent": self.spent}

    def _tick(self, came: int) -> bool:
        """Some tokens have come; whether it is time to stop."""
        self._came += came
        self.report(f"{self.model.name} writes texts to learn from", min(1.0, self._came / self.plan.tokens))
        return self.used >= WRITING

    def taught(self, lessons: HeadDataset) -> Heads:
        """The heads after all steps."""
        learner = HeadTrainer(self.model, lessons, self.plan)
        if before := self.unfinished.kept("heads"):
            self._resume(before["spent"])
            learner.load(before)
        else:
            self._keep(learner)
        last = time.monotonic()
        while (fraction := max(learner.step / learner.steps, self.used if learner.step else 0.0)) < 1:
            loss = learner.learn(1 - fraction)
            self.report(f"The heads learn, and are surprised by {loss:.2f} a token", fraction)
            if time.monotonic() - last >= SECONDS_BETWEEN:
                self._keep(learner)
                last = time.monotonic()
        return learner.heads(f"{self._came:,} tokens that the model wrote itself")

    def _keep(self, learner: HeadTrainer) -> None:
        self.unfinished.keep("heads", learner.state() | {"spent": self.spent})


def _packed(texts: Sequence[GrowingText]) -> dict[str, Any]:
    """A round of texts, one after another."""
    told = [text for text in texts if text.token_ids]
    return {
        "token_ids": torch.tensor([token_id for text in told for token_id in text.token_ids], dtype=torch.int64),
        "vectors": _rows([vector for text in told for vector in text.vectors]),
        "thought_ids": _rows([ids for text in told for ids, _ in text.thoughts]),
        "thought_odds": _rows([odds for text in told for _, odds in text.thoughts]),
        "lengths": [len(text.token_ids) for text in told],
        "starts": [text.start for text in told],
    }


def _rows(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.stack(list(rows)) if rows else torch.empty(0, 0)


class HeadTrainer:
    """The heads while they learn."""

    def __init__(self, model: Model, lessons: HeadDataset, plan: TrainingPlan) -> None:
        self.model, self.lessons, self.plan = model, lessons, plan
        matrix, bias = output_matrix(model)
        self.device = matrix.device
        # Sixteen bits of another kind are slow on processors, and their gradients vanish.
        dtype = torch.bfloat16 if matrix.dtype is torch.bfloat16 else torch.float32
        self.matrix = matrix[lessons.kept.to(self.device)].to(dtype)
        self.bias = None if bias is None else bias[lessons.kept.to(self.device)].to(dtype)
        self.parts = [part.requires_grad_() for part in self._begun()]
        self.optimizer = torch.optim.AdamW(self.parts, lr=RATE, weight_decay=0.0)
        self.step = 0
        self._each = math.ceil(len(lessons.vectors) / BATCH)
        self.steps = plan.epochs * self._each

    def _begun(self) -> list[torch.Tensor]:
        """Heads that add nothing yet: what goes inward is drawn, what comes outward is nothing."""
        plain = untrained(self.model, self.plan.count, self.lessons.kept)
        dice = torch.Generator().manual_seed(self.plan.seed)
        drawn = torch.randn(plain.inward.shape, generator=dice) / plain.inward.shape[-1] ** 0.5
        return [part.to(self.device, torch.float32) for part in (drawn, plain.biases, plain.outward)]

    def learn(self, pace: float) -> float:
        """One step; returns how surprised the heads were."""
        chosen = self._chosen()
        vectors = self.lessons.vectors[chosen].to(self.device, torch.float32)
        tokens = embedded(self.model, self.lessons.came[chosen]).to(self.device, torch.float32)
        wanted, odds = (
            each[chosen].to(self.device).transpose(0, 1) for each in (self.lessons.targets, self.lessons.odds)
        )
        with torch.enable_grad():
            bent = bend(vectors, tokens, *self.parts).to(self.matrix.dtype)
            scores = functional.linear(bent, self.matrix, self.bias).float()
            surprises = scores.logsumexp(-1, keepdim=True) - scores.gather(-1, wanted.clamp_min(0))
            loss = (odds * surprises).sum() / odds.sum().clamp_min(1)
            loss.backward()
        for group in self.optimizer.param_groups:
            group["lr"] = RATE * pace
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        return float(loss.detach())

    def _chosen(self) -> torch.Tensor:
        """Which vectors this step learns from: each once an epoch, in an order that the seed and the epoch give."""
        epoch, place = divmod(self.step, self._each)
        dice = torch.Generator().manual_seed((self.plan.seed + 1) * 1_000_003 + epoch)
        return torch.randperm(len(self.lessons.vectors), generator=dice)[place * BATCH : (place + 1) * BATCH]

    def state(self) -> dict[str, Any]:
        parts = [part.detach() for part in self.parts]
        return {"parts": parts, "optimizer": self.optimizer.state_dict(), "step": self.step}

    def load(self, state: dict[str, Any]) -> None:
        with torch.no_grad():
            for part, before in zip(self.parts, state["parts"], strict=True):
                part.copy_(before)
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]

    def heads(self, trained_on: str) -> Heads:
        """As they are kept: rounded to sixteen bits."""
        inward, biases, outward = (part.detach().cpu().bfloat16() for part in self.parts)
        plain = untrained(self.model, self.plan.count, self.lessons.kept)
        notes = {**plain.notes, "trained_on": trained_on, "steps": str(self.step)}
        return dataclasses.replace(plain, inward=inward, biases=biases, outward=outward, notes=notes)
