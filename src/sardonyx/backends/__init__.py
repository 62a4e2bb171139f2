"""What turns a model into answers."""
