"""Starts on a busy machine compute in the same way, and give the same texts, as a start on a quiet one.

The busy programs would slow all other tests down, so nothing runs beside these.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone]
ROOT = Path(__file__).parents[3]
STARTS = int(os.environ.get("LOOKAHEAD_TEST_STARTS", "1"))
BUSY = "import torch; torch.set_num_threads(1); a = torch.ones(1500, 1500)\nwhile True: a @ a"
START = """
import json, sys
from lookahead_core import Document, load_model

model = load_model(sys.argv[1] or None, dtype="bfloat16")
texts = []
for prompt in ("After careful", "One, two, three, four, one, two, three, four, one,"):
    for options in ({}, {"temperature": 0.8, "seed": 5}):
        for speculate in (False, True):
            stream = Document(model, prompt).stream(max_new_tokens=8, speculate=speculate, **options)
            texts.append([(step.token_id, step.logprob) for step in stream])
print(json.dumps({"computes": model.describe(details=True), "texts": texts}))
"""


@contextmanager
def busy(programs: int) -> Iterator[None]:
    """This many other programs that multiply matrices without end."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(programs)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def start() -> dict[str, Any]:
    """What a fresh process says of how it computes, and its texts: without drafts, then with them."""
    model = os.environ.get("LOOKAHEAD_TEST_MODEL", "")
    ended = subprocess.run(
        [sys.executable, "-c", START, model], cwd=ROOT, check=True, capture_output=True, text=True, timeout=600
    )
    return json.loads(ended.stdout)


def test_starts_beside_three_busy_programs_compute_and_write_as_a_quiet_start() -> None:
    quiet = start()
    with busy(3):
        for _ in range(STARTS):
            assert start() == quiet
    if "compiled by LLVM" in quiet["computes"]:
        assert quiet["texts"][0::2] == quiet["texts"][1::2], "with drafts as without, to the bit"
