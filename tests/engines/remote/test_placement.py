"""Rendezvous placement: each document has a server, and few documents move when servers come or go."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from lookahead_core.engines.remote.placement import ranking

ADDRESSES = st.lists(st.integers(0, 99).map("http://host{}:8000/v1".format), min_size=1, max_size=6, unique=True)
KEYS = [f"key {number}" for number in range(600)]


def homes(addresses: list[str]) -> dict[str, str]:
    return {key: ranking(addresses, key)[0] for key in KEYS}


@settings(deadline=None)
@given(ADDRESSES, st.text())
def test_a_ranking_has_every_address_once_and_depends_on_no_order(addresses: list[str], key: str) -> None:
    found = ranking(addresses, key)
    assert sorted(found) == sorted(addresses) and ranking(addresses[::-1], key) == found


@settings(deadline=None)
@given(ADDRESSES)
def test_a_further_address_takes_its_share_and_moves_no_other_document(addresses: list[str]) -> None:
    before, after = homes(addresses), homes([*addresses, "http://new:8000/v1"])
    moved = [key for key in KEYS if before[key] != after[key]]
    assert all(after[key] == "http://new:8000/v1" for key in moved)
    # Its share of 600 keys, and five standard deviations.
    share = 1 / (len(addresses) + 1)
    assert len(moved) < 600 * share + 5 * (600 * share * (1 - share)) ** 0.5


@settings(deadline=None)
@given(ADDRESSES)
def test_without_an_address_only_its_own_documents_move_each_to_its_next_choice(addresses: list[str]) -> None:
    whole = [*addresses, "http://old:8000/v1"]
    before, after = homes(whole), homes(addresses)
    for key in KEYS:
        expected = ranking(whole, key)[1] if before[key] == "http://old:8000/v1" else before[key]
        assert after[key] == expected


@settings(deadline=None)
@given(ADDRESSES)
def test_the_documents_of_a_lost_server_are_spread_over_all_others(addresses: list[str]) -> None:
    counts = Counter(homes(addresses).values())
    share = 1 / len(addresses)
    assert all(abs(counts[each] - 600 * share) < 5 * (600 * share * (1 - share)) ** 0.5 + 1 for each in addresses)
