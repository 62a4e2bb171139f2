"""CoreML: `.mlmodel` files, through the protocol buffers of coremltools; nothing is run."""
