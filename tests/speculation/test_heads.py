"""Draft heads before and after training: their predictions, their files, and that the model does not change."""

from __future__ import annotations

import gc
import math
import os
import re
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import errors as hub
from safetensors import safe_open
from safetensors.torch import save_file

from lookahead_core import Document, LookaheadError, Model, ModelError, load_model
from lookahead_core.command import model_loading
from lookahead_core.command.main import main
from lookahead_core.settings import Settings
from lookahead_core.speculation import load_heads as heads_loading
from lookahead_core.speculation.drafters.heads_drafter import HeadsDrafter
from lookahead_core.speculation.heads_file import TENSORS, TRAIN_HINT, Heads, fingerprint, output_matrix, untrained
from lookahead_core.speculation.heads_forward import HeadsForward
from lookahead_core.speculation.load_heads import FILE, load_heads
from lookahead_core.strategies.stream_options import StreamOptions
from lookahead_core.training import self_written_text, trainer
from lookahead_core.training.dataset import NO_TOKEN, HeadDataset
from lookahead_core.training.trainer import train_heads
from tests.conftest import CORPUS, byte_level, tiny_llama
from tests.support.scripted_model import parrot

TAUGHT = [
    "One fine day the old keeper climbed the stairs to the lamp and saw no ship on the whole wide sea. " * 4,
    "Bread is made of flour, water, salt and time; who hurries it will eat a stone by the evening light! " * 4,
]


@pytest.fixture(autouse=True)
def _little_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds that a tiny model writes in an instant, and steps that are long enough for a few of them."""
    monkeypatch.setattr(self_written_text, "MAX_LENGTH", 24)
    monkeypatch.setattr(trainer, "PROMPTS_PER_ROUND", 4)
    monkeypatch.setattr(self_written_text, "TOPICS", ("bees", "the sea"))
    monkeypatch.setattr(trainer, "LEARNING_RATE", 0.02)


@pytest.fixture(scope="module")
def bird() -> Model:
    return parrot(TAUGHT)


@pytest.fixture(scope="module")
def vector(tiny_model: Model) -> torch.Tensor:
    return vector_at(tiny_model, "Once upon a time")


def vector_at(model: Model, text: str) -> torch.Tensor:
    """What the model multiplies its output matrix with at the end of a text, by a plain forward."""
    ids = torch.tensor([Document(model, text).token_ids])
    with torch.no_grad():
        return model.hf_model.model(input_ids=ids).last_hidden_state[0, -1]


def random_heads(model: Model, count: int = 3, kept: torch.Tensor | None = None) -> Heads:
    plain, dice = untrained(model, count, kept), torch.Generator().manual_seed(1)
    parts = {
        name: (torch.randn(getattr(plain, name).shape, generator=dice) * 0.2).bfloat16()
        for name in ("inward", "biases", "outward")
    }
    return replace(plain, **parts)


def in_order(drafter: HeadsDrafter, vector: torch.Tensor, reach: int = 9, came: int = 2) -> list[list[Any]]:
    """The ways of each head, following the likeliest token; the vector became the token `came`."""
    state, found = drafter.start([1, came], vector, reach), []
    while state is not None:
        found.append(list(drafter.ways(state)))
        state = drafter.follow(state, found[-1][0].token_id)
    return found


def same(one: Heads, other: Heads) -> bool:
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in TENSORS)


# What they guess.


def test_untrained_heads_predict_what_the_model_predicts(tiny_model: Model, vector: torch.Tensor) -> None:
    said = Document(tiny_model, "Once upon a time").predict()
    heads = in_order(HeadsDrafter(untrained(tiny_model, 3), tiny_model), vector)
    assert len(heads) == 3
    for ways in heads:
        assert [way.token_id for way in ways] == list(said.token_ids[: len(ways)])
        assert [way.odds for way in ways] == pytest.approx([math.exp(value) for value in said.logprobs[:6]], rel=1e-3)


@pytest.mark.parametrize("restricted", [False, True])
def test_heads_equal_a_slow_reference_computation(tiny_model: Model, vector: torch.Tensor, restricted: bool) -> None:
    kept = torch.arange(7, 300, 3) if restricted else None
    heads = random_heads(tiny_model, 3, kept)
    matrix, _ = output_matrix(tiny_model)
    embedding = tiny_model.hf_model.get_input_embeddings().weight.detach()
    guessed = in_order(HeadsDrafter(heads, tiny_model), vector)
    assert len(guessed) == 3
    for number, ways in enumerate(guessed):
        inward, bias, outward = (part[number].double() for part in (heads.inward, heads.biases, heads.outward))
        size, token = vector.double().square().mean().sqrt(), embedding[2].double()
        seen = torch.cat([vector.double() / size, token / token.square().mean().sqrt()])
        thought = inward @ seen + bias
        bent = vector.double() + size * (outward @ (thought / (1 + torch.exp(-thought))))
        scores = torch.stack([matrix[token_id].double() @ bent for token_id in heads.kept.tolist()])
        odds = torch.exp(scores) / torch.exp(scores).sum()
        best = sorted(range(len(odds)), key=lambda place: -float(odds[place]))[:6]
        assert [way.token_id for way in ways] == [int(heads.kept[place]) for place in best]
        assert [way.odds for way in ways] == pytest.approx([float(odds[place]) for place in best], rel=1e-3)


@pytest.mark.parametrize(
    ("dtype", "computed_in"),
    [(torch.float16, torch.float32), (torch.bfloat16, torch.bfloat16), (torch.float32, torch.float32)],
)
def test_heads_compute_in_the_models_dtype_but_in_float32_for_float16_on_a_cpu(
    byte_tokenizer: Any, dtype: torch.dtype, computed_in: torch.dtype
) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer)).to(dtype), tokenizer=byte_tokenizer)
    assert HeadsForward(random_heads(model), model).dtype is computed_in


def test_several_rows_together_equal_each_row_alone(tiny_model: Model) -> None:
    product = HeadsForward(random_heads(tiny_model, 3, torch.arange(5, 90)), tiny_model)
    texts, came = ["Once upon a time", "the sea", "After careful"], torch.tensor([3, 50, 7])
    vectors = torch.stack([(1 + place) * vector_at(tiny_model, text) for place, text in enumerate(texts)])
    together = product(vectors, came)
    assert together.shape == (3, 3, 85)
    for place in range(3):
        alone = product(vectors[place : place + 1], came[place : place + 1])
        assert torch.allclose(together[:, place], alone[:, 0], rtol=1e-4, atol=1e-4)
    assert torch.allclose(product(vectors, came, 2), together[:2], rtol=1e-4, atol=1e-4)
    assert torch.allclose(product(vectors[:1], came[:1], 1)[:, 0], together[:1, 0], rtol=1e-4, atol=1e-4)


def test_heads_guess_as_deep_as_the_draft_and_nothing_without_a_hidden_state(
    tiny_model: Model, vector: torch.Tensor
) -> None:
    drafter = HeadsDrafter(random_heads(tiny_model), tiny_model)
    said = [[[way.token_id for way in ways] for ways in in_order(drafter, vector, reach)] for reach in (1, 2, 3, 9)]
    assert said == [said[-1][:1], said[-1][:2], said[-1], said[-1]] and len(said[-1]) == 3
    assert drafter.start([1], None, 3) is None and drafter.start([1], vector, 0) is None


def test_a_heads_guesses_depend_on_the_last_token_and_not_on_drafted_tokens(
    tiny_model: Model, vector: torch.Tensor
) -> None:
    drafter = HeadsDrafter(random_heads(tiny_model), tiny_model)
    state = drafter.start([1, 2], vector, 3)
    assert len({tuple(drafter.ways(drafter.follow(state, token_id))) for token_id in range(9)}) == 1
    assert in_order(drafter, vector, came=2) != in_order(drafter, vector, came=3)


def test_signs_tell_heads_and_ranks_and_odds_apart(tiny_model: Model, vector: torch.Tensor) -> None:
    for number, ways in enumerate(in_order(HeadsDrafter(random_heads(tiny_model), tiny_model), vector)):
        for rank, way in enumerate(ways):
            assert way.sign == (number, min(rank, 3), int(way.odds * 10))
        assert [way.odds for way in ways] == sorted((way.odds for way in ways), reverse=True)


# Training.


def test_targets_are_the_tokens_after_the_one_that_a_hidden_state_predicted() -> None:
    # Before each token the model thought of it, and of the one before it.
    rounds = [
        {"token_ids": torch.tensor([7, 6, 7, 8, 9, 6]), "vectors": torch.arange(6.0)[:, None], "lengths": [4, 2],
         "starts": [1, 0], "thought_ids": torch.tensor([[7, 0], [6, 7], [7, 6], [8, 7], [9, 0], [6, 9]]),
         "thought_odds": torch.tensor([[0.9, 0.1], [0.5, 0.3], [0.6, 0.2], [0.7, 0.1], [1.0, 0.0], [0.5, 0.5]])},
    ]  # fmt: skip
    dataset = HeadDataset.from_rounds(rounds, 2, 2)
    assert dataset.kept.tolist() == [6, 7], "of the texts to learn from, the most frequent"
    by_id = [[6, 7], [7, 8], [8, NO_TOKEN], [NO_TOKEN, NO_TOKEN]]
    places = {NO_TOKEN: NO_TOKEN, 6: 0, 7: 1, 8: NO_TOKEN}
    assert dataset.targets[..., 0].tolist() == [[places[token_id] for token_id in row] for row in by_id]
    assert dataset.targets[0].tolist() == [[0, 1], [1, 0]] and dataset.targets[1, 1].tolist() == [NO_TOKEN, 1]
    assert torch.allclose(dataset.target_probabilities[0], torch.tensor([[0.625, 0.375], [0.75, 0.25]]))
    assert dataset.target_probabilities[1, 1].tolist() == [0, 1] and not dataset.target_probabilities[3].any()
    assert dataset.hidden_states[:, 0].tolist() == [0, 1, 2, 3]
    assert dataset.next_ids.tolist() == [7, 6, 7, 8] and dataset.held_out_next_ids.tolist() == [9, 6]
    assert dataset.held_out_states[:, 0].tolist() == [4, 5] and dataset.held_out_target_ids.tolist() == [
        [6, -1],
        [-1, -1],
    ]


def test_training_texts_hold_the_hidden_state_that_each_token_was_sampled_from(tiny_model: Model) -> None:
    start = Document(tiny_model, "Once upon a time").token_ids
    texts = self_written_text.write_texts(
        tiny_model, [(3, start)], torch.Generator().manual_seed(0), lambda came: False
    )
    greedy = texts[0]
    steps = list(Document(tiny_model, "Once upon a time").stream(max_new_tokens=24))
    assert greedy.temperature == 0 and greedy.token_ids == [step.token_id for step in steps]
    assert len({tuple(text.token_ids) for text in texts}) > 4, "the others are drawn"
    text = texts[-1]
    ids = torch.tensor([start + text.token_ids])
    with torch.no_grad():
        plain = tiny_model.hf_model.model(input_ids=ids).last_hidden_state[0, len(start) - 1 : -1]
    assert torch.allclose(torch.stack(text.hidden_states), plain, rtol=1e-3, atol=1e-4)
    with torch.no_grad():
        odds, thought = tiny_model.hf_model.lm_head(plain).softmax(-1).topk(self_written_text.CANDIDATES)
    assert torch.equal(torch.stack([ids for ids, _ in text.candidates]), thought)
    assert torch.allclose(torch.stack([values for _, values in text.candidates]), odds, rtol=1e-3)


@pytest.mark.slow
def test_trained_heads_are_right_far_more_often_than_untrained_ones_and_the_model_stays_bit_for_bit(
    bird: Model,
) -> None:
    before = {name: tensor.clone() for name, tensor in bird.hf_model.state_dict().items()}
    needs = [parameter.requires_grad for parameter in bird.hf_model.parameters()]
    heads = train_heads(bird, texts=TAUGHT, tokens=1000, count=2, epochs=15)
    for (first, four), plain in zip(heads.held_out, untrained_on(bird), strict=True):
        assert first > plain + 0.3 and four >= first
    assert all(torch.equal(tensor, before[name]) for name, tensor in bird.hf_model.state_dict().items())
    assert [parameter.requires_grad for parameter in bird.hf_model.parameters()] == needs
    assert all(parameter.grad is None for parameter in bird.hf_model.parameters())


def untrained_on(model: Model) -> list[float]:
    """How often heads that were never trained are right on texts of this model, counted one by one."""
    starts = self_written_text.make_prompts(model, TAUGHT, 0)
    texts = self_written_text.write_texts(
        model, list(enumerate(starts)), torch.Generator().manual_seed(5), lambda came: False
    )
    return counted(HeadsDrafter(untrained(model, 2), model), texts[4:8])


def counted(drafter: HeadsDrafter, texts: list[self_written_text.GrowingText]) -> list[float]:
    """How often each head's first guess is right, one vector after another."""
    hits, total = [0] * drafter.heads.count, [0] * drafter.heads.count
    for text in texts:
        for place, vector in enumerate(text.hidden_states):
            for head, ways in enumerate(in_order(drafter, vector, came=text.token_ids[place])):
                if place + head + 1 < len(text.token_ids):
                    total[head] += 1
                    hits[head] += ways[0].token_id == text.token_ids[place + head + 1]
    return [hit / of for hit, of in zip(hits, total, strict=True)]


def test_the_reported_accuracy_is_that_on_the_held_out_texts(bird: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote: list[self_written_text.GrowingText] = []

    def kept_by(*given: Any) -> list[self_written_text.GrowingText]:
        texts = self_written_text.write_texts(*given)
        wrote.extend(texts)
        return texts

    monkeypatch.setattr(trainer, "write_texts", kept_by)
    heads = train_heads(bird, texts=TAUGHT, tokens=1000, count=2, epochs=3)
    apart = [text for text in wrote if text.prompt_number % 12 == 0]
    assert 0 < len(apart) < len(wrote) and len({text.prompt_number for text in wrote}) > 1
    message = [first for first, _ in heads.held_out]
    assert message == pytest.approx(counted(HeadsDrafter(heads, bird), apart), abs=1e-3)


class Interrupting:
    """A report that stops the training, as Ctrl+C would, after so many sentences that begin in some way."""

    def __init__(self, words: str, after: int) -> None:
        self.words, self.left = words, after

    def __call__(self, sentence: str, fraction: float | None = None) -> None:
        self.left -= self.words in sentence
        if self.left < 0 and self.words in sentence:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_an_interrupted_training_resumes_to_the_same_heads(
    bird: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    requested: dict[str, Any] = {"texts": TAUGHT, "tokens": 1000, "count": 1, "epochs": 8, "seed": 7}
    passes = bird.engine.passes
    whole = train_heads(bird, **requested)
    alone, passes = bird.engine.passes - passes, bird.engine.passes
    for words, after in (
        ("writes training texts", 30),
        ("Training the heads", 4),
        ("Training the heads", 5),
        ("Measuring", 0),
    ):
        with pytest.raises(KeyboardInterrupt):
            train_heads(bird, **requested, into=tmp_path / "bird", report=Interrupting(words, after))
        assert not (tmp_path / "bird" / FILE).exists()
    assert bird.engine.passes - passes < alone + 24, "of the texts, only those that were interrupted are written again"
    passes = bird.engine.passes
    heads = train_heads(bird, **requested, into=tmp_path / "bird")
    assert bird.engine.passes == passes
    assert same(heads, whole) and heads.held_out == whole.held_out and heads.notes == whole.notes
    assert os.listdir(tmp_path / "bird") in ([FILE], [".training.lock", FILE], [FILE, ".training.lock"])


def test_the_same_seed_gives_the_same_heads_and_another_one_others(bird: Model) -> None:
    one, again, other = (train_heads(bird, texts=TAUGHT, tokens=800, count=1, epochs=1, seed=s) for s in (1, 1, 2))
    assert same(one, again) and not same(one, other)


def test_an_unfinished_training_resumes_only_with_the_same_settings(bird: Model, tmp_path: Path) -> None:
    requested: dict[str, Any] = {"texts": TAUGHT, "tokens": 1600, "count": 2, "into": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        train_heads(bird, **requested, report=Interrupting("Training the heads", 1))
    with pytest.raises(LookaheadError, match="holds an unfinished training of other heads: ask for the same"):
        train_heads(bird, **{**requested, "count": 3})
    (tmp_path / ".training" / "heads.pt").write_bytes(b"half")
    with pytest.raises(LookaheadError, match="is damaged, so the training cannot go on from it: delete"):
        train_heads(bird, **requested)


def test_two_trainings_do_not_write_into_one_folder(bird: Model, tmp_path: Path) -> None:
    def again(sentence: str, fraction: float | None) -> None:
        train_heads(bird, texts=TAUGHT, tokens=800, into=tmp_path)

    with pytest.raises(LookaheadError, match=r"Another training writes into .*: wait for its end"):
        train_heads(bird, texts=TAUGHT, tokens=800, into=tmp_path, report=again)


def test_a_time_limit_ends_writing_and_training(bird: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(trainer.time, "monotonic", lambda: now[0])
    heard: list[str] = []

    def report(sentence: str, fraction: float | None) -> None:
        heard.append(sentence.split()[-1] if "writes" in sentence else sentence[:18])
        now[0] += 1.0

    heads = train_heads(bird, texts=TAUGHT, tokens=100_000, epochs=1000, count=1, minutes=2.5, report=report)
    writes = heard.count("texts")
    assert writes == 105, "seven tenths of the seconds, also within a round"
    assert heads.notes["steps"] == str(heard.count("Training the heads")) == "45", "and the rest"


def test_too_little_time_or_text_raises_an_error(bird: Model) -> None:
    with pytest.raises(LookaheadError, match="Too little text came to learn from: give more minutes or more tokens"):
        train_heads(bird, texts=TAUGHT, minutes=1e-9)
    with pytest.raises(ValueError, match="The texts hold less than two pieces of 48 tokens"):
        train_heads(bird, texts=["Short."])
    with pytest.raises(ValueError, match="count is 0, and must be a whole number from 1 to 16"):
        train_heads(bird, count=0)
    with pytest.raises(ValueError, match="heads is not an option of train_heads; the options are tokens, count"):
        train_heads(bird, heads=3)


def test_a_model_without_hidden_states_raises_an_error(byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer, engine="uncached")
    engine = model.engine
    score = type(engine).score
    hidden = score(engine, [Document(model, "Once").head], hidden=True).hidden
    if hidden is None:
        with pytest.raises(LookaheadError, match="gives no hidden states, so heads cannot be trained for it"):
            train_heads(model, tokens=800)


def test_prompts_include_instructions_if_the_model_has_a_chat_template(byte_tokenizer: Any) -> None:
    model = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    plain = self_written_text.make_prompts(model, None, 0)
    chatty = byte_level(CORPUS)
    chatty.chat_template = "<|start|>{% for one in messages %}{{ one['content'] }}{% endfor %}<|end|>"
    requested = self_written_text.make_prompts(load_model(tiny_llama(len(chatty)), tokenizer=chatty), None, 0)
    assert len(requested) - len(plain) == len(self_written_text.INSTRUCTIONS) * len(self_written_text.TOPICS)
    assert any("Explain bees in simple words." in chatty.decode(start) for start in requested)
    assert requested != self_written_text.make_prompts(load_model(tiny_llama(len(chatty)), tokenizer=chatty), None, 1)


# Files.


def test_heads_are_read_as_they_were_saved(tiny_model: Model, vector: torch.Tensor, tmp_path: Path) -> None:
    heads = replace(
        random_heads(tiny_model, kept=torch.arange(7, 300)), notes={"model": "m", "held_out": "[[0.5, 1.0]]"}
    )
    heads.save(tmp_path / FILE)
    settings = Settings(cache_dir=tmp_path / "cache")
    home = heads_loading.home_of("mine", settings)
    home.mkdir(parents=True)
    heads.save(home / FILE)
    assert (home / FILE).stat().st_mode & 0o777 == 0o644, "whoever shares the folder may read them"
    guesses = in_order(HeadsDrafter(heads, tiny_model), vector)
    for source in (tmp_path / FILE, str(tmp_path), "mine"):
        found = load_heads(source, tiny_model, settings=settings)
        assert same(found, heads) and found.notes == heads.notes and found.fingerprint == heads.fingerprint
        assert in_order(HeadsDrafter(found, tiny_model), vector) == guesses
    assert heads.held_out == [(0.5, 1.0)]


def test_heads_are_equal_if_all_their_fields_are(tiny_model: Model, tmp_path: Path) -> None:
    heads = random_heads(tiny_model)
    heads.save(tmp_path / FILE)
    found, again = (load_heads(tmp_path, tiny_model) for _ in range(2))
    assert found == again and hash(found) == hash(again) and {found: 1}[again] == 1
    assert StreamOptions(heads=found) == StreamOptions(heads=again)
    changed = heads.outward.clone()
    changed[0, 0, 0] += 1
    for others in (
        {"outward": changed}, {"outward": heads.outward.float()}, {"outward": heads.outward[:2]}, {"name": "other"},
        {"fingerprint": "other"}, {"notes": {"model": "other"}}, {"vocabulary": 3},
    ):  # fmt: skip
        assert heads != replace(heads, **others)
    assert heads != "heads" and heads == replace(heads)


def test_model_and_source_of_heads_may_come_in_either_order(tiny_model: Model, tmp_path: Path) -> None:
    heads = random_heads(tiny_model)
    heads.save(tmp_path / FILE)
    for source in (tmp_path, str(tmp_path / FILE)):
        given = {"model": tiny_model, "source": source}
        found = [load_heads(source, tiny_model), load_heads(tiny_model, source), load_heads(**given)]
        assert all(same(one, heads) for one in found)
    for one, other in ((tmp_path, str(tmp_path)), (tiny_model, tiny_model), (tmp_path, tiny_model.hf_model)):
        with pytest.raises(ValueError, match="load_heads takes a model that load_model gave, and a source: give"):
            load_heads(one, other)
    for source in (None, 3, ["a"]):
        with pytest.raises(ValueError, match=r"source is .*, and must be a file, a folder, a name or a Hub id"):
            load_heads(source, tiny_model)


def test_heads_of_another_model_are_refused_and_those_of_the_same_one_rounded_are_not(
    tiny_model: Model, byte_tokenizer: Any, tmp_path: Path
) -> None:
    random_heads(tiny_model).save(tmp_path / FILE)

    def loaded(**options: Any) -> Model:
        hf_model = tiny_llama(len(byte_tokenizer), **options)
        return load_model(hf_model, tokenizer=byte_tokenizer)

    with pytest.raises(ModelError, match=r"were trained for another model \(LlamaForCausalLM\), whose weights are not"):
        load_heads(tmp_path, loaded(seed=1))
    other = load_model(tiny_llama(len(byte_tokenizer) + 8), tokenizer=byte_tokenizer)
    with pytest.raises(ModelError, match=r"are for a model of 400 tokens and hidden size 32, and .* has 408 and 32"):
        load_heads(tmp_path, other)
    with pytest.raises(ModelError, match="another model"):
        HeadsDrafter(load_heads(tmp_path, tiny_model), loaded(seed=1))
    half = load_model(tiny_llama(len(byte_tokenizer)).bfloat16(), tokenizer=byte_tokenizer)
    assert load_heads(tmp_path, half).fingerprint == fingerprint(half)
    noisy = tiny_llama(len(byte_tokenizer))
    with torch.no_grad():
        noisy.lm_head.weight += 0.05 * torch.randn(noisy.lm_head.weight.shape)
    rounded = load_model(noisy, tokenizer=byte_tokenizer)
    assert fingerprint(rounded) != fingerprint(tiny_model)
    assert same(load_heads(tmp_path, rounded), random_heads(tiny_model))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"nothing of the kind", "cannot be read as heads"),
        (b"", "cannot be read as heads"),
        (None, "is a safetensors file, but holds no heads of this version"),
    ],
)
def test_a_file_without_heads_raises_an_error(
    tiny_model: Model, tmp_path: Path, content: bytes | None, said: str
) -> None:
    if content is None:
        save_file({"inward": torch.zeros(2)}, tmp_path / FILE)
    else:
        (tmp_path / FILE).write_bytes(content)
    with pytest.raises(ModelError, match=said):
        load_heads(tmp_path, tiny_model)


def spoilt(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is otherwise in a file of heads: tensors, by what is made of them, and facts."""
    tensors: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "no fingerprint": ({}, {"fingerprint": None}),
        "no count": ({}, {"count": None}),
        "other count": ({}, {"count": "2"}),
        "no number": ({}, {"vocabulary": "many"}),
        "other vocabulary": ({}, {"vocabulary": "300"}),
        "flat": ({"inward": lambda inward: inward[0]}, {}),
        "deep": ({"inward": lambda inward: inward[None]}, {}),
        "thin": ({"outward": lambda outward: outward[:, :, :-1]}, {}),
        "short": ({"biases": lambda biases: biases[:, :-1]}, {}),
        "fewer": ({"biases": lambda biases: biases[:1]}, {}),
        "blind": ({"inward": lambda inward: inward[:, :, :-1]}, {}),
        "none": ({name: lambda part: part[:0] for name in ("inward", "biases", "outward")}, {}),
        "nan": ({"outward": lambda outward: outward * math.nan}, {}),
        "endless": ({"biases": lambda biases: biases + math.inf}, {}),
        "whole": ({"inward": lambda inward: inward.long()}, {}),
        "beyond": ({"kept": lambda kept: kept + 1}, {}),
        "negative": ({"kept": lambda kept: kept - 1}, {}),
        "falling": ({"kept": lambda kept: kept.flip(0)}, {}),
        "twice": ({"kept": lambda kept: kept // 2}, {}),
        "broken": ({"kept": lambda kept: kept.float()}, {}),
        "empty": ({"kept": lambda kept: kept[:0]}, {}),
        "other sample": ({"sample": lambda sample: sample[:5]}, {}),
    }
    return tensors[name]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("no fingerprint", "it has no fingerprint"),
        ("no count", "it has no count"),
        ("other count", "its metadata has 2 heads of hidden size 32, and its tensors have 3 of 32"),
        ("no number", "cannot be read as heads"),
        ("other vocabulary", "kept does not hold ascending ids from 0 to 299"),
        ("flat", r"inward has the shape \(32, 64\)"),
        ("deep", r"inward has the shape \(1, 3, 32, 64\)\)"),
        ("thin", r"outward has the shape \(3, 32, 31\) instead of \(3, 32, 32\)"),
        ("short", r"inward has the shape \(3, 32, 64\) instead of \(3, 31, 64\)"),
        ("fewer", r"inward has the shape \(3, 32, 64\) instead of \(1, 32, 64\)"),
        ("blind", "have inputs of 63 numbers, and LlamaForCausalLM gives 64"),
        ("none", r"inward has the shape \(0, 32, 64\)"),
        ("nan", "outward holds NaN or infinity"),
        ("endless", "biases holds NaN or infinity"),
        ("whole", "inward holds int64"),
        ("beyond", "kept does not hold ascending ids from 0 to 399"),
        ("negative", "kept does not hold ascending ids from 0 to 399"),
        ("falling", "kept does not hold ascending ids from 0 to 399"),
        ("twice", "kept does not hold ascending ids from 0 to 399"),
        ("broken", "kept holds float32"),
        ("empty", r"kept has the shape \(0,\)"),
        ("other sample", r"sample has the shape \(5, 32\) instead of \(32, 32\)"),
    ],
)
def test_a_damaged_file_of_heads_raises_an_error_that_names_the_problem(
    tiny_model: Model, tmp_path: Path, fault: str, said: str
) -> None:
    random_heads(tiny_model).save(tmp_path / FILE)
    tensors, facts = spoilt(fault)
    with safe_open(tmp_path / FILE, "pt") as file:
        message = {**file.metadata(), **facts}
        parts = {name: tensors.get(name, lambda part: part)(file.get_tensor(name)).contiguous() for name in TENSORS}
    save_file(parts, tmp_path / FILE, {name: value for name, value in message.items() if value is not None})
    with pytest.raises(ModelError, match=said) as raised:
        load_heads(tmp_path, tiny_model)
    assert str(raised.value).endswith(f"{TRAIN_HINT}.")


def test_heads_keep_no_model_alive_that_they_were_used_with(tiny_model: Model, byte_tokenizer: Any) -> None:
    heads = random_heads(tiny_model)
    passing = load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)
    list(Document(passing, "Once").stream(max_new_tokens=4, speculate=True, heads=heads))
    list(Document(tiny_model, "Once").stream(max_new_tokens=4, speculate=True, heads=heads))
    assert len(heads.prepared) == len(heads.checked_models) == 2
    gone = weakref.ref(passing.hf_model)
    del passing
    gc.collect()
    assert gone() is None
    assert list(heads.prepared) == list(heads.checked_models) == [tiny_model.hf_model]
    assert not replace(heads, name="others").prepared


def test_the_error_for_missing_heads_lists_the_paths_that_were_tried(tiny_model: Model, tmp_path: Path) -> None:
    settings = Settings(cache_dir=tmp_path)
    with pytest.raises(ModelError, match=r"There are no heads nobody's, neither as .*heads/nobody's/heads.safetensors"):
        load_heads("nobody's", tiny_model, settings=settings)
    with pytest.raises(ModelError, match=r"There are no heads \./nowhere/at/all"):
        load_heads("./nowhere/at/all", tiny_model, settings=settings)
    with pytest.raises(ModelError, match=r"The folder .* holds no heads\.safetensors"):
        load_heads(tmp_path, tiny_model, settings=settings)
    with pytest.raises(ValueError, match="must be a plain name"):
        heads_loading.home_of("../up", settings)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (hub.GatedRepoError.__new__(hub.GatedRepoError), "owner/heads is gated: ask for access"),
        (hub.RepositoryNotFoundError.__new__(hub.RepositoryNotFoundError), "and the Hub shows none either"),
        (hub.LocalEntryNotFoundError("none"), "are not on this machine, and the Hub does not answer"),
        (hub.EntryNotFoundError("none"), r"on the Hub holds no heads\.safetensors"),
        (hub.HFValidationError("odd"), "is no file, no folder and no name on the Hub"),
        (OSError("broken"), r"could not be fetched \(OSError\)"),
    ],
)
def test_a_hub_id_is_downloaded_or_raises_an_error(
    tiny_model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    random_heads(tiny_model).save(tmp_path / FILE)
    requested: list[Any] = []

    def download(name: str, file: str, local_files_only: bool) -> str:
        requested.append((name, file, local_files_only))
        if len(requested) > 1:
            raise error
        return str(tmp_path / FILE)

    monkeypatch.setattr(heads_loading, "hub_answers", lambda *given: True)
    monkeypatch.setattr(heads_loading, "hf_hub_download", download)
    assert same(load_heads("owner/heads", tiny_model), random_heads(tiny_model))
    assert requested == [("owner/heads", FILE, False)]
    with pytest.raises(ModelError, match=said):
        load_heads("owner/heads", tiny_model)


# The command.


@pytest.fixture
def saved(byte_tokenizer: Any, tmp_path: Path) -> Path:
    """A tiny model in a folder."""
    folder = tmp_path / "tiny"
    tiny_llama(len(byte_tokenizer)).save_pretrained(folder)
    byte_tokenizer.save_pretrained(folder)
    return folder


def test_the_command_trains_heads_that_load_by_their_name(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOKAHEAD_CACHE_DIR", str(tmp_path / "cache"))
    texts = tmp_path / "texts.txt"
    texts.write_text(" ".join(CORPUS))
    words = ["train-heads", "--model", str(saved), "--tokens", "800", "--heads", "2", "--texts", str(texts)]
    assert main([*words, "--name", "mine"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"head 2 +[\d.<]+ % +[\d.<]+ %", out) and "2 heads, " in out and str(tmp_path / "cache") in out
    heads = load_heads("mine", load_model(saved))
    assert heads.count == 2 and heads.notes["model"] == str(saved)
    assert main([*words, "--output", str(tmp_path / "elsewhere")]) == 0
    assert same(load_heads(tmp_path / "elsewhere", load_model(saved)), heads)


def test_the_command_says_how_to_resume_after_an_interruption(
    tiny_model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lookahead_core.load_model", lambda *given, **options: tiny_model)
    monkeypatch.setattr("lookahead_core.command.terminal.report", Interrupting("Training the heads", 2))
    words = ["train-heads", "--tokens", "800", "--output", str(tmp_path)]
    assert main(words) == 130
    assert capsys.readouterr().err == "Stopped; the same command goes on from here.\n"
    monkeypatch.setattr("lookahead_core.command.terminal.report", Interrupting("writes", 0))
    assert main(words) == 0, "nothing is written again"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tokens", "3"], "tokens is 3, and must be a whole number from 256"),
        (["--heads", "none"], "Argument --heads: invalid int value: 'none'; see python -m lookahead_core train-heads"),
        (["--minutes", "0"], "minutes is 0.0, and must be a number more than 0."),
        (["--name", "a", "--output", "b"], "--name and --output are both given; the heads go to one place."),
        (["--name", "a/b"], "name is 'a/b', and must be a plain name"),
        (["--texts", "nowhere.txt"], "The texts nowhere.txt cannot be read: No such file or directory."),
    ],
)
def test_the_command_rejects_wrong_options_before_it_loads_anything(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_loading, "load", lambda arguments: pytest.fail("A model is loaded."))
    try:
        status = main(["train-heads", *words])
    except SystemExit as ending:
        status = int(str(ending.code))
    assert status == 2 and said in capsys.readouterr().err
