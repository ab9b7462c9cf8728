"""What Hugging Face Spaces offer and accept, from the Hub's documentation of August 2026."""

from __future__ import annotations

SHARED_GPU_PYTHON = ("3.10", "3.10.13", "3.12", "3.12.12")
"""Values of `python_version` with which a Space starts on shared GPUs (ZeroGPU)."""
SHARED_GPU_TORCH = ("2.8.0", "2.9.1", "2.10.0", "2.11.0")
"""Versions of torch on shared GPUs. The build takes the highest that requirements.txt allows, or fails without one."""
HARDWARE = (
    *("cpu-basic", "cpu-upgrade", "t4-small", "t4-medium", "l4x1", "l4x4", "l40sx1", "l40sx4", "l40sx8"),
    *("a10g-small", "a10g-large", "a10g-largex2", "a10g-largex4", "a100-large", "a100x4", "a100x8", "zero-a10g"),
)
"""Values of `suggested_hardware`."""
COLORS = ("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray")
"""Values of `colorFrom` and `colorTo`."""
MOST_FILE_BYTES = 10 * 1024 * 1024
"""The Hub refuses a push with a larger file in plain git: it must be in Git LFS or Xet."""
MOST_DESCRIPTION = 60
"""Characters of `short_description`."""
CUSTOM_HEADERS = ("cross-origin-embedder-policy", "cross-origin-opener-policy", "cross-origin-resource-policy")
"""Headers that `custom_headers` may set."""
