"""Mutation testing: change a line of the product at random, and see whether a test fails.

cosmic-ray makes the changes and keeps the results. It was chosen over mutmut because it writes one change at a time
into the real source: mutmut puts all changes of a function side by side behind a trampoline, which TorchScript cannot
compile, and leaves out constants, defaults and fields. What is added here: a draw by seed, a filter for changes of
wording and types, the deletion of statements, and the choice of the tests that reach a line, run in forks of a process
that has imported PyTorch, transformers and Gradio once.
"""
