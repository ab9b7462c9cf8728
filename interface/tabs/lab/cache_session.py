"""The server side of the Lab's cache page: branches with the KV cache and without it, compared at each depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from interface.server.branch_request import BranchRequest, whole
from interface.server.page_session import PageSession, View
from interface.tabs.lab.experiment_request import ExperimentRequest
from interface.tabs.lab.experiment_steps import changed_steps
from lookahead_core.serving.json_values import json_safe

if TYPE_CHECKING:
    from lookahead_core import Model
    from lookahead_core.engines.uncached import UncachedEngine
    from lookahead_core.experiments.cache_experiment import CacheExperiment

LIMITS = {"k": 20, "depth": 100, "levels": 3, "runs": 9}
"""The options of the experiment, and the highest value of each; the lowest is 1."""


class CacheRequest(ExperimentRequest):
    """A request for the cache experiment; its `experiment` has the keyword arguments for `cache_experiment`."""

    @classmethod
    def checked_options(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options with the keys of LIMITS, and `precisions`; see `ExperimentRequest`."""
        numbers = {"runs": 1} | dict(fields)
        options = {name: whole(name, numbers.get(name), 1, most) for name, most in LIMITS.items()}
        return options | {"precisions": fields.get("precisions") is True}


class CacheSession(PageSession):
    """The session of a page of the Lab that runs the cache experiment; it grows no branches to choose from."""

    background = True

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._reference: UncachedEngine | None = None

    def answer_steps(self, request: BranchRequest) -> Iterator[View]:
        """Run the experiment, and yield what `changed_steps` yields: the view is `as_json` of the result so far.

        `request` must be a CacheRequest. Raises the errors of `cache_experiment`.
        """
        from lookahead_core.engines.dispatch import dispatcher_of
        from lookahead_core.engines.uncached import UncachedEngine
        from lookahead_core.experiments.cache_experiment import cache_experiment_steps, require_cache

        assert isinstance(request, CacheRequest)
        require_cache(self.model)
        if dispatcher_of(self.model.engine) is None:
            self._reference = self._reference or UncachedEngine(self.model.hf_model)
        others = {"reference": self._reference, "caller": request.visitor}
        steps = cache_experiment_steps(self.model, request.text, **others, **request.experiment)
        yield from changed_steps(steps, lambda found: bool(found.steps), as_json)


def as_json(found: CacheExperiment) -> View:
    """Return a result of the experiment as JSON values.

    `steps` are the rows of `cache_table`, `branches` the texts of the branches, `equal` the verdict so far, `runs` the
    number of depths that each run has computed so far, and `precisions` the fields of each `PrecisionStep`.
    """
    from lookahead_core.experiments.cache_table import cache_table

    return cast(
        "View",
        json_safe(
            {
                "prompt_tokens": found.prompt_tokens,
                "equal": found.equal,
                "steps": list(cache_table(found)),
                "branches": list(found.texts),
                "runs": [len(run.cached) for run in found.runs],
                "precisions": [asdict(step) for step in found.precisions],
                "energy_source": found.energy_source,
            }
        ),
    )
