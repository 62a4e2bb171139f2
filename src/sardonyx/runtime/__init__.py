"""Running models: `Session`, and the same under onnxruntime's names."""
