"""Lookaheads that forked workers compute: the same results, whatever happens to the workers."""

from __future__ import annotations

import collections
import pickle
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from lookahead_core import Document, Lookahead, LookaheadError, Model, load_model, lookahead_batch
from lookahead_core.document.joint_prefetch import prefetch_joint_views
from lookahead_core.document.prefetch import prefetch_views
from lookahead_core.errors import CacheFull, InvalidLogits, NoRoom, TextError, WorkerLost
from lookahead_core.experiments.attention_record import attention_record
from lookahead_core.experiments.cache_experiment import (
    CacheExperiment,
    cache_experiment,
    cache_experiment_steps,
)
from lookahead_core.serving import worker_tasks
from lookahead_core.serving.dispatching_engine import ATTEMPTS, DispatchingEngine
from lookahead_core.serving.json_view import lookahead_as_json
from lookahead_core.serving.scheduler import Scheduler
from lookahead_core.serving.worker_tasks import PrefetchRequest, Worker
from lookahead_core.strategies.lookahead_options import LookaheadOptions
from tests.conftest import tiny_llama
from tests.support.forking_gpu import ForkingGpu
from tests.support.parameters import mostly_slow

TEXT = "Once upon a time there was a sm"
MODES: list[dict[str, Any]] = [
    {},
    {"heal": True},
    {"heal": True, "until": "word", "depth": 6, "stop_at_repetition": True},
    {"mode": "every_level", "k": 3, "branch_levels": 2},
    {"mode": "forks", "k": 4, "cutoff": 0.001, "heal": True},
    {"mode": "best_first", "budget": 12, "width": 4},
    {"mode": "sampled", "seed": 3, "temperature": 1.2, "top_p": 0.9, "heal": True},
    {"mode": "diverse", "k": 3},
    {"mode": "surprising", "k": 3, "heal": True},
    {"banned": (300, 301, 302), "heal": True},
    {"towards": "keeper", "depth": 4, "budget": 24},
    {"towards": "sea", "depth": 4, "budget": 24, "heal": True},
    {"avoid": "the", "heal": True},
    {"odds": "words", "k": 2, "depth": 2},
    {"odds": "words", "k": 1, "depth": 2, "heal": True},
    {"speculate": True, "depth": 8},
]


@dataclass
class Shared:
    """A model whose passes forked workers make, and the decorator that forks them."""

    model: Model
    gpu: ForkingGpu

    @property
    def engine(self) -> DispatchingEngine:
        assert isinstance(self.model.engine, DispatchingEngine)
        return self.model.engine


@pytest.fixture
def shared(tiny_model: Model) -> Iterator[Shared]:
    made = make_shared(tiny_model)
    yield made
    made.gpu.close()


def make_shared(model: Model, **options: Any) -> Shared:
    gpu, worker = ForkingGpu(**options), Worker(lambda: model)

    def compute(task: bytes, seconds: float) -> Iterator[bytes]:
        yield from worker.compute(task)

    decorated = gpu(compute)
    engine = DispatchingEngine(lambda task, seconds, caller: decorated(task, seconds))
    return Shared(replace(model, engine=engine), gpu)


def facts(result: Lookahead) -> dict[str, Any]:
    """All that a view shows, without what it cost."""
    return {name: value for name, value in lookahead_as_json(result).items() if name != "cost"}


@pytest.mark.parametrize(
    "options", mostly_slow(MODES, 6), ids=lambda options: "-".join(map(str, options.values())) or "likely"
)
def test_a_dispatched_lookahead_is_equal_to_a_local_one(
    shared: Shared, tiny_model: Model, options: dict[str, Any]
) -> None:
    expected = Document(tiny_model, TEXT).lookahead(**options)
    document = Document(shared.model, TEXT)
    result = document.lookahead(**options)
    assert facts(result) == facts(expected)
    assert (result.cost.passes, result.cost.tokens) == (expected.cost.passes, expected.cost.tokens)
    assert len(shared.gpu.calls) == 1, "a whole lookahead is one call"
    document.check()


def test_edits_and_accepted_tokens_give_the_local_views_while_workers_are_killed(tiny_model: Model) -> None:
    shared = make_shared(tiny_model, kills=0.5, seed=1)
    local, document = Document(tiny_model, TEXT), Document(shared.model, TEXT)
    for step in range(8):
        mine, theirs = document.lookahead(k=4, heal=True), local.lookahead(k=4, heal=True)
        assert [branch.token_ids for branch in mine.branches] == [branch.token_ids for branch in theirs.branches]
        for one, other in zip(mine.branches, theirs.branches, strict=True):
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)
        if step % 3 == 2:
            document.text = local.text = f"{local.text} and the o"
        else:
            assert document.accept(mine.branches[step % 4], 2) == local.accept(theirs.branches[step % 4], 2)
        document.check()
    assert 1 < shared.gpu.forks < len(shared.gpu.calls), "some calls found their worker, and some did not"
    shared.gpu.close()


def test_a_known_lookahead_needs_no_call(shared: Shared) -> None:
    document = Document(shared.model, TEXT)
    document.lookahead(k=5, depth=6)
    calls = len(shared.gpu.calls)
    document.lookahead(k=3, depth=4)
    assert len(shared.gpu.calls) == calls


def test_a_worker_that_ends_within_a_lookahead_is_replaced(shared: Shared, tiny_model: Model) -> None:
    shared.gpu.ends_after = 2
    found = Document(shared.model, TEXT).lookahead(heal=True)
    assert facts(found) == facts(Document(tiny_model, TEXT).lookahead(heal=True))
    assert (shared.gpu.forks, len(shared.gpu.calls)) == (2, 2)


def test_a_lookahead_is_given_up_after_some_workers(shared: Shared) -> None:
    shared.gpu.refusal = WorkerLost("The worker has ended.")
    with pytest.raises(WorkerLost):
        Document(shared.model, TEXT).lookahead()
    shared.gpu.refusal = None
    assert Document(shared.model, TEXT).lookahead().branches, "the next request works"


@pytest.mark.parametrize("error", [RuntimeError("The GPU has failed."), NoRoom("There is no room.")], ids=repr)
def test_what_came_before_an_error_is_inserted_before_the_error_is_raised(tiny_model: Model, error: Exception) -> None:
    """So a lookahead is shown although prefetching after it has failed."""
    worker, may_begin = Worker(lambda: tiny_model), threading.Event()

    def dispatch(task: bytes, seconds: float, caller: Any) -> Iterator[bytes]:
        may_begin.wait()
        for answer in worker.compute(task):
            if pickle.loads(answer).ahead:
                raise error
            yield answer

    engine = DispatchingEngine(dispatch)
    document, options = Document(replace(tiny_model, engine=engine), TEXT), LookaheadOptions(k=3, depth=2)
    engine.prepare(document.tree, prefetch=PrefetchRequest((options,)))
    lookahead = engine.begin([(document, options)])
    assert not lookahead.advance(), "the worker has not begun"
    may_begin.set()
    assert lookahead.answers is not None
    lookahead.answers.ended.wait()
    assert lookahead.advance()
    expected = Document(tiny_model, TEXT).lookahead(k=3, depth=2)
    assert facts(document.lookahead(k=3, depth=2)) == facts(expected)
    with pytest.raises(type(error), match=str(error)):
        lookahead.advance()


def test_a_refusal_is_raised_with_its_sentence_and_the_next_call_works(shared: Shared) -> None:
    document = Document(shared.model, TEXT)
    shared.gpu.refusal = NoRoom("Your minutes are used up.")
    with pytest.raises(NoRoom, match="minutes"):
        document.lookahead()
    shared.gpu.refusal = None
    assert document.lookahead().branches


def test_errors_of_the_library_come_back_as_they_are(shared: Shared, tiny_model: Model) -> None:
    small = make_shared(replace(tiny_model, engine=_Full()))
    with pytest.raises(CacheFull, match="no room"):
        Document(small.model, TEXT).lookahead()
    small.gpu.close()
    document = Document(shared.model, TEXT)
    steps = document.lookahead_steps()
    next(steps)
    document.text = "Another text"
    with pytest.raises(LookaheadError, match="text has changed"):
        list(steps)


class _Full:
    """An engine without room."""

    def __getattr__(self, name: str) -> Any:
        raise CacheFull("There is no room.")


def test_steps_come_as_the_worker_computes_them(shared: Shared, tiny_model: Model) -> None:
    def shown(model: Model) -> list[list[tuple[int, ...]]]:
        steps = Document(model, TEXT).lookahead_steps(k=3, depth=5)
        return [[branch.token_ids for branch in step.result.branches] for step in steps if not step.waiting]

    local = shown(tiny_model)
    dispatched = shown(shared.model)
    assert dispatched[-1] == local[-1]
    assert all(step in local for step in dispatched)


def test_a_long_text_is_prefilled_by_the_worker_with_progress() -> None:
    model = load_model(tiny_llama(300, max_position_embeddings=4096), tokenizer=None)
    shared = make_shared(model)
    ids = [index % 300 for index in range(1, 1500)]
    steps = list(Document(shared.model, token_ids=ids).lookahead_steps(k=2, depth=2))
    reading = [(step.tokens_read, step.tokens_to_read) for step in steps if step.tokens_to_read]
    assert list(dict.fromkeys(reading)) == [(512, 987), (1024, 475)]
    assert facts(steps[-1].result) == facts(Document(model, token_ids=ids).lookahead(k=2, depth=2))
    shared.gpu.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{"k": 3, "depth": 3}, {"mode": "sampled", "seed": 3, "k": 3, "depth": 3}, {"odds": "words", "k": 1, "depth": 2}],
    ids=["likely", "sampled", "words"],
)
def test_the_views_behind_clicks_come_with_the_same_call(
    shared: Shared, tiny_model: Model, options: dict[str, Any]
) -> None:
    def ahead(document: Document, result: Lookahead) -> dict[tuple[int, ...], Any]:
        views = prefetch_views(document, result, most_nodes=60, **options)
        return {view.token_ids: facts(view.result) for view in views if view is not None}

    local = Document(tiny_model, TEXT)
    expected = ahead(local, local.lookahead(**options))
    document = Document(shared.model, TEXT)
    shared.engine.prepare(document.tree, prefetch=PrefetchRequest((LookaheadOptions.of(options),), 60))
    found = ahead(document, document.lookahead(**options))
    assert len(shared.gpu.calls) == 1
    assert expected
    assert found.keys() >= expected.keys()
    for click, view in expected.items():
        assert _texts(found[click]) == _texts(view)


def test_views_behind_clicks_on_several_documents_come_with_the_same_call(shared: Shared, tiny_model: Model) -> None:
    each = [{}, {"mode": "sampled", "seed": 2}]
    options = [LookaheadOptions.of({"k": 2, "depth": 3, **own}) for own in each]

    def ahead(documents: list[Document]) -> dict[tuple[int, ...], Any]:
        results = lookahead_batch(documents, each=each, k=2, depth=3)
        views = prefetch_joint_views(list(zip(documents, results, options, strict=True)), most_nodes=60)
        return {view.token_ids: [_texts(facts(one)) for one in view.results] for view in views if view is not None}

    expected = ahead([Document(tiny_model, TEXT), Document(tiny_model, TEXT)])
    documents = [Document(shared.model, TEXT), Document(shared.model, TEXT)]
    shared.engine.prepare(documents[0].tree, prefetch=PrefetchRequest(tuple(options), 60))
    found = ahead(documents)
    assert len(shared.gpu.calls) == 1
    assert expected and found.keys() >= expected.keys()
    assert all(found[click] == views for click, views in expected.items())


def _texts(view: dict[str, Any]) -> list[Any]:
    return [[piece["text"] for piece in branch["pieces"]] for branch in view["branches"]]


def test_views_behind_clicks_on_a_known_lookahead_take_one_more_call(shared: Shared) -> None:
    document = Document(shared.model, TEXT)
    options = LookaheadOptions(k=3, depth=3)
    shared.engine.prepare(document.tree, prefetch=PrefetchRequest((options,), 200))
    result = document.lookahead(k=3, depth=3)
    list(prefetch_views(document, result, k=3, depth=3))
    document.accept(result.branches[0], 1)
    calls = len(shared.gpu.calls)
    result = document.lookahead(k=3, depth=3)
    assert len(shared.gpu.calls) == calls, "it was prefetched"
    assert [view for view in prefetch_views(document, result, k=3, depth=3) if view is not None]
    assert len(shared.gpu.calls) == calls + 1


def test_without_a_request_nothing_is_prefetched(shared: Shared) -> None:
    document = Document(shared.model, TEXT)
    result = document.lookahead()
    assert [view for view in prefetch_views(document, result) if view is not None] == []
    assert len(shared.gpu.calls) == 1


@pytest.fixture
def paced(tiny_model: Model) -> Iterator[Shared]:
    """A model whose workers send results when they are let."""
    made = make_shared(tiny_model, paced=True)
    yield made
    made.gpu.close()


def test_an_abandoned_lookahead_stops_its_worker(paced: Shared) -> None:
    document = Document(paced.model, TEXT)
    steps = document.lookahead_steps(k=5, depth=60)
    paced.gpu.let(1)
    while next(steps).waiting:
        pass
    steps.close()
    paced.gpu.let(1000)
    assert document.lookahead(k=2, depth=2).branches
    assert (paced.gpu.stopped, len(paced.gpu.calls)) == (1, 2)


def test_the_tasks_of_one_text_follow_each_other_and_those_left_behind_never_begin(paced: Shared) -> None:
    document = Document(paced.model, TEXT)
    for text in ("One", "One two", "One two three"):
        document.text = text
        steps = document.lookahead_steps(k=2, depth=40)
        assert next(steps).waiting
        steps.close()
    paced.gpu.let(1000)
    document.lookahead(k=2, depth=3)
    assert len(paced.gpu.calls) == 2, "the first one, and the last one after it"


def test_the_caller_is_passed_on_with_each_task(tiny_model: Model) -> None:
    worker, callers = Worker(lambda: tiny_model), list[Any]()

    def dispatch(task: bytes, seconds: float, caller: Any) -> Iterator[bytes]:
        callers.append(caller)
        yield from worker.compute(task)

    engine = DispatchingEngine(dispatch)
    document = Document(replace(tiny_model, engine=engine), TEXT)
    engine.prepare(document.tree, caller="ada")
    document.lookahead()
    document.predict(row=True)
    assert callers == ["ada", "ada"]


def test_longer_work_asks_for_more_seconds(tiny_model: Model) -> None:
    worker, asked = Worker(lambda: tiny_model), list[float]()

    def dispatch(task: bytes, seconds: float, caller: Any) -> Iterator[bytes]:
        asked.append(seconds)
        yield from worker.compute(task)

    document = Document(replace(tiny_model, engine=DispatchingEngine(dispatch)), TEXT)
    document.lookahead(k=1, depth=1)
    document.lookahead(k=2, depth=90)
    assert 0 < asked[0] < asked[1] <= 60


def test_streams_beams_and_rows_are_equal_pass_by_pass(shared: Shared, tiny_model: Model) -> None:
    local, document = Document(tiny_model, TEXT), Document(shared.model, TEXT)
    assert torch.equal(document.predict(row=True).row, local.predict(row=True).row)
    for options in ({"max_new_tokens": 8}, {"max_new_tokens": 8, "temperature": 0.9, "seed": 4}):
        mine, theirs = list(document.stream(**options)), list(local.stream(**options))
        assert [step.token_id for step in mine] == [step.token_id for step in theirs]
    mine, theirs = (each.beam_search(num_beams=3, max_new_tokens=4) for each in (document, local))
    assert [beam.token_ids for beam in mine.branches] == [beam.token_ids for beam in theirs.branches]


def test_several_documents_share_one_call(shared: Shared, tiny_model: Model) -> None:
    texts, each = [TEXT, "After careful"], [{"heal": True}, {"mode": "sampled", "seed": 2}]

    def views(model: Model) -> list[Any]:
        return [facts(one) for one in lookahead_batch([Document(model, text) for text in texts], each=each, k=3)]

    assert views(shared.model) == views(tiny_model)
    assert len(shared.gpu.calls) == 1


def test_behind_a_scheduler_other_clients_have_turns_while_one_waits(paced: Shared) -> None:
    scheduler = Scheduler(paced.engine)
    model = replace(paced.model, engine=scheduler)
    ended, others, results = threading.Event(), threading.Event(), list[Lookahead]()
    steps = Document(model, TEXT).lookahead_steps(k=3, depth=20)
    scheduler.submit(steps, "one", on_step=lambda step: results.append(step.result), on_end=lambda error: ended.set())
    scheduler.submit(iter(range(3)), "two", on_step=lambda step: None, on_end=lambda error: others.set())
    assert others.wait(120)
    assert not ended.is_set()
    paced.gpu.let(1000)
    assert ended.wait(120)
    assert len(results[-1].branches) == 3
    scheduler.close()


def test_a_lookahead_takes_few_attempts(tiny_model: Model) -> None:
    calls = []

    def dispatch(task: bytes, seconds: float, caller: Any) -> Iterator[bytes]:
        calls.append(task)
        raise WorkerLost("The worker has ended.")

    with pytest.raises(WorkerLost):
        Document(replace(tiny_model, engine=DispatchingEngine(dispatch)), TEXT).lookahead()
    assert len(calls) == ATTEMPTS
    with pytest.raises(WorkerLost):
        Document(replace(tiny_model, engine=DispatchingEngine(dispatch)), TEXT).predict(row=True)
    assert len(calls) == 2 * ATTEMPTS


def without_costs(found: CacheExperiment) -> CacheExperiment:
    """A result without its times and its energy."""
    steps = tuple(replace(step, cached=step.cached.tokens, uncached=step.uncached.tokens) for step in found.steps)
    return replace(found, steps=steps, runs=tuple(len(run.cached) for run in found.runs))


EXPERIMENT = {"k": 3, "depth": 4, "levels": 2, "runs": 2}


@pytest.mark.parametrize("lost", [0, 2])
def test_an_experiment_is_one_task_with_the_local_result_also_if_workers_end_in_it(
    shared: Shared, tiny_model: Model, lost: int
) -> None:
    expected = cache_experiment(tiny_model, TEXT, **EXPERIMENT)
    found: list[CacheExperiment] = []
    for step in cache_experiment_steps(shared.model, TEXT, caller="me", **EXPERIMENT):
        if shared.gpu.forks <= lost:
            shared.gpu.kill()
        found.append(step)
    assert without_costs(found[-1]) == without_costs(expected)
    assert found[0].steps == () and found[-1].equal
    assert len(shared.gpu.calls) == lost + 1
    assert attention_record(shared.model, "Once upon") == attention_record(tiny_model, "Once upon")
    assert len(shared.gpu.calls) == lost + 2
    assert shared.engine.passes == 0


def test_an_experiment_whose_workers_always_end_raises_after_some_attempts(shared: Shared) -> None:
    steps = cache_experiment_steps(shared.model, TEXT, **EXPERIMENT)
    with pytest.raises(WorkerLost):
        collections.deque(map(lambda found: shared.gpu.kill(), steps), maxlen=0)
    assert len(shared.gpu.calls) == ATTEMPTS


def test_the_worker_of_an_abandoned_experiment_stops_and_its_errors_are_those_of_the_library(shared: Shared) -> None:
    steps = cache_experiment_steps(shared.model, TEXT, k=2, depth=100)
    assert any(found.steps for found in steps)
    steps.close()  # type: ignore[attr-defined]
    with pytest.raises(LookaheadError, match="at most 40 are allowed here"):
        attention_record(shared.model, TEXT * 20)
    assert shared.gpu.stopped == 1
    with pytest.raises(ValueError, match="depth"):
        cache_experiment(shared.model, TEXT, depth=0)
    assert len(shared.gpu.calls) == 2, "a wrong option needs no GPU"


def test_the_errors_of_a_worker_come_back_as_what_they_were() -> None:
    for error in (InvalidLogits(), CacheFull("full"), TextError("half"), LookaheadError("no"), ValueError("k is 0")):
        kind = next(kind for kind in worker_tasks.KINDS if isinstance(error, kind))
        again = worker_tasks.Failed(kind, str(error)).error()
        assert (type(again), str(again)) == (type(error), str(error))
