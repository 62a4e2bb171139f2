"""Contractions as C: matrix products, convolutions, and the packing of their operands."""
