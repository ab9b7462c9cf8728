"""Jobs that wait for passes share them: counts of passes, equal results, errors, limits and times."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from lookahead_core import Document, Model
from lookahead_core.engines.engine import NodeScores
from lookahead_core.errors import CacheFull
from lookahead_core.serving import shared_passes
from lookahead_core.serving.job import Job, PassRequest
from lookahead_core.serving.scheduler import Scheduler
from lookahead_core.serving.shared_passes import CPU_LIMITS, GPU_LIMITS, PassLimits, make_pass, make_passes
from lookahead_core.tree import Node
from tests.engines.test_bfloat16_and_float32_guarantees import compiling, small_model

PATIENCE = 120
"""Seconds after which a failing test gives up; no result depends on it."""
TEXTS = ["The old keeper", "A boat in the harbour", "Nobody saw the light", "The sea was calm and"]


class Recorder:
    """A wrapper around an engine that records the nodes of each `score` and `prefill`, and can change `score`."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.scored: list[list[Node]] = []
        self.prefilled: list[int] = []
        self.before: Callable[[Sequence[Node]], None] = lambda nodes: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        self.before(nodes)
        self.scored.append(list(nodes))
        scores: NodeScores = self.engine.score(nodes, hidden=hidden)
        return scores

    def prefill(self, nodes: Sequence[Node]) -> None:
        self.prefilled.append(len(nodes))
        self.engine.prefill(nodes)


class Answers:
    """The results of one job, and its end."""

    def __init__(self) -> None:
        self.results: list[Any] = []
        self.error: Exception | None = None
        self.over = threading.Event()

    def end(self, error: Exception | None) -> None:
        self.error = error
        self.over.set()

    def last(self) -> Any:
        assert self.over.wait(PATIENCE)
        if self.error is not None:
            raise self.error
        return self.results[-1]


@pytest.fixture
def recorder(tiny_model: Model) -> Recorder:
    return Recorder(tiny_model.engine)


@pytest.fixture
def shared(tiny_model: Model, recorder: Recorder, request: pytest.FixtureRequest) -> Iterator[Model]:
    """A model with a scheduler, whose limits are the fixture's parameter, or those of a GPU."""
    scheduler = Scheduler(recorder, limits=getattr(request, "param", GPU_LIMITS))  # type: ignore[arg-type]
    yield replace(tiny_model, engine=scheduler)
    scheduler.close()


def submit(model: Model, steps: Iterator[Any], client: object, *, prefetch: bool = False) -> Answers:
    answers = Answers()
    scheduler: Any = model.engine
    scheduler.submit(steps, client, on_step=answers.results.append, on_end=answers.end, prefetch=prefetch)
    return answers


def together(model: Model, jobs: dict[object, Iterator[Any]], **options: bool) -> list[Answers]:
    """Submit jobs so that all of them are in the first round, and return their answers."""
    go = threading.Event()
    begun = threading.Event()

    def hold() -> Iterator[None]:
        begun.set()
        assert go.wait(PATIENCE)
        yield

    submit(model, hold(), "holds the thread")
    assert begun.wait(PATIENCE)
    answers = [submit(model, steps, client, **options) for client, steps in jobs.items()]
    go.set()
    return answers


def lookaheads(model: Model, texts: Sequence[str] = TEXTS) -> dict[object, Iterator[Any]]:
    return {text: Document(model, text).lookahead_steps(k=3, depth=5) for text in texts}


def test_lookaheads_of_four_people_take_as_many_passes_as_one_and_give_the_same(
    tiny_model: Model, shared: Model, recorder: Recorder
) -> None:
    expected = [Document(tiny_model, text).lookahead(k=3, depth=5) for text in TEXTS]
    before = recorder.passes
    found = [answers.last().result for answers in together(shared, lookaheads(shared))]
    assert recorder.passes - before == 5, "depth 5 takes 5 passes, for however many people"
    for one, other in zip(found, expected, strict=True):
        assert [branch.token_ids for branch in one.branches] == [branch.token_ids for branch in other.branches]
        for mine, reference in zip(one.branches, other.branches, strict=True):
            assert mine.logprobs == pytest.approx(reference.logprobs, abs=1e-4)
    assert all(len({node.tree for node in nodes}) == len(TEXTS) for nodes in recorder.scored)


@pytest.mark.slow
@pytest.mark.parametrize(("shared", "most"), [(GPU_LIMITS, 64), (CPU_LIMITS, 28)], indirect=["shared"])
def test_a_pass_has_at_most_the_rows_that_are_allowed(shared: Model, most: int, recorder: Recorder) -> None:
    texts = [f"{text} {number}" for text in TEXTS for number in range(8)]
    for answers in together(shared, lookaheads(shared, texts)):
        answers.last()
    sizes = [len(nodes) for nodes in recorder.scored]
    assert most * 3 / 4 < max(sizes) <= most < sum(sizes), sizes
    assert any(len({node.tree for node in nodes}) > 1 for nodes in recorder.scored)


def test_an_error_of_one_persons_nodes_ends_only_that_persons_request(shared: Model, recorder: Recorder) -> None:
    documents = [Document(shared, text) for text in TEXTS]
    wrong = documents[1].tree

    def refuse(nodes: Sequence[Node]) -> None:
        if any(node.tree is wrong for node in nodes):
            raise CacheFull("no room for this one")

    recorder.before = refuse
    jobs: dict[object, Iterator[Any]] = {
        index: document.lookahead_steps(k=3, depth=4) for index, document in enumerate(documents)
    }
    answers = together(shared, jobs)
    for index, each in enumerate(answers):
        if index == 1:
            with pytest.raises(CacheFull, match="this one"):
                each.last()
        else:
            assert len(each.last().result.branches) == 3


def test_a_job_that_is_stopped_while_it_waits_for_a_pass_cleans_up_and_ends(shared: Model, recorder: Recorder) -> None:
    document, cleaned = Document(shared, "The old keeper"), []
    scheduler: Any = shared.engine

    def steps() -> Iterator[None]:
        try:
            shared.engine.evaluate([document.head])
            cleaned.append("never")
            yield
        finally:
            # A pass may be needed even now.
            cleaned.append(shared.engine.evaluate([document.head]).shape[0])

    recorder.before = lambda nodes: scheduler.stop("a") if not cleaned else None
    jobs: dict[object, Iterator[Any]] = {
        "a": steps(),
        "b": Document(shared, "A boat").lookahead_steps(k=2, depth=2),
    }
    stopped, other = together(shared, jobs)
    assert other.last().result.branches
    assert cleaned == [1] and not stopped.over.is_set()


@pytest.mark.parametrize(("shared", "most"), [(GPU_LIMITS, 64), (CPU_LIMITS, 28)], indirect=["shared"])
def test_a_long_text_is_read_in_chunks_between_the_passes_of_others(
    shared: Model, most: int, recorder: Recorder
) -> None:
    long = Document(shared, "sea " * 260)
    order: list[str] = []
    recorder.before = lambda nodes: order.append("score")
    plain, recorder.prefill = recorder.prefill, lambda nodes: (order.append("read"), plain(nodes))[1]  # type: ignore
    jobs: dict[object, Iterator[Any]] = {
        "long": long.lookahead_steps(k=2, depth=2),
        "short": Document(shared, "A boat").lookahead_steps(k=2, depth=6),
    }
    for answers in together(shared, jobs):
        assert answers.last().result.branches
    assert recorder.prefilled[:3] == [most] * 3
    assert order[:6] == ["score", "read"] * 3, "a chunk and a pass in turn"


def test_a_lone_reader_reads_in_large_chunks(shared: Model, recorder: Recorder) -> None:
    answers = submit(shared, Document(shared, "sea " * 120).lookahead_steps(k=2, depth=2), "alone")
    assert answers.last().result.branches
    assert not recorder.prefilled and max(map(len, recorder.scored)) <= 2, "the last 768 tokens are read with the pass"


@pytest.mark.parametrize("shared", [CPU_LIMITS], indirect=True)
def test_a_lone_reader_on_a_cpu_reads_chunks_between_which_others_can_have_a_pass(
    shared: Model, recorder: Recorder
) -> None:
    document, plain, begun = Document(shared, "sea " * 180), recorder.prefill, threading.Event()
    missing = len(recorder.nodes_to_prefill(document.head))
    newcomers: list[Answers] = []

    def prefill(nodes: Sequence[Node]) -> None:
        if not newcomers:
            newcomers.append(submit(shared, Document(shared, "A boat").lookahead_steps(k=2, depth=3), "newcomer"))
            begun.set()
        plain(nodes)

    recorder.prefill = prefill  # type: ignore[method-assign]
    reader = submit(shared, document.lookahead_steps(k=2, depth=2), "reader")
    assert begun.wait(PATIENCE) and newcomers[0].last().result.branches and reader.last().result.branches
    chunks = recorder.prefilled
    assert chunks[0] == 128 and set(chunks[1:]) <= {28, 128} and sum(chunks) <= missing
    assert missing - sum(chunks) <= 128, "the last tokens are computed with the scores"


def test_a_short_text_does_not_wait_for_the_end_of_a_very_long_one(
    shared: Model, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_passes, "READ_TURN", 1e-9)
    texts = {"long": "sea " * 420, "short": "The keeper saw it. " * 8, "typing": "A boat"}
    documents = {name: Document(shared, text) for name, text in texts.items()}
    missing = {name: len(recorder.nodes_to_prefill(document.head)) for name, document in documents.items()}
    assert GPU_LIMITS.shared < missing["short"] < missing["long"] / 3, missing
    left: list[int] = []

    def steps(name: str, depth: int) -> Iterator[Any]:
        yield from documents[name].lookahead_steps(k=2, depth=depth)
        if name == "short":
            left.append(len(recorder.nodes_to_prefill(documents["long"].head)))

    depths = {"long": 2, "short": 2, "typing": 30}
    for answers in together(shared, {name: steps(name, depth) for name, depth in depths.items()}):
        assert answers.last().result.branches
    assert 0 < left[0] < missing["long"], "both were read in turns"


def test_texts_are_read_one_after_the_other_in_large_passes_if_nobody_needs_scores(
    shared: Model, recorder: Recorder
) -> None:
    documents = [Document(shared, f"{index} " + "sea " * 120) for index in range(3)]

    def steps(document: Document) -> Iterator[Any]:
        yield shared.engine.evaluate([document.head])

    for answers in together(shared, {document: steps(document) for document in documents}):
        assert answers.last().shape[0] == 1
    assert not recorder.prefilled, "each text has one pass"
    assert [[node.tree for node in nodes] for nodes in recorder.scored] == [[document.tree] for document in documents]


def suspended(nodes: Sequence[Node], **options: Any) -> Job:
    """A job that waits for a pass over these nodes."""

    def steps() -> Iterator[None]:
        job = Job.current()
        assert job is not None
        job.wait_for(PassRequest(nodes, **options))
        yield

    job = Job(object(), 0, steps(), print, print)
    assert job.run() == (False, None) and job.waits
    return job


def test_a_pass_takes_up_prefetches_that_add_nothing_to_its_cost(
    tiny_model: Model, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    heads = [Document(tiny_model, text).head for text in TEXTS]
    tiny_model.engine.evaluate(heads)
    children = [[head.tree.expand(head, token) for token in range(10)] for head in heads]
    monkeypatch.setattr(recorder.engine.pass_costs, "cost", lambda nodes: 1.0 if nodes <= 25 else 1.1)
    request, *prefetches = [suspended(nodes) for nodes in children]
    reading = suspended(children[1], prefill=True)
    make_passes(recorder, [request], [reading, *prefetches], GPU_LIMITS)  # type: ignore[arg-type]
    assert [job.waits for job in (request, reading, *prefetches)] == [False, True, False, True, True]
    assert [len(nodes) for nodes in recorder.scored] == [20]
    make_passes(recorder, [], prefetches[1:], GPU_LIMITS)  # type: ignore[arg-type]
    assert [len(nodes) for nodes in recorder.scored] == [20, 20], "without a request there is no such limit"
    for job in (request, reading, *prefetches):
        job.close(lambda job: make_pass(recorder, [job]))  # type: ignore[arg-type]


@pytest.mark.parametrize(("limit", "value"), [("dispatcher", object()), ("batch_invariant_rows", 9)])
def test_jobs_share_no_pass_that_is_dispatched_for_one_of_them_or_that_would_change_bits(
    tiny_model: Model, recorder: Recorder, limit: str, value: object
) -> None:
    heads = [Document(tiny_model, text).head for text in TEXTS]
    tiny_model.engine.evaluate(heads)
    setattr(recorder, limit, value)
    jobs = [suspended([head.tree.expand(head, token) for token in range(5)]) for head in heads]
    make_passes(recorder, jobs[:2], jobs[2:], GPU_LIMITS)  # type: ignore[arg-type]
    assert [job.waits for job in jobs] == [False, False, True, True]
    assert [len(nodes) for nodes in recorder.scored] == [5, 5]
    for job in jobs:
        job.close(lambda job: make_pass(recorder, [job]))  # type: ignore[arg-type]


def test_prefetches_make_one_pass_at_a_time(tiny_model: Model, recorder: Recorder) -> None:
    heads = [Document(tiny_model, text).head for text in TEXTS]
    tiny_model.engine.evaluate(heads)
    jobs = [suspended([head.tree.expand(head, token) for token in range(GPU_LIMITS.shared // 2)]) for head in heads]
    make_passes(recorder, [], jobs, GPU_LIMITS)  # type: ignore[arg-type]
    assert [job.waits for job in jobs] == [False, False, True, True] and len(recorder.scored) == 1
    for job in jobs:
        job.close(lambda job: make_pass(recorder, [job]))  # type: ignore[arg-type]


@pytest.mark.parametrize("shared", [PassLimits(shared=1, reading=GPU_LIMITS.reading)], indirect=True)
def test_a_request_that_is_stopped_before_its_pass_is_not_computed(shared: Model, recorder: Recorder) -> None:
    documents = [Document(shared, text) for text in TEXTS[:2]]
    scheduler: Any = shared.engine

    def steps(document: Document) -> Iterator[Any]:
        yield shared.engine.evaluate([document.head])

    recorder.before = lambda nodes: scheduler.stop("second")
    first, second = together(shared, dict(zip(["first", "second"], map(steps, documents), strict=True)))
    assert first.last() is not None
    submit(shared, iter([1]), "third").last()
    assert [[node.tree for node in nodes] for nodes in recorder.scored] == [[documents[0].tree]]
    assert not second.over.is_set()


def test_nodes_that_one_job_waits_for_are_not_removed_by_another_of_the_same_document(shared: Model) -> None:
    document = Document(shared, "The old keeper")
    shared.engine.evaluate([document.head])
    tree, nodes = document.tree, list[Node]()

    def waits() -> Iterator[Any]:
        nodes.extend(tree.descend(document.head, [token, 5]) for token in range(3))
        yield shared.engine.evaluate(nodes)

    def removes() -> Iterator[None]:
        assert len(nodes) == 3
        tree.new_view()
        shared.engine.free(tree.prune_unevaluated(nodes) + tree.prune())
        yield

    waiting, other = together(shared, {"waits": waits(), "removes": removes()})
    other.last()
    assert waiting.last().shape[0] == 3
    assert all(node.parent and node.parent.children[5] is node and node.prediction for node in nodes)
    assert not list(tree.growers), "they may be removed when their pass is over"
    document.check()


@compiling
def test_a_lookahead_has_the_same_bits_alone_and_in_company() -> None:
    model = small_model(torch.float32)
    prompts = [[1 + (start + index) % 7 for index in range(length)] for start, length in enumerate((2, 5, 9, 14, 30))]

    def steps(model: Model, prompt: list[int]) -> Iterator[Any]:
        yield from Document(model, token_ids=prompt).lookahead_steps(k=5, depth=8)

    alone = [list(steps(model, prompt))[-1].result for prompt in prompts]
    scheduler = Scheduler(model.engine)
    shared = replace(model, engine=scheduler)
    before = model.engine.passes
    jobs: dict[object, Iterator[Any]] = {index: steps(shared, prompt) for index, prompt in enumerate(prompts)}
    found = [answers.last().result for answers in together(shared, jobs)]
    scheduler.close()
    assert model.engine.passes - before <= 2 * 8, "they shared passes"
    for one, other in zip(found, alone, strict=True):
        assert [branch.token_ids for branch in one.branches] == [branch.token_ids for branch in other.branches]
        assert [branch.logprobs for branch in one.branches] == [branch.logprobs for branch in other.branches]


def test_seconds_of_a_job_leave_out_what_others_compute(shared: Model, recorder: Recorder) -> None:
    scheduler: Any = shared.engine
    document, spent = Document(shared, "The old keeper"), []

    def cheap() -> Iterator[None]:
        for _ in range(3):
            shared.engine.evaluate([document.head])
            yield
        spent.append(scheduler.job_seconds)

    def dear() -> Iterator[None]:
        for _ in range(3):
            time.sleep(0.2)
            yield
        spent.append(scheduler.job_seconds)

    for answers in together(shared, {"cheap": cheap(), "dear": dear()}):
        assert answers.over.wait(PATIENCE)
    assert scheduler.job_seconds == 0.0, "no job reads it"
    low, high = sorted(spent)
    assert high >= 0.6 and low <= high / 3, "0.6 seconds of sleep are not counted for the job that waited for them"


def test_costs_of_shared_passes_are_not_recorded(shared: Model, recorder: Recorder, monkeypatch: Any) -> None:
    recorded: list[int] = []
    monkeypatch.setattr(recorder.engine.pass_costs, "record", lambda nodes, seconds: recorded.append(nodes))
    streams: dict[object, Iterator[Any]] = {
        text: Document(shared, text).stream(max_new_tokens=3, temperature=0, speculate=False) for text in TEXTS[:2]
    }
    for answers in together(shared, streams):
        answers.last()
    assert recorded == []
    alone = Document(shared, TEXTS[0]).stream(max_new_tokens=3, temperature=0, speculate=False)
    submit(shared, alone, "alone").last()
    assert recorded
