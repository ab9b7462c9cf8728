"""Measurements against the methods a person would otherwise use; `python -m benchmarks --help`."""
