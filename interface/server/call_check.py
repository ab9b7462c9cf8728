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
    """A stand-in for an engine: to read any attribute or method raises _NeedsModel, except those below."""

    passes = 0
    dispatcher = None

    def __getattr__(self, name: str) -> NoReturn:
        raise _NeedsModel


class CallCheck:
    """Finds the errors that a call raises before its first forward pass, without the engine and before it is queued.

    It runs calls up to that pass, in one thread of its own and with its own text codec: a tokenizer may be used by one
    thread at a time, and the model's codec belongs to the scheduler's thread.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="call-check")

    async def check(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Raise the error, if any, that the call with this name would raise before its first use of the engine.

        Checks run one after the other. `arguments` must have passed `call_arguments.checked`.
        """
        await asyncio.get_running_loop().run_in_executor(self._thread, self._run, name, arguments)

    def _run(self, name: str, arguments: Mapping[str, Any]) -> None:
        try:
            with closing(self._calls.steps(name, arguments)) as steps:
                next(steps)
        except _NeedsModel:
            pass

    @cached_property
    def _calls(self) -> Calls:
        """The `Calls` to a copy of the model with `_NoEngine` and a new codec; made at first use, which takes long.

        Use it in the checking thread only.
        """
        from lookahead_core.serving.calls import Calls
        from lookahead_core.serving.tree_pool import TreePool
        from lookahead_core.text.codec import TextCodec

        engine, codec = cast("Engine", _NoEngine()), TextCodec(self._model.tokenizer)
        return Calls(replace(self._model, engine=engine, codec=codec), TreePool(capacity=0))
