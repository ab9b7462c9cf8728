"""Measurements against the methods a person would otherwise use; `python -m benchmarks --help`."""

from lookahead_core.import_logs import hush

hush()  # before the measurements import what talks
