"""Weights taken out of a model: zeros, whole channels, or thin products in the place of wide ones."""
