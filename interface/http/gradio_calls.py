"""The same calls for `gradio_client` and as MCP tools, under the same names."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import gradio as gr

from interface.http.same_origin import require_own_page
from interface.server.call_runner import NAMES, CallRunner, function_of, parameters_of
from interface.server.error_sentences import sentence
from interface.server.model_loading import ModelLoader


def build(loader: ModelLoader) -> None:
    """Add them to the page that is being laid out."""
    for name in NAMES:
        gr.api(_endpoint(loader.caller, name), api_name=name, concurrency_limit=None)


def _endpoint(caller: CallRunner, name: str) -> Callable[..., Awaitable[dict[str, Any]]]:
    """A function with the arguments, types and words of the core's own, but for the model."""
    known = list(parameters_of(name).values())
    bare = inspect.Signature(known)

    async def answer(request: gr.Request, *arguments: Any, **options: Any) -> dict[str, Any]:
        try:
            require_own_page(request.headers)
            return await caller.answer(name, bare.bind(*arguments, **options).arguments)
        except Exception as error:
            raise gr.Error(sentence(error), print_exception=False) from None

    # Gradio looks at the signature for what it has to give itself: the request, which no caller sees.
    asking = inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=gr.Request)
    answer.__name__, answer.__doc__ = name, function_of(name).__doc__
    answer.__annotations__ = {one.name: one.annotation for one in (asking, *known)} | {"return": dict[str, Any]}
    answer.__signature__ = inspect.Signature([asking, *known], return_annotation=dict[str, Any])  # type: ignore[attr-defined]
    return answer
