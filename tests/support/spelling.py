"""The bytes of byte-level tokens by GPT-2's published table, without the codec that tests compare them with."""

from __future__ import annotations

from typing import Any

PRINTED = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
"""Bytes that stand for the character of the same number; all others for characters from 256 on, in order."""
OTHERS = [byte for byte in range(256) if byte not in PRINTED]
BYTE_OF = {chr(byte): byte for byte in PRINTED} | {chr(256 + place): byte for place, byte in enumerate(OTHERS)}


def tokens_as_bytes(tokenizer: Any) -> list[bytes]:
    """The bytes of each token of a byte-level tokenizer, by id: b"" for special tokens, the name of added ones."""
    special, added = set(tokenizer.all_special_ids), set(tokenizer.get_added_vocab().values())

    def spelled(token_id: int, name: str) -> bytes:
        if token_id in special:
            return b""
        return name.encode() if token_id in added else bytes(BYTE_OF[character] for character in name)

    names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    return [spelled(token_id, name) for token_id, name in enumerate(names)]
