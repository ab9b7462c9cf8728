"""Measurements of Lookahead against other methods with the same result; see `python -m benchmarks --help`.

In this package "ours" is `lookahead_core`, and "peers" or "theirs" are the methods that it is compared with.
"""

from lookahead_core.import_logs import quiet_import_logs

quiet_import_logs()  # before the measurements import packages that log
