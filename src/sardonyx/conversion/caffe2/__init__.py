"""Caffe2: `predict_net.pb` with `init_net.pb`, by our own reader; Caffe2 itself is not needed."""
