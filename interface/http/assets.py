"""The page's scripts over HTTP: every `.js` file of the interface, under a path that holds a hash of all of them.

Scripts import each other by relative paths, so all of a page's scripts come from one version. The content under an
address never changes, so browsers keep it for good.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER = Path(__file__).parents[1]
PATH = "/lookahead"
MEDIA_TYPE = "text/javascript"
FOREVER = "public, max-age=31536000, immutable"
"""The Cache-Control header of a script: browsers keep it for a year and never ask whether it has changed."""
UNKNOWN_SCRIPT = "There is no such script."
OTHER_VERSION = "This script belongs to another version of the page. Reload the page."
PAGE_FILES = (".css", ".html", ".py")
"""Endings of files that are no scripts and change the page."""
EARLY_KEYS = "web/ui/early_keys.js"
"""The script that is part of the page itself: see `FirstScript`."""
HASH_LENGTH = 16
"""Hexadecimal digits of the SHA-256 hash that are part of an address."""


@dataclass(frozen=True)
class ScriptFiles:
    """The scripts of a folder, with their contents at the time of `read`, their URLs, and a route that serves them."""

    contents: Mapping[str, bytes]
    """The content of each script by its path relative to the folder, with forward slashes."""
    page: str = ""
    """A hash of the other files that the page is made of: an open page whose layout has changed is outdated too."""

    @classmethod
    def read(cls, folder: Path) -> ScriptFiles:
        """Read every `.js` file in a folder and all folders below it, and return them; other files count for `page`."""
        files = sorted(folder.rglob("*.js"))
        page = sha256()
        for file in sorted(file for file in folder.rglob("*") if file.suffix in PAGE_FILES):
            page.update(f"{file.relative_to(folder).as_posix()}\0".encode() + sha256(file.read_bytes()).digest())
        return cls({file.relative_to(folder).as_posix(): file.read_bytes() for file in files}, page.hexdigest())

    @cached_property
    def version(self) -> str:
        """A hash of all paths and contents, of HASH_LENGTH hexadecimal digits; it changes with any script or `page`."""
        digest = sha256(self.page.encode())
        for name, content in self.contents.items():
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()[:HASH_LENGTH]

    def address(self, name: str) -> str:
        """Return the URL path of a script, `PATH`/version/`name`; does not check that it exists.

        `name` is its path relative to the folder, with forward slashes.
        """
        return f"{PATH}/{self.version}/{name}"

    def route(self) -> Route:
        """Return a GET route that serves the scripts at their `address`; browsers may keep a response for a year.

        It responds with 404 and a sentence as plain text for an unknown name, and for any other version.
        """

        async def script(request: Request) -> Response:
            version, name = request.path_params["version"], request.path_params["name"]
            if version != self.version:
                return _not_found(OTHER_VERSION)
            if name not in self.contents:
                return _not_found(UNKNOWN_SCRIPT)
            return Response(self.contents[name], media_type=MEDIA_TYPE, headers={"Cache-Control": FOREVER})

        return Route(f"{PATH}/{{version}}/{{name:path}}", script, methods=["GET", "HEAD"])


def _not_found(sentence: str) -> Response:
    return Response(sentence, status_code=404, media_type="text/plain", headers={"Cache-Control": "no-store"})


@cache
def scripts() -> ScriptFiles:
    """Return all scripts below `interface/`, read at the first call in a process."""
    return ScriptFiles.read(FOLDER)


def on_load(module: str, function: str) -> str:
    """Return JavaScript for the `js_on_load` of a `gr.HTML`: it imports a script and calls an exported function of it.

    `module` is the script's path below `interface/`, `function` the function's name. The function gets one object with
    Gradio's `element`, `props`, `trigger`, `watch` and `server`, which is null without server functions. Neither name
    is checked.
    """
    arguments = "{element, props, trigger, watch, server: typeof server === 'undefined' ? null : server}"
    address = f".{scripts().address(module)}"
    return f"import(new URL('{address}', document.baseURI)).then(module => module.{function}({arguments}));"


def head() -> str:
    """Return HTML for the page's `<head>`: a `modulepreload` link per module, so that browsers fetch them early."""
    files = scripts()
    names = [name for name in files.contents if name != EARLY_KEYS]
    return "\n".join(f'<link rel="modulepreload" href=".{files.address(name)}">' for name in names)


def route() -> Route:
    """Return the route that serves the interface's scripts, for the server that Gradio starts."""
    return scripts().route()
