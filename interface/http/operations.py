"""The routes for whoever runs the server: its health, and its metrics for Prometheus. Neither holds a text or an id."""

from __future__ import annotations

import hmac
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from interface.http import prometheus_text as text
from interface.http.caller_address import PEER
from interface.http.same_origin import LOCAL_HOSTS
from interface.server.error_sentences import Refused, refusal
from interface.server.logs import log_event
from interface.server.model_loading import ModelLoader

HEALTH, METRICS = "/health", "/metrics"
LOADING_AGAIN = 5
"""Seconds after which somebody who asks while the model loads may ask again."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
MEMORY = Path("/proc/self/statm")


def routes(loader: ModelLoader, metrics_token: str = "") -> list[Route]:
    """Return the routes HEALTH and METRICS, for Gradio's server.

    With a `metrics_token`, metrics are for requests that send it as a bearer token. Without one they are for programs
    on the same computer only: they tell how many people write here, and when the server is busy.
    """

    async def health(request: Request) -> Response:
        state = loader.health
        headers = {"Cache-Control": "no-store"} | ({"Retry-After": str(LOADING_AGAIN)} if state == "loading" else {})
        return JSONResponse({"status": state} | _replica_health(loader), 200 if state == "ready" else 503, headers)

    return [
        Route(HEALTH, health, methods=["GET"]),
        Route(METRICS, _metrics_endpoint(loader, metrics_token), methods=["GET"]),
    ]


def _metrics_endpoint(loader: ModelLoader, token: str) -> Callable[[Request], Awaitable[Response]]:
    async def metrics(request: Request) -> Response:
        sent = request.headers.get("authorization", "")
        if token and not hmac.compare_digest(sent.encode(), f"Bearer {token}".encode()):
            return refusal(Refused(401, "Send the token of the metrics."), **{"WWW-Authenticate": "Bearer"})
        if not token and not _is_local(request):
            return refusal(Refused(403, "Whoever runs this server can open its metrics by LOOKAHEAD_METRICS_TOKEN."))
        used = await run_in_threadpool(cache_bytes, loader)
        return PlainTextResponse(metrics_text(loader, used), media_type=text.MEDIA_TYPE)

    return metrics


def _replica_health(loader: ModelLoader) -> dict[str, int]:
    """Return how many servers of the model there are and how many of them answer; {} if it is not on servers."""
    if (replicas := loader.replica_counts) is None:
        return {}
    return {"replicas": len(replicas.answering), "replicas_answering": sum(replicas.answering)}


def _is_local(request: Request) -> bool:
    """Whether a request comes from this computer, and through no proxy."""
    forwarded = any(name in ("via", "forwarded") or name.startswith("x-") for name in request.headers)
    client = request.scope.get(PEER) or (request.client.host if request.client else "")
    return client in LOCAL_HOSTS and request.url.hostname in LOCAL_HOSTS and not forwarded


def cache_bytes(loader: ModelLoader) -> int:
    """Return the bytes of all KV caches; 0 without a model or for an engine without a cache. May wait for a pass."""
    in_use = None if loader.model is None else getattr(loader.scheduler.engine, "cache_bytes_in_use", None)
    return 0 if in_use is None else int(in_use())


def metrics_text(loader: ModelLoader, used: int) -> str:
    """Return all metrics in Prometheus' text format; `used` are the bytes of all KV caches."""
    states = [
        ("", {"state": state}, float(loader.health == state)) for state in ("ready", "loading", "waiting", "broken")
    ]
    parts = [text.family("lookahead_health", "gauge", "1 for the server's present state.", states)]
    if loader.model is not None:
        parts += [*_pass_metrics(loader.scheduler), *_replica_metrics(loader)]
    parts += [*_people_metrics(loader), *_work_metrics(loader)]
    parts.append(text.gauge("lookahead_cache_bytes", "Bytes of all KV caches.", used))
    if (resident := _resident_bytes()) is not None:
        parts.append(text.gauge("process_resident_memory_bytes", "Bytes of memory of the process.", resident))
    return "".join(parts)


def _pass_metrics(scheduler: Any) -> list[str]:
    """Return what is known of passes and of the queue; the engine may count passes only, without their rows."""
    parts = [
        text.counter("lookahead_passes_total", "Forward passes.", scheduler.passes),
        text.gauge("lookahead_queue_requests", "Requests that wait for passes or have one.", scheduler.request_count),
        text.gauge("lookahead_queue_prefetches", "Prefetches that wait or have a pass.", scheduler.prefetch_count),
    ]
    if (rows := getattr(scheduler.engine, "pass_rows", None)) is not None:
        parts.append(text.histogram("lookahead_pass_rows", "Rows, each of a token, of forward passes.", rows))
        parts.append(text.counter("lookahead_tokens_total", "Tokens computed in forward passes.", rows.read()[1]))
    return parts


def _replica_metrics(loader: ModelLoader) -> list[str]:
    """Return the metrics of the model's servers, which are named by their numbers; none without servers."""
    if (replicas := loader.replica_counts) is None:
        return []
    states = [("", {"replica": str(number)}, float(each)) for number, each in enumerate(replicas.answering, start=1)]
    return [
        text.family("lookahead_replica_answering", "gauge", "1 for a server of the model that answers.", states),
        text.counter("lookahead_replica_moves_total", "Texts moved from a server that had stopped.", replicas.moves),
    ]


def _people_metrics(loader: ModelLoader) -> list[str]:
    pages = [page for service in loader.services for page in service.open_pages.values()]
    waiting = sum(page.progress is not None and page.progress.is_awaited for page in pages)
    return [
        text.gauge("lookahead_sessions", "Pages with a session.", len(pages)),
        text.gauge("lookahead_people_waiting", "Pages that wait for the end of a view.", waiting),
    ]


def _work_metrics(loader: ModelLoader) -> list[str]:
    counts = loader.counts
    statuses: Mapping[str, float] = {str(status): number for status, number in dict(counts.responses).items()}
    behind = "Clicks whose view had {} prefetched."
    return [
        text.counter("lookahead_prefetch_hits_total", behind.format("been"), counts.clicks[True]),
        text.counter("lookahead_prefetch_misses_total", behind.format("not been"), counts.clicks[False]),
        text.histogram("lookahead_view_seconds", "Seconds to complete a view.", counts.view_seconds),
        text.counter("lookahead_calls_total", "Calls of programs.", dict(counts.calls), "call"),
        text.counter("lookahead_errors_total", "Errors answered with a sentence.", dict(counts.errors), "kind"),
        text.counter("lookahead_responses_total", "HTTP responses.", statuses, "status"),
    ]


def _resident_bytes() -> int | None:
    """Return the bytes of memory that this process occupies; None where the system does not say it in `MEMORY`."""
    try:
        return int(MEMORY.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


class ResponseCounts:
    """ASGI middleware: counts HTTP responses by status, and logs those from 400 on, without path or address."""

    def __init__(self, app: Any, loader: ModelLoader) -> None:
        self.app, self.loader = app, loader

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def counted(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._count(message["status"], scope["method"])
            await send(message)

        await self.app(scope, receive, counted)

    def _count(self, status: int, method: str) -> None:
        self.loader.counts.responses[status] += 1
        if status >= 400:
            log_event("refused", status=status, method=method if method in METHODS else "other")
