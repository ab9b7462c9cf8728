"""From a name to a model and its tokenizer, or an error message that says what to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from huggingface_hub import errors as hub
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]
from safetensors import SafetensorError

from lookahead_core.errors import ModelError, is_caused_by, is_out_of_memory
from lookahead_core.loading.default_model import DEFAULT_HUB_ID, DEFAULT_NAME, load_default
from lookahead_core.loading.from_transformers import (
    Loaded,
    PretrainedSource,
    Report,
    hub_answers,
    load_pretrained,
    no_report,
)
from lookahead_core.settings import Settings

_ErrorTypes = type[BaseException] | tuple[type[BaseException], ...]
_NO_MEMORY = "There is not enough memory for {name}: choose a smaller model, or a smaller dtype."
_NOT_HERE = "{name} is not on this machine and the Hub does not answer: connect once, or give a folder or a .gguf file."
_LOCKED = "A file of {name} may not be read or written ({reason}): change its permissions, or set LOOKAHEAD_CACHE_DIR."
_DAMAGED = "The weights of {name} are damaged or cut short: fetch them again."
_UNREAD = "{name} could not be loaded ({reason}): fetch it again if it may be damaged, or choose another model."
_FAILURES: tuple[tuple[_ErrorTypes, str, str], ...] = (
    # Error type, words in its message, our message. The first row that matches an error in the chain of causes applies.
    (hub.GatedRepoError, "", "{name} is gated: ask for access on its page on the Hub, then run `hf auth login`."),
    (hub.RepositoryNotFoundError, "", "The Hub shows no model {name}: check the name, or run `hf auth login`."),
    (hub.RevisionNotFoundError, "", "{name} has no revision {revision}: give a branch, tag or commit that it has."),
    (hub.HFValidationError, "", "{name} is no folder, no .gguf file and no name on the Hub: check the spelling."),
    (hub.LocalEntryNotFoundError, "", _NOT_HERE),
    (Exception, "trust_remote_code=True", "{name} runs code of its own: if you trust it, set trust_remote_code=True."),
    (Exception, "Unrecognized configuration class", "{name} does not continue text: choose another model."),
    (Exception, "not recognize this architecture", "{name} needs a newer transformers: upgrade it, or choose another."),
    (OSError, "no file named", "{name} has no weights to read: it needs a model.safetensors beside its config.json."),
    (OSError, "not appear to have", "{name} lacks files: connect and fetch it whole, or choose another model."),
    (OSError, "No space left", "The disk is full: make room for {name}, and try again."),
    (OSError, "Read-only", _LOCKED),
    ((PermissionError, FileExistsError), "", _LOCKED),
    ((SafetensorError, UnpicklingError, EOFError), "", _DAMAGED),
    (RuntimeError, "PytorchStreamReader", _DAMAGED),
)


def load_weights(
    source: str,
    *,
    revision: str | None = None,
    trust_remote_code: bool = False,
    dtype: torch.dtype | None = None,
    device_map: Any = None,
    quantization: Any = None,
    settings: Settings,
    report: Report = no_report,
) -> Loaded:
    """Return the model and tokenizer of a Hub id, a folder, a .gguf file, or "" for the default model.

    A revision of the default model comes from the Hub or the Hub's cache on this machine only. The model is on the CPU,
    or where `device_map` or quantization puts it; its dtype is that of the files if `dtype` is None. The tokenizer is
    None if the model has none. `settings` has the cache folder and the Hub's timeout. Every `Exception` becomes a
    ModelError that says what to do. `report` is called with progress.
    """
    options = PretrainedSource(
        "", trust_remote_code=trust_remote_code, dtype=dtype, device_map=device_map, quantization=quantization
    )
    try:
        if not source and revision is None:
            return load_default(options, settings, report)
        request = _locate(source or DEFAULT_HUB_ID, replace(options, revision=revision), settings.hub_timeout)
        return load_pretrained(request, report)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(_error_message(source or DEFAULT_NAME, revision, error)) from error


def _error_message(name: str, revision: str | None, error: BaseException) -> str:
    """Return the message to show for an error that came while `revision` of the model `name` was loaded: what to do."""
    matching = (message for types, words, message in _FAILURES if is_caused_by(error, types, words))
    message = _NO_MEMORY if is_out_of_memory(error) else next(matching, _UNREAD)
    reason = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}".rstrip(".: ")
    return message.format(name=name, revision=revision, reason=reason)


def _locate(source: str, options: PretrainedSource, timeout: float) -> PretrainedSource:
    """Return a copy of `options` that points to `source`: an existing folder or .gguf file, or else a Hub id.

    For a Hub id, `local_only` becomes whether the Hub does not answer within `timeout` seconds. Raises ModelError for a
    path on this machine with a revision, for a file or folder that holds no model, and for what looks like a path but
    does not exist; an error of huggingface_hub for a name that the Hub cannot have or does not know.
    """
    path = Path(source).expanduser()
    if options.revision is not None and path.exists():
        raise ModelError(
            f"revision is {options.revision!r}, but {source} is a path on this machine: leave the revision out."
        )
    if path.is_file():
        return replace(options, location=str(path.parent), gguf=_checked_gguf(path).absolute())
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelError(f"The folder {source} has no config.json: give one that holds a model, or a .gguf file.")
        return replace(options, location=str(path))
    if source.startswith((".", "/", "~")) or "\\" in source or source.count("/") > 1 or path.suffix.lower() == ".gguf":
        raise ModelError(f"There is no folder or file {source}: check the path.")
    validate_repo_id(source)
    return replace(options, location=source, local_only=not hub_answers(source, options.revision, timeout))


def _checked_gguf(path: Path) -> Path:
    """Return the path; raise ModelError unless it ends in .gguf (in any case) and the file begins as a GGUF file."""
    if path.suffix.lower() != ".gguf":
        raise ModelError(f"{path} is a file: give the folder that it lies in, or a .gguf file.")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelError(f"{path} is no GGUF file, or a damaged one: fetch it again, or choose another.")
    return path
