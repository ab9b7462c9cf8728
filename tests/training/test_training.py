"""The parts of head training: its plan, texts, steps, checkpoints and time limit."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from lookahead_core import Document, LookaheadError, Model, load_model
from lookahead_core.command import training
from lookahead_core.command.main import main
from lookahead_core.speculation.drafters.heads_drafter import HeadsDrafter
from lookahead_core.speculation.heads_forward import HeadsForward
from lookahead_core.training import self_written_text, trainer
from lookahead_core.training.checkpoint import Checkpoint
from lookahead_core.training.dataset import NO_TOKEN, HeadDataset, accuracy
from lookahead_core.training.trainer import HeadTrainer, TrainingPlan, train_heads
from tests.conftest import CORPUS, tiny_llama
from tests.speculation.test_heads import TAUGHT, Interrupting, random_heads
from tests.support.scripted_model import parrot

LENGTH = 24
"""Tokens of each text of these tests."""


@pytest.fixture(autouse=True)
def _little_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of 4 starts, each gone on with 8 times."""
    monkeypatch.setattr(self_written_text, "MAX_LENGTH", LENGTH)
    monkeypatch.setattr(trainer, "PROMPTS_PER_ROUND", 4)
    monkeypatch.setattr(trainer, "LEARNING_RATE", 0.02)


@pytest.fixture(scope="module")
def bird() -> Model:
    return parrot(TAUGHT)


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of trainings, in its one entry."""
    now = [1000.0]
    monkeypatch.setattr(trainer.time, "monotonic", lambda: now[0])
    return now


# The plan.


def test_a_plan_has_the_defaults_that_the_help_names() -> None:
    assert TrainingPlan() == TrainingPlan(tokens=300_000, count=3, epochs=3, kept=4096, minutes=None, seed=0)
    assert training.DEFAULT_MINUTES == 10


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("tokens", 256, 1_000_000_000),
        ("count", 1, 16),
        ("epochs", 1, 1000),
        ("kept", 8, 1_000_000),
        ("seed", 0, 2**63 - 1),
    ],
)
def test_a_plan_takes_whole_numbers_within_bounds(name: str, least: int, most: int) -> None:
    for value in (least, most):
        assert getattr(TrainingPlan(**{name: value}), name) == value
    for value in (least - 1, most + 1, float(least), "8", True, None):
        with pytest.raises(ValueError, match=f"{name} is .*, and must be a whole number from {least}"):
            TrainingPlan(**{name: value})


def test_a_plan_takes_minutes_of_any_length_above_0() -> None:
    assert TrainingPlan(minutes=0.001).minutes == 0.001
    for value in (0, -1, math.nan, "ten"):
        with pytest.raises(ValueError, match=r"minutes is .*, and must be a number more than 0"):
            TrainingPlan(minutes=value)


# What the model goes on from, and what it writes.


def test_prompts_are_the_beginnings_of_whole_pieces(tiny_model: Model) -> None:
    texts = [" ".join(CORPUS * 2), "too short", " ".join(CORPUS[:3])]
    expected = []
    for text in texts:
        ids = Document(tiny_model, text).token_ids
        expected += [ids[first : first + 48] for first in range(0, len(ids), 192) if first + 48 <= len(ids)]
    assert len(expected) > 4
    found = self_written_text.make_prompts(tiny_model, texts, 0)
    assert sorted(found) == sorted(expected)
    assert self_written_text.make_prompts(tiny_model, iter(texts), 0) == found
    assert self_written_text.make_prompts(tiny_model, texts, 1) != found
    assert sorted(self_written_text.make_prompts(tiny_model, texts[0], 0)) == sorted(expected[:-1])


def test_prompts_for_a_model_without_a_tokenizer_raise_an_error() -> None:
    with pytest.raises(LookaheadError, match="without a tokenizer"):
        self_written_text.make_prompts(load_model(tiny_llama(96)), None, seed=0)


def test_prompts_that_fill_the_models_context_raise_an_error(byte_tokenizer: Any, tmp_path: Path) -> None:
    longest = self_written_text.PROMPT_LENGTH
    for length, fits in ((longest, False), (longest + 1, True)):
        hf_model = tiny_llama(len(byte_tokenizer), max_position_embeddings=length)
        model = load_model(hf_model, tokenizer=byte_tokenizer)
        if fits:
            assert self_written_text.make_prompts(model, " ".join(CORPUS), 0)
            continue
        with pytest.raises(ValueError, match=f"^{model.name} reads {length} tokens at once, and prompts here have up"):
            train_heads(model, texts=" ".join(CORPUS), into=tmp_path / "heads", tokens=1000)


def test_every_prompt_begins_with_the_start_token(fallback_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(fallback_tokenizer)), tokenizer=fallback_tokenizer)
    assert Document(model, "Once").token_ids[0] == 1
    for start in self_written_text.make_prompts(model, " ".join(CORPUS), 0):
        assert start[0] == 1
        assert len(start) == 49
        assert 1 not in start[1:]


def test_texts_end_at_the_models_context_length(byte_tokenizer: Any) -> None:
    model = load_model(
        tiny_llama(len(byte_tokenizer), max_position_embeddings=40, eos_token_id=None), tokenizer=byte_tokenizer
    )
    token_ids = Document(model, " ".join(CORPUS[:3])).token_ids
    starts = [(0, token_ids[:30]), (1, token_ids[:20])]
    came: list[int] = []
    texts = self_written_text.write_texts(
        model, starts, torch.Generator().manual_seed(0), lambda count: bool(came.append(count))
    )
    assert {len(text.token_ids) for text in texts} == {10}
    assert came == [16] * 10


def test_texts_end_at_an_end_token_while_others_continue(bird: Model) -> None:
    starts = [(0, Document(bird, "the evening light!").token_ids), (1, Document(bird, "Bread is").token_ids)]
    came: list[int] = []
    texts = self_written_text.write_texts(
        bird, starts, torch.Generator().manual_seed(0), lambda count: bool(came.append(count))
    )
    ends = bird.end_token_ids
    for text in texts:
        assert not any(token_id in ends for token_id in text.token_ids[:-1])
        assert text.over is (text.token_ids[-1] in ends or len(text.token_ids) == LENGTH)
        assert len(text.token_ids) == len(text.hidden_states) == len(text.candidates)
    assert {text.prompt_number for text in texts if text.token_ids[-1] in ends} >= {0}
    assert came[0] == 16
    assert came == [sum(len(text.token_ids) > place for text in texts) for place in range(len(came))]


def test_texts_stop_when_the_given_function_returns_true(bird: Model) -> None:
    came: list[int] = []
    starts = [(0, Document(bird, "Bread is").token_ids)]
    texts = self_written_text.write_texts(
        bird, starts, torch.Generator(), lambda count: bool(came.append(count)) or len(came) > 3
    )
    assert {len(text.token_ids) for text in texts} == {3}
    assert came == [8] * 4


def test_tokens_are_sampled_among_the_fifty_most_probable_at_their_temperature() -> None:
    scores = torch.randn(1, 200, generator=torch.Generator().manual_seed(3)) * 2
    likely = scores[0].topk(50).indices.tolist()
    dice = torch.Generator().manual_seed(1)
    for temperature in (0.5, 1.0, 3.0):
        count = 40_000
        drawn = Counter(
            self_written_text._sample(scores.expand(count, -1), torch.full((count,), temperature), dice).tolist()
        )
        assert set(drawn) <= set(likely)
        weights = {token_id: math.exp(float(scores[0, token_id]) / temperature) for token_id in likely}
        for token_id, weight in weights.items():
            share = weight / sum(weights.values())
            assert abs(drawn[token_id] / count - share) < 5 * math.sqrt(share / count) + 1e-4
    cold = self_written_text._sample(scores.expand(50, -1), torch.zeros(50), dice)
    assert cold.tolist() == [likely[0]] * 50


# Lessons.


def test_accuracy_equals_a_count_guess_by_guess(tiny_model: Model) -> None:
    dice = torch.Generator().manual_seed(4)
    heads = random_heads(tiny_model, 2, torch.arange(7, 300, 3))
    vectors = torch.randn(300, 32, generator=dice)
    came = torch.randint(0, len(tiny_model.tokenizer), (300,), generator=dice)
    drafter = HeadsDrafter(heads, tiny_model)
    guesses = [guesses_of(drafter, vector, int(token_id)) for vector, token_id in zip(vectors, came, strict=True)]
    # Of what should have been guessed, a third is the first guess, a third the fourth, a third something else.
    truth = torch.tensor(
        [[heads_guesses[place % 3 * 3 // 2] for heads_guesses in each] for place, each in enumerate(guesses)]
    )
    truth[5::7] = NO_TOKEN
    none = torch.empty(0)
    dataset = HeadDataset(none, none, none, none, none, vectors, came, truth)
    reported = accuracy(HeadsForward(heads, tiny_model), dataset)
    for head, (first, four) in enumerate(reported):
        requested = [place for place in range(300) if int(truth[place, head]) != NO_TOKEN]
        hits = [int(truth[place, head]) in guesses[place][head][:1] for place in requested]
        among = [int(truth[place, head]) in guesses[place][head][:4] for place in requested]
        assert first == pytest.approx(sum(hits) / len(requested))
        assert four == pytest.approx(sum(among) / len(requested))
        assert 0 < first < four < 1 or first < four


def guesses_of(drafter: HeadsDrafter, vector: torch.Tensor, came: int) -> list[list[int]]:
    """The guesses of each head after this vector became this token, the likeliest first."""
    state, found = drafter.start([1, came], vector, 9), []
    while state is not None:
        found.append([way.token_id for way in drafter.ways(state)])
        state = drafter.follow(state, found[-1][0])
    return found


# Steps.


@pytest.fixture
def dataset(tiny_model: Model) -> HeadDataset:
    """Ten vectors, each of which should guess the ninth of the kept tokens."""
    dice = torch.Generator().manual_seed(2)
    kept = torch.arange(0, 40)
    targets, odds = torch.full((10, 1, 8), 8), torch.zeros(10, 1, 8)
    odds[..., 0] = 1
    held = torch.empty(0)
    vectors, came = torch.randn(10, 32, generator=dice), torch.randint(0, 40, (10,), generator=dice)
    return HeadDataset(kept, vectors, came, targets, odds, held, held, held)


def head_trainer(model: Model, dataset: HeadDataset, **plan: Any) -> HeadTrainer:
    return HeadTrainer(model, dataset, TrainingPlan(**{"count": 1, "epochs": 2, **plan}))


def test_every_row_is_trained_on_once_per_epoch_in_a_seeded_order(
    tiny_model: Model, dataset: HeadDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "BATCH_SIZE", 4)
    orders = {}
    for seed in (0, 1):
        learning = head_trainer(tiny_model, dataset, seed=seed)
        assert learning.steps == 6
        for epoch in range(2):
            steps = []
            for _ in range(3):
                steps.append(learning._batch().tolist())
                learning.train_step(1.0)
            assert [len(step) for step in steps] == [4, 4, 2]
            orders[seed, epoch] = [place for step in steps for place in step]
            assert sorted(orders[seed, epoch]) == list(range(10))
    assert len({tuple(order) for order in orders.values()}) == 4


def test_each_step_lowers_the_loss_and_uses_its_learning_rate(tiny_model: Model, dataset: HeadDataset) -> None:
    learning = head_trainer(tiny_model, dataset, epochs=40)
    surprises = [learning.train_step(pace) for pace in (1.0, 1.0, 0.5, 0.25)]
    assert surprises == sorted(surprises, reverse=True)
    assert [group["lr"] for group in learning.optimizer.param_groups] == [0.02 * 0.25]
    assert learning.step == 4
    assert all(part.grad is None for part in learning.parameters)


def test_the_first_loss_is_that_of_the_model_itself(tiny_model: Model, dataset: HeadDataset) -> None:
    """Heads add nothing before they have learnt."""
    matrix = tiny_model.hf_model.lm_head.weight.detach()[:40]
    expected = -(dataset.hidden_states @ matrix.T).log_softmax(-1)[:, 8].mean()
    assert head_trainer(tiny_model, dataset).train_step(1.0) == pytest.approx(float(expected), rel=1e-3)


def test_heads_begin_seeded_and_add_nothing(tiny_model: Model, dataset: HeadDataset) -> None:
    inward, biases, outward = head_trainer(tiny_model, dataset, count=3, seed=5).parameters
    assert not biases.any()
    assert not outward.any()
    assert float(inward.detach().std()) == pytest.approx(inward.shape[-1] ** -0.5, rel=0.05)
    again, other = (head_trainer(tiny_model, dataset, count=3, seed=seed).parameters[0] for seed in (5, 6))
    assert torch.equal(inward, again)
    assert not torch.equal(inward, other)


# A whole training.


def test_a_training_lowers_its_learning_rate_and_reports_its_progress(
    bird: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    paces: list[float] = []
    learn = HeadTrainer.train_step
    monkeypatch.setattr(HeadTrainer, "train_step", lambda self, pace: paces.append(pace) or learn(self, pace))
    heard: list[tuple[str, float | None]] = []
    heads = train_heads(bird, texts=TAUGHT, tokens=1000, count=1, epochs=3, report=lambda *said: heard.append(said))
    writing_shares = [fraction for sentence, fraction in heard if "writes training texts" in sentence]
    assert all(sentence.startswith(bird.name) for sentence, _ in heard if "writes training texts" in sentence)
    assert writing_shares[0] == pytest.approx(16 / 1000)
    assert writing_shares[1] == pytest.approx(32 / 1000)
    assert writing_shares == sorted(writing_shares)
    assert writing_shares[-1] == 1
    shares = [fraction for sentence, fraction in heard if "Training the heads" in sentence]
    assert shares == pytest.approx([step / len(shares) for step in range(len(shares))])
    assert paces == pytest.approx([1 - share for share in shares])
    assert heads.notes["steps"] == str(len(paces))
    assert heard[-1] == ("Measuring the heads on held-out texts", None)
    came = int(heads.notes["trained_on"].split()[0].replace(",", ""))
    assert 1000 <= came < 1000 + 2 * 8 * LENGTH


def test_a_checkpoint_is_saved_every_fifteen_seconds(
    bird: Model, tmp_path: Path, seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[tuple[str, float]] = []
    keep = Checkpoint.save

    def noted(self: Checkpoint, name: str, found: Any) -> None:
        if name == "heads":
            kept.append((name, found["step"]))
        keep(self, name, found)

    def pass_time(sentence: str, fraction: float | None) -> None:
        seconds[0] += 1.0

    monkeypatch.setattr(Checkpoint, "save", noted)
    train_heads(bird, texts=TAUGHT, tokens=800, count=1, epochs=20, into=tmp_path, report=pass_time)
    steps = [step for _, step in kept]
    assert steps[:4] == [0, 15, 30, 45]


@pytest.mark.slow
def test_time_before_an_interruption_counts(bird: Model, tmp_path: Path, seconds: list[float]) -> None:
    def run(report: Callable[[str, float | None], None]) -> list[str]:
        heard: list[str] = []

        def pass_time(sentence: str, fraction: float | None) -> None:
            heard.append("writes" if "writes" in sentence else sentence[:18])
            seconds[0] += 1.0
            report(sentence, fraction)

        try:
            train_heads(
                bird, texts=TAUGHT, tokens=100_000, epochs=1000, count=1, minutes=2.5, into=tmp_path, report=pass_time
            )
        except KeyboardInterrupt:
            seconds[0] += 500.0
        return heard

    # A round is 24 passes: two of them are kept, and seven tenths of 150 seconds are for writing.
    assert run(Interrupting("writes", 60)).count("writes") == 61
    assert run(Interrupting("Training the heads", 0)).count("writes") == 105 - 48
    last = run(Interrupting("nothing", 0))
    assert last.count("writes") == 0
    assert last.count("Training the heads") == 45


def test_too_few_training_or_held_out_rows_raise_an_error(bird: Model, seconds: list[float]) -> None:
    def pass_time(sentence: str, fraction: float | None) -> None:
        seconds[0] += 40.0

    # One pass, and at the second one the minute is over: 16 tokens, of which 8 are kept apart.
    with pytest.raises(LookaheadError, match="Too little text came to learn from"):
        train_heads(bird, texts=TAUGHT, count=1, minutes=1.0, report=pass_time)


def test_a_training_resumes_only_with_the_same_model_texts_and_options(bird: Model, tmp_path: Path) -> None:
    requested: dict[str, Any] = {"texts": TAUGHT, "tokens": 800, "count": 1, "epochs": 2, "kept": 64, "seed": 3}
    with pytest.raises(KeyboardInterrupt):
        train_heads(bird, **requested, into=tmp_path, report=Interrupting("Training the heads", 0))
    others: dict[str, Any] = {"texts": TAUGHT[::-1], "tokens": 900, "count": 2, "epochs": 3, "kept": 65, "seed": 4}
    for name, other in others.items():
        with pytest.raises(LookaheadError, match="holds an unfinished training of other heads"):
            train_heads(bird, **{**requested, name: other}, into=tmp_path)
    with pytest.raises(LookaheadError, match="holds an unfinished training of other heads"):
        train_heads(parrot(CORPUS[:2]), **requested, into=tmp_path)
    assert train_heads(bird, **requested, minutes=1e6, into=tmp_path).count == 1


# What is kept on disk.


def test_saved_states_are_loaded_until_they_are_deleted(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "heads"
    unfinished = Checkpoint(folder)
    unfinished.begin({"seed": 1})
    assert unfinished.load("texts-0") is None
    unfinished.save("texts-0", {"spent": 1.5})
    unfinished.save("texts-0", {"spent": 2.5, "token_ids": torch.arange(3)})
    found = unfinished.load("texts-0")
    assert found is not None
    assert found["spent"] == 2.5
    assert found["token_ids"].tolist() == [0, 1, 2]
    assert sorted(path.name for path in (folder / ".training").iterdir()) == ["asked.json", "texts-0.pt"]
    unfinished.delete()
    unfinished.release()
    assert not (folder / ".training").exists()


def test_a_folder_is_locked_by_one_training_at_a_time(tmp_path: Path) -> None:
    one, other = Checkpoint(tmp_path), Checkpoint(tmp_path)
    one.begin({"seed": 1})
    with pytest.raises(LookaheadError, match="Another training writes into"):
        other.begin({"seed": 1})
    one.release()
    other.begin({"seed": 1})
    with pytest.raises(LookaheadError, match="Another training writes into"):
        one.begin({"seed": 1})
    other.release()


@pytest.mark.parametrize("written", [json.dumps({"seed": 2}), "half of {", ""])
def test_a_folder_of_another_training_or_a_damaged_one_is_refused(tmp_path: Path, written: str) -> None:
    (tmp_path / ".training").mkdir()
    (tmp_path / ".training" / "asked.json").write_text(written)
    with pytest.raises(LookaheadError, match="holds an unfinished training of other heads"):
        Checkpoint(tmp_path).begin({"seed": 1})


def test_without_a_folder_nothing_is_saved() -> None:
    unfinished = Checkpoint(None)
    unfinished.begin({"seed": 1})
    unfinished.save("heads", {"step": 1})
    assert unfinished.load("heads") is None
    unfinished.delete()
    unfinished.release()


# The command.


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], {"minutes": 10.0}),
        (["--minutes", "inf"], {"minutes": None}),
        (["--minutes", "2.5"], {"minutes": 2.5}),
        (["--tokens", "800", "--heads", "2", "--seed", "9"], {"minutes": 10.0, "tokens": 800, "count": 2, "seed": 9}),
    ],
)
def test_the_command_passes_its_options_on(
    words: list[str],
    options: dict[str, Any],
    tiny_model: Model,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    requested: list[dict[str, Any]] = []

    def interrupted(model: Model, **given: Any) -> None:
        requested.append(given)
        raise KeyboardInterrupt

    monkeypatch.setattr("lookahead_core.load_model", lambda *given, **more: tiny_model)
    monkeypatch.setattr(trainer, "train_heads", interrupted)
    assert main(["train-heads", *words, "--output", str(tmp_path / "out")]) == 130
    assert len(requested) == 1
    del requested[0]["report"]
    assert requested[0] == {"texts": None, "into": tmp_path / "out"} | options


def test_the_error_for_texts_that_are_not_utf8_names_the_byte(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.txt").write_bytes(b"good and \xff bad")
    assert main(["train-heads", "--texts", str(tmp_path / "texts.txt")]) == 2
    assert f"Byte 9 of {tmp_path / 'texts.txt'} is not UTF-8" in capsys.readouterr().err


def test_the_command_shows_the_accuracy_of_each_head() -> None:
    lines = training.accuracy_lines([(0.5, 0.75), (0.001, 1.0)])
    assert [line.split() for line in lines] == [
        ["On", "texts", "kept", "apart:"],
        ["first", "guess", "one", "of", "the", "first", "4"],
        ["head", "1", "50", "%", "75", "%"],
        ["head", "2", "0.1", "%", "100", "%"],
    ]
    assert len({line.rstrip().rfind("%") for line in lines[2:]}) == 1
