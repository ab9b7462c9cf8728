"""Measurements against other ways to get the same result; see `python -m benchmarks --help`."""

from lookahead_core.import_logs import quiet_import_logs

quiet_import_logs()  # before the measurements import what talks
