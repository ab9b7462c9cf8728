"""The server side of the Lab's mask page: the slots of branches in the cache, and what each attends to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, cast

from interface.server.branch_request import BranchRequest
from interface.server.page_session import PageSession, View
from interface.tabs.lab.experiment_request import ExperimentRequest
from interface.tabs.lab.experiment_steps import changed_steps
from lookahead_core.serving.json_values import json_safe


class MasksRequest(ExperimentRequest):
    """A request of the mask page; its `experiment` has the keyword arguments for `attention_record`."""

    @classmethod
    def checked_options(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options; see `ExperimentRequest` and `AttentionOptions`."""
        from lookahead_core.experiments.attention_record import AttentionOptions
        from lookahead_core.validation import parse_options

        return asdict(parse_options(AttentionOptions, fields, "the experiment"))


class MasksSession(PageSession):
    """The session of a page of the Lab that shows slots and masks; it grows no branches to choose from."""

    background = True

    def answer_steps(self, request: BranchRequest) -> Iterator[View]:
        """Grow the branches, and yield what `changed_steps` yields: the view has the fields of `AttentionRecord`.

        `request` must be a MasksRequest. Raises the errors of `attention_record`.
        """
        from lookahead_core.experiments.attention_record import attention_steps

        assert isinstance(request, MasksRequest)
        steps = attention_steps(self.model, request.text, caller=request.visitor, **request.experiment)
        yield from changed_steps(
            steps, lambda found: bool(found.nodes), lambda found: cast("View", json_safe(asdict(found)))
        )
