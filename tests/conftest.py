"""Fixtures for many tests: tiny tokenizers, tiny models, the default model, browser pages.

Libraries are imported inside functions, because the process that only distributes tests to workers needs none of them.
"""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lookahead_core import Model

CORPUS = [
    "Once upon a time there was a small lighthouse keeper who watched the sea and the sky.",
    "After careful consideration of the risks, the old keeper climbed the stairs again and again.",
    "Emoji 🙂👩‍👩‍👧 and 中文字符 and العربية and naïve café résumé, 1984!",
] * 20


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Disable garbage collection while modules are imported, and exclude their objects from it afterwards."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Let workers take files in the order of `pytest_collection_modifyitems`; print each failure when it happens."""
    config.option.loadscopereorder = False
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_FailuresAtOnce(config))


class _FailuresAtOnce:
    """Prints each failure when it happens. pytest does so after the last test: not at all if it is killed before."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            terminal = self._config.pluginmanager.get_plugin("terminalreporter")
            terminal.ensure_newline()
            terminal.write_line(f"FAILED at {report.when}: {report.nodeid}\n{report.longreprtext}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the selected tests: slow files first, so that no worker starts one of them when all others have finished.

    First come files with a test marked `long`, then those that load the default model or open a browser. Within these
    groups, and among the rest, files with more tests come first. With LOOKAHEAD_TEST_PART=2/3 a third of the tests of
    each file is run: of one file the second, the fifth and so on, of the next one the third, the sixth and so on.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    in_order = sorted(files.values(), key=lambda group: (-max(map(_slowness, group)), -len(group)))
    if wanted := os.environ.get("LOOKAHEAD_TEST_PART"):
        part, parts = map(int, wanted.split("/"))
        starts = [(part - 1 + place) % parts for place in range(len(in_order))]
        chosen = [group[start::parts] for group, start in zip(in_order, starts, strict=True)]
        kept = {item.nodeid for group in chosen for item in group}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
        in_order = chosen
    items[:] = [item for group in in_order for item in group]


def _slowness(item: pytest.Item) -> int:
    """2 for a test marked `long`, 1 for one with the default model or a browser, else 0."""
    if item.get_closest_marker("long"):
        return 2
    fixtures = set(getattr(item, "fixturenames", ()))
    return int("default_model" in fixtures or item.get_closest_marker("browser") is not None)


def byte_level(corpus: list[str], vocabulary: int = 400) -> Any:
    """A byte-level tokenizer, as GPT-2's, Llama 3's and the default model's are."""
    import tokenizers
    import transformers

    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<|end|>", "<|start|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(corpus, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>", bos_token="<|start|>")


def byte_fallback(corpus: list[str], vocabulary: int = 400) -> Any:
    """A tokenizer with space markers and byte fallback, as Llama 2's and Mistral's are."""
    import tokenizers
    import transformers

    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.normalizer = tokenizers.normalizers.Sequence(
        [tokenizers.normalizers.Prepend("▁"), tokenizers.normalizers.Replace(" ", "▁")]
    )
    made.decoder = tokenizers.decoders.Sequence(
        [
            tokenizers.decoders.Replace("▁", " "),
            tokenizers.decoders.ByteFallback(),
            tokenizers.decoders.Fuse(),
            tokenizers.decoders.Strip(content=" ", left=1),
        ]
    )
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=[], show_progress=False)
    # As in the real ones, pieces do not cross spaces, though no pre-tokenizer splits a text at encoding.
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="never")
    made.train_from_iterator([line.replace(" ", "▁") for line in corpus], trainer)
    made.pre_tokenizer = None
    learned = json.loads(made.to_str())["model"]
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *learned["vocab"]]
    made.model = tokenizers.models.BPE(
        vocab={name: index for index, name in enumerate(names)},
        merges=[tuple(pair) for pair in learned["merges"]],
        byte_fallback=True,
        unk_token="<unk>",
    )
    made.add_special_tokens(["<unk>", "<s>", "</s>"])
    made.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


def tiny_llama(vocabulary: int, seed: int = 0, **options: Any) -> Any:
    """A Llama with two narrow layers and random weights, large enough for peaked distributions."""
    import torch
    import transformers

    config = transformers.LlamaConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=64,
        vocab_size=vocabulary,
        **{"max_position_embeddings": 512, "eos_token_id": 0, "bos_token_id": None, "pad_token_id": None} | options,
    )
    torch.manual_seed(seed)
    model = transformers.LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    return model


@pytest.fixture(scope="session")
def byte_tokenizer() -> Any:
    """See `byte_level`."""
    return byte_level(CORPUS)


@pytest.fixture(scope="session")
def fallback_tokenizer() -> Any:
    """See `byte_fallback`."""
    return byte_fallback(CORPUS)


@pytest.fixture(scope="session")
def slow_tokenizer(fallback_tokenizer: Any) -> Any:
    """The same vocabulary in a tokenizer without offsets."""
    from tests.support.slow_tokenizer import without_offsets

    return without_offsets(fallback_tokenizer)


@pytest.fixture(scope="session")
def tiny_model(byte_tokenizer: Any) -> Model:
    """A tiny model with a tokenizer, on the cached engine."""
    from lookahead_core import load_model

    return load_model(tiny_llama(len(byte_tokenizer)), tokenizer=byte_tokenizer)


@pytest.fixture
def tiny_folder(tiny_model: Model, tmp_path: Path) -> Path:
    """The tiny model and its tokenizer as files, which a command or a process of its own can load."""
    folder = tmp_path / "model"
    tiny_model.hf_model.save_pretrained(folder)
    tiny_model.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def draft_model(byte_tokenizer: Any) -> Model:
    """The tiny model with a little noise in its weights: it agrees with `tiny_model` on some tokens."""
    import torch

    from lookahead_core import load_model

    hf_model = tiny_llama(len(byte_tokenizer))
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in hf_model.parameters():
            parameter += 0.02 * torch.randn_like(parameter)
    return load_model(hf_model, tokenizer=byte_tokenizer)


@pytest.fixture(scope="session")
def default_model() -> Model:
    """The default model in float32; the first run on a machine downloads and converts it."""
    from lookahead_core import load_model

    return load_model(os.environ.get("LOOKAHEAD_TEST_MODEL") or None, dtype="float32")


@pytest.fixture(scope="session")
def small_model(default_model: Model) -> Model:
    """A tiny model with the default model's tokenizer: for pages with real tokens, whatever the model predicts.

    Its distributions are peaked as a trained model's are, and a pass takes a fiftieth of the default model's time.
    """
    from lookahead_core import load_model

    tokenizer = default_model.tokenizer
    hf_model = tiny_llama(
        len(tokenizer), max_position_embeddings=8192, eos_token_id=tokenizer.convert_tokens_to_ids("<|im_end|>")
    )
    hf_model.lm_head.weight.data *= 4
    return load_model(hf_model, tokenizer=tokenizer)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A real browser, once per module: no asynchronous code can run while it is open."""
    from tests.support import browser as browsers

    with browsers.chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def page(browser: Any) -> Any:
    """A browser page for the tests of a module, which each reload it: a new page takes far longer."""
    from tests.support import browser as browsers

    context = browser.new_context()
    context.set_default_timeout(browsers.PATIENCE)
    return context.new_page()


@pytest.fixture(scope="module")
def real_page(browser: Any, default_model: Model) -> Iterator[str]:
    """The address of the page with the default model."""
    from tests.support import browser as browsers

    with browsers.page_of(lambda report: default_model) as url:
        yield url


@pytest.fixture(scope="module")
def small_page(browser: Any, small_model: Model) -> Iterator[str]:
    """The address of the page with a tiny model that has the default model's tokens and template."""
    from tests.support import browser as browsers

    with browsers.page_of(lambda report: small_model) as url:
        yield url


@pytest.fixture(scope="module")
def tiny_page(browser: Any, tiny_model: Model) -> Iterator[str]:
    """The address of the page with a tiny model, for tests that do not depend on its predictions."""
    from tests.support import browser as browsers

    with browsers.page_of(lambda report: tiny_model) as url:
        yield url


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Small matrix products are slower on two threads than on one, and far slower beside other programs."""
    import torch

    torch.set_num_threads(int(os.environ.get("LOOKAHEAD_TEST_THREADS", "1")))


@pytest.fixture(autouse=True)
def _torch_state_is_unchanged(_one_thread: None) -> Iterator[None]:
    """Each test restores torch's global state, so that no result depends on the tests before it."""
    import torch

    def state() -> tuple[object, ...]:
        return torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads()

    before = state()
    yield
    assert state() == before
