"""Loading draft heads: from a folder, a name or the Hub to a `Heads` that fits the model."""

from __future__ import annotations

import os
from pathlib import Path

from huggingface_hub import errors as hub
from huggingface_hub import hf_hub_download

from lookahead_core.errors import ModelError, is_caused_by
from lookahead_core.loading.from_transformers import hub_answers
from lookahead_core.model import Model, model_and_source
from lookahead_core.settings import Settings
from lookahead_core.speculation.heads_file import TRAIN_HINT, Heads, check_heads, read_heads

FILE = "heads.safetensors"
"""Name of the file that holds draft heads in a folder or a Hub repository."""
Source = str | os.PathLike[str]
"""The path of a file or folder, a name that heads were trained under, or a Hub id."""


def load_heads(source: Source | Model, model: Model | Source, *, settings: Settings | None = None) -> Heads:
    """Return the draft heads of a file, a folder, a name they were trained under, or a Hub id, tried in this order.

    Source and model may come in either order; None for `settings` means those of the environment. A ModelError is
    raised if there are no heads, if their file is invalid, if they belong to another model, or if this model's output
    matrix cannot be read; a ValueError unless one argument is a model and the other a string or path.
    """
    model, source = model_and_source(source, model, "load_heads")
    if not isinstance(source, str | os.PathLike):
        raise ValueError(f"source is {source!r}, and must be a file, a folder, a name or a Hub id.")
    name = os.fspath(source)
    heads = read_heads(_locate(name, settings or Settings.from_env()), name)
    check_heads(heads, model)
    return heads


def home_of(name: str, settings: Settings) -> Path:
    """Return the absolute path of the folder for heads trained under a plain name; it need not exist yet.

    A ValueError is raised if the name is empty, "." or "..", or has a slash, a backslash or a colon.
    """
    if not name or name in (".", "..") or set(name) & set("/\\:"):
        raise ValueError(
            f"name is {name!r}, and must be a plain name, without slashes; give a folder for any other place."
        )
    return settings.cache_dir.expanduser().absolute() / "heads" / name


def _locate(name: str, settings: Settings) -> Path:
    """Return the path of the heads' file; `name` is the path of that file or of its folder, a name that heads were
    trained under, or a Hub id, tried in this order.

    Nothing is downloaded if the name leads to a file on this machine, is a folder, or does not have the form of a Hub
    id. A ModelError is raised if there is no such file.
    """
    path = Path(name).expanduser()
    candidates = [path, path / FILE]
    if not set(name) & set("/\\:") and name not in ("", ".", ".."):
        candidates.append(home_of(name, settings) / FILE)
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    if path.is_dir():
        raise ModelError(f"The folder {name} holds no {FILE}: give one that does, or {TRAIN_HINT}.")
    if name.count("/") == 1 and not name.startswith((".", "/", "~")) and path.suffix != ".safetensors":
        return _download(name, settings.hub_timeout)
    raise ModelError(f"There are no heads {name}, neither as {' nor as '.join(map(str, candidates))}: {TRAIN_HINT}.")


def _download(name: str, timeout: float) -> Path:
    """Return the path of the heads' file of a Hub repository, downloaded or in the Hub's cache on this machine.

    The cache alone is used if the Hub does not answer in `timeout` seconds. A ModelError says why there is no file.
    """
    try:
        local_only = not hub_answers(name, None, timeout)
        return Path(hf_hub_download(name, FILE, local_files_only=local_only))
    except Exception as error:
        raise ModelError(_download_error(name, error)) from error


def _download_error(name: str, error: Exception) -> str:
    """Return the message that says why the Hub repository `name` gave no file, as shown by `error`, and what to do."""
    if is_caused_by(error, hub.GatedRepoError):
        return f"{name} is gated: ask for access on its page on the Hub, then run `hf auth login`."
    if is_caused_by(error, hub.RepositoryNotFoundError):
        return f"There is no folder {name}, and the Hub shows none either: check the name, or {TRAIN_HINT}."
    if is_caused_by(error, hub.HFValidationError):
        return f"{name} is no file, no folder and no name on the Hub: check the spelling."
    if is_caused_by(error, hub.LocalEntryNotFoundError):
        return f"The heads {name} are not on this machine, and the Hub does not answer: connect once, or {TRAIN_HINT}."
    if is_caused_by(error, hub.EntryNotFoundError):
        return f"{name} on the Hub holds no {FILE}: give a repository that does, or {TRAIN_HINT}."
    return f"The heads {name} could not be fetched ({type(error).__name__}): try again, or {TRAIN_HINT}."
