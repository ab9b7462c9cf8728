"""Judging a given text: highlights, replacements, facts of each token, and how far two models agree."""
