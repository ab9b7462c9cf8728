"""Whose pages may call: a browser does for any page what that page says, and a call takes a minute of this computer."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from lookahead_core.errors import LookaheadError

LOCAL = ("localhost", "127.0.0.1", "::1")
OWN = (None, "none")
"""What `Sec-Fetch-Site` says of a program, and of a person who has typed or kept an address."""


class ForeignOrigin(LookaheadError):
    """A page of somebody else's has called."""

    status = 403


def require_own_page(headers: Mapping[str, str]) -> None:
    """Let programs call, and pages of this very host, or both of this computer; no page of anybody else's.

    A browser names the page's address where the page may read the answer. Where it may not, as with an image, a frame
    or a link, it tells only how near the page is. It may know better than the host that a proxy has named.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    own = site == "same-origin" or (site in OWN if origin is None else _near(origin, headers.get("host", "")))
    if not own:
        raise ForeignOrigin(
            "Pages of other addresses may not call this server; call it from a program, or your own server."
        )


def _near(origin: str, host: str) -> bool:
    try:
        theirs, ours = urlsplit(origin).hostname, urlsplit(f"//{host}").hostname
    except ValueError:  # no address at all
        return False
    return theirs is not None and (theirs == ours or (theirs in LOCAL and ours in LOCAL))
