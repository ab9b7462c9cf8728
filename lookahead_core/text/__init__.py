"""Characters and tokens: codec, passages, word and sentence boundaries, chat templates, context window."""
