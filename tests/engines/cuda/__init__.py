"""Tests of passes on NVIDIA GPUs."""
