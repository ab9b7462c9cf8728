"""Measurements against the methods a person would otherwise use; `python -m benchmarks --help`."""

from lookahead_core.quiet import hush

hush()  # before the measurements import what talks
