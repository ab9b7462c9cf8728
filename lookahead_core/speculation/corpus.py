"""Corpora: texts that are loaded to draft from. They are read in chunks and stored as token ids in an n-gram index."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import weakref
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from lookahead_core.errors import LookaheadError, TextError
from lookahead_core.model import Model, model_and_source
from lookahead_core.speculation.ngram_index import NgramIndex
from lookahead_core.text.codec import TextCodec, special_ids

MAX_TOKENS = 1_000_000
"""Default of `most`, the number of tokens that a corpus stores: about sixty megabytes."""
CHUNK = 65_536
"""Number of characters read at once, so that a file may be larger than memory."""
CUT_RANGE = 1000
"""Text is cut at the last single space between words in this many characters before its end, or else at its end."""
_SINGLE_SPACE = re.compile(r"(?<=\S) (?=\S)")
Source = str | os.PathLike[str] | Iterable[str]
"""The path of a file or folder, or texts."""


class Corpus:
    """Texts as token ids of one vocabulary, in an n-gram index that the drafter "suffix" searches.

    Users get one from `load_corpus` or `Corpus.of_ids`, and give it to a stream as the option `corpus`.
    """

    def __init__(self, model: Model, name: str, *, most: int = MAX_TOKENS) -> None:
        """Make an empty corpus for the model's vocabulary, of at most `most` tokens; `name` is for messages.

        Users call `load_corpus` or `of_ids` instead. A ValueError is raised if `NgramIndex` does not accept `most`.
        """
        self.name = name
        self.index = NgramIndex(most)
        self.tokens = 0
        """Number of tokens read. If there are more than `most`, the index keeps the latest."""
        self._vocabulary = _vocabulary_hash(model)
        self._matching_codecs = weakref.WeakSet([model.codec])

    @classmethod
    def of_ids(
        cls, model: Model, texts: Iterable[Sequence[int]], *, most: int = MAX_TOKENS, name: str = "ids"
    ) -> Corpus:
        """Return a corpus of texts that are sequences of token ids, for models with or without a tokenizer.

        The last `most` tokens of all texts together are kept, where a break between two texts counts as a token. `name`
        is for messages. Raises a ValueError if an id is not in the vocabulary or `most` is not valid, or a
        LookaheadError if there are no tokens.
        """
        corpus = cls(model, name, most=most)
        for token_ids in texts:
            corpus._add([token_ids])
            if max(token_ids, default=0) >= model.vocabulary:
                most_id = model.vocabulary - 1
                raise ValueError(f"texts holds the id {max(token_ids)}, and this model knows none above {most_id}.")
        return corpus._checked()

    def require(self, model: Model) -> None:
        """Raise a LookaheadError unless this model has the corpus's vocabulary, special tokens not compared.

        If neither this model nor the corpus's has a tokenizer, only the vocabularies' sizes are compared. If only one
        has a tokenizer, the error is raised.
        """
        if model.codec in self._matching_codecs:
            return
        if _vocabulary_hash(model) != self._vocabulary:
            raise LookaheadError(
                f"The corpus {self.name} was read with another vocabulary than that of {model.name}; "
                "load it again with this model."
            )
        self._matching_codecs.add(model.codec)

    def _add(self, parts: Iterable[Sequence[int]]) -> None:
        """Add one text, whose token ids come in consecutive `parts`; a ValueError is raised as by `NgramIndex.add`."""
        self.index.begin_text()
        for token_ids in parts:
            self.index.add(token_ids)
            self.tokens += len(token_ids)

    def _checked(self) -> Corpus:
        """Return this corpus; a LookaheadError is raised if no token was added to it."""
        if not self.tokens:
            raise LookaheadError(f"There is no text in {self.name}; give a corpus that has some.")
        return self


def load_corpus(model: Model | Source, source: Source | Model, *, most: int = MAX_TOKENS) -> Corpus:
    """Return a corpus to draft from. The source is the path of a file or of a folder, or an iterable of texts.

    A string is a path, not a text. A folder is read with its subfolders, without hidden files and files that are not
    UTF-8 text. Each text is tokenized separately with this model's tokenizer; the last `most` tokens of all texts
    together are kept. Model and source may come in either order. Raises a LookaheadError if there is no text, if a file
    cannot be read, or if a single file is not UTF-8 text; a TextError if the model has no tokenizer, or for half of a
    surrogate pair; a ValueError for an empty path, arguments or texts of another type, or an invalid `most`.
    """
    model, source = model_and_source(model, source, "load_corpus")
    if model.tokenizer is None:
        raise TextError("A corpus of text needs a tokenizer, which this model was given without; use Corpus.of_ids.")
    name, texts = _open_source(source)
    corpus = Corpus(model, name, most=most)
    for chunks in texts:
        corpus._add(_tokenized(model.codec, _cut_between_words(chunks)))
    return corpus._checked()


def _open_source(source: object) -> tuple[str, Iterator[Iterator[str]]]:
    """Return a source's name for messages, and its texts, each as an iterator of chunks: strings in order.

    The name is the last part of a path, or "given texts". A ValueError is raised unless the source is a non-empty path
    or an iterable of texts. Texts are read only while they are iterated, and errors of `_texts_at` and `_chunks` come
    then.
    """
    if source == "" or not isinstance(source, str | os.PathLike | Iterable):
        raise ValueError(f"source is {source!r}, and must be a file, a folder, or several strings.")
    if isinstance(source, str | os.PathLike):
        return Path(source).name or str(source), _texts_at(Path(source))
    return "given texts", map(_chunks, source)


def _shortened(name: str) -> str:
    """Return a name with every run of whitespace as one space, for messages.

    Of more than 80 characters, it returns the first and the last 38 with " [...] " between.
    """
    name = " ".join(name.split())
    return name if len(name) <= 80 else f"{name[:38]} [...] {name[-38:]}"


def _texts_at(path: Path) -> Iterator[Iterator[str]]:
    """Yield the text of a file, or of each file in a folder, as an iterator of chunks.

    In a folder, the files are those of `_files_in` without those that are not UTF-8 text. A LookaheadError is raised
    if nothing is at `path`, if a file or folder cannot be read, or if `path` is a file that is not UTF-8 text.
    """
    # These two return False for a string that is too long for a path; methods of Path raise an error.
    if os.path.isdir(path):
        yield from (_read(file) for file in _files_in(path) if _is_text(file))
    elif not os.path.exists(path):
        raise LookaheadError(
            f"There is nothing at {_shortened(str(path))}; name a file or folder, or give texts themselves in a list."
        )
    elif not (path.is_file() and _is_text(path)):
        raise LookaheadError(f"{path.name} is not a text in UTF-8; convert it, or name another file.")
    else:
        yield _read(path)


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder, sorted by name, and then those of each subfolder, also sorted, in the same way.

    Left out are names that begin with a dot, what is no regular file, and folders that are symbolic links. A
    LookaheadError with the name of `folder` is raised if it or a subfolder cannot be read.
    """
    for parent, folders, files in os.walk(folder, onerror=partial(_raise_unreadable, folder)):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found = (Path(parent, name) for name in sorted(files) if not name.startswith("."))
        yield from (file for file in found if file.is_file())


def _is_text(file: Path) -> bool:
    """Whether the file is empty, or all UTF-8 without zero bytes; a LookaheadError is raised if it cannot be read."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with file.open("rb") as opened:
            while chunk := opened.read(CHUNK):
                if "\0" in decoder.decode(chunk):
                    return False
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    except OSError as error:
        _raise_unreadable(file, error)
    return True


def _read(file: Path) -> Iterator[str]:
    """Yield a UTF-8 file's text in chunks of CHUNK characters, without a byte order mark; the last may be shorter.

    Each line break becomes a line feed. The caller has checked the file with `_is_text`: errors in reading or decoding
    are raised as they are.
    """
    # A byte order mark is not part of the text.
    with file.open(encoding="utf-8-sig") as opened:
        while chunk := opened.read(CHUNK):
            yield chunk


def _raise_unreadable(path: Path, error: OSError) -> None:
    """Raise a LookaheadError, caused by `error`, that says why the file or folder `path` cannot be read."""
    reason = error.strerror or type(error).__name__
    raise LookaheadError(f"{path.name} cannot be read: {reason}; make it readable, or leave it out.") from error


def _chunks(text: object) -> Iterator[str]:
    """Return an iterator of a string's chunks of CHUNK characters, the last of which may be shorter.

    For another type than a string a ValueError is raised at once. An empty string has no chunks.
    """
    if not isinstance(text, str):
        raise ValueError(f"source holds {type(text).__name__}, and must hold strings.")
    return (text[start : start + CHUNK] for start in range(0, len(text), CHUNK))


def _cut_between_words(chunks: Iterable[str]) -> Iterator[str]:
    """Yield the text that `chunks` make up, in consecutive parts that end between words where `_cut_position` can.

    Parts that end there, tokenized one by one, give the tokens of the whole text. Each part has at least
    CHUNK - CUT_RANGE characters, except the last one, which may be empty.
    """
    held = ""
    for chunk in chunks:
        held += chunk
        cut = _cut_position(held) if len(held) >= CHUNK else 0
        if cut:
            yield held[:cut]
            held = held[cut:]
    yield held


def _cut_position(text: str) -> int:
    """Return the index of the last single space between words in the last CUT_RANGE characters of a text.

    Single means that no other whitespace is beside it. If there is none, the length of the text is returned.
    """
    spaces = [found.start() for found in _SINGLE_SPACE.finditer(text, max(0, len(text) - CUT_RANGE))]
    return spaces[-1] if spaces else len(text)


def _tokenized(codec: TextCodec, parts: Iterable[str]) -> Iterator[list[int]]:
    """Yield, for each of a text's consecutive parts, the list of its token ids, without the model's start tokens.

    The first part is encoded as the start of a text, and the others as following text. A TextError is raised as by
    `TextCodec.encode`.
    """
    for number, part in enumerate(parts):
        yield [token.token_id for token in codec.encode(part, continuing=number > 0)]


def _vocabulary_hash(model: Model) -> str:
    """Return a string that is equal for equal vocabularies: a hash of each token's name and id.

    Special tokens do not count, so a corpus also serves a model that was derived by adding some. For a model without a
    tokenizer only the number of ids counts.
    """
    if model.tokenizer is None:
        return f"{model.vocabulary} ids"
    special = special_ids(model.tokenizer)
    names = sorted((index, name) for name, index in model.tokenizer.get_vocab().items() if index not in special)
    return hashlib.sha256(repr(names).encode("utf-8", "backslashreplace")).hexdigest()
