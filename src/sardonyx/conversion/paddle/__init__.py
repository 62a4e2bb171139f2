"""Paddle: saved programs, by paddle2onnx in an environment of its own, held to what Paddle itself answers there."""
