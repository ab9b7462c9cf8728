"""The path of a request as the routes of this server name it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def route_of(scope: Mapping[str, Any]) -> str:
    """Return the path in an ASGI scope, without its `root_path` and without final slashes; "/" if nothing is left."""
    path, root = scope["path"], scope.get("root_path", "").rstrip("/")
    return (path[len(root) :] if path.startswith(f"{root}/") else path).rstrip("/") or "/"
