"""Tokenizers in Python, which do not say where a token begins."""

from __future__ import annotations

import copy
from typing import Any

import transformers


class SlowTokenizer(transformers.PreTrainedTokenizer):
    """A tokenizer in Python, which tells nobody where a token begins: the same pieces as a fast one's."""

    def __init__(self, backend: Any, **options: Any) -> None:
        self._backend = copy.deepcopy(backend)
        super().__init__(**options)

    @property
    def vocab_size(self) -> int:
        return self._backend.get_vocab_size()

    def get_vocab(self) -> dict[str, int]:
        return self._backend.get_vocab()

    def _tokenize(self, text: str, **options: Any) -> list[str]:
        self._backend.encode_special_tokens = (
            True  # which words are control tokens is decided before; a copy forgets it
        )
        return self._backend.encode(text, add_special_tokens=False).tokens

    def _convert_token_to_id(self, token: str) -> int:
        return self._backend.token_to_id(token)

    def _convert_id_to_token(self, index: int) -> str:
        return self._backend.id_to_token(index)

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return self._backend.decoder.decode(tokens)


def without_offsets(fast: Any) -> Any:
    """The same vocabulary as a tokenizer in Python."""
    names = {name: getattr(fast, name) for name in ("unk_token", "bos_token", "eos_token")}
    return SlowTokenizer(fast.backend_tokenizer, **names)
