"""Let transformers load a model and its tokenizer, quietly, and see that nothing was left to chance."""

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
from huggingface_hub.utils import disable_progress_bars
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
Loaded = tuple[PreTrainedModel, "PreTrainedTokenizerBase | None"]

_VOCABULARIES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "vocab.txt", "tekken.json")


@dataclass(frozen=True)
class PretrainedSource:
    """What to ask transformers for: a folder or a name on the Hub, and how."""

    place: str
    gguf: Path | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    dtype: torch.dtype | None = None
    device_map: Any = None
    quantization: Any = None
    """How to round the weights, as transformers takes it."""
    local_only: bool = True

    @property
    def name(self) -> str:
        return Path(self.gguf or self.place).name

    def has(self, filename: str) -> bool:
        """Whether the file is in the folder, or in the Hub's cache on this machine."""
        folder = Path(self.place)
        if folder.is_absolute() or folder.is_dir():
            return (folder / filename).is_file()
        return isinstance(try_to_load_from_cache(self.place, filename, revision=self.revision), str)

    def arguments(self) -> dict[str, Any]:
        """What transformers is told for the model and the tokenizer alike."""
        shared = {"trust_remote_code": self.trust_remote_code, "local_files_only": self.local_only}
        optional = {"revision": self.revision, "gguf_file": self.gguf and str(self.gguf)}
        return {**shared, **{key: value for key, value in optional.items() if value is not None}}


def silent(sentence: str, fraction: float | None) -> None:
    """Hear a report of progress, and tell nobody."""


def hub_answers(repository: str, revision: str | None, timeout: float) -> bool:
    """Whether the Hub can be asked for this now; raises when it answers that there is no such thing for us."""
    if is_offline_mode():
        return False
    answers: SimpleQueue[Exception | None] = SimpleQueue()

    def ask() -> None:
        try:
            get_hf_file_metadata(hf_hub_url(repository, "config.json", revision=revision), timeout=timeout)
            answers.put(None)
        except Exception as error:
            answers.put(error)

    Thread(target=ask, daemon=True).start()  # looking up a host's name heeds no timeout, so wait from outside
    try:
        answer = answers.get(timeout=timeout)
    except Empty:
        return False
    if isinstance(answer, (hub.RepositoryNotFoundError, hub.RevisionNotFoundError)):
        raise answer
    return answer is None or isinstance(answer, hub.EntryNotFoundError)


def read(request: PretrainedSource, report: Report) -> Loaded:
    """Let transformers load it, and see that nothing was left to chance."""
    here = request.local_only or request.has("config.json")
    report(f"{'Loading' if here else 'Downloading'} {request.name}", None)
    if request.quantization is not None:
        _check_whole_numbers(request)
    with quiet(request):
        model, facts = AutoModelForCausalLM.from_pretrained(
            request.place, output_loading_info=True, **request.arguments(), **_for_weights(request)
        )
        tokenizer = _read_tokenizer(request)
    if missing := sorted(facts["missing_keys"]):  # transformers makes up random ones, and only warns
        raise ModelError(f"{request.name} lacks {len(missing)} weights, {missing[0]} among them: give a whole model.")
    if request.quantization is not None and not is_quantized(model):
        raise ModelError(f"{request.name} has no weights that could be rounded to so few bits: leave quantize out.")
    return model.eval(), tokenizer


def _for_weights(request: PretrainedSource) -> dict[str, Any]:
    """What transformers is told for the model alone."""
    few = GgufConfig(dequantize=True) if request.gguf else request.quantization
    optional = {"quantization_config": few, "device_map": request.device_map}
    told = {key: value for key, value in optional.items() if value is not None}
    return {"dtype": request.dtype or "auto", "adapter_kwargs": {"local_files_only": request.local_only}, **told}


def _check_whole_numbers(request: PretrainedSource) -> None:
    """A ModelError where the weights were rounded before they were stored: to do it twice makes no sense."""
    if request.gguf:
        raise ModelError(f"{request.name} has the bits that it has: leave quantize out, or give the model's folder.")
    config = AutoConfig.from_pretrained(request.place, **request.arguments())
    if getattr(config, "quantization_config", None) is not None:
        raise ModelError(f"{request.name} is stored in few bits already: leave quantize out.")


def _read_tokenizer(request: PretrainedSource) -> PreTrainedTokenizerBase | None:
    """The tokenizer, or None where there are no files of one: transformers then makes up an empty one, or fails."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(request.place, **request.arguments())
    except ValueError:
        if request.gguf or any(map(request.has, _VOCABULARIES)):
            raise
        return None
    names = tokenizer.vocab_files_names
    known = request.gguf or not names or any(map(request.has, {*_VOCABULARIES, *names.values()}))
    return tokenizer if known else None


_TURNS = Lock()
"""transformers keeps its progress bars and the default dtype for the whole process, so threads take turns."""


@contextmanager
def quiet(request: PretrainedSource) -> Iterator[None]:
    """No progress bars on stderr, and everything as before afterwards."""
    with _TURNS, disable_progress_bars(), ExitStack() as stack:
        before = logging.set_tqdm_hook(lambda factory, args, kwargs: logging.EmptyTqdm(*args, **kwargs))
        stack.callback(logging.set_tqdm_hook, before)
        if request.gguf is not None:  # the reader's own bar knows no hook
            stack.enter_context(redirect_stderr(io.StringIO()))
        yield
