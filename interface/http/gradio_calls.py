"""The calls for `gradio_client` and as MCP tools, under the same names as over HTTP."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import gradio as gr

from interface.http.caller_gate import caller_of
from interface.http.same_origin import require_own_page
from interface.server.call_arguments import NAMES, function_of, parameters_of
from interface.server.call_runner import CallRunner
from interface.server.callers import CALLER
from interface.server.error_sentences import sentence
from interface.server.model_loading import ModelLoader


def build(loader: ModelLoader) -> None:
    """Add an API endpoint for each call, under its name, to the `gr.Blocks` in whose context this runs.

    `gradio_client` and MCP use these endpoints. They are not in Gradio's queue: for an endpoint in the queue, MCP sends
    a request from this server to itself, and all its callers would count as one. The model may still be loading.
    """
    for name in NAMES:
        gr.api(_endpoint(loader.caller, name), api_name=name, queue=False)


class CallFailed(gr.Error):
    """The error of a call. Its text is the sentence; Gradio puts quotation marks around it, which MCP would show."""

    def __str__(self) -> str:
        return str(self.message)


def _endpoint(caller: CallRunner, name: str) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Return a coroutine function for `gr.api` that runs the call `name` and returns its result.

    It has the name, parameters, types and docstring of the call, and a first parameter for Gradio's request, which
    Gradio fills in and does not show. It raises every error as `gr.Error` with a sentence, also for a request of
    another site's page.
    """
    parameters = list(parameters_of(name).values())
    signature = inspect.Signature(parameters)

    async def answer(request: gr.Request, *arguments: Any, **options: Any) -> dict[str, Any]:
        try:
            require_own_page(request.headers)
            # Gradio runs this in a context of its own. MCP's request is Starlette's, others are Gradio's around it.
            CALLER.set(caller_of(getattr(getattr(request, "request", request), "scope", {})))
            return await caller.answer(name, signature.bind(*arguments, **options).arguments)
        except Exception as error:
            caller.loader.counts.count_error(error)
            raise CallFailed(sentence(error), print_exception=False) from None

    # Gradio passes the request to the parameter with this annotation, and hides that parameter from callers.
    request_parameter = inspect.Parameter("request", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=gr.Request)
    answer.__name__, answer.__doc__ = name, function_of(name).__doc__
    answer.__annotations__ = {each.name: each.annotation for each in (request_parameter, *parameters)} | {
        "return": dict[str, Any]
    }
    answer.__signature__ = inspect.Signature([request_parameter, *parameters], return_annotation=dict[str, Any])  # type: ignore[attr-defined]
    return answer
