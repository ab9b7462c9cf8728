"""Load the model in the background, so that the page opens at once and shows the progress."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from time import sleep
from typing import TYPE_CHECKING, Any, TypeVar, cast

from interface.server.call_runner import CallRunner
from interface.server.logs import SAFE, log_event
from interface.server.operation_counts import OperationCounts
from lookahead_core.engines.remote.server_errors import ServerFault
from lookahead_core.engines.server_engine import can_reopen, server_engine_of
from lookahead_core.errors import LookaheadError, NoAnswer
from lookahead_core.settings import Settings

if TYPE_CHECKING:
    from interface.server.page_service import PageService
    from lookahead_core import Model
    from lookahead_core.engines.server_engine import ReplicaCounts
    from lookahead_core.serving.scheduler import Scheduler

T = TypeVar("T")
Report = Callable[[str, "float | None"], None]
"""A function that takes a sentence about the progress, and the fraction that is done (0 to 1) or None."""
UNEXPECTED = "The model could not be loaded because of an unexpected error ({}): see the terminal, or choose another."
WAITS = "{} The page waits, and goes on by itself."
"""The sentence while the model's server does not answer; the server's own sentence is filled in."""
FIRST_RETRY = 1.0
"""Seconds until a server that does not answer is asked again; each further wait is twice as long."""
LONGEST_RETRY = 15.0
"""Seconds between two attempts at most: so long after the server's start the page may stay without it."""


@dataclass(frozen=True)
class LoadingState:
    """How far a model is loaded: a state, a sentence and a fraction. `ModelLoader.loading` is the latest one."""

    state: str
    """"loading", "downloading", "waiting" (the model's server does not answer yet), "ready" or "error"."""
    sentence: str
    """The progress, the error, or why it waits; for "ready", `Model.describe()`."""
    fraction: float | None = None
    """The share that is done, from 0 to 1; None if it is unknown."""

    @property
    def done(self) -> bool:
        """Whether loading has ended, with a model or an error."""
        return self.state in ("ready", "error")

    def as_json(self) -> dict[str, Any]:
        """Return the fields as a dictionary: `state`, `sentence` and `fraction`."""
        return asdict(self)


class ModelLoader:
    """Loads a model for the page and the calls, once `start` or `run` is called.

    `loading` is the progress, a LoadingState. `model` is None until the model is loaded and warmed up, and stays None
    if loading fails. Both may be read from any thread. A model whose server does not answer is waited for.
    """

    def __init__(
        self,
        load: Callable[[Report], Model],
        settings: Settings | None = None,
        load_draft: Callable[[Report], Model] | None = None,
    ) -> None:
        """`load` returns the model. `run` calls it, with a function to which it reports its progress.

        `settings` has the limits of all requests to the model, those of `Settings()` if it is None. `load_draft`
        returns the draft model in the same manner; None for none.

        That function takes a sentence and the fraction that is done, from 0 to 1, or None. A sentence that begins with
        "Downloading" sets the state "downloading".
        """
        self._load = load
        self._load_draft = load_draft
        self.settings = settings or Settings()
        """The settings, with the limits of all requests."""
        self.model: Model | None = None
        """The model, with the scheduler as its engine; None until it is loaded and warmed up."""
        self.draft_model: Model | None = None
        """The draft model, for the scheduler's thread only; None without one, and until both models are loaded."""
        self.loading = LoadingState("loading", "Starting")
        self.counts = OperationCounts()
        """What the server counts for its metrics."""
        self.services: list[PageService] = []
        """The services of the tabs, each with the sessions of its pages."""

    def start(self) -> ModelLoader:
        """Start `run` in a background thread and return this loader at once; to be called once."""
        threading.Thread(target=self.run, name="loader", daemon=True).start()
        return self

    def run(self) -> None:
        """Load and warm up the model in the calling thread, then print that it is ready, or the error to stderr.

        While the model's server does not answer, `loading` has the state "waiting", and what needs the server is tried
        again. Raises no Exception: if it fails, the page's server keeps running without a model, and `loading` has the
        state "error" and a sentence.
        """
        try:
            model = _with_scheduler(self._when_answered(lambda: self._load(self._report)), self.settings)
            draft_model = self._when_answered(lambda: self._draft_model_for(model))
            self._report("Warming up", None)
            self._when_answered(lambda: _warm_up(model))
        except (LookaheadError, ValueError) as error:
            self._fail(str(error))
        except Exception as error:
            logging.getLogger(__name__).exception("The model could not be loaded.", extra={SAFE: True})
            self._fail(UNEXPECTED.format(type(error).__name__))
        else:
            self.draft_model = draft_model
            self.model, self.loading = model, LoadingState("ready", model.describe())
            print(f"Ready: {model.describe()}", flush=True)
            log_event("ready", model=model.describe())

    @property
    def health(self) -> str:
        """Whether requests are answered: "ready", "loading", or "broken" if there will be no answer any more.

        "waiting" while none of the model's servers answers.
        """
        if self.loading.state == "error":
            return "broken"
        if self.loading.state == "waiting":
            return "waiting"
        if self.model is None:
            return "loading"
        if self.scheduler.is_broken:
            return "broken"
        replicas = self.replica_counts
        return "ready" if replicas is None or any(replicas.answering) else "waiting"

    @property
    def replica_counts(self) -> ReplicaCounts | None:
        """How the model's servers are; None without a model, and for one that computes in this process."""
        engine = None if self.model is None else server_engine_of(self.model.engine)
        return None if engine is None else engine.replica_counts()

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler of the loaded model; AssertionError while `model` is None."""
        assert self.model is not None
        return cast("Scheduler", self.model.engine)

    @cached_property
    def caller(self) -> CallRunner:
        """The CallRunner of all calls from programs, over HTTP, gradio_client and MCP; made at first use.

        There is one, so its limits hold for all of them together, and they share the trees that are kept between calls.
        The model need not be loaded yet.
        """
        return CallRunner(self)

    @property
    def has_draft_model(self) -> bool:
        """Whether there is a draft model, or will be once it is loaded."""
        return self._load_draft is not None

    def _when_answered(self, step: Callable[[], T]) -> T:
        """Return what `step` returns. While a server does not answer it, show why, and call it again with back-off."""
        seconds, printed = FIRST_RETRY, ""
        while True:
            try:
                found = step()
            except (NoAnswer, ServerFault) as error:
                sentence = WAITS.format(error)
            else:
                if printed:
                    self.loading = LoadingState("loading", "Connected")
                return found
            self.loading = LoadingState("waiting", sentence)
            if sentence != printed:
                print(sentence, file=sys.stderr, flush=True)
                log_event("waiting", sentence=sentence)
            printed = sentence
            sleep(seconds)
            seconds = min(seconds * 2, LONGEST_RETRY)

    def _draft_model_for(self, model: Model) -> Model | None:
        """Load and return the draft model; None if there is none. Raises ModelError if its tokens are others."""
        if self._load_draft is None:
            return None
        from lookahead_core.document.drafting import require_same_tokens  # imported late, since it imports torch

        draft_model = self._load_draft(self._report)
        require_same_tokens(model, draft_model)
        return draft_model

    def _report(self, sentence: str, fraction: float | None) -> None:
        if self.loading.state == "waiting":
            return  # the sentence stays while the server is asked again
        state = "downloading" if sentence.startswith("Downloading") else "loading"
        self.loading = LoadingState(state, sentence, fraction)

    def _fail(self, sentence: str) -> None:
        self.loading = LoadingState("error", sentence)
        print(sentence, file=sys.stderr, flush=True)
        log_event("broken", sentence=sentence)


def _with_scheduler(model: Model, settings: Settings) -> Model:
    """Return a copy of the model whose engine is a new scheduler around the old engine."""
    from lookahead_core.serving.scheduler import Scheduler  # imported late, since it imports torch
    from lookahead_core.serving.shared_passes import CPU_LIMITS, GPU_LIMITS

    limits = CPU_LIMITS if model.device == "cpu" else GPU_LIMITS
    return replace(model, engine=Scheduler(model.engine, ahead_seconds=settings.person_seconds, limits=limits))


def _warm_up(model: Model) -> None:
    """Run a small lookahead and wait for its end, so that no visitor waits for work that only the first one does.

    To make an index of the vocabulary is such work, and all of it where workers compute. Raises TextError if the model
    has no tokenizer.
    """
    from lookahead_core import Document  # imported late, since it imports torch
    from lookahead_core.engines.dispatch import dispatcher_of

    model.codec.require_tokenizer()
    document = Document(model, "The first w")
    if dispatcher_of(model.engine) is None:
        document.lookahead(k=2, depth=2, heal=can_reopen(model.engine))
    else:
        document.reopened_token()
