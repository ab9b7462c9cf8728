"""A tokenizer in Python, which has no offsets."""

from __future__ import annotations

import copy
from typing import Any

import transformers


class SlowTokenizer(transformers.PreTrainedTokenizer):
    """A tokenizer without offsets that gives the same tokens as a fast one."""

    def __init__(self, backend: Any, **options: Any) -> None:
        self._backend = copy.deepcopy(backend)
        super().__init__(**options)

    @property
    def vocab_size(self) -> int:
        return self._backend.get_vocab_size()

    def get_vocab(self) -> dict[str, int]:
        return self._backend.get_vocab()

    def _tokenize(self, text: str, **options: Any) -> list[str]:
        # Control tokens are split off before this call. A deep copy loses the setting, so it is set each time.
        self._backend.encode_special_tokens = True
        return self._backend.encode(text, add_special_tokens=False).tokens

    def _convert_token_to_id(self, token: str) -> int:
        return self._backend.token_to_id(token)

    def _convert_id_to_token(self, index: int) -> str:
        return self._backend.id_to_token(index)

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return self._backend.decoder.decode(tokens)


def without_offsets(fast: Any) -> Any:
    """A `SlowTokenizer` with the vocabulary of a fast tokenizer."""
    names = {name: getattr(fast, name) for name in ("unk_token", "bos_token", "eos_token")}
    return SlowTokenizer(fast.backend_tokenizer, **names)
