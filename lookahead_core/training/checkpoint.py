"""Checkpoints from which an interrupted training resumes, with the same result."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from lookahead_core.errors import LookaheadError


class Checkpoint:
    """The files of an unfinished training, made by `train_heads`: settings, rounds of texts, latest state of the heads.

    They lie in `.training` inside the output folder. Without an output folder all methods do nothing, and `load`
    returns None.
    """

    def __init__(self, output: Path | None) -> None:
        """`output` is the output folder; None saves nothing. Nothing is read, written or locked before `begin`."""
        self._folder = None if output is None else output / ".training"
        self._lock = None if output is None else FileLock(output / ".training.lock")

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Make and lock the folder, and write `settings` there, unless it holds a training with equal settings.

        `settings` must be equal to itself after it was written as JSON and read again: no tuples, for example. A
        LookaheadError is raised if another training has locked the folder, or if it holds a training with other
        settings; in the second case the lock is held until `release`.
        """
        if self._folder is None or self._lock is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise LookaheadError(
                f"Another training writes into {self._folder.parent}: wait for its end, or give another folder."
            ) from None
        path = self._folder / "asked.json"
        if not path.exists():
            _write_atomically(path, lambda target: target.write_text(json.dumps(settings)))
        elif _read_json(path) != settings:
            raise LookaheadError(
                f"{self._folder.parent} holds an unfinished training of other heads: ask for the same model, texts and "
                f"options to go on with it, give another folder, or delete {self._folder}."
            )

    def save(self, name: str, state: Mapping[str, Any]) -> None:
        """Save a state with `torch.save` under a name, in place of an earlier one; the file is never half-written.

        `begin` must have been called. Values must be tensors and plain Python values, or `load` cannot load them.
        """
        if self._folder is not None:
            _write_atomically(self._folder / f"{name}.pt", lambda target: torch.save(dict(state), target))

    def load(self, name: str) -> dict[str, Any] | None:
        """Return the state saved under a name; None if there is none. Raises a LookaheadError if it cannot be loaded.

        Its tensors are on the devices that they were saved from.
        """
        if self._folder is None or not (path := self._folder / f"{name}.pt").exists():
            return None
        try:
            state: dict[str, Any] = torch.load(path, weights_only=True)
        except Exception as error:
            raise LookaheadError(
                f"{path} is damaged, so the training cannot go on from it: delete {self._folder} and begin again."
            ) from error
        return state

    def delete(self) -> None:
        """Delete the folder `.training`, which `begin` must have made. The lock file beside it stays, and stays locked.

        Call it after the training has finished.
        """
        if self._folder is not None:
            shutil.rmtree(self._folder)

    def release(self) -> None:
        """Release the lock, so that another training may use the folder; does nothing if it is not held."""
        if self._lock is not None:
            self._lock.release()


def _read_json(path: Path) -> Any:
    """Return the contents of a JSON file; None if it is not valid JSON. Raises OSError if it cannot be read."""
    try:
        return json.loads(path.read_text())
    except ValueError:
        return None


def _write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` with a temporary path beside `path`, and rename that file to `path`, which is never half-written.

    If `write` fails, `path` stays as it was, and the temporary file may remain.
    """
    temporary = path.with_name(f"{path.name}.new")
    write(temporary)
    os.replace(temporary, path)
