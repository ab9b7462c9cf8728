"""HTTP to a model's server: JSON answers and streamed events, with faults and refusals as errors."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from lookahead_core.engines.remote.server_errors import ServerFault, ServerRefusal

CONNECT_SECONDS = 5.0
"""Seconds to wait for a connection."""
MOST_ERROR_BYTES = 10_000
"""Bytes of an error's body that are read."""
RETRIED = (429, 500, 502, 503, 504)
"""HTTP statuses after which the same request may succeed."""


class ServerConnection:
    """Requests to one server, from any thread. Each is one attempt; callers decide whether to repeat it.

    The key is sent with each request, and is in no error, log or `repr`.
    """

    def __init__(self, address: str, *, key: str = "", seconds: float = 60.0) -> None:
        """`address` ends where the names of calls begin, as `http://host:8000/v1`, and has no name or password.

        `seconds` is the longest time without a part of an answer.
        """
        self.address = address.rstrip("/")
        self._seconds = seconds
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds)),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
        )

    def __repr__(self) -> str:
        return f"ServerConnection({self.address!r})"

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def get(self, call: str) -> Any:
        """Return the JSON that the server answers to a GET of `call`, such as "models".

        Raises ServerFault or ServerRefusal, like `events`.
        """
        with self._faults(), self._client.stream("GET", f"{self.address}/{call}") as response:
            self._check_status(response)
            return self._parsed(response.read().decode("utf-8", "replace"))

    def events(self, call: str, body: dict[str, Any]) -> Generator[dict[str, Any], None, None]:
        """Yield the JSON objects of a streamed answer to a POST, as they arrive, without the last "[DONE]".

        Closing the generator closes the connection, after which the server stops its work. Raises ServerFault if the
        server cannot be reached, is too busy, fails, takes too long or does not end its answer, and ServerRefusal if it
        refuses the request.
        """
        with self._faults(), self._client.stream("POST", f"{self.address}/{call}", json=body) as response:
            self._check_status(response)
            for line in response.iter_lines():
                if not line.startswith("data:"):
                    if line.strip() and not line.startswith((":", "event:", "id:", "retry:")):
                        raise self._unreadable()
                    continue
                if (data := line.removeprefix("data:").strip()) == "[DONE]":
                    return
                event = self._parsed(data)
                self._check_event(event)
                yield event
        raise ServerFault(f"{self.address} has ended its answer in the middle; try again.")

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Turn the errors of connections into ServerFaults, without what the request contained."""
        try:
            yield
        except httpx.ConnectError:
            raise ServerFault(
                f"{self.address} cannot be reached: check the address, and whether the server runs.", lost=True
            ) from None
        except httpx.ConnectTimeout:
            raise ServerFault(f"{self.address} does not take connections now; try again later.", lost=True) from None
        except httpx.TimeoutException:
            raise ServerFault(
                f"{self.address} has not answered for {self._seconds:g} seconds; try again later.",
                retry=False,
                lost=True,
            ) from None
        except (httpx.UnsupportedProtocol, httpx.InvalidURL):
            raise ServerRefusal(404, "", self.address) from None
        except httpx.HTTPError:
            raise ServerFault(f"The connection to {self.address} was interrupted; try again.") from None

    def _check_status(self, response: httpx.Response) -> None:
        if response.status_code == 200:
            return
        if response.status_code in RETRIED:
            wait = _seconds_of(response.headers.get("Retry-After", ""))
            raise self._busy(response.status_code, wait)
        body = b""
        for part in response.iter_bytes():
            body += part
            if len(body) > MOST_ERROR_BYTES:
                break
        raise ServerRefusal(response.status_code, _message_of(body.decode("utf-8", "replace")), self.address)

    def _check_event(self, event: Any) -> None:
        """Raise the error that an event of a stream reports: its status is 200 already then."""
        if not isinstance(event, dict):
            raise self._unreadable()
        error = event.get("error")
        if error is None:
            return
        code = error.get("code") if isinstance(error, dict) else None
        code = code if isinstance(code, int) else 500
        if code in RETRIED or not 400 <= code < 500:
            raise self._busy(code, None)
        raise ServerRefusal(code, str(error.get("message", "")), self.address)

    def _busy(self, code: int, wait: float | None) -> ServerFault:
        reason = "is too busy" if code in (429, 503) else "has failed"
        when = "later" if wait is None else f"in {wait:.0f} seconds"
        return ServerFault(f"{self.address} {reason} ({code}); try again {when}.", wait=wait)

    def _parsed(self, text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            raise self._unreadable() from None

    def _unreadable(self) -> ServerFault:
        return ServerFault(f"The answer of {self.address} cannot be read: check whether it is a model's server.")


def _seconds_of(header: str) -> float | None:
    """Return the seconds of a Retry-After header, at least 0; None for a date or for anything else."""
    with contextlib.suppress(ValueError):
        seconds = float(header)
        return seconds if 0 <= seconds < math.inf else None
    return None


def _message_of(body: str) -> str:
    """Return the message in the body of an error, or its beginning if it has none."""
    try:
        found = json.loads(body)
    except ValueError:
        return body[:200]
    for name in ("error", "message", "detail"):
        found = found.get(name, found) if isinstance(found, dict) else found
    return str(found)
