"""Starts the server of a Gradio page inside the process of a test."""

from __future__ import annotations

import threading
import time
from typing import Any

import gradio as gr
from gradio import http_server
from gradio.exceptions import ServerFailedToStartError

from interface import ModelLoader, launch_options


def launch(page: gr.Blocks, loader: ModelLoader, port: int, **options: Any) -> str:
    """Start the server of this page on this port of this machine, and return its address once it answers.

    `options` are further options of `Blocks.launch`. Raises OSError if the port is in use. Gradio gives up a server
    that does not start within five seconds, or does not answer a first request within three, as happens beside busy
    tests. So this waits as long as the thread of the server lives, and `_frontend=False` leaves out that request.
    """
    options = {"prevent_thread_lock": True, "quiet": True, "_frontend": False} | options
    _, address, _ = page.launch(server_port=port, **options, **launch_options(loader))
    return address


def _start(server: http_server.Server) -> None:
    server.thread = threading.Thread(target=server.run, daemon=True)
    server.thread.start()
    while not server.started:
        if not server.thread.is_alive():
            raise ServerFailedToStartError("The server ended before it had started.")
        time.sleep(1e-3)


http_server.Server.run_in_thread = _start
