"""The app file of a Space: import it in a process of its own, as a Space would start it, and look for `demo`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

MOST_SECONDS = 120
"""Seconds that the import of an app file may take."""
KEPT = ("PATH", "SYSTEMROOT", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "VIRTUAL_ENV")
"""Environment variables that the process gets from ours; a Space has none of the others."""
IMPORT = """
import importlib.util, sys
sys.path.insert(0, ".")
found = importlib.util.spec_from_file_location("app", sys.argv[1])
module = importlib.util.module_from_spec(found)
sys.modules["app"] = module
found.loader.exec_module(module)
import gradio
demo = getattr(module, "demo", None)
if not isinstance(demo, gradio.Blocks):
    sys.exit(f"NO_DEMO {type(demo).__name__}")
"""


def problems(folder: Path, name: str) -> Iterator[str]:
    """Yield a sentence if the app file is missing, fails at its import, or has no `demo` that is a `gr.Blocks`.

    The import runs in `folder` with a fresh home folder, and with the variables that a Space sets.
    """
    if not (folder / name).is_file():
        yield f"There is no {name}, which app_file in the front matter names."
        return
    with tempfile.TemporaryDirectory() as home:
        try:
            ended = subprocess.run(
                [sys.executable, "-c", IMPORT, name],
                cwd=folder,
                env=_environment(home),
                capture_output=True,
                text=True,
                timeout=MOST_SECONDS,
            )
        except subprocess.TimeoutExpired:
            yield f"{name} was not imported within {MOST_SECONDS} seconds."
            return
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["no error message"])[-1]
        if last.startswith("NO_DEMO"):
            yield f"{name} has no `demo` that is a gr.Blocks: it is {last.split()[-1]}."
        else:
            yield f"{name} cannot be imported: {last}."


def _environment(home: str) -> dict[str, str]:
    """Return the environment of the process: a Space's, with a home folder of its own."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    own = {"HOME": home, "SYSTEM": "spaces", "PYTHONDONTWRITEBYTECODE": "1", "GRADIO_ANALYTICS_ENABLED": "False"}
    return {**kept, **own}
