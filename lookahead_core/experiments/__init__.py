"""Experiments that show how decoding works: each measures the engine that everything else here uses."""
