"""Matrix products and decoder layers, computed the fastest way that this processor supports."""
