"""TensorFlow and Keras: models, functions and files, through tf2onnx or TensorFlow Lite, and repaired."""
