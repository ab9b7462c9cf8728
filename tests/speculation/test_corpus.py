"""Corpora: every text of a source is stored with the tokens it has in a document; other sources raise an error."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from lookahead_core import LookaheadError, Model, load_model
from lookahead_core.speculation import corpus as corpora
from lookahead_core.speculation.corpus import Corpus, load_corpus
from tests.conftest import CORPUS, byte_level, tiny_llama


def known(corpus: Corpus) -> list[list[int]]:
    """The texts that a corpus remembers, token by token."""
    corpus.index.check()
    texts: list[list[int]] = [[]]
    for place in range(corpus.index.size):
        token_id = corpus.index.token_at(place)
        if token_id is None:
            texts.append([])
        else:
            texts[-1].append(token_id)
    return texts


def spelled(model: Model, text: str) -> list[int]:
    return [token.token_id for token in model.codec.encode(text)]


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return folder


def watched_lengths(model: Model, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How long the pieces are that will be tokenised, filled in as they come."""
    encode: Any = model.codec.encode
    lengths: list[int] = []

    def watched(piece: str, continuing: bool = False) -> Any:
        lengths.append(len(piece))
        return encode(piece, continuing)

    monkeypatch.setattr(model.codec, "encode", watched)
    return lengths


@pytest.fixture
def fallback_model(fallback_tokenizer: Any) -> Model:
    return load_model(tiny_llama(len(fallback_tokenizer), eos_token_id=2), tokenizer=fallback_tokenizer)


def test_each_string_is_a_text_of_its_own_with_the_tokens_that_it_has_in_a_document(tiny_model: Model) -> None:
    texts = ["Once upon a time", "the old keeper 🙂", "a"]
    corpus = load_corpus(tiny_model, texts)
    assert known(corpus) == [spelled(tiny_model, text) for text in texts]
    assert corpus.tokens == sum(map(len, known(corpus)))
    assert corpus.name == "given texts"


def test_model_and_source_may_come_in_either_order(tiny_model: Model, tmp_path: Path) -> None:
    file = write(tmp_path, {"sea.txt": b"the sea"}) / "sea.txt"
    for source in (["the sea", "the sky"], str(file), file):
        given = {"model": tiny_model, "source": source}
        orders = [load_corpus(tiny_model, source), load_corpus(source, tiny_model), load_corpus(**given)]
        assert [known(one) for one in orders] == [known(orders[0])] * 3 and orders[0].tokens
    for one, other in ((tiny_model, tiny_model), ("a", ["b"]), (tiny_model.hf_model, ["b"])):
        with pytest.raises(ValueError, match="load_corpus takes a model that load_model gave, and a source: give"):
            load_corpus(one, other)


def test_a_file_is_one_text_without_its_byte_order_mark(tiny_model: Model, tmp_path: Path) -> None:
    file = write(tmp_path, {"sea.txt": b"\xef\xbb\xbfthe sea\r\nand the sky"}) / "sea.txt"
    for source in (file, str(file)):
        corpus = load_corpus(tiny_model, source)
        assert known(corpus) == [spelled(tiny_model, "the sea\nand the sky")]
        assert corpus.name == "sea.txt"


def test_a_folder_gives_its_texts_in_order_without_hidden_and_binary_files(tiny_model: Model, tmp_path: Path) -> None:
    folder = write(
        tmp_path / "books",
        {
            "b.txt": b"the sky",
            "a.md": "the café".encode(),
            "deep/er/c.py": b"again",
            "deep/.hidden": b"secret",
            ".git/config": b"secret",
            "picture.png": b"\x89PNG\r\n\0\0",
            "latin.txt": "café".encode("latin-1"),
            "half.txt": "the end é".encode()[:-1],
            "late.txt": b"a" * 200_000 + b"\0",
            "empty.txt": b"",
        },
    )
    corpus = load_corpus(tiny_model, folder)
    assert known(corpus) == [spelled(tiny_model, text) for text in ("the café", "the sky", "again")]
    assert corpus.name == "books"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tiny_model", "fallback_model"])
def test_a_long_text_is_read_in_pieces_and_has_the_tokens_of_the_whole(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = request.getfixturevalue(kind)
    monkeypatch.setattr(corpora, "CHUNK", 200)
    monkeypatch.setattr(corpora, "CUT_RANGE", 90)
    dice = random.Random(0)
    words = " ".join(CORPUS).split()
    text = "".join(dice.choice(words) + dice.choice([" ", " ", " ", "  ", "\n", ".\n\n"]) for _ in range(900))
    encode, lengths = model.codec.encode, watched_lengths(model, monkeypatch)
    file = write(tmp_path, {"long.txt": text.encode()}) / "long.txt"
    for source in (file, [text]):
        assert known(load_corpus(model, source)) == [[token.token_id for token in encode(text)]]
    assert max(lengths) <= 400, "however long the text is"


def test_a_text_without_spaces_is_read_in_pieces_too(tiny_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "CHUNK", 50)
    text, lengths = "中文字符" * 100, watched_lengths(tiny_model, monkeypatch)
    (ids,) = known(load_corpus(tiny_model, [text]))
    assert tiny_model.tokenizer.decode(ids) == text
    assert max(lengths) <= 100


def test_special_tokens_that_stand_in_a_text_are_text(tiny_model: Model) -> None:
    (ids,) = known(load_corpus(tiny_model, ["the<|end|>sea"]))
    assert tiny_model.tokenizer.eos_token_id not in ids
    assert tiny_model.tokenizer.decode(ids) == "the<|end|>sea"


def test_a_corpus_stores_at_most_the_given_number_of_tokens_and_counts_all_it_read(tiny_model: Model) -> None:
    corpus = load_corpus(tiny_model, CORPUS, most=100)
    assert corpus.index.size == 100
    assert corpus.tokens == sum(len(spelled(tiny_model, text)) for text in CORPUS)
    last = spelled(tiny_model, CORPUS[-1])
    places, length = corpus.index.find(last[:-1])
    assert length >= 16
    assert corpus.index.token_at(places[0]) == last[-1]


def test_a_folder_is_named_as_it_was_given(tiny_model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LookaheadError, match=r"There is no text in \.; give a corpus that has some"):
        load_corpus(tiny_model, ".")
    (tmp_path / "one.txt").write_text("the sea")
    assert load_corpus(tiny_model, ".").name == "."
    assert load_corpus(tiny_model, tmp_path / "one.txt").name == "one.txt"
    assert load_corpus(tiny_model, ["the sea"]).name == "given texts"
    assert Corpus.of_ids(tiny_model, [[3]]).name == "ids"


def test_a_source_without_text_raises_an_error(tiny_model: Model, tmp_path: Path) -> None:
    write(tmp_path, {"picture.png": b"\x89PNG\0", "bad.txt": b"\xff\xfe", "empty.txt": b"", "bare/.hidden": b"text"})
    for source, words in (
        (tmp_path / "picture.png", "picture.png is not a text in UTF-8; convert it, or name another file"),
        (tmp_path / "bad.txt", "bad.txt is not a text in UTF-8"),
        (tmp_path / "empty.txt", "There is no text in empty.txt"),
        (tmp_path / "bare", "There is no text in bare"),
        (tmp_path / "gone.txt", "There is nothing at .*gone.txt; name a file or folder, or give texts"),
        (tmp_path / "folder" / "of-long-name" / ("x" * 40) / "gone.txt", "There is nothing at .*gone.txt; name a file"),
        ("Once upon a time " * 1000, "There is nothing at Once upon a time .*; name a file"),
        ([], "There is no text in given texts"),
        (["", ""], "There is no text in given texts"),
        (["ok", "\ud83d"], "half of a surrogate pair"),
    ):
        with pytest.raises(LookaheadError, match=words):
            load_corpus(tiny_model, source)
    for source, words in (("", "source is ''"), (5, "source is 5"), ([1], "holds int"), (b"abc", "holds int")):
        with pytest.raises(ValueError, match=words):
            load_corpus(tiny_model, source)  # type: ignore[arg-type]


def test_an_unreadable_file_raises_an_error(tiny_model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*told: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied")

    write(tmp_path, {"locked.txt": b"text"})
    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(LookaheadError, match=r"locked.txt cannot be read: Permission denied; make it readable"):
        load_corpus(tiny_model, tmp_path)


def test_a_corpus_serves_every_load_of_its_model_and_no_other_vocabulary(tiny_model: Model) -> None:
    corpus = load_corpus(tiny_model, CORPUS)
    corpus.require(tiny_model)
    again = byte_level(CORPUS)
    more = byte_level(CORPUS)
    more.add_special_tokens({"pad_token": "<|pad|>"})
    for tokenizer in (again, more):
        corpus.require(load_model(tiny_llama(len(tokenizer)), tokenizer=tokenizer))
    other = byte_level(CORPUS[:1], vocabulary=300)
    for tokenizer in (other, None):
        model = load_model(tiny_llama(400), tokenizer=tokenizer)
        with pytest.raises(LookaheadError, match=r"another vocabulary than that of .*; load it again with this model"):
            corpus.require(model)


def test_a_model_without_text_has_corpora_of_ids() -> None:
    model = load_model(tiny_llama(50))
    with pytest.raises(LookaheadError, match=r"needs a tokenizer.*; use Corpus.of_ids"):
        load_corpus(model, ["text"])
    corpus = Corpus.of_ids(model, [[1, 2, 3], [], [4, 49]], name="numbers")
    assert known(corpus) == [[1, 2, 3], [4, 49]]
    assert (corpus.tokens, corpus.name) == (5, "numbers")
    corpus.require(load_model(tiny_llama(50, seed=1)))
    with pytest.raises(LookaheadError, match="another vocabulary"):
        corpus.require(load_model(tiny_llama(60)))
    with pytest.raises(ValueError, match="the id 50, and this model knows none above 49"):
        Corpus.of_ids(model, [[1, 50]])
    with pytest.raises(ValueError, match="token ids"):
        Corpus.of_ids(model, [[1, -2]])
    with pytest.raises(LookaheadError, match="There is no text in ids"):
        Corpus.of_ids(model, [[]])
