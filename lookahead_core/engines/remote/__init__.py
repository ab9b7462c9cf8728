"""Predictions from a server with an OpenAI-compatible completions call, such as vLLM's."""
