"""The speculation benchmark: its texts, the trie that it compares with, its arithmetic, and a small run."""

from __future__ import annotations

import argparse
import random
from collections import Counter
from typing import Any

import pytest

from benchmarks import speculation, tasks
from benchmarks.oracle import passes_of_an_oracle
from benchmarks.speculation_report import ALL, ORACLE, PASSAGE_TASKS, Run, Runs, report, wrong
from benchmarks.speculators import (
    DRAFT,
    GREEDY,
    HEADS,
    LOOKUP,
    OURS,
    TRIE,
    SpeculationMethods,
    first_layers,
    unlimited_drafts,
)
from benchmarks.tasks import TASKS, Prompt, corpus_for, read_task
from benchmarks.trie import BRANCH_LENGTH, DECODING_LENGTH, OUTPUT_WEIGHT, DraftTree, Trie, TrieDrafter
from lookahead_core import Document, Model, load_model
from lookahead_core.speculation.draft_and_verify import Pass
from lookahead_core.speculation.heads_file import untrained
from tests.conftest import byte_level, tiny_llama

TEMPLATE = """{% for message in messages %}{{ '<|start|>' + message['role'] + '
' + message['content'] + '<|end|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant
' }}{% endif %}"""


@pytest.fixture(scope="module")
def chat_model() -> Model:
    """A tiny model that reads the benchmark's texts in few tokens."""
    tokenizer = byte_level([" ".join(turns) for task in TASKS for turns in read_task(task)], vocabulary=2000)
    tokenizer.chat_template = TEMPLATE
    return load_model(tiny_llama(len(tokenizer), max_position_embeddings=2048), tokenizer=tokenizer)


def test_each_task_has_ten_different_texts() -> None:
    everything = [turns for task in TASKS for turns in read_task(task)]
    assert all(len(read_task(task)) >= 10 for task in TASKS)
    assert len(set(everything)) == len(everything)
    assert all(len(turns) % 2 for turns in everything), "the last turn is a person's"
    assert all(2 <= len(turns) // 2 + 1 <= 3 for turns in read_task("chat"))


def test_passages_have_the_length_of_real_passages() -> None:
    passages = {"copying", "summarising", "answering", "retelling"}
    for task in passages:
        assert all(90 <= len(turns[-1].split()) <= 200 for turns in read_task(task))
    for task in set(TASKS) - passages:
        assert all(8 <= len(" ".join(turns).split()) <= 150 for turns in read_task(task))


def test_the_copying_task_replaces_a_word_of_the_text_by_one_that_is_not_in_it() -> None:
    for (turn,) in read_task("copying"):
        instruction, _, text = turn.partition("\n\n")
        _, old, _, new, _ = instruction.split('"')
        assert old in text and new not in text


def test_summarising_uses_the_copied_passages_and_retelling_uses_others() -> None:
    copied, summarised, retold = (
        [turn.partition("\n\n")[2] for (turn,) in read_task(task)] for task in ("copying", "summarising", "retelling")
    )
    assert copied == summarised
    assert not set(copied) & set(retold)


def test_a_corpus_holds_the_answers_to_the_other_half_of_the_prompts() -> None:
    prompts = [Prompt(task, number, (number,), 8) for task in ("open", "code") for number in range(6)]
    answers = {prompt: f"{prompt.task} {prompt.number}" for prompt in prompts}
    assert corpus_for(prompts[2], answers) == ["open 1", "open 3", "open 5"]
    assert corpus_for(prompts[9], answers) == ["code 0", "code 2", "code 4"]


class Counted:
    """What the trie keeps, the slow way: every branch as a row, counted anew for each question."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[int, ...]] = Counter()
        self.said: Counter[tuple[int, ...]] = Counter()
        self.seen: dict[tuple[int, ...], None] = {}
        """Beginnings of branches, in the order in which they were first met."""

    def add(self, counts: Counter[tuple[int, ...]], token_ids: list[int], places: int, branch: int) -> None:
        for place in range(places):
            row = token_ids[place : place + branch + 2]
            for end in range(2, len(row) + 1):
                counts[tuple(row[:end])] += 1
                self.seen[tuple(row[:end])] = None

    def weight(self, row: tuple[int, ...]) -> float:
        return (1 - OUTPUT_WEIGHT) * self.asked[row] + OUTPUT_WEIGHT * self.said[row]

    def preorder(self, tail: tuple[int, ...]) -> list[tuple[int, ...]]:
        rows = [row for row in self.seen if len(row) == len(tail) + 1 and row[:-1] == tail]
        return [found for row in rows if self.asked[row] or self.said[row] for found in (row, *self.preorder(row))]

    def drafted(self, tail: tuple[int, ...], size: int, depth: int) -> list[tuple[int, ...]]:
        rows = self.preorder(tail)
        least_said = least_weight = 0.0
        if len(rows) > size:
            said = sorted(rows, key=self.said.__getitem__, reverse=True)
            weights = sorted(rows, key=self.weight, reverse=True)
            taken, least_said, least_weight = set(said[: size // 2]), self.said[said[size // 2 - 1]], 1e9
            rest = size - len(taken)
            taken.update(weights[:rest])
            met = len(taken)
            for row in weights[rest : rest + size]:
                if row not in taken:
                    met += 1
                    if met >= size:
                        least_weight = self.weight(row)
                        break
        chosen: list[tuple[int, ...]] = []
        self.pick(tail, chosen, (least_said, least_weight), size - 1, depth)
        return [row[len(tail) :] for row in chosen]

    def pick(
        self, tail: tuple[int, ...], chosen: list[tuple[int, ...]], least: tuple[float, float], size: int, depth: int
    ) -> None:
        rows = [row for row in self.preorder(tail) if len(row) == len(tail) + 1] if depth else []
        for row in sorted(rows, key=self.weight, reverse=True):
            if len(chosen) < size and (self.said[row] >= least[0] or self.weight(row) >= least[1]):
                chosen.append(row)
                self.pick(row, chosen, least, size, depth - 1)

    def retrieve(self, path: list[int], size: int, branch: int) -> list[tuple[int, ...]]:
        found: list[tuple[int, ...]] = []
        for tail in (tuple(path[-2:]), tuple(path[-1:])):
            if any(row[0] == tail[0] for row in self.seen):
                found = self.drafted(tail, size, branch)
                if len(found) + 1 >= branch:
                    break
        return found


def rows_of(shoot: DraftTree, above: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    return [row for token_id, more in shoot.items() for row in ((*above, token_id), *rows_of(more, (*above, token_id)))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_the_trie_drafts_what_a_slow_count_drafts(seed: int) -> None:
    dice = random.Random(seed)
    size, branch, tokens = (*dice.choice([(8, 3), (16, 4), (64, 12)]), dice.choice([3, 6]))
    trie, slow = Trie(size, branch), Counted()
    texts = [[dice.randrange(tokens) for _ in range(dice.randrange(3, 40))] for _ in range(3)]
    prompt, generated = ([dice.randrange(tokens) for _ in range(count)] for count in (30, 24))
    for text in texts:
        trie.add_text(text)
        slow.add(slow.said, text, len(text) - 1, branch)
    trie.add_prompt(prompt)
    slow.add(slow.asked, prompt[1:], len(prompt) - 2, branch)
    path, heard = list(prompt), 0
    while heard < len(generated):
        count = dice.randrange(1, 5)
        trie.go_on(generated[heard : heard + count])
        path += generated[heard : heard + count]
        before, heard = max(0, heard - branch - 1), min(heard + count, len(generated))
        ready = generated[before:heard]
        slow.add(slow.said, ready, len(ready) - branch - 1, branch)
        assert rows_of(trie.retrieve(path, reach=99)) == slow.retrieve(path, size, branch)


def test_the_trie_drops_a_prompt_at_its_texts_end_and_keeps_the_generated_text() -> None:
    trie = Trie()
    trie.add_prompt([0, 1, 2, 3, 4])
    trie.go_on([1, 2, 5])
    assert rows_of(trie.retrieve([1, 2], reach=9)) == [(3,), (3, 4)]
    trie.end()
    assert rows_of(trie.retrieve([1, 2], reach=9)) == [(5,)]
    assert not trie.retrieve([2, 3], reach=9)


def test_a_draft_stays_within_its_limits_of_size_and_depth() -> None:
    dice = random.Random(0)
    trie = Trie()
    trie.add_text([dice.randrange(4) for _ in range(3000)])
    rows = rows_of(trie.retrieve([0, 1], reach=99))
    assert len(rows) == DECODING_LENGTH - 1 and max(map(len, rows)) <= BRANCH_LENGTH
    assert max(len(row) for row in rows_of(trie.retrieve([0, 1], reach=3))) == 3


def test_our_verification_drafts_everything_the_trie_finds(chat_model: Model) -> None:
    found: list[int] = []

    class Watched(TrieDrafter):
        def start(self, path: Any, vector: Any, reach: int) -> Any:
            shoot = super().start(path, vector, reach)
            found.append(1 + len(rows_of(shoot or {})))
            return shoot

    ids, dice = [7, 11, 13], random.Random(1)
    plain = [step.token_id for step in Document(chat_model, token_ids=ids).stream(max_new_tokens=8, speculate=False)]
    trie = Trie()
    for token_id in plain * 9:
        trie.add_text([token_id, *(dice.randrange(1, 99) for _ in range(BRANCH_LENGTH))])
    with unlimited_drafts(chat_model.engine):
        options = {"max_new_tokens": 8, "speculate": True, "drafters": [Watched(trie)]}
        stream = Document(chat_model, token_ids=ids).stream(**options)
        assert [step.token_id for step in stream] == plain
    assert [one.evaluated for one in stream.passes][: len(found)] == found
    assert max(found) > 40


def run(contestant: str, speed: float, task: str = "open", number: int = 0, repeat: int = 0, **more: Any) -> Run:
    """Ten tokens at some speed."""
    where = {"dtype": "float32", "task": task, "number": number, "repeat": repeat, "prompt_tokens": 5}
    return Run(**where, contestant=contestant, seconds=10 / speed, token_ids=tuple(range(10)), **more)


@pytest.mark.parametrize(
    ("prompt", "written", "passes"),
    [
        ([1, 2, 3, 4], [2, 3, 4], 2),
        ([1, 2, 3], [4, 5, 6], 3),
        ([1, 2, 3, 1], [2, 3, 1, 2, 3], 1),
        ([9], [1, 2, 1, 2, 1, 2], 4),
        ([9], [], 0),
    ],
)
def test_the_oracle_copies_wherever_a_token_followed_the_same_token_before(
    prompt: list[int], written: list[int], passes: int
) -> None:
    assert passes_of_an_oracle(prompt, written) == passes


def test_a_ratio_is_the_geometric_mean_of_medians_of_repeats() -> None:
    speeds = {(0, 0): 2.0, (0, 1): 4.0, (0, 2): 100.0, (1, 0): 9.0, (1, 1): 9.0, (1, 2): 9.0}
    some = [run(OURS, 7 * speed, number=number, repeat=repeat) for (number, repeat), speed in speeds.items()]
    some += [run(GREEDY, 7, number=number, repeat=repeat) for number, repeat in speeds]
    assert Runs(some).ratio("float32", OURS, "open") == pytest.approx((4 * 9) ** 0.5)


def test_the_oracles_time_is_that_of_passes_of_its_sizes() -> None:
    # Four seconds for the prompt, then 0.75 a pass and 0.25 a node, and a second after each pass; ten tokens.
    passes = (Pass(1, 1, 4.0, 0.1, ()), Pass(3, 5, 2.0, 0.1, ("suffix",) * 2), Pass(1, 1, 1.0, 0.1, ()))
    some = [run(GREEDY, 2), run(OURS, 1, passes=passes, oracle_passes=2)]
    assert Runs(some).ratio("float32", ORACLE, "open") == pytest.approx(10 / (4 + 2 * (0.75 + 1) + 10 * 0.25) / 2)
    assert Runs(some[:1]).ratio("float32", ORACLE, "open") is None
    assert Runs([some[0], run(OURS, 1, passes=passes[:2], oracle_passes=2)]).ratio("float32", ORACLE, "open") is None


def test_every_task_has_equal_weight_whatever_its_number_of_prompts() -> None:
    some = [run(name, speed, "summarising") for name, speed in ((GREEDY, 1), (OURS, 8), (LOOKUP, 5))]
    for number in range(3):
        some += [run(name, speed, "answering", number) for name, speed in ((GREEDY, 1), (OURS, 2))]
    some += [run(GREEDY, 2, "open"), run(OURS, 8, "open")]
    runs = Runs(some)
    assert runs.ratio("float32", OURS, PASSAGE_TASKS) == pytest.approx(4)
    assert runs.ratio("float32", OURS, ALL) == pytest.approx(64 ** (1 / 3))
    assert runs.ratio("float32", LOOKUP, ALL) is None, "who left tasks out has no mean over all"
    assert Runs([run(GREEDY, 1), run(OURS, 2)]).ratio("float32", OURS, PASSAGE_TASKS) is None


def test_the_tables_show_the_results_and_the_failures() -> None:
    passes = (Pass(1, 1, 9.0, 9.0, ()), Pass(3, 5, 1.0, 0.1, ("suffix", "suffix+recycled")), Pass(1, 4, 1.0, 0.3, ()))
    some = [run(GREEDY, 10), run(OURS, 25, passes=passes), run(LOOKUP, 20, same=False, tie=True)]
    some += [run(TRIE, 20, same=False)]
    runs = Runs(some)
    text = report(runs)
    assert [one.contestant for one in wrong(runs)] == [TRIE]
    assert all(part in text for part in ("2.50", "2.00", "4.5", "20.0%", "suffix 50%, suffix+recycled 50%"))
    assert "0 of 1, 1 tied" in text and "## The bars" not in text
    with_heads = [*some, run(HEADS, 30, passes=passes)]
    bars = report(Runs([Run(**{**vars(one), "dtype": "bfloat16"}) for one in with_heads])).split("## ")[1]
    assert bars.startswith("The bars") and "1.25 | 2.50 |     yes |        3.00 |     yes" in bars


def test_an_assistant_of_the_first_layers_shares_the_models_weights(chat_model: Model) -> None:
    model = chat_model.hf_model
    assistant = first_layers(model, 0.5)
    assert len(assistant.model.layers) == assistant.config.num_hidden_layers == 1
    assert len(model.model.layers) == model.config.num_hidden_layers == 2
    assert {id(one) for one in assistant.parameters()} < {id(one) for one in model.parameters()}


def test_a_smaller_model_takes_part_where_one_is_passed(chat_model: Model) -> None:
    little = load_model(tiny_llama(chat_model.vocabulary, seed=1), tokenizer=chat_model.tokenizer)
    assert all_alike(SpeculationMethods(chat_model, draft_model=little)) >= {DRAFT}


def test_heads_take_part_where_they_are_passed(chat_model: Model) -> None:
    assert all_alike(SpeculationMethods(chat_model, heads=untrained(chat_model, 2))) >= {HEADS}


def all_alike(methods: SpeculationMethods) -> set[str]:
    """The names of those who have written, all of them the same."""
    prompt = Prompt("open", 0, (5, 6, 7), 6)
    written = {one.name: one.prepare(prompt, ["a text"])().token_ids for one in methods.contestants()}
    assert len(set(written.values())) == 1
    return set(written)


@pytest.mark.slow
def test_every_method_runs_and_writes_the_same_text(chat_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "read_task", lambda name: read_task(name)[:2])
    # What is not measured needs no garbage collected before it.
    monkeypatch.setattr(speculation, "timed", lambda call, device: (1.0, call()))
    parser = argparse.ArgumentParser()
    speculation.add_arguments(parser)
    arguments = parser.parse_args(["--prompts", "1", "--new-tokens", "4"])
    answers = speculation.model_answers(chat_model, speculation.prompts_for(chat_model, arguments))
    runs = Runs(speculation.measure("float32", chat_model, arguments, answers))
    assert not wrong(runs)
    assert runs.contestants("float32")[:3] == [GREEDY, LOOKUP, OURS] and len(runs.contestants("float32")) == 10
    assert {run.task for run in runs.runs} == set(TASKS)
    assert all(1 <= len(run.token_ids) <= 4 for run in runs.runs)
    assert "trie, corpus" in report(runs)
