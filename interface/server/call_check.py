"""Checks a call before it waits for the model: its steps up to where they would first need a pass."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, cast

if TYPE_CHECKING:
    from lookahead_core import Model
    from lookahead_core.engines.engine import Engine
    from lookahead_core.serving.calls import Calls


class _Reached(Exception):
    """A call has come to where it needs the model: what can be checked before is right."""


class _NoEngine:
    """Stands for an engine, and has passed no node through the model."""

    passes = 0

    def __getattr__(self, name: str) -> NoReturn:
        raise _Reached


class CallCheck:
    """Runs calls without a model, in a thread of its own and with a tokenizer of its own.

    A tokenizer is used by one thread at a time, and the one that calls are answered with belongs to the scheduler's.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rehearsal")

    async def check(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Raise what the call would raise before its first pass."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._run, name, arguments)

    def _run(self, name: str, arguments: Mapping[str, Any]) -> None:
        try:
            with closing(self._calls.steps(name, arguments)) as steps:
                next(steps)
        except _Reached:
            pass

    @cached_property
    def _calls(self) -> Calls:
        """Made in the thread that uses it: a copy of a large tokenizer takes a while."""
        from lookahead_core.serving.calls import Calls
        from lookahead_core.serving.tree_pool import TreePool
        from lookahead_core.text.codec import TextCodec

        engine, codec = cast("Engine", _NoEngine()), TextCodec(self._model.tokenizer)
        return Calls(replace(self._model, engine=engine, codec=codec), TreePool(most=0))
