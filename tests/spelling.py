"""The bytes of byte-level tokens by GPT-2's published table, without the codec that tests compare them with."""

from __future__ import annotations

from typing import Any

PRINTED = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
"""Bytes that are written as the character of the same number; all others as characters from 256 on, in their order."""
OTHERS = [byte for byte in range(256) if byte not in PRINTED]
BYTE_OF = {chr(byte): byte for byte in PRINTED} | {chr(256 + place): byte for place, byte in enumerate(OTHERS)}


def tokens_as_bytes(tokenizer: Any) -> list[bytes]:
    """What each token of a byte-level tokenizer spells, by id; special tokens spell nothing."""
    special = set(tokenizer.all_special_ids)
    names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    return [
        b"" if token_id in special else bytes(BYTE_OF[character] for character in name)
        for token_id, name in enumerate(names)
    ]
