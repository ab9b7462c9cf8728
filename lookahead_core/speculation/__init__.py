"""Guessing tokens and checking the guesses: drafters, draft trees, acceptance, n-gram index, draft heads."""
