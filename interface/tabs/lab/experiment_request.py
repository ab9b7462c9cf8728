"""The request of a page of the Lab: a prompt, and the options of an experiment that is run with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from interface.server.branch_request import BranchRequest

MOST_PROMPT = 2_000
"""The most characters of a prompt: without the cache, each pass reads all of it again."""


@dataclass(frozen=True)
class ExperimentRequest(BranchRequest):
    """A request for an experiment with a prompt, `text`. Each page of the Lab has a subclass."""

    experiment: Mapping[str, Any] = field(default_factory=dict)
    """The options of the experiment, checked: what `checked_options` returned."""

    @classmethod
    def from_json(cls, payload: object) -> ExperimentRequest:
        """Return the request in a page's JSON; raise ValueError if it is invalid, or the prompt empty or too long.

        The field `experiment` is an object that `checked_options` takes. Of the other fields only `page`, `number`,
        `revision` and `text` are used.
        """
        fields = payload if isinstance(payload, dict) else {}
        used = {name: fields.get(name) for name in ("page", "number", "revision", "text")}
        request = cast("ExperimentRequest", super().from_json(used | {"k": 1, "depth": 1, "ahead": False}))
        if not request.text:
            raise ValueError("Write a prompt: the experiment continues it.")
        if len(request.text) > MOST_PROMPT:
            raise ValueError(
                f"The prompt has {len(request.text):,} characters, and at most {MOST_PROMPT:,} are allowed here: "
                "shorten it."
            )
        experiment = fields.get("experiment")
        return replace(request, experiment=cls.checked_options(experiment if isinstance(experiment, dict) else {}))

    @classmethod
    def checked_options(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the options of the experiment in a page's JSON; raise ValueError for a wrong one."""
        raise NotImplementedError
