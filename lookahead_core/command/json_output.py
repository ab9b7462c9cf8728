"""Results as JSON: what `--json` writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from lookahead_core.serving.json_view import word_as_json

if TYPE_CHECKING:
    from lookahead_core.analysis.agreement import Check
    from lookahead_core.document.results import Beams, Cost, Lookahead
    from lookahead_core.document.stream import StreamStep
    from lookahead_core.model import Model


def check_as_json(prompt: str, check: Check) -> dict[str, Any]:
    """Return the agreement check of one prompt as JSON: prompt, text, token_ids, agreed, stands and instead."""
    return {"prompt": prompt, **_fields(check, ("text", "token_ids", "agreed", "stands", "instead"))}


def model_as_json(model: Model) -> dict[str, Any]:
    """Return a model's name, device, dtype and engine ("cached" or "uncached") as JSON."""
    return {"name": model.name, "device": model.device, "dtype": model.dtype, "engine": model.engine_name}


def run_as_json(cost: Cost, model: Model, options: Any) -> dict[str, Any]:
    """Return the fields that every result has: `cost`, `model`, and `options` with the value of each option.

    `cost` has the fields of `Cost`, `model` those of `model_as_json`. `options` is an options dataclass. Values that
    are no JSON (infinity, sets) are left as they are.
    """
    return {
        "cost": asdict(cost),
        "model": model_as_json(model),
        "options": {each.name: getattr(options, each.name) for each in fields(options)},
    }


def stream_as_json(steps: list[StreamStep]) -> dict[str, Any]:
    """Return a stream, of at least one step, as JSON: text, token_ids, finish, average_probability and steps.

    Each of `steps` has token_id, text, logprob, chance, rank, entropy and alternatives, as in `StreamStep`.
    """
    from lookahead_core.document.results import average_probability

    return {
        "text": "".join(step.text for step in steps),
        "token_ids": [step.token_id for step in steps],
        "finish": steps[-1].finish,
        "average_probability": average_probability([step.logprob for step in steps]),
        "steps": [_step_as_json(step) for step in steps],
    }


def _step_as_json(step: StreamStep) -> dict[str, Any]:
    names = ("token_id", "text", "logprob", "chance", "rank", "entropy")
    return {**_fields(step, names), "alternatives": [asdict(alternative) for alternative in step.alternatives]}


def beams_as_json(beams: Beams) -> dict[str, Any]:
    """Return a beam search as JSON: `branches`, best first, `tree`, its candidates, and `steps`, its number of levels.

    A branch has text, token_ids, score, logprob, average_probability and ended, as in `Beam`. An entry of `tree` has
    parent, token_id, text, logprob, total, step, ended, fate and reason, as in `BeamNode`.
    """
    shown = ("text", "token_ids", "score", "logprob", "average_probability", "ended")
    names = ("parent", "token_id", "text", "logprob", "total", "step", "ended", "fate", "reason")
    return {
        "branches": [_fields(beam, shown) for beam in beams.branches],
        "tree": [_fields(node, names) for node in beams.tree],
        "steps": beams.steps,
    }


def lookahead_as_json(result: Lookahead) -> dict[str, Any]:
    """Return a lookahead as JSON: branches, coverage, given, seen_from and compared_by, as in `Lookahead`; also `word`
    unless it is None.

    A branch has text, token_ids, logprobs, share, probability, ended, healed and repeats.
    """
    names = ("text", "token_ids", "logprobs", "share", "probability", "ended", "healed", "repeats")
    return {
        "branches": [_fields(branch, names) for branch in result.branches],
        **_fields(result, ("coverage", "given", "seen_from", "compared_by")),
        **word_as_json(result),
    }


def _fields(result: object, names: Iterable[str]) -> dict[str, Any]:
    """Return the attributes `names` of an object as a dict."""
    return {name: getattr(result, name) for name in names}
