"""Quantization-aware training: `prepare` puts rounding into a module, `quantizers` and `layers` are what it puts there."""
