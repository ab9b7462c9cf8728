"""A document's text in a form that can be sent to another process, which makes an equal document from it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lookahead_core.document.document import Document
from lookahead_core.model import Model
from lookahead_core.text.codec import TextCodec
from lookahead_core.text.passage import Passage
from lookahead_core.tree import TokenTree


@dataclass(frozen=True, slots=True)
class DocumentState:
    """What decides a document's lookaheads besides the model: its tokens, and the room kept free in the context."""

    key: str
    """The name of the document's tree."""
    passage: Passage
    """Without a codec of its own."""
    reserved: int
    """The value of `Document.reserved`."""
    end_token_ids: frozenset[int]
    """The end tokens: in a conversation more than the model's."""

    @classmethod
    def of(cls, document: Document, key: str) -> DocumentState:
        """Return the state of a document; `key` names its tree."""
        passage = document.passage.with_codec(TextCodec(None))
        return cls(key, passage, document.reserved, document.model.end_token_ids)

    def document(self, model: Model, tree: TokenTree) -> Document:
        """Return an equal document with this model and tree. The tree may be one that an earlier document has used."""
        made = Document(replace(model, end_token_ids=self.end_token_ids), tree=tree)
        made.resume(self.passage.with_codec(model.codec), self.reserved)
        return made
