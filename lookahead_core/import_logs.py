"""Warnings of other libraries, of which whoever sits at a page or a terminal can make nothing."""

from __future__ import annotations

import logging
import os
import sys
import warnings

NOISY_LOGGERS = ("torchao", "torch.utils._pytree")
"""Loggers that warn of what they lack when they are imported."""
QUIET_PACKAGES = ("torch", "torchao", "transformers", "accelerate", "bitsandbytes", "lookahead_core")
"""Packages whose Python warnings are left out: ours stands for what torch says of a call that it makes."""


def quiet_import_logs() -> None:
    """Let torch and what is built on it tell of errors only: for programs, before anything imports torch.

    A library leaves the logs and warnings of others alone, so importing this package changes none of them. Whoever
    asks for them, by `python -W` or the variables of torch, has them.
    """
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    os.environ.setdefault("TORCH_LOGS", "-all")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    if not sys.warnoptions:
        warnings.filterwarnings("ignore", module=rf"({'|'.join(QUIET_PACKAGES)})(\.|$)")
