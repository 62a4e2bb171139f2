"""ONNX back to JAX: a pure function and its parameters."""
