"""Document and its results: lookahead, streams, batches, beam search and prefetching."""
