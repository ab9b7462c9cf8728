"""Engines compute predictions: cached and uncached engine, KV cache, masks, and the probe that chooses."""
