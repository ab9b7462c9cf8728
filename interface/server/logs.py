"""The server's logs, as lines of text or as JSON, without anybody's text.

Messages of unexpected errors may repeat what a person has typed, and so may the arguments of other packages' records:
both are left out. What remains of an error is its class and where in the code it was raised.
"""

from __future__ import annotations

import io
import json
import logging
import re
import sys
import traceback
from datetime import datetime, timezone
from types import TracebackType
from typing import Any

OWN = ("interface", "lookahead_core", "__main__")
"""Packages whose log messages are shown whole: they hold no texts."""
SAFE = "safe"
"""With this as an extra of a record, the message of its exception is shown: it cannot hold a person's text."""
_FRAME = re.compile(r'\s*File "([^"]*)", line (\d+), in (\w+)')

events = logging.getLogger("interface.events")


def log_event(name: str, **fields: Any) -> None:
    """Log an event of the server's work; fields are numbers and words of the program, never a person's text or id.

    Logs as text do not show events.
    """
    events.info(name, extra={"fields": fields})


def configure_logs(form: str) -> None:
    """Log to stderr from now on: warnings and errors as lines of text, or with `form` "json" one JSON object a line.

    As JSON there are also events, and what is printed to stdout and stderr becomes a record for each line.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter("%(levelname)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    if form == "json":
        for name in OWN:
            logging.getLogger(name).setLevel(logging.INFO)
        sys.stdout, sys.stderr = PrintedLines("stdout"), PrintedLines("stderr")


class TextFormatter(logging.Formatter):
    """Formats a record as text; of an exception only the class and the frames, unless the record is `SAFE`."""

    def format(self, record: logging.LogRecord) -> str:
        shown = logging.makeLogRecord(record.__dict__)
        shown.msg, shown.args = _message(record), ()
        if record.exc_info and record.exc_info[0] is not None and not getattr(record, SAFE, False):
            kind, _, trace = record.exc_info
            shown.exc_text = "\n".join([*(f"  {frame}" for frame in _frames(trace)), kind.__name__])
        return super().format(shown)


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON: `time`, `level`, `event`, the fields of an event, `error` and `frames`."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        line = {"time": moment, "level": record.levelname.lower(), "logger": record.name, "event": _message(record)}
        line |= getattr(record, "fields", {})
        if record.exc_info and record.exc_info[0] is not None:
            kind, error, trace = record.exc_info
            line |= {"error": kind.__name__, "frames": _frames(trace)}
            if getattr(record, SAFE, False):
                line["message"] = str(error)
        return json.dumps(line, default=str)


class PrintedLines(io.TextIOBase):
    """A stream in place of stdout or stderr, which makes a log record of each line that is printed.

    Of stderr, where others print whole tracebacks, only the frames are kept.
    """

    def __init__(self, name: str) -> None:
        self._name, self._rest = name, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            if self._name == "stdout" and line.strip():
                log_event("printed", line=line.strip())
            elif frame := _FRAME.match(line):
                log_event("traceback", frame=f"{frame[1]}:{frame[2]} {frame[3]}")
        return len(text)


def _message(record: logging.LogRecord) -> str:
    """Return a record's message; of other packages only its first line, without arguments."""
    own = record.name.split(".")[0] in OWN
    return record.getMessage() if own else str(record.msg).split("\n")[0]


def _frames(trace: TracebackType | None) -> list[str]:
    """Return file, line and function of each frame of a traceback, from the outermost."""
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]
