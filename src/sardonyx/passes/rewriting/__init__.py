"""Rewriting a graph: what a rule is, what it sees, how it is applied, and the account of what it saved."""
