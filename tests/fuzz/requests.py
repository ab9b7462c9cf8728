"""Random requests: wrong types, extremes, replayed and foreign ids, huge bodies, other origins."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from tests.fuzz.endpoints import COMPONENT, Endpoint

PAGES = ("a-page-of-somebody", "another-page-of-somebody", "x" * 65, "short", "../../etc/passwd", "")
FIELDS = (
    *(
        "page",
        "number",
        "revision",
        "text",
        "accepted",
        "instruction",
        "source",
        "role",
        "messages",
        "columns",
        "ahead",
    ),
    *("edits", "k", "depth", "mode", "until", "banned", "odds", "temperature", "top_p", "seed", "towards", "avoid"),
    *("guess", "start", "ratio", "visitor", "seen", "n", "max_new_tokens", "num_beams", "length_penalty", "top_k"),
    *("stop", "heal", "budget", "n_future_tokens", "n_branch_tokens", "doc", "prompt", "unknown", "__class__"),
)
WORDS = (
    *(
        "",
        "a",
        "\x00",
        "\ud800",
        "\u202e",
        "🙂" * 50,
        "{{7*7}}",
        "${1}",
        "`",
        "<script>",
        "NaN",
        "-1",
        "null",
        "é" * 300,
    ),
    *(
        "../../etc/passwd",
        "%00",
        "%2e%2e/",
        "<|im_end|>",
        "' OR 1=1 --",
        "x" * 5_000,
        "\r\nSet-Cookie: a=b",
        " ",
        "user",
    ),
    *(
        "likely",
        "every_level",
        "best_first",
        "sampled",
        "forks",
        "diverse",
        "surprising",
        "words",
        "sentence",
        "assistant",
    ),
)
NUMBERS = (
    *(0, 1, -1, 2, 20, 21, 40, 41, 2**31, 2**53, 2**53 + 1, 2**63, -(2**64), 10**30, 10**400),
    *(0.5, -0.0, 1e308, float("nan"), float("inf"), float("-inf"), 1.5, 5.0),
)
HEADERS = (
    *({}, {}, {}, {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}),
    *({"X-Forwarded-For": "1.2.3.4, nonsense"}, {"X-Forwarded-Proto": "gopher"}, {"X-Forwarded-Host": "evil.example"}),
    *(
        {"Authorization": "Basic !!!!"},
        {"Cookie": "access-token=x; =; a"},
        {"Host": "evil.example"},
        {"Range": "bytes=9-1"},
    ),
    *(
        {"Accept-Encoding": "br, gzip;q=nonsense"},
        {"If-None-Match": "*"},
        {"x-ip-token": "é" * 9000},
        {"Expect": "nothing"},
    ),
)
TYPES = ("application/json", "application/json", "text/plain", "", "multipart/form-data; boundary=a", "application/xml")
HUGE = 10_000_001
"""Bytes of a body that no endpoint accepts."""


@dataclass(frozen=True)
class HostileRequest:
    """A request as it is sent."""

    endpoint: Endpoint
    path: str
    body: bytes | None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The request in one line, for a report."""
        return f"{self.endpoint.name} {self.path[:120]!r} {self.headers} {(self.body or b'')[:400]!r}"


def request_to(endpoint: Endpoint, dice: random.Random, sent: list[HostileRequest]) -> HostileRequest:
    """Return a random request to an endpoint; sometimes one of those that were sent to it, again."""
    earlier = [one for one in sent[-200:] if one.endpoint == endpoint]
    if earlier and dice.random() < 0.1:
        return dice.choice(earlier)
    path = endpoint.path
    while "{" in path:
        start, end = path.index("{"), path.index("}")
        path = path[:start] + quote(_word(dice).encode("utf-8", "surrogatepass"), safe="/") + path[end + 1 :]
    if dice.random() < 0.3:
        path += "?" + urlencode({dice.choice(FIELDS): str(_value(dice, 1)) for _ in range(3)}, errors="replace")
    body = None if endpoint.method in ("GET", "HEAD") and dice.random() < 0.9 else _body(endpoint, dice)
    headers = dict(dice.choice(HEADERS)) | {"Content-Type": dice.choice(TYPES)}
    if endpoint.example is not None and dice.random() < 0.85:
        headers = {"Content-Type": "application/json"}
    return HostileRequest(
        endpoint, path, body, {name: value.encode().decode("latin-1") for name, value in headers.items()}
    )


def _body(endpoint: Endpoint, dice: random.Random) -> bytes:
    kind = dice.random()
    if kind < 0.01:
        return b'{"text": "' + b"x" * HUGE + b'"}'
    if kind < 0.06:
        return dice.choice([b"", b"{", b"[" * 100_000, b"\xff\xfe", b"null", b"NaN", b'"', b"a=b", dice.randbytes(300)])
    if endpoint.example is None:
        return _json(_value(dice, 3))
    fields = dict(endpoint.example)
    for _ in range(dice.choice((0, 1, 1, 1, 2, 3, 8))):
        fields[dice.choice([*fields, *FIELDS])] = _value(dice, 3)
    if "page" in fields and dice.random() < 0.4:
        fields["page"] = dice.choice(PAGES)
    if "number" in fields and dice.random() < 0.7:
        fields["number"] = dice.randrange(1000)
    if dice.random() < 0.05:
        fields.pop(dice.choice(list(fields)))
    if endpoint.path != COMPONENT:
        return _json(fields)
    data = fields if dice.random() < 0.95 else _value(dice, 2)
    called = {
        "component_id": endpoint.component,
        "fn_name": endpoint.function,
        "session_hash": "a-session",
        "data": data,
    }
    if dice.random() < 0.05:
        called[dice.choice(list(called))] = _value(dice, 2)
    return _json(called)


def _value(dice: random.Random, depth: int) -> Any:
    kind = dice.randrange(8 if depth else 5)
    if kind < 2:
        return _word(dice)
    if kind < 4:
        return dice.choice(NUMBERS)
    if kind == 4:
        return dice.choice((None, True, False))
    if kind == 5:
        return [_value(dice, depth - 1) for _ in range(dice.choice((0, 1, 2, 9, 200)))]
    if kind == 6:
        return {dice.choice(FIELDS): _value(dice, depth - 1) for _ in range(dice.choice((0, 1, 2, 5)))}
    return dice.choice(
        (
            [{"role": _word(dice), "content": _word(dice)}, {"role": "user", "content": _value(dice, depth - 1)}],
            [[0, [1, 2], True], [dice.choice(NUMBERS), [dice.choice(NUMBERS)], False]],
            [
                {"instruction": _word(dice), "temperature": dice.choice(NUMBERS)}
                for _ in range(dice.choice((1, 2, 4, 5)))
            ],
            [{"row": [1, dice.choice(NUMBERS)], "before": [1], "text": _word(dice)}],
            "long " * dice.choice((100, 3_000, 50_000)),
        )
    )


def _word(dice: random.Random) -> str:
    return dice.choice((*WORDS, *PAGES))


def _json(value: Any) -> bytes:
    return json.dumps(value, default=str).encode("utf-8", "surrogatepass")
