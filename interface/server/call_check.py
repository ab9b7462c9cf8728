"""Check a call before it queues for the model: run its steps up to the first one that needs a forward pass."""

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


class _NeedsModel(Exception):
    """Raised at a call's first use of the engine: all checks that come before it have passed."""


class _NoEngine:
    """A stand-in for an engine: every attribute raises _NeedsModel, except `passes`, which is 0."""

    passes = 0

    def __getattr__(self, name: str) -> NoReturn:
        raise _NeedsModel


class CallCheck:
    """Runs calls up to their first forward pass, in its own thread and with its own text codec.

    A tokenizer may be used by one thread at a time, and the model's tokenizer belongs to the scheduler's thread.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="call-check")

    async def check(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Raise the error, if any, that the call with this name would raise before its first pass."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._run, name, arguments)

    def _run(self, name: str, arguments: Mapping[str, Any]) -> None:
        try:
            with closing(self._calls.steps(name, arguments)) as steps:
                next(steps)
        except _NeedsModel:
            pass

    @cached_property
    def _calls(self) -> Calls:
        """The calls on `_NoEngine`; made at first use, in the checking thread, since that takes long."""
        from lookahead_core.serving.calls import Calls
        from lookahead_core.serving.tree_pool import TreePool
        from lookahead_core.text.codec import TextCodec

        engine, codec = cast("Engine", _NoEngine()), TextCodec(self._model.tokenizer)
        return Calls(replace(self._model, engine=engine, codec=codec), TreePool(capacity=0))
