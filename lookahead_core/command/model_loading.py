"""Loads the models that the command's arguments name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lookahead_core.command import terminal
from lookahead_core.command.arguments import MODEL_OPTIONS

if TYPE_CHECKING:
    from lookahead_core.model import Model


def load(arguments: dict[str, Any]) -> Model:
    """Load and return the model that the arguments name, else that of `LOOKAHEAD_MODEL`, else the default one.

    `arguments` are parsed arguments by key; all options of the model among them apply. Progress goes to standard error.
    Raises the ValueError and ModelError of `load_model`.
    """
    from lookahead_core import load_model

    options = {option.key: arguments[option.key] for option in MODEL_OPTIONS if option.key in arguments}
    model = load_model(options.pop("model", None), **options, report=terminal.report)
    terminal.report("")
    return model


def load_draft_model(model: Model, arguments: dict[str, Any]) -> Model:
    """Load and return the model that `arguments["draft_model"]` names, like `model` in type of device and in dtype.

    Whether the two fit together is not checked here. Progress goes to standard error. Raises the ValueError and
    ModelError of `load_model`, and a ModelError if `model` is on a server.
    """
    from lookahead_core import load_model

    model.require_weights("A draft model")
    draft_model = load_model(
        arguments["draft_model"],
        device=model.device.partition(":")[0],
        dtype=model.dtype,
        trust_remote_code="trust_remote_code" in arguments,
        report=terminal.report,
    )
    terminal.report("")
    return draft_model
