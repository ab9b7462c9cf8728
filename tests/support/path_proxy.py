"""A reverse proxy that serves a page under a path: it removes the path and passes everything else on unchanged."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


@contextmanager
def served_under(path: str, url: str) -> Iterator[str]:
    """The address under which a proxy on this computer serves the server at `url`: a new port, and `path`.

    Requests for other paths get 404. Each connection carries one request.
    """
    target = urlsplit(url)

    class Connection(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            method, _, rest = self.rfile.readline().decode("latin-1").partition(" ")
            if not rest.startswith((f"{path}/", f"{path} ", f"{path}?")):
                self.wfile.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\nConnection: close\r\n\r\nnothing")
                return
            shortened = rest[len(path) :]
            head = [f"{method} {shortened if shortened.startswith('/') else '/' + shortened}".encode("latin-1")]
            while (line := self.rfile.readline()) not in (b"\r\n", b""):
                if not line.lower().startswith(b"connection:"):
                    head.append(line)
            with socket.create_connection((str(target.hostname), int(target.port or 80))) as server:
                server.sendall(b"".join(head) + b"Connection: close\r\n\r\n")
                threading.Thread(target=self._send_body, args=(server,), daemon=True).start()
                while piece := server.recv(65536):
                    self.wfile.write(piece)

        def _send_body(self, server: socket.socket) -> None:
            with suppress(OSError, ValueError):
                while piece := self.rfile.read1(65536):  # type: ignore[attr-defined]
                    server.sendall(piece)

    class Proxy(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Ignore a client that has left."""

    with Proxy(("127.0.0.1", 0), Connection) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{proxy.server_address[1]}{path}"
        finally:
            proxy.shutdown()
