"""Looking at a model without running it: what is wrong (`check`), what it costs (`inspect`), what this machine can do (`doctor`)."""
