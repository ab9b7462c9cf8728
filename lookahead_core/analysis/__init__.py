"""Judging a given text: highlights, replacements, facts of each token, compression, and how far two models agree."""
