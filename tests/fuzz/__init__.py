"""Random hostile requests to every endpoint of the running app: `python -m tests.fuzz --help`."""
