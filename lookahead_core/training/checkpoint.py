"""An unfinished training on disk, so that one that was stopped goes on where it stood, to the same end."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from lookahead_core.errors import LookaheadError


class Checkpoint:
    """What is kept of a training in a folder: what was asked, each round of texts, and the last state of the heads.

    Without a folder nothing is kept.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder and folder / ".training"
        self._lock = folder and FileLock(folder / ".training.lock")

    def begin(self, asked: Mapping[str, Any]) -> None:
        """Take the folder; what lies there must be of the same training."""
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
            _put(path, lambda target: target.write_text(json.dumps(asked)))
        elif _read_json(path) != asked:
            raise LookaheadError(
                f"{self._folder.parent} holds an unfinished training of other heads: ask for the same model, texts and "
                f"options to go on with it, give another folder, or delete {self._folder}."
            )

    def keep(self, name: str, found: Mapping[str, Any]) -> None:
        """Keep something under a name, in place of what was kept under it."""
        if self._folder is not None:
            _put(self._folder / f"{name}.pt", lambda target: torch.save(dict(found), target))

    def kept(self, name: str) -> dict[str, Any] | None:
        """What is kept under a name."""
        if self._folder is None or not (path := self._folder / f"{name}.pt").exists():
            return None
        try:
            return torch.load(path, weights_only=True)
        except Exception as error:
            raise LookaheadError(
                f"{path} is damaged, so the training cannot go on from it: delete {self._folder} and begin again."
            ) from error

    def clear(self) -> None:
        """It is finished."""
        if self._folder is not None:
            shutil.rmtree(self._folder)

    def let_go(self) -> None:
        """Leave the folder to others."""
        if self._lock is not None:
            self._lock.release()


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except ValueError:
        return None


def _put(path: Path, write: Any) -> None:
    """Write beside the place and then move: what is in place is whole."""
    beside = path.with_name(f"{path.name}.new")
    write(beside)
    os.replace(beside, path)
