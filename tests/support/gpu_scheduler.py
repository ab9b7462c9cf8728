"""The scheduler of shared GPUs, as the package spaces 0.51 asks it: one GPU, handed out to whoever comes."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass
class GpuScheduler:
    """What a scheduler has been asked, and how it answers."""

    gpu: str
    """The GPU that workers get, by its UUID or index."""
    address: str = ""
    durations: list[int] = field(default_factory=list)
    """The seconds that each call has asked for."""
    workers: list[int] = field(default_factory=list)
    """The process ids of all workers, in the order in which they began."""
    releases: int = 0


@contextlib.contextmanager
def gpu_scheduler(gpu: str = "0") -> Iterator[GpuScheduler]:
    """Context manager that yields a scheduler at `address`, the value of SPACES_ZERO_DEVICE_API_URL."""
    scheduler = GpuScheduler(gpu)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
            answer: dict[str, object] = {}
            if path == "/schedule":
                scheduler.durations.append(int(query["durationSeconds"][0]))
                answer = {"idle": True, "nvidiaIndex": 0, "nvidiaUUID": scheduler.gpu, "allowToken": "token"}
            elif path == "/allow":
                scheduler.workers.append(int(query["pid"][0]))
            elif path == "/release":
                scheduler.releases += 1
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    scheduler.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield scheduler
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
