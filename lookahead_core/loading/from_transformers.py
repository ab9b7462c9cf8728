"""Load a model and its tokenizer with transformers, without progress bars, and check that they are complete."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

import torch
from huggingface_hub import errors as hub
from huggingface_hub import get_hf_file_metadata, hf_hub_url, is_offline_mode, try_to_load_from_cache
from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from lookahead_core.errors import ModelError
from lookahead_core.loading.quantization import is_quantized

Report = Callable[[str, "float | None"], None]
"""A function that is called with a sentence on the progress and a fraction of it; None where that is unknown."""
Loaded = tuple[PreTrainedModel, "PreTrainedTokenizerBase | None"]
"""A model, and its tokenizer if it has one."""

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    "tekken.json",
)


@dataclass(frozen=True)
class PretrainedSource:
    """What to load with transformers (a folder, a Hub id, or a .gguf file in a folder), and the options for it."""

    location: str
    """A folder or a Hub id."""
    gguf: Path | None = None
    """A .gguf file in that folder, to load instead of safetensors."""
    revision: str | None = None
    trust_remote_code: bool = False
    dtype: torch.dtype | None = None
    device_map: Any = None
    quantization: Any = None
    """The quantization configuration of transformers; None to load the weights as they are stored."""
    local_only: bool = True
    """Whether to use only files on this machine."""

    @property
    def name(self) -> str:
        """The model's name for messages: the last part of the path or of the Hub id, or the name of the .gguf file."""
        return Path(self.gguf or self.location).name

    def has(self, filename: str) -> bool:
        """Whether the file is in the folder, or for a Hub id in the Hub's cache on this machine."""
        folder = Path(self.location)
        if folder.is_absolute() or folder.is_dir():
            return (folder / filename).is_file()
        return isinstance(try_to_load_from_cache(self.location, filename, revision=self.revision), str)

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments of `from_pretrained` that model and tokenizer share.

        These are trust_remote_code, local_files_only, and revision and gguf_file if they are set.
        """
        shared = {"trust_remote_code": self.trust_remote_code, "local_files_only": self.local_only}
        optional = {"revision": self.revision, "gguf_file": self.gguf and str(self.gguf)}
        return {**shared, **{key: value for key, value in optional.items() if value is not None}}


def no_report(sentence: str, fraction: float | None) -> None:
    """Do nothing: the `Report` for callers that want none."""


def hub_answers(repository: str, revision: str | None, timeout: float) -> bool:
    """Whether the Hub answers within `timeout` seconds that this repository and revision exist.

    False if it does not answer, answers with another error, or transformers is offline. Raises the error of
    huggingface_hub if it answers that the repository or revision does not exist, or not for this user.
    """
    if is_offline_mode():
        return False
    answers: SimpleQueue[Exception | None] = SimpleQueue()

    def request_metadata() -> None:
        try:
            get_hf_file_metadata(hf_hub_url(repository, "config.json", revision=revision), timeout=timeout)
            answers.put(None)
        except Exception as error:
            answers.put(error)

    Thread(target=request_metadata, daemon=True).start()  # DNS lookups ignore the timeout, so wait here
    try:
        answer = answers.get(timeout=timeout)
    except Empty:
        return False
    if isinstance(answer, (hub.RepositoryNotFoundError, hub.RevisionNotFoundError)):
        raise answer
    return answer is None or isinstance(answer, hub.EntryNotFoundError)


def load_pretrained(request: PretrainedSource, report: Report) -> Loaded:
    """Return a model in evaluation mode, and its tokenizer; None for the tokenizer if there are no files for one.

    Raises ModelError if weights are missing or cannot be quantized as requested. Errors of transformers and of the Hub
    pass through. `report` is called once, with a fraction of None, when loading begins.
    """
    is_local = request.local_only or request.has("config.json")
    report(f"{'Loading' if is_local else 'Downloading'} {request.name}", None)
    if request.quantization is not None:
        _check_unquantized(request)
    with quiet_loading(request):
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            request.location, output_loading_info=True, **request.arguments(), **_weight_arguments(request)
        )
        model: PreTrainedModel
        model, loading_info = loaded
        tokenizer = _load_tokenizer(request)
    if missing := sorted(loading_info["missing_keys"]):  # transformers initialises them randomly, and only warns
        raise ModelError(f"{request.name} lacks {len(missing)} weights, {missing[0]} among them: give a whole model.")
    if request.quantization is not None and not is_quantized(model):
        raise ModelError(f"{request.name} has no weights that can be quantized: leave quantize out.")
    model.eval()
    return model, tokenizer


def _weight_arguments(request: PretrainedSource) -> dict[str, Any]:
    """Return the keyword arguments of `from_pretrained` that only the model takes.

    These are dtype ("auto" if none is set), those of adapters, and quantization and device map if they are set. The
    quantization of a GGUF file is always to dequantize it.
    """
    quantization = GgufConfig(dequantize=True) if request.gguf else request.quantization
    optional = {"quantization_config": quantization, "device_map": request.device_map}
    arguments = {key: value for key, value in optional.items() if value is not None}
    return {"dtype": request.dtype or "auto", "adapter_kwargs": {"local_files_only": request.local_only}, **arguments}


def _check_unquantized(request: PretrainedSource) -> None:
    """Raise a ModelError if the weights cannot be quantized at load: a GGUF file, or weights stored quantized.

    Reads the config, whose errors pass through.
    """
    if request.gguf:
        raise ModelError(f"{request.name} cannot be quantized at load: leave quantize out, or give the model's folder.")
    config = AutoConfig.from_pretrained(request.location, **request.arguments())
    if getattr(config, "quantization_config", None) is not None:
        raise ModelError(f"{request.name} is stored quantized already: leave quantize out.")


def _load_tokenizer(request: PretrainedSource) -> PreTrainedTokenizerBase | None:
    """Return the tokenizer; None if there are no files for one: transformers makes an empty one then, or fails.

    A ValueError of transformers passes through if there are files, and other errors always.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(request.location, **request.arguments())
    except ValueError:
        if request.gguf or any(map(request.has, _TOKENIZER_FILES)):
            raise
        return None
    names = tokenizer.vocab_files_names
    has_files = request.gguf or not names or any(map(request.has, {*_TOKENIZER_FILES, *names.values()}))
    return tokenizer if has_files else None


_LOADING = Lock()
"""Progress bars and the default dtype are global in transformers, so one thread loads at a time."""


@contextmanager
def quiet_loading(request: PretrainedSource) -> Iterator[None]:
    """Context manager that hides progress bars of transformers and the Hub; it lets in one thread at a time.

    Others wait. It cannot be nested: the inner one would wait forever. For a GGUF file it hides all output to
    `sys.stderr`.
    """
    with _LOADING, disable_progress_bars(), ExitStack() as stack:
        before = logging.set_tqdm_hook(lambda factory, args, kwargs: logging.EmptyTqdm(*args, **kwargs))
        stack.callback(logging.set_tqdm_hook, before)
        if request.gguf is not None:  # the GGUF reader's progress bar ignores the hook
            stack.enter_context(redirect_stderr(io.StringIO()))
        yield
