"""Models that several tests of analyses use."""

from __future__ import annotations

from typing import Any

import pytest

from lookahead_core import Model, load_model
from tests.conftest import tiny_llama


@pytest.fixture(scope="module")
def fallback_model(fallback_tokenizer: Any) -> Model:
    """A tiny model that spells what it does not know byte by byte, and puts a start token before every text."""
    hf_model = tiny_llama(len(fallback_tokenizer), seed=1, bos_token_id=1, eos_token_id=2)
    return load_model(hf_model, tokenizer=fallback_tokenizer)
