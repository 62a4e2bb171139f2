"""TensorFlow Lite files of single operators, in types that TensorFlow's converter rarely writes."""
