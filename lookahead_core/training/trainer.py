"""Training draft heads on texts that the model writes itself. The model's own weights do not change."""

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
from lookahead_core.speculation.heads_file import Heads, embeddings_of, output_matrix, untrained
from lookahead_core.speculation.heads_forward import HeadsForward, transformed_states
from lookahead_core.speculation.load_heads import FILE
from lookahead_core.strategies.keywords import takes_options
from lookahead_core.training.checkpoint import Checkpoint
from lookahead_core.training.dataset import HeadDataset, accuracy
from lookahead_core.training.self_written_text import PROMPTS_PER_ROUND, GrowingText, make_prompts, write_texts
from lookahead_core.validation import check_integer, check_number, parse_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

Report = Callable[[str, "float | None"], None]
"""A function that is called with a phrase that says what is being done, and the share of it that is done, 0 to 1.

The share is None where it is unknown.
"""

LEARNING_RATE = 1e-3
"""The learning rate of the first step; it falls linearly to 0."""
BATCH_SIZE = 256
"""Number of rows per training step; the last one of an epoch may have fewer."""
WRITING_SHARE = 0.7
"""Share of the time limit after which no more texts are written."""
SECONDS_BETWEEN_CHECKPOINTS = 15.0
"""Minimum time between two saved states of the heads."""
CHECKPOINT_VERSION = 2
"""Version of the checkpoints' contents; a training does not resume from one of another version."""
MIN_ROWS = 64
"""Minimum number of rows (tokens that are not held out) to train on."""


class TrainingKeywords(TypedDict, total=False):
    """The keyword arguments of `train_heads`, for type checkers. `TrainingPlan` holds their defaults."""

    tokens: int
    """Number of tokens that the model writes as training text; the last round of texts may exceed it."""
    count: int
    """Number of heads, 1 to 16; the n-th predicts the token n positions after the model's own next token."""
    epochs: int
    """Number of passes over the training text."""
    kept: int
    """Maximum size of the heads' vocabulary: the most frequent tokens of the training text."""
    minutes: float | None
    """Approximate time limit, in minutes; None sets none. With a limit, the same seed need not give the same heads."""
    seed: int
    """Seed of the prompts' order, the written texts, the initial weights and the order of rows."""


@dataclass(frozen=True)
class TrainingPlan:
    """The options of `train_heads`; `TrainingKeywords` explains each. A wrong value raises a ValueError."""

    tokens: int = 300_000
    count: int = 3
    epochs: int = 3
    kept: int = 4096
    minutes: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_integer("tokens", self.tokens, MIN_ROWS * 4, 1_000_000_000)
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
    """Train and return draft heads for this model, on texts that it writes itself; its weights do not change.

    The model continues pieces of `texts`, or openings of many kinds if it is None; a string counts as one text. `into`
    is the folder that gets `heads.safetensors` and names the heads; an interrupted training is kept there, and the same
    call resumes it. None writes no files. `report` is called with the progress, as `Report` says. Raises a ValueError
    for a wrong option or too short `texts`, or a LookaheadError if too little was written, if the model has no
    tokenizer, no hidden states or no readable output matrix, or if the folder is in use or holds another or a damaged
    unfinished training.
    """
    plan = parse_options(TrainingPlan, options, "train_heads")
    folder = None if into is None else Path(into).expanduser()
    prompts = make_prompts(model, texts, plan.seed)
    checkpoint = Checkpoint(folder)
    try:
        checkpoint.begin(_settings(model, plan, prompts))
        heads = TrainingRun(model, plan, prompts, checkpoint, report).run()
        if folder is not None:
            heads = dataclasses.replace(heads, name=folder.name)
            heads.save(folder / FILE)
            checkpoint.delete()
    finally:
        checkpoint.release()
    return heads


def _settings(model: Model, plan: TrainingPlan, prompts: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return, as JSON values, what must be equal for a training to resume.

    That is the model's fingerprint and dtype, a hash of the prompts, CHECKPOINT_VERSION, and all options except
    `minutes`. Raises ModelError if the model's output matrix cannot be read.
    """
    texts = hashlib.sha256(json.dumps(prompts).encode()).hexdigest()
    facts = {
        "model": untrained(model, 1).fingerprint,
        "dtype": model.dtype,
        "starts": texts,
        "lessons": CHECKPOINT_VERSION,
    }
    return facts | {name: value for name, value in dataclasses.asdict(plan).items() if name != "minutes"}


class TrainingRun:
    """One training from prompts to heads, made by `train_heads`: its progress, its time, and its checkpoints.

    The checkpoint must have begun. `run` does it all; the other methods are its parts.
    """

    def __init__(
        self, model: Model, plan: TrainingPlan, prompts: list[list[int]], checkpoint: Checkpoint, report: Report
    ) -> None:
        self.model, self.plan, self.prompts, self.report = model, plan, prompts, report
        self.checkpoint = checkpoint
        self._started = time.monotonic()
        self._written_tokens = 0

    @property
    def seconds(self) -> float:
        """Seconds since this object was made; a resumed training counts on from those at its last checkpoint."""
        return time.monotonic() - self._started

    @property
    def used_share(self) -> float:
        """Share of the time limit that is used, which may exceed 1; 0 without a limit."""
        return self.seconds / (60 * self.plan.minutes) if self.plan.minutes else 0.0

    def run(self) -> Heads:
        """Write texts, train heads on them, and return these with their accuracy on held-out texts in their notes.

        What the checkpoint has is not done again. Raises LookaheadError if there are fewer than MIN_ROWS rows or no
        held-out ones, and as `write_texts` and `Checkpoint.load` do.
        """
        dataset = HeadDataset.from_rounds(self.write_rounds(), self.plan.count, self.plan.kept)
        if len(dataset.hidden_states) < MIN_ROWS or not len(dataset.held_out_states):
            raise LookaheadError(
                "Too little text came to learn from: give more minutes or more tokens, or texts to go on from."
            )
        heads = self.train(dataset)
        self.report("Measuring the heads on held-out texts", None)
        right = accuracy(HeadsForward(heads, self.model), dataset)
        notes = {**heads.notes, "held_out": json.dumps([[round(share, 4) for share in pair] for pair in right])}
        return dataclasses.replace(heads, notes=notes)

    def write_rounds(self) -> list[dict[str, Any]]:
        """Return all rounds of texts: those in the checkpoint, then new ones until there are enough tokens.

        New ones end too when WRITING_SHARE of the time limit is used up, and are not written once the training of the
        heads has begun; each is saved in the checkpoint. A round is a dictionary as `_as_tensors` returns it, with the
        property `seconds` at its end as "spent".
        """
        rounds: list[dict[str, Any]] = []
        complete = self.checkpoint.load("heads") is not None
        while (found := self.checkpoint.load(f"texts-{len(rounds)}")) or not (complete or self._has_enough_text()):
            if not found:
                found = self._write_round(len(rounds))
                self.checkpoint.save(f"texts-{len(rounds)}", found)
            rounds.append(found)
            self._written_tokens = sum(len(each["token_ids"]) for each in rounds)
            self._resume_clock(found["spent"])
        return rounds

    def _resume_clock(self, seconds: float) -> None:
        """Raise the property `seconds` to this duration, which a checkpoint holds, if it is less."""
        self._started = min(self._started, time.monotonic() - seconds)

    def _has_enough_text(self) -> bool:
        """Whether the planned number of tokens is written, or WRITING_SHARE of the time limit is used up."""
        return self._written_tokens >= self.plan.tokens or self.used_share >= WRITING_SHARE

    def _write_round(self, number: int) -> dict[str, Any]:
        """Write the round of texts of this number and return it as `write_rounds` does; nothing is saved.

        A round continues PROMPTS_PER_ROUND prompts, or all if there are fewer; after the last prompt, the first follows
        again. The number and the plan's seed also seed the sampling: without a time limit, they give the same texts.
        """
        generator = torch.Generator().manual_seed((self.plan.seed + 1) * 1_000_003 + number)
        first = number * PROMPTS_PER_ROUND
        indices = [index % len(self.prompts) for index in range(first, first + PROMPTS_PER_ROUND)]
        numbered = [(index, self.prompts[index]) for index in dict.fromkeys(indices)]
        texts = write_texts(self.model, numbered, generator, self._note_progress)
        return _as_tensors(texts) | {"spent": self.seconds}

    def _note_progress(self, new_tokens: int) -> bool:
        """Count `new_tokens` more written tokens and report the progress; return whether the time for writing is over.

        That is WRITING_SHARE of the time limit; without a limit it is never over.
        """
        self._written_tokens += new_tokens
        fraction = min(1.0, self._written_tokens / self.plan.tokens)
        self.report(f"{self.model.name} writes training texts", fraction)
        return self.used_share >= WRITING_SHARE

    def train(self, dataset: HeadDataset) -> Heads:
        """Train heads until all steps are done or the time limit is reached, and return them.

        Begins at the checkpoint's state if there is one; if that has no step, or there is none, at least one is done.
        The dataset must have rows to train on. If there is no state, the initial one is saved; later ones are saved
        after a step, at least SECONDS_BETWEEN_CHECKPOINTS apart. The final one need not be saved.
        """
        trainer = HeadTrainer(self.model, dataset, self.plan)
        if state := self.checkpoint.load("heads"):
            self._resume_clock(state["spent"])
            trainer.load(state)
        else:
            self._save(trainer)
        last_saved = time.monotonic()
        while (fraction := max(trainer.step / trainer.steps, self.used_share if trainer.step else 0.0)) < 1:
            loss = trainer.train_step(1 - fraction)
            self.report(f"Training the heads: loss {loss:.2f}", fraction)
            if time.monotonic() - last_saved >= SECONDS_BETWEEN_CHECKPOINTS:
                self._save(trainer)
                last_saved = time.monotonic()
        return trainer.heads(f"{self._written_tokens:,} tokens that the model wrote itself")

    def _save(self, trainer: HeadTrainer) -> None:
        """Save the trainer's state and the seconds so far in the checkpoint, as "heads"."""
        self.checkpoint.save("heads", trainer.state() | {"spent": self.seconds})


def _as_tensors(texts: Sequence[GrowingText]) -> dict[str, Any]:
    """Return a round of texts as it is saved in a checkpoint: the data of all tokens, in the order of the texts.

    `token_ids`, `vectors` (hidden states), `thought_ids` and `thought_odds` (candidates and their probabilities) are
    tensors with one row per token; `lengths` (in tokens) and `starts` (prompt numbers) are lists with one number per
    text. Empty texts are left out.
    """
    written = [text for text in texts if text.token_ids]
    return {
        "token_ids": torch.tensor([token_id for text in written for token_id in text.token_ids], dtype=torch.int64),
        "vectors": _stacked([hidden_state for text in written for hidden_state in text.hidden_states]),
        "thought_ids": _stacked([ids for text in written for ids, _ in text.candidates]),
        "thought_odds": _stacked([probabilities for text in written for _, probabilities in text.candidates]),
        "lengths": [len(text.token_ids) for text in written],
        "starts": [text.prompt_number for text in written],
    }


def _stacked(rows: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return the rows, all of one shape, stacked along a new first dimension; shape (0, 0) if there are none."""
    return torch.stack(list(rows)) if rows else torch.empty(0, 0)


class HeadTrainer:
    """The heads' parameters while `TrainingRun` trains them, in float32 on the model's device, and their optimizer."""

    def __init__(self, model: Model, dataset: HeadDataset, plan: TrainingPlan) -> None:
        """Begin with initial parameters; the dataset must have rows to train on.

        The model's output matrix is used in bfloat16 if it is that, else in float32. Raises ModelError if it cannot be
        read.
        """
        self.model, self.dataset, self.plan = model, dataset, plan
        matrix, bias = output_matrix(model)
        self.device = matrix.device
        # float16 is slow on processors, and its gradients vanish.
        dtype = torch.bfloat16 if matrix.dtype is torch.bfloat16 else torch.float32
        self.matrix = matrix[dataset.kept.to(self.device)].to(dtype)
        self.bias = None if bias is None else bias[dataset.kept.to(self.device)].to(dtype)
        self.parameters = [parameter.requires_grad_() for parameter in self._initial_parameters()]
        self.optimizer = torch.optim.AdamW(self.parameters, lr=LEARNING_RATE, weight_decay=0.0)
        self.step = 0
        """Number of steps done."""
        self._steps_per_epoch = math.ceil(len(dataset.hidden_states) / BATCH_SIZE)
        self.steps = plan.epochs * self._steps_per_epoch
        """Number of steps in the whole training."""

    def _initial_parameters(self) -> list[torch.Tensor]:
        """Return the inward matrices, biases and outward matrices of all heads, which add nothing to hidden states yet.

        These are three tensors, shaped as in `Heads`, in float32 on the model's device. The inward matrices are random,
        by the seed; the others are zero.
        """
        plain = untrained(self.model, self.plan.count, self.dataset.kept)
        generator = torch.Generator().manual_seed(self.plan.seed)
        inward = torch.randn(plain.inward.shape, generator=generator) / plain.inward.shape[-1] ** 0.5
        return [part.to(self.device, torch.float32) for part in (inward, plain.biases, plain.outward)]

    def train_step(self, rate_factor: float) -> float:
        """Do one step at this share, from 0 to 1, of LEARNING_RATE; return the loss before it.

        The loss is the cross-entropy with the model's probabilities, in nats per predicted token.
        """
        rows = self._batch()
        hidden_states = self.dataset.hidden_states[rows].to(self.device, torch.float32)
        embeddings = embeddings_of(self.model, self.dataset.next_ids[rows]).to(self.device, torch.float32)
        targets, probabilities = (
            each[rows].to(self.device).transpose(0, 1)
            for each in (self.dataset.targets, self.dataset.target_probabilities)
        )
        with torch.enable_grad():
            transformed = transformed_states(hidden_states, embeddings, *self.parameters).to(self.matrix.dtype)
            scores = functional.linear(transformed, self.matrix, self.bias).float()
            surprisals = scores.logsumexp(-1, keepdim=True) - scores.gather(-1, targets.clamp_min(0))
            loss = (probabilities * surprisals).sum() / probabilities.sum().clamp_min(1)
            torch.autograd.backward(loss)
        for group in self.optimizer.param_groups:
            group["lr"] = LEARNING_RATE * rate_factor
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.step += 1
        return float(loss.detach())

    def _batch(self) -> torch.Tensor:
        """Return the numbers of the training rows of the next step: at most BATCH_SIZE, each row once per epoch.

        For one dataset, their order depends on the seed and the epoch alone.
        """
        epoch, batch = divmod(self.step, self._steps_per_epoch)
        generator = torch.Generator().manual_seed((self.plan.seed + 1) * 1_000_003 + epoch)
        order = torch.randperm(len(self.dataset.hidden_states), generator=generator)
        return order[batch * BATCH_SIZE : (batch + 1) * BATCH_SIZE]

    def state(self) -> dict[str, Any]:
        """Return what `load` takes: the parameters ("parts"), the optimizer's state, and the number of steps done.

        The tensors are not copied: the next step changes them.
        """
        parts = [parameter.detach() for parameter in self.parameters]
        return {"parts": parts, "optimizer": self.optimizer.state_dict(), "step": self.step}

    def load(self, state: dict[str, Any]) -> None:
        """Set the parameters, the optimizer's state and the number of steps to those that `state` returned.

        The state must be of a training with the same model, dataset and plan.
        """
        with torch.no_grad():
            for parameter, saved in zip(self.parameters, state["parts"], strict=True):
                parameter.copy_(saved)
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]

    def heads(self, trained_on: str) -> Heads:
        """Return a copy of the present heads, in bfloat16 on the CPU; their `name` is still "untrained".

        `trained_on` describes the training text, in their notes.
        """
        inward, biases, outward = (parameter.detach().cpu().bfloat16() for parameter in self.parameters)
        plain = untrained(self.model, self.plan.count, self.dataset.kept)
        notes = {**plain.notes, "trained_on": trained_on, "steps": str(self.step)}
        return dataclasses.replace(plain, inward=inward, biases=biases, outward=outward, notes=notes)
