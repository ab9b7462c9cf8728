"""A small server that answers like vLLM's completions call, by plain forwards of a real model, with faults to order.

`CompletionsServer(hf_model)` serves on a free port of this computer until `close`. It shares no code with the engine.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch


class CompletionsServer:
    """The server, the requests that it has got, and the faults of its next answers."""

    def __init__(self, hf_model: Any, *, most_logprobs: int = 64, most_tokens: int = 512, key: str = "") -> None:
        self.hf_model = hf_model
        self.most_logprobs = most_logprobs
        """As vLLM's --max-logprobs; -1 for all."""
        self.most_tokens = most_tokens
        self.key = key
        self.models = [{"id": "tiny", "root": "/nowhere/tiny", "max_model_len": most_tokens}]
        self.faults: list[str] = []
        """The faults of the next completions, one each: "500", "503", "429 SECONDS", "cut", "half", "garbage",
        "html", "slow", "error" (in an event), "few" (each token with its own log-probability alone); "" for none.
        "cut 0", and the like, comes before the first event."""
        self.lasting_fault = ""
        """The fault of all further completions."""
        self.left_out: set[str] = set()
        """Fields that no answer has: "token_ids", "logprobs", "keys" (log-probabilities are by text)."""
        self.processes = False
        """As vLLM's `--logprobs-mode processed_logprobs`: log-probabilities are among the `allowed_token_ids`."""
        self.ignores_allowed = False
        """Whether it does not know `allowed_token_ids`."""
        self.other_tokens = False
        """Whether it goes on with the second likeliest token, as a sampling server would."""
        self.bodies: list[dict[str, Any]] = []
        self.written = 0
        """Events written of all answers."""
        self.broken = threading.Event()
        """Set when a caller has closed a connection in the middle of an answer."""
        self.event_seconds = 0.0
        self.slow_seconds = 1.0
        """The delay of the fault "slow"."""
        self.listed_fault = ""
        """The fault of answers to GET."""
        self.dies_after: int | None = None
        """The number of events of all answers after which it is killed."""
        self.dead = True
        self._port = 0
        self.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def start(self) -> None:
        """Serve on the port that it had before, if it had one."""
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), handler)
        self._port, self.dead, self.dies_after = self._server.server_port, False, None
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def kill(self) -> None:
        """Break off all answers and take no more connections, as a process that is killed."""
        self.dead = True
        self.close()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def next_logprobs(self, token_ids: list[int]) -> torch.Tensor:
        with torch.no_grad():
            return self.hf_model(torch.tensor([token_ids]), use_cache=False).logits[0, -1].float().log_softmax(-1)

    def refusal(self, body: dict[str, Any]) -> tuple[int, str] | None:
        """The status and message with which vLLM refuses a request; None if it takes it."""
        if body["model"] not in [model["id"] for model in self.models]:
            return 404, f"The model `{body['model']}` does not exist."
        if self.most_logprobs >= 0 and not 0 <= body["logprobs"] <= self.most_logprobs:
            return 400, f"Requested sample logprobs of {body['logprobs']}, which is greater than max allowed"
        if body.get("allowed_token_ids") == []:
            return 400, "allowed_token_ids is not None and empty!"
        if any(len(prompt) >= self.most_tokens for prompt in body["prompt"]):
            return 400, "This model's maximum context length is too short."
        return None

    def choices(self, body: dict[str, Any], write: Callable[[dict[str, Any]], None]) -> None:
        """Write one choice for each new token, level by level; silently fewer where the context ends."""
        paths = [list(prompt) for prompt in body["prompt"]]
        for level in range(body["max_tokens"]):
            for index, path in enumerate(paths):
                if len(body["prompt"][index]) + level >= self.most_tokens:
                    continue
                raw = self.next_logprobs(path)
                row = torch.full_like(raw, -torch.inf)
                allowed = list(
                    range(len(raw)) if self.ignores_allowed else body.get("allowed_token_ids", range(len(raw)))
                )
                row[allowed] = raw[allowed]
                given = row.log_softmax(-1) if self.processes else raw
                values, ids = given.topk(len(raw) if body["logprobs"] == -1 else body["logprobs"])
                path.append(int(row.topk(2).indices[1 if self.other_tokens else 0]))
                kept = dict(zip(ids.tolist(), values.tolist(), strict=True)) | {path[-1]: float(given[path[-1]])}
                write(self._choice(index, path[-1], {key: max(value, -9999.0) for key, value in kept.items()}))

    def _choice(self, index: int, token_id: int, logprobs: dict[int, float]) -> dict[str, Any]:
        name = "text" if "keys" in self.left_out else "token_id:"
        choice: dict[str, Any] = {"index": index, "text": "x", "token_ids": [token_id]}
        choice["logprobs"] = {"top_logprobs": [{f"{name}{key}": value for key, value in logprobs.items()}]}
        return {key: value for key, value in choice.items() if key not in self.left_out}


class _Handler(BaseHTTPRequestHandler):
    owner: CompletionsServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def do_GET(self) -> None:
        server = self.owner
        if self._is_refused():
            return
        if server.listed_fault == "html":
            return self._send(200, "<html>Welcome</html>")
        if self.path != "/v1/models":
            return self._send(404, '{"detail": "Not Found"}')
        self._send(200, json.dumps({"object": "list", "data": server.models}))

    def do_POST(self) -> None:
        server = self.owner
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._is_refused():
            return
        server.bodies.append(body)
        fault = server.faults.pop(0) if server.faults else server.lasting_fault
        status, _, wait = fault.partition(" ")
        if status.isdigit():
            return self._send(int(status), '{"error": {"message": "busy"}}', {"Retry-After": wait} if wait else {})
        if fault == "slow":
            time.sleep(server.slow_seconds)
        if fault == "html":
            return self._send(200, "<html>Welcome</html>")
        if refusal := server.refusal(body):
            return self._send(refusal[0], json.dumps({"error": {"message": refusal[1], "code": refusal[0]}}))
        self._stream(body, fault)

    def _is_refused(self) -> bool:
        if self.owner.dead:  # a connection that was open when it died
            self.close_connection = True
            return True
        if self.owner.key and self.headers["Authorization"] != f"Bearer {self.owner.key}":
            self._send(401, '{"error": "Unauthorized"}')
            return True
        return False

    def _send(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(text.encode())), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def _stream(self, body: dict[str, Any], fault: str) -> None:
        self.close_connection = True
        fault, _, before = fault.partition(" ")
        events = int(before) if before else 3 if fault in ("cut", "half") else 1
        self.send_response(200)
        self.send_header("Connection", "close")
        if fault == "cut":
            self.send_header("Content-Length", "1000000")
        self.end_headers()
        written = 0

        class Ended(Exception):
            pass

        def write(choice: dict[str, Any]) -> None:
            nonlocal written
            time.sleep(self.owner.event_seconds)
            if fault == "garbage" and written == events:
                self._event("{not JSON")
            if fault in ("cut", "half") and written == events:
                raise Ended
            if fault == "error" and written == events:
                self._event(json.dumps({"error": {"message": "engine died", "code": 500}}))
            if fault == "few":
                rows = choice["logprobs"]["top_logprobs"]
                choice["logprobs"]["top_logprobs"] = [dict(list(row.items())[:1]) for row in rows]
            self._event(json.dumps({"choices": [choice]}))
            written += 1

        try:
            self.owner.choices(body, write)
            if fault in ("cut", "half"):
                return
            self._event("[DONE]")
        except Ended:
            return
        except (BrokenPipeError, ConnectionResetError):
            self.owner.broken.set()

    def _event(self, data: str) -> None:
        # Several answers are written at the same time: the count may pass the limit between two looks at it.
        limit = self.owner.dies_after
        if limit is not None and self.owner.written >= limit and not self.owner.dead:
            self.owner.kill()
        if self.owner.dead:
            raise BrokenPipeError
        self.wfile.write(f"data: {data}\n\n".encode())
        self.wfile.flush()
        self.owner.written += 1
