"""Rules whose result a runtime runs slower than what stood there before: they are left out for it.

Measured on CPU, by the operator alone in a model: times of the written out form and of the one operator.

onnxruntime 1.31 (Neoverse N1, 2 threads)
    swish               0.23 ms   0.25 ms   its own fusion of the two nodes is as fast as the operator
    attention-with-mask 2.20 ms   3.08 ms   (1, 12, 128, 64); without a mask 2.27 ms and 2.21 ms, of rows 2.34 ms and 2.08 ms
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["SLOWER"]

SLOWER: Mapping[str, frozenset[str]] = {"onnxruntime": frozenset({"swish", "attention-with-mask"})}
