"""Texts that are loaded on purpose, so that drafts may be taken from them: read piece by piece, kept as token ids."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import weakref
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lookahead_core.errors import LookaheadError, TextError
from lookahead_core.model import Model, model_and_source
from lookahead_core.speculation.ngram_index import NgramIndex
from lookahead_core.text.codec import TextCodec, special_ids

MOST = 1_000_000
"""How many tokens a corpus remembers where nothing is said: some sixty megabytes."""
PIECE = 65_536
"""So many characters are read at once, so that a file may be larger than the memory."""
SEAM = 1000
"""So near its end a piece is cut between two words, if there are any."""
_SPACE = re.compile(r"(?<=\S) (?=\S)")
Source = str | os.PathLike[str] | Iterable[str]


class Corpus:
    """Texts as token ids of one vocabulary, and an index to find in them what a text ends with."""

    def __init__(self, model: Model, name: str, *, most: int = MOST) -> None:
        self.name = name
        self.index = NgramIndex(most)
        self.tokens = 0
        """How many tokens were read; the index forgets the oldest of them where they are more than it may keep."""
        self._vocabulary = _vocabulary(model)
        self._known = weakref.WeakSet([model.codec])

    @classmethod
    def of_ids(cls, model: Model, texts: Iterable[Sequence[int]], *, most: int = MOST, name: str = "ids") -> Corpus:
        """A corpus of texts that are token ids already: all that there is for a model without a tokenizer."""
        corpus = cls(model, name, most=most)
        for token_ids in texts:
            corpus._add([token_ids])
            if max(token_ids, default=0) >= model.vocabulary:
                most_id = model.vocabulary - 1
                raise ValueError(f"texts holds the id {max(token_ids)}, and this model knows none above {most_id}.")
        return corpus._filled()

    def require(self, model: Model) -> None:
        """Raise a sentence unless the ids mean to this model what they meant to the one it was read for."""
        if model.codec in self._known:
            return
        if _vocabulary(model) != self._vocabulary:
            raise LookaheadError(
                f"The corpus {self.name} was read with another vocabulary than that of {model.name}; "
                "load it again with this model."
            )
        self._known.add(model.codec)

    def _add(self, pieces: Iterable[Sequence[int]]) -> None:
        """Remember a text, which comes in pieces."""
        self.index.begin_text()
        for token_ids in pieces:
            self.index.add(token_ids)
            self.tokens += len(token_ids)

    def _filled(self) -> Corpus:
        if not self.tokens:
            raise LookaheadError(f"There is no text in {self.name}; give a corpus that has some.")
        return self


def load_corpus(model: Model | Source, source: Source | Model, *, most: int = MOST) -> Corpus:
    """Texts to draft from: a text file, a folder of them (what is hidden or no text is left out), or strings.

    Each is read as a text of its own, with this model's tokenizer; the latest `most` tokens are kept. Model and source
    may come in either order.
    """
    model, source = model_and_source(model, source, "load_corpus")
    if model.tokenizer is None:
        raise TextError("A corpus of text needs a tokenizer, which this model was given without; use Corpus.of_ids.")
    is_path = isinstance(source, str | os.PathLike)
    if source == "" or not (is_path or isinstance(source, Iterable)):
        raise ValueError(f"source is {source!r}, and must be a file, a folder, or several strings.")
    corpus = Corpus(model, Path(source).name or str(source) if is_path else "given texts", most=most)
    for pieces in _files(Path(source)) if is_path else map(_pieces_of, source):
        corpus._add(_encoded(model.codec, _between_words(pieces)))
    return corpus._filled()


def _shortened(name: str) -> str:
    """A long name without its middle: the end of a path says which file it is."""
    name = " ".join(name.split())
    return name if len(name) <= 80 else f"{name[:38]} [...] {name[-38:]}"


def _files(path: Path) -> Iterator[Iterator[str]]:
    """The texts of a file or folder, each in pieces."""
    # These two take a text that was given for a path, which may be too long for one, for a path to nothing.
    if os.path.isdir(path):
        yield from (_read(file) for file in _inside(path) if _is_text(file))
    elif not os.path.exists(path):
        raise LookaheadError(
            f"There is nothing at {_shortened(str(path))}; name a file or folder, or give texts themselves in a list."
        )
    elif not (path.is_file() and _is_text(path)):
        raise LookaheadError(f"{path.name} is not a text in UTF-8; convert it, or name another file.")
    else:
        yield _read(path)


def _inside(folder: Path) -> Iterator[Path]:
    """All files of a folder and of those inside it, in the order of their names, but for what is hidden."""
    for place, folders, files in os.walk(folder, onerror=partial(_cannot_read, folder)):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found = (Path(place, name) for name in sorted(files) if not name.startswith("."))
        yield from (file for file in found if file.is_file())


def _is_text(file: Path) -> bool:
    """Whether all of it is UTF-8 with no zero bytes, which is known before anything of it is remembered."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with file.open("rb") as opened:
            while piece := opened.read(PIECE):
                if "\0" in decoder.decode(piece):
                    return False
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    except OSError as error:
        _cannot_read(file, error)
    return True


def _read(file: Path) -> Iterator[str]:
    # A mark at the beginning of a file is no part of its text.
    with file.open(encoding="utf-8-sig") as opened:
        while piece := opened.read(PIECE):
            yield piece


def _cannot_read(path: Path, error: OSError) -> None:
    reason = error.strerror or type(error).__name__
    raise LookaheadError(f"{path.name} cannot be read: {reason}; make it readable, or leave it out.") from error


def _pieces_of(text: Any) -> Iterator[str]:
    if not isinstance(text, str):
        raise ValueError(f"source holds {type(text).__name__}, and must hold strings.")
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def _between_words(pieces: Iterable[str]) -> Iterator[str]:
    """The same text in pieces that end where words do, so that their tokens are those of the whole text."""
    held = ""
    for piece in pieces:
        held += piece
        cut = _seam(held) if len(held) >= PIECE else 0
        if cut:
            yield held[:cut]
            held = held[cut:]
    yield held


def _seam(text: str) -> int:
    """Before the last space that stands alone between words; the end, where there is none near it."""
    seams = [found.start() for found in _SPACE.finditer(text, max(0, len(text) - SEAM))]
    return seams[-1] if seams else len(text)


def _encoded(codec: TextCodec, pieces: Iterable[str]) -> Iterator[list[int]]:
    for number, piece in enumerate(pieces):
        yield [token.token_id for token in codec.encode(piece, continuing=number > 0)]


def _vocabulary(model: Model) -> str:
    """What tells vocabularies apart, and not two loads of one: each token's name and id, special ones left out.

    Those have no text, so that a corpus serves a model and one that was made from it by adding some.
    """
    if model.tokenizer is None:
        return f"{model.vocabulary} ids"
    special = special_ids(model.tokenizer)
    names = sorted((index, name) for name, index in model.tokenizer.get_vocab().items() if index not in special)
    return hashlib.sha256(repr(names).encode("utf-8", "backslashreplace")).hexdigest()
