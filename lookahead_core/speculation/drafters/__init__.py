"""The drafters: their protocol, the registry of the library's own, and one file for each."""
