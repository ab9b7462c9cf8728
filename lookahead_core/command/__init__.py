"""The command line: `python -m lookahead_core`, its further commands, and how results are printed."""
