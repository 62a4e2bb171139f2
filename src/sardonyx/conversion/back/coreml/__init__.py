"""ONNX to CoreML: a neural network of layers over arrays of exact shapes. It is written here and run on Apple's machines."""
