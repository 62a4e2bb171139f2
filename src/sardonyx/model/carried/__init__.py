"""What `onnx_ir` does not carry, and we bring along so that a model comes out as it went in."""
