"""TensorFlow Lite files, read without TensorFlow."""
