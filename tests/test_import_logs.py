"""Log records and warnings of other packages: a program's terminal shows errors only, a library user sees all."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lookahead_core.import_logs import NOISY_LOGGERS, quiet_import_logs

ROOT = Path(__file__).parents[1]


def test_noisy_loggers_show_errors_only_after_quieting_and_everything_before(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    others = [logging.getLogger(name) for name in NOISY_LOGGERS]
    for logger in others:
        monkeypatch.setattr(logger, "level", logging.NOTSET)
        logger.warning("It lacks something.")
    assert len(caplog.records) == len(others)
    quiet_import_logs()
    for logger in others:
        logger.warning("It lacks something.")
        logger.error("It is broken.")
    assert len(caplog.records) == 2 * len(others)


NOISE = """
import logging, sys, warnings
if sys.argv[1] == "program":
    from lookahead_core.import_logs import quiet_import_logs
    quiet_import_logs()
import torch
import lookahead_core.serving.json_values as ours
warn = dict(filename=ours.__file__, lineno=1)
warnings.warn_explicit("from our own code", UserWarning, module="lookahead_core.serving.json_values", **warn)
warnings.warn_explicit("from torch", FutureWarning, module="torch.nn.modules.linear", **warn)
torch.meshgrid(torch.ones(2), torch.ones(2))
logging.getLogger("torch.utils._pytree").warning("torch logs")
logging.getLogger("torch._dynamo").warning("torch logs")
logging.getLogger("torchao.quantization").warning("torchao logs")
logging.getLogger("torch._dynamo").error("SHOWN: an error")
warnings.warn("SHOWN: from the program itself", UserWarning)
warnings.warn_explicit("SHOWN: from another package", UserWarning, module="torchvision", **warn)
"""


def standard_error_of(kind: str) -> str:
    """Run `NOISE` as a "program" or a "library" user in a clean environment; return its standard error."""
    ignored = ("TORCH_", "PYTHONWARNINGS")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ignored)}
    command = [sys.executable, "-c", NOISE, kind]
    finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert finished.returncode == 0
    return finished.stderr


@pytest.mark.slow
def test_warnings_of_torch_and_torchao_do_not_reach_the_terminal_of_a_program_and_reach_a_library_user() -> None:
    with ThreadPoolExecutor(2) as pool:
        program, library = pool.map(standard_error_of, ("program", "library"))
    parts = ("from our own code", "from torch", "torch.meshgrid", "torch logs", "torchao logs")
    assert not [part for part in parts if part in program]
    assert all(part in library for part in parts)
    for output in (program, library):
        assert all(part in output for part in ("an error", "from the program itself", "from another package"))


@pytest.mark.parametrize("warn_options", [[], ["default"]])
def test_warnings_that_an_option_of_python_requests_are_still_shown(
    warn_options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "warnoptions", warn_options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quiet_import_logs()
        warnings.warn_explicit("deprecated", UserWarning, "file", 1, module="torch.nn")
    assert bool(caught) is bool(warn_options)
