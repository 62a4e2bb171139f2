"""ONNX back to torch: an nn.Module with its source."""
