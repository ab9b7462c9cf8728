"""A server of the page in a process of its own, with a small model, whose faults a test switches on and off.

`python -m tests.support.faulty_server PORT [VERSION]` serves the page, as a version of its own if VERSION is set. Each
line of its input is a command: a fault of FAULTS, `none`, `forget` (all sessions end), `clock` (the clock of the
computer jumps by a year) or `disk` (from now on no file can be written). It is answered by the same line in the output;
`ready` is printed when the model is loaded.
"""

from __future__ import annotations

import gc
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from lookahead_core.engines.engine import NodeScores
from lookahead_core.errors import WorkerLost
from lookahead_core.tree import Node
from tests.support.launching import launch
from tests.support.witness import EngineWithHook, talker

YEAR = 365 * 24 * 3600.0
LOST = "The GPU stopped in the middle of this; change the text a little to try again."


def _a_year_after(now: Callable[[], float]) -> float:
    return now() + YEAR


def run_out_of_memory() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def end_thread() -> None:
    raise SystemExit


def lose_worker() -> None:
    raise WorkerLost(LOST)


def fail() -> None:
    raise RuntimeError("inner workings")


FAULTS: dict[str, Callable[[], None]] = {
    "memory": run_out_of_memory,
    "thread": end_thread,
    "worker": lose_worker,
    "error": fail,
    "numbers": lambda: None,
    "none": lambda: None,
}
"""What happens at each pass of the model. With `numbers`, the logits of a pass are NaN."""


class FaultyEngine(EngineWithHook):
    """An engine with the fault that is switched on: in passes of its model for lack of memory, else around them."""

    def __init__(self, engine: Any) -> None:
        super().__init__(engine, self.raise_fault)
        self.fault = "none"
        forward = engine.model_copy.forward

        def limited(*arguments: Any, **options: Any) -> Any:
            if self.fault == "memory":
                run_out_of_memory()
            return forward(*arguments, **options)

        engine.model_copy.forward = limited

    def raise_fault(self) -> None:
        if self.fault != "memory":
            FAULTS[self.fault]()

    def score(self, nodes: Sequence[Node], *, hidden: bool = False) -> NodeScores:
        scores = super().score(nodes, hidden=hidden)
        return NodeScores(scores.nodes, scores.logits * math.nan) if self.fault == "numbers" else scores


def serve(port: int, version: str) -> None:
    """Serve the page until the input ends."""
    from interface import ModelLoader, build
    from interface.http import assets
    from interface.server.page_service import PageService

    files = assets.ScriptFiles(assets.scripts().contents, assets.scripts().page + version)
    assets.scripts = lambda: files  # type: ignore[assignment]
    model = talker()
    engine = FaultyEngine(model.engine)
    loader = ModelLoader(lambda report: replace(model, engine=engine))
    page = build(loader)
    launch(page, loader, port)
    loader.run()
    print("ready", flush=True)
    for line in sys.stdin:
        command = line.strip()
        if command in FAULTS:
            engine.fault = command
        elif command == "forget":
            for service in [one for one in gc.get_objects() if isinstance(one, PageService)]:
                for key in list(service.open_pages._values):
                    service.open_pages._forget(key)
        elif command == "clock":
            time.time = partial(_a_year_after, time.time)  # type: ignore[assignment]
        elif command == "disk":
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        print(command, flush=True)


@dataclass
class FaultyServer:
    """That process, as a test sees it."""

    port: int
    log: Path
    version: str = ""
    process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Start it, and wait until its model is loaded."""
        command = [sys.executable, "-m", "tests.support.faulty_server", str(self.port), self.version]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                cwd=Path(__file__).parents[2],
            )  # fmt: skip
        self._wait_for("ready")

    def kill(self) -> None:
        """Kill the server's process, which closes nothing."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(120)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        self.process = None

    def command(self, command: str) -> None:
        assert self.process is not None and self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        self._wait_for(command)

    def _wait_for(self, answer: str) -> None:
        assert self.process is not None and self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == answer:
                return
        raise AssertionError(f"The server has ended:\n{self.log.read_text()}")


@contextmanager
def faulty_server(port: int, log: Path) -> Iterator[FaultyServer]:
    """The server on this port, with its errors in this file; ended when the test is over."""
    server = FaultyServer(port, log)
    server.start()
    try:
        yield server
    finally:
        if server.process is not None:
            server.kill()


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
