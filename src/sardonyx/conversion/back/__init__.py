"""From ONNX back to frameworks: readable Python over one of them, and what is made of it."""
