"""Layout of the Lab tab: the experiment's prompt and options, and beside them its result."""

from __future__ import annotations

from pathlib import Path

import gradio as gr

from interface.http import plotly_script
from interface.server.model_loading import ModelLoader
from interface.server.page_service import PageService
from interface.tabs.lab.cache_session import CacheRequest, CacheSession
from interface.web.parts import CONTROLS, SHEET, footer_and_script, static_html

FOLDER = Path(__file__).parent


def build(loader: ModelLoader) -> None:
    """Lay out the tab in the current `gr.Blocks` context and connect its script to a new PageService.

    Its sessions are CacheSessions. The model of `loader` may still be loading.
    """
    with gr.Row(elem_classes="desk lab"):
        with gr.Column(elem_classes="card", scale=4, min_width=300):
            static_html(FOLDER / "cache_form.html", SHEET, CONTROLS, FOLDER / "cache_form.css")
        with gr.Column(elem_classes="card", scale=8, min_width=300):
            static_html(FOLDER / "cache_result.html", FOLDER / "cache_result.css")
    service = PageService(loader, CacheRequest.from_json, CacheSession)
    footer_and_script("tabs/lab/cache_page.js", service.functions, {"plotly": f".{plotly_script.ADDRESS}"})
