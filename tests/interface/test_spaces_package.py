"""The app with the package spaces of shared GPUs, its forked workers on a real GPU: `python -m pytest -m cuda`.

Needs `pip install spaces==0.51.3`, which changes torch where SPACES_ZERO_GPU is set: no requirement names it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from lookahead_core import Document, load_model
from tests.conftest import tiny_llama
from tests.support.browser import free_port
from tests.support.gpu_scheduler import GpuScheduler, gpu_scheduler

pytestmark = pytest.mark.cuda
ROOT = Path(__file__).parents[2]
TEXTS = ("The old keeper", "Once upon a time there was", "The sea and the sky and the old keeper")


def start_app(folder: Path, port: int, scheduler: GpuScheduler, output: Any) -> subprocess.Popen[bytes]:
    environment = {
        "SPACES_ZERO_GPU": "true",
        "SPACES_ZERO_DEVICE_API_URL": scheduler.address,
        "ZEROGPU_OFFLOAD_DIR": str(folder / "tensors"),
        "LOOKAHEAD_DTYPE": "float32",
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "app.py", "--port", str(port), "--model", str(folder / "model")]
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | environment, stdout=output, stderr=subprocess.STDOUT)


def lookahead(port: int, **arguments: Any) -> dict[str, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/lookahead",
        data=json.dumps(arguments).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        found: dict[str, Any] = json.load(response)
    return found


def wait_until_up(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(240):
        assert process.poll() is None, "the app has ended"
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2)
            return
        except OSError:
            time.sleep(0.25)
    raise TimeoutError("the app is not up")


def test_branches_of_forked_workers_on_a_gpu_are_those_of_the_cpu_also_after_a_worker_was_killed(
    tmp_path: Path, byte_tokenizer: Any
) -> None:
    hf_model = tiny_llama(len(byte_tokenizer))
    hf_model.save_pretrained(tmp_path / "model")
    byte_tokenizer.save_pretrained(tmp_path / "model")
    on_cpu = load_model(hf_model, tokenizer=byte_tokenizer)
    port = free_port()
    with gpu_scheduler() as scheduler, (tmp_path / "output").open("wb") as output:
        process = start_app(tmp_path, port, scheduler, output)
        try:
            wait_until_up(port, process)
            for number, text in enumerate(TEXTS):
                if number == 2:
                    os.kill(scheduler.workers[-1], signal.SIGKILL)
                found = lookahead(port, text=text, k=4, depth=8)
                expected = Document(on_cpu, text).lookahead(k=4, depth=8)
                assert [branch["ids"] for branch in found["branches"]] == [
                    list(branch.token_ids) for branch in expected.branches
                ]
                for branch, other in zip(found["branches"], expected.branches, strict=True):
                    assert branch["share"] == pytest.approx(other.share, abs=1e-3)
            assert len(scheduler.workers) == 2, "one worker for the first two calls, one after it was killed"
            assert scheduler.durations
            assert all(6 <= seconds <= 60 for seconds in scheduler.durations)
        except BaseException:
            print((tmp_path / "output").read_text())
            raise
        finally:
            process.terminate()
            process.wait(20)
