"""The address from which a request comes: that of the connection, or one that a trusted proxy reports."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from ipaddress import ip_address, ip_network
from typing import Any

from lookahead_core.settings import Network

PEER = "lookahead.peer"
"""The key of an ASGI scope with the address of the connection. uvicorn changes `client` for connections of this
computer to what the header X-Forwarded-For says, whoever has written it."""


def address_of(scope: Mapping[str, Any], trusted: Sequence[Network]) -> str:
    """Return the address of the sender of an HTTP request, an IPv6 address as its first 64 bits; "" if unknown.

    It is that of the connection. If that is a trusted proxy's, it is the last address in the headers X-Forwarded-For
    that is not one; if all are, the first one.
    """
    client = scope.get("client")
    peer = scope.get(PEER) or (client[0] if client else "")
    if not _is_trusted(peer, trusted):
        return _subscriber(peer)
    names = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    hops = [_host(hop) for hop in ",".join(names).split(",") if hop.strip()]
    return _subscriber(next((hop for hop in reversed(hops) if not _is_trusted(hop, trusted)), (*hops, peer)[0]))


def remember_peers(server: Any) -> None:
    """Make a started uvicorn server keep the address of each connection in the scope, at PEER."""
    inner = server.config.loaded_app

    async def app(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope.get("client"):
            scope[PEER] = scope["client"][0]
        await inner(scope, receive, send)

    server.config.loaded_app = app


def _host(hop: str) -> str:
    """Return an entry of X-Forwarded-For without its port and brackets."""
    hop = hop.strip()
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


def _is_trusted(host: str, trusted: Sequence[Network]) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return any(address in network for network in trusted)


def _subscriber(host: str) -> str:
    """Return the part of an address that belongs to one subscriber: all of IPv4, and the first 64 bits of IPv6."""
    try:
        address = ip_address(host)
    except ValueError:
        return host[:64]
    if address.version == 4:
        return str(address)
    return str(address.ipv4_mapped or ip_network((address, 64), strict=False).network_address)
