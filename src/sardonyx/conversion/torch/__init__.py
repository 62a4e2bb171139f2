"""PyTorch: modules, functions, scripts and exported programs."""
