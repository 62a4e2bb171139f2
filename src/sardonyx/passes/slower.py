"""Rules whose result a runtime runs slower than what stood there before: they are left out for it.

Measured on CPU, by the operator alone in a model: times of the written out form and of the one operator.

onnxruntime 1.31 (Neoverse N1, 2 threads)
    swish               0.23 ms   0.25 ms   its own fusion of the two nodes is as fast as the operator
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["SLOWER"]

SLOWER: Mapping[str, frozenset[str]] = {"onnxruntime": frozenset({"swish"})}
