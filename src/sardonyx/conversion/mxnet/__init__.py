"""MXNet: `-symbol.json` and `.params` files, by our own readers; MXNet itself is not needed."""
