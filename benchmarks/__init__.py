"""The same work on us and on every peer, and the models it is done on."""
