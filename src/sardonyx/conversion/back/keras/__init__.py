"""ONNX back to Keras 3: a model over keras.ops, for any of its backends."""
