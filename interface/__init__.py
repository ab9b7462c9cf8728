"""The Gradio page: `build` lays it out, `launch_options` returns the options of its `launch`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr
from starlette.middleware import Middleware

from interface.http import assets, endpoints, gradio_calls, operations, page_functions, plotly_script
from interface.http.caller_address import remember_peers
from interface.http.caller_gate import CallerGate
from interface.http.first_script import FirstScript
from interface.http.page_cache import PageCache
from interface.http.page_refusals import PageRefusals
from interface.http.request_gate import RequestGate
from interface.http.sign_in import SignIn
from interface.http.unreadable_requests import answer_unreadable_requests
from interface.server.guess_service import GuessService
from interface.server.idle_texts import forgets_idle_texts
from interface.server.logs import configure_logs
from interface.server.model_loading import ModelLoader
from interface.server.rate_limits import CallerLimits
from interface.tabs import assistant, highlights, internals, lab, rewrite, writer
from interface.web.header import Header
from interface.web.theme import VARIABLES, theme

STYLE = Path(__file__).parent / "web" / "page.css"
HELP_STYLE = Path(__file__).parent / "web" / "ui" / "help.css"
__all__ = [
    "ModelLoader",
    "answer_unreadable_requests",
    "build",
    "configure_logs",
    "launch_options",
    "remember_peers",
]

STATUS_INTERVAL = 0.5
"""Seconds between two updates of the model's status while it loads."""


def build(loader: ModelLoader, address: str | None = None) -> gr.Blocks:
    """Return the whole page, to launch with the `launch_options` of the same loader. Does not start loading the model.

    The page can be opened before the model is loaded. `address` is the URL at which other people reach the page, for
    the links that it makes; with None the page uses the URL in the visitor's browser.
    """
    with gr.Blocks(title="Lookahead", fill_width=True, analytics_enabled=False) as page:
        header = Header(loader.loading.as_json())
        service = GuessService(loader)
        with gr.Tabs(elem_classes="tabs-bar"):
            with gr.Tab("Write"):
                writer.build(service, address)
            with gr.Tab("Rewrite"):
                rewrite.build(service)
            with gr.Tab("Highlights"):
                highlights.build(loader)
            with gr.Tab("Type assistant"):
                assistant.build(service)
            with gr.Tab("Internals"):
                internals.build(loader)
            with gr.Tab("Lab"):
                lab.build(loader)
        gradio_calls.build(loader)
        timer = gr.Timer(STATUS_INTERVAL)

        def status() -> tuple[dict[str, Any], gr.Timer]:
            return loader.loading.as_json(), gr.Timer(active=not loader.loading.done)

        gr.on(
            [page.load, timer.tick],
            status,
            None,
            [header, timer],
            queue=False,
            show_progress="hidden",
            api_visibility="private",
        )
    return page.queue(max_size=1024, default_concurrency_limit=None)


def launch_options(loader: ModelLoader) -> dict[str, Any]:
    """Return keyword arguments for `gr.Blocks.launch` of the page that `build` has made with the same loader.

    They hold the theme, the style sheet, links that load the scripts, the HTTP routes of scripts, server functions,
    calls, health and metrics, the checks of requests as middleware, and the task that forgets idle texts; and they
    switch off parts of Gradio that the page does not use, such as uploads.
    """
    settings = loader.settings
    limits = CallerLimits(settings)
    return {
        "theme": theme(),
        "css_paths": [VARIABLES, STYLE, HELP_STYLE],
        "head": assets.head(),
        "footer_links": [],
        "run_history": False,
        "enable_monitoring": False,
        "ssr_mode": False,
        "max_file_size": 1,  # in bytes: nothing is uploaded, the page opens files itself
        "app_kwargs": {
            "lifespan": forgets_idle_texts(loader),
            "routes": [
                assets.route(),
                plotly_script.route(),
                *page_functions.routes(),
                *endpoints.routes(loader),
                *operations.routes(loader, settings.metrics_token),
            ],
            "middleware": [
                Middleware(PageRefusals),
                Middleware(operations.ResponseCounts, loader),
                Middleware(CallerGate, limits, settings.proxy_networks),
                Middleware(SignIn),
                Middleware(RequestGate, limits),
                Middleware(PageCache),
                Middleware(FirstScript),
            ],
        },
    }
