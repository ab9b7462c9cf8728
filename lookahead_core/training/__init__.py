"""Training draft heads: data, the training loop, and checkpoints from which it resumes."""
