"""Forward passes on NVIDIA GPUs."""
