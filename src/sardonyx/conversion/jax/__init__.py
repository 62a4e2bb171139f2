"""Functions and modules of JAX: their jaxpr, written in ONNX primitive by primitive."""
