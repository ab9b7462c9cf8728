"""Plotly's script for the browser, from the installed Python package: plots need no other site."""

from __future__ import annotations

import gzip
from functools import cache
from importlib.metadata import version
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from interface.http.assets import FOREVER, MEDIA_TYPE, PATH

ADDRESS = f"{PATH}/plotly-{version('plotly')}.min.js"
"""The URL path of the script; it changes with the version of the package, so that browsers may keep the file."""


@cache
def compressed() -> bytes:
    """Return the script as gzip, a third of its 4.5 megabytes; compressed once in a process."""
    return gzip.compress(files("plotly").joinpath("package_data", "plotly.min.js").read_bytes(), 6)


def route() -> Route:
    """Return the route that serves the script at ADDRESS, compressed for every browser, which all take gzip."""

    def script(request: Request) -> Response:
        headers = {"Cache-Control": FOREVER, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        return Response(compressed(), media_type=MEDIA_TYPE, headers=headers)

    return Route(ADDRESS, script, methods=["GET", "HEAD"])
