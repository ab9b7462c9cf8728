"""Refuse requests that a browser sends for a page of another site: one call may use a minute of computing time."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from lookahead_core.errors import LookaheadError

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
NO_PAGE = (None, "none")
"""Values of `Sec-Fetch-Site` in requests that no page has caused: from programs, and typed or bookmarked URLs."""


class ForeignOrigin(LookaheadError):
    """The LookaheadError raised for a request that a page of another site has sent; HTTP status 403."""

    status = 403


def require_own_page(headers: Mapping[str, str]) -> None:
    """Raise ForeignOrigin if the headers, by lower-case name, say that a page of another site has sent the request.

    `Sec-Fetch-Site: same-origin` is always allowed, since a proxy may have changed the host. Otherwise, with an
    `Origin`, that must have the same host as `Host`, on any port, or both must be among LOCAL_HOSTS. Without one, as
    browsers request images, frames and links, `Sec-Fetch-Site` must be `none`, as for a typed URL. Programs send
    neither header, and are allowed.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    own = site == "same-origin" or (site in NO_PAGE if origin is None else _same_host(origin, headers.get("host", "")))
    if not own:
        raise ForeignOrigin(
            "Pages of other sites may not call this server: call it from a program, or from your own server."
        )


def _same_host(origin: str, host: str) -> bool:
    """Whether an `Origin` and a `Host` header name the same host, or both one of LOCAL_HOSTS; ports are ignored.

    False if either is invalid.
    """
    try:
        theirs, ours = urlsplit(origin).hostname, urlsplit(f"//{host}").hostname
    except ValueError:  # not a valid address
        return False
    return theirs is not None and (theirs == ours or (theirs in LOCAL_HOSTS and ours in LOCAL_HOSTS))
