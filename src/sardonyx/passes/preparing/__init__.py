"""The model as it is planned: calls expanded, strings as numbers, ranks and sizes that only a run would know."""
