"""Graph to facts, graph to graph."""
