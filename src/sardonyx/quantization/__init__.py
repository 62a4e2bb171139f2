"""Smaller and faster models, with the loss measured: integers, small floats, and the data that they are fitted to."""
