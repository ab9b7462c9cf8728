"""Rendezvous hashing: which of several servers a person's texts are computed on, and which one is the next choice."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def ranking(addresses: Sequence[str], key: str) -> list[str]:
    """Return the addresses in the order in which a key prefers them, by the highest weight of address and key.

    The order of `addresses` has no effect. With a further address the order of the others stays, so a key moves to the
    new address or not at all; without one of them only its own keys move, each to its next choice.
    """
    return sorted(addresses, key=lambda address: (_weight(address, key), address), reverse=True)


def _weight(address: str, key: str) -> int:
    digest = hashlib.blake2b(f"{address}\n{key}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")
