"""What the scripts of a page call: requests, one session for each page, progress, and limits."""
