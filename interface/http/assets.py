"""The page's scripts as modules that import each other: every .js file beside this one, under one path."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

FOLDER = Path(__file__).parents[1]
PATH = "/lookahead"


def load(module: str, start: str) -> str:
    """What a component's `js_on_load` says to run `start` of one of the modules, with all that Gradio gives it."""
    given = "{element, props, trigger, watch, server: typeof server === 'undefined' ? null : server}"
    return f"import(new URL('.{PATH}/{module}', document.baseURI)).then(module => module.{start}({given}));"


def head() -> str:
    """Lines for the page's head that fetch all modules early, so that buttons work as soon as they are seen."""
    return "\n".join(f'<link rel="modulepreload" href=".{PATH}/{name}">' for name in _files())


def route() -> Route:
    """A route for the server that Gradio starts; only files that were there at the start can be had."""
    files = _files()

    async def script(request: Request) -> Response:
        file = files.get(request.path_params["name"])
        if file is None:
            return Response("There is no such script.", status_code=404)
        return FileResponse(file, media_type="text/javascript", headers={"Cache-Control": "no-cache"})

    return Route(f"{PATH}/{{name:path}}", script, methods=["GET", "HEAD"])


def _files() -> dict[str, Path]:
    return {file.relative_to(FOLDER).as_posix(): file for file in sorted(FOLDER.rglob("*.js"))}
