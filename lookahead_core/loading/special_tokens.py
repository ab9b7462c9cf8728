"""The end tokens and the start token of a model, as its configs and its tokenizer name them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def first_end_tokens(holders: Iterable[Any]) -> frozenset[int]:
    """Return the end token ids of the first holder whose `eos_token_id` is not None; empty if there is none.

    `holders` are configs and tokenizers; any of them may be None or lack the attribute.
    """
    for holder in holders:
        found = getattr(holder, "eos_token_id", None)
        if found is not None:
            return frozenset(found if isinstance(found, list | tuple) else [found])
    return frozenset()


def first_start_token(holders: Iterable[Any]) -> tuple[int, ...]:
    """Return the first `bos_token_id` of the holders that is an integer, as a tuple of one id; empty if there is none.

    `holders` are as for `first_end_tokens`. An empty text begins with this token if the tokenizer adds no start token
    itself.
    """
    for holder in holders:
        found = getattr(holder, "bos_token_id", None)
        if isinstance(found, int):
            return (found,)
    return ()
