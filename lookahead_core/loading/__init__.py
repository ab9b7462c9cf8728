"""From a name to a Model: sources, the default model, device and dtype, quantization."""
