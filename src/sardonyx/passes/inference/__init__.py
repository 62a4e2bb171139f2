"""Types and shapes of every value: the walk over graphs, branches, loops and functions that `passes.shapes` begins."""
