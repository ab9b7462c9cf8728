"""The model, loaded beside the page, so that the page is up at once and says how far it is."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from lookahead_core.errors import LookaheadError

if TYPE_CHECKING:
    from interface.server.call_runner import CallRunner
    from lookahead_core import Model
    from lookahead_core.serving.scheduler import Scheduler

Report = Callable[[str, "float | None"], None]
UNFORESEEN = "The model could not be loaded for a reason nobody foresaw ({}): look at the terminal, or choose another."


@dataclass(frozen=True)
class LoadingState:
    """How far the model is, as a state of the page: loading, downloading, ready or error."""

    state: str
    sentence: str
    fraction: float | None = None

    @property
    def done(self) -> bool:
        return self.state in ("ready", "error")

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class ModelLoader:
    """Loads a model in a thread of its own; whoever wants to know looks at `loading` and `model`."""

    def __init__(self, load: Callable[[Report], Model]) -> None:
        self._load = load
        self.model: Model | None = None
        """The model, with the scheduler around its engine."""
        self.loading = LoadingState("loading", "Starting")

    def start(self) -> ModelLoader:
        threading.Thread(target=self.run, name="loader", daemon=True).start()
        return self

    def run(self) -> None:
        """Load, and say on the terminal how it ended; nothing that goes wrong here may end the server."""
        try:
            model = _shared(self._load(self._report))
            self._report("Warming up", None)
            _warm_up(model)
        except (LookaheadError, ValueError) as error:
            self._fail(str(error))
        except Exception as error:
            logging.getLogger(__name__).exception("The model could not be loaded.")
            self._fail(UNFORESEEN.format(type(error).__name__))
        else:
            self.model, self.loading = model, LoadingState("ready", model.describe())
            print(f"Ready: {model.describe()}", flush=True)

    @property
    def scheduler(self) -> Scheduler:
        assert self.model is not None
        return cast("Scheduler", self.model.engine)

    @cached_property
    def caller(self) -> CallRunner:
        """Whoever calls from code comes through here, by every door: what one has read, no other reads again."""
        from interface.server.call_runner import CallRunner  # it knows this file

        return CallRunner(self)

    def _report(self, sentence: str, fraction: float | None) -> None:
        state = "downloading" if sentence.startswith("Downloading") else "loading"
        self.loading = LoadingState(state, sentence, fraction)

    def _fail(self, sentence: str) -> None:
        self.loading = LoadingState("error", sentence)
        print(sentence, file=sys.stderr, flush=True)


def _shared(model: Model) -> Model:
    """The same model, with its passes given out in turns."""
    from lookahead_core.serving.scheduler import Scheduler  # not before the page is up: it brings torch along

    return replace(model, engine=Scheduler(model.engine))


def _warm_up(model: Model) -> None:
    """Pay once, before anybody waits, for what is made at first use: word lists and the first passes."""
    from lookahead_core import Document  # not before the page is up: it brings torch along

    model.codec.require()
    Document(model, "The first w").lookahead(k=2, depth=2, heal=True)
