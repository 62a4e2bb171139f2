"""Changes that need a view of the whole graph: constants, equal nodes, branches, functions, what nothing reads."""
