"""Silence the warnings that torch and its companions log when they are imported, for programs of this package."""

from __future__ import annotations

import logging
import os
import sys
import warnings

NOISY_LOGGERS = ("torchao", "torch.utils._pytree")
"""Loggers that warn at import of optional parts that are missing."""
QUIET_PACKAGES = ("torch", "torchao", "transformers", "accelerate", "bitsandbytes", "lookahead_core")
"""Packages whose Python warnings are ignored. Torch attributes some warnings to its caller, hence our own."""


def quiet_import_logs() -> None:
    """Hide log records of torch and torchao below errors, and warnings of torch and packages built on it, from now on.

    This package's own warnings are among them. For programs, which call it before torch is imported; importing this
    package as a library hides nothing. Sets the environment variables TORCH_LOGS and TORCH_CPP_LOG_LEVEL unless they
    are set. With `python -W` or PYTHONWARNINGS no Python warning is hidden.
    """
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    os.environ.setdefault("TORCH_LOGS", "-all")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    if not sys.warnoptions:
        warnings.filterwarnings("ignore", module=rf"({'|'.join(QUIET_PACKAGES)})(\.|$)")
