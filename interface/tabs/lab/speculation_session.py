"""The server side of the Lab's speculation page: the passes of a drafted text, and draws by rejection sampling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from interface.server.branch_request import BranchRequest
from interface.server.page_session import PageSession, View
from interface.tabs.lab.decoding_session import odds_as_json
from interface.tabs.lab.experiment_request import ExperimentRequest
from interface.tabs.lab.experiment_steps import painted_steps
from lookahead_core.serving.json_values import json_safe
from lookahead_core.validation import check_choice, parse_options

if TYPE_CHECKING:
    from lookahead_core import Model
    from lookahead_core.experiments.speculation_record import RejectionDraws

PARTS = ("text", "draws")
"""What a request asks for: the passes of a text, or draws of its first token by rejection sampling."""
DRAFTERS = ("suffix", "recycled")
"""The drafters that a request can switch on, beside "model", the draft model."""
NO_DRAFTER = "Choose at least one drafter: without one no token is drafted."
NO_DRAFT_MODEL = (
    "No smaller model is loaded: start the app with --draft-model and the name of a model with the same tokens, "
    "or switch the small model off."
)


class SpeculationRequest(ExperimentRequest):
    """A request of the speculation page; `experiment` has `part`, `model` and `options`.

    `options` are keyword arguments for `speculation_record`; `model` says whether the draft model drafts too.
    """

    @classmethod
    def checked_options(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return `part`, `model` and `options` of a page's JSON, in which each drafter's name is true or false.

        See `ExperimentRequest`.
        """
        from lookahead_core.experiments.speculation_record import SpeculationOptions

        check_choice("part", fields.get("part"), PARTS)
        drafters, model = tuple(name for name in DRAFTERS if fields.get(name) is True), fields.get("model") is True
        if not drafters and not model:
            raise ValueError(NO_DRAFTER)
        options = {name: value for name, value in fields.items() if name not in ("part", "model", *DRAFTERS)}
        if own := {"drafters", "draft_model"} & options.keys():
            raise ValueError(f"{min(own)} is not an option of the experiment: switch each drafter on by its name.")
        parse_options(SpeculationOptions, options, "the experiment")
        return {"part": fields["part"], "model": model, "options": options | {"drafters": drafters}}


class SpeculationSession(PageSession):
    """The session of a page of the Lab that shows speculative decoding; it grows no branches to choose from."""

    background = True

    def __init__(self, model: Model, draft_model: Callable[[], Model | None] = lambda: None) -> None:
        """`draft_model` returns the app's draft model; None if there is none."""
        super().__init__(model)
        self._draft_model = draft_model

    def answer_steps(self, request: BranchRequest) -> Iterator[View]:
        """Run the part that the request asks for: the generator that `painted_steps` returns.

        A view of the part "text" has the fields of `SpeculationRecord`, and as `draft_model` the draft model's name,
        without its folder; None if it does not draft. One of the part "draws" is made by `draws_as_json`. `request`
        must be a SpeculationRequest. Raises the errors of `speculation_record` and `rejection_steps`, and ValueError if
        the draft model is to draft and there is none.
        """
        from lookahead_core.experiments.speculation_record import rejection_steps, speculation_steps

        assert isinstance(request, SpeculationRequest)
        draft_model = self._draft_model() if request.experiment["model"] else None
        if request.experiment["model"] and draft_model is None:
            raise ValueError(NO_DRAFT_MODEL)
        options = {**request.experiment["options"], "draft_model": draft_model}
        if request.experiment["part"] == "draws":
            return painted_steps(rejection_steps(self.model, request.text, **options), draws_as_json)
        # Of a folder only its own name: visitors need not know where it is.
        name = {"draft_model": draft_model and Path(draft_model.name).name}
        return painted_steps(
            speculation_steps(self.model, request.text, **options),
            lambda record: cast("View", json_safe(asdict(record) | name)),
        )


def draws_as_json(found: RejectionDraws) -> View:
    """Return draws as JSON values: the fields of `odds_as_json`, `drafted` and `accepted`."""
    counts = {"drafted": found.drafted, "accepted": found.accepted}
    return cast("View", json_safe(odds_as_json(found.odds, found.counts) | counts))
