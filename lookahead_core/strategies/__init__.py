"""Choosing tokens: lookahead modes, beam search, decoding, sampling, logit rules and token healing."""
