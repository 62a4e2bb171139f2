"""Models of other frameworks become ONNX whose answers are proved equal, or a refusal that says why."""
