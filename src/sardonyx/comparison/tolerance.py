"""How far two right answers may lie apart, by element type. The one table; `docs/numerics.md` explains it.

An element agrees when

    |a - b| <= atol + rtol·|b| + of_largest·max|b|

The last term is there because a long sum's rounding errors follow its largest terms, not its result: an
element near zero is as uncertain as its neighbours. Integers, booleans and strings must be equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["EXACT", "TOLERANCES", "Tolerance", "tolerance_of"]


@dataclass(frozen=True)
class Tolerance:
    """What may differ: relative, absolute, and relative to the largest element of the tensor."""

    rtol: float = 0.0
    atol: float = 0.0
    of_largest: float = 0.0

    def __str__(self) -> str:
        parts = [
            f"{name} {value:g}"
            for name, value in (
                ("rtol", self.rtol),
                ("atol", self.atol),
                ("of largest", self.of_largest),
            )
            if value
        ]
        return ", ".join(parts) or "exact"


EXACT = Tolerance()

# By numpy name. A few rounding steps of the type for one element, and fewer of the tensor's largest.
TOLERANCES: Mapping[str, Tolerance] = {
    "float64": Tolerance(rtol=1e-9, of_largest=1e-12),
    "float32": Tolerance(rtol=1e-3, of_largest=1e-5),
    "float16": Tolerance(rtol=1e-2, of_largest=2e-3),
    "bfloat16": Tolerance(rtol=4e-2, of_largest=1.6e-2),
    "float8_e4m3fn": Tolerance(rtol=0.25),
    "float8_e4m3fnuz": Tolerance(rtol=0.25),
    "float8_e5m2": Tolerance(rtol=0.5),
    "float8_e5m2fnuz": Tolerance(rtol=0.5),
    "float8_e8m0fnu": Tolerance(rtol=1.0),
    "float6_e2m3fn": Tolerance(rtol=0.25),
    "float6_e3m2fn": Tolerance(rtol=0.5),
    "float4_e2m1fn": Tolerance(rtol=0.5),
    "complex64": Tolerance(rtol=1e-3, of_largest=1e-5),
    "complex128": Tolerance(rtol=1e-9, of_largest=1e-12),
}


def tolerance_of(
    dtype: np.dtype[Any], rtol: float | None = None, atol: float | None = None
) -> Tolerance:
    """The contract for an element type; either number given by the caller replaces it as a whole."""
    contract = TOLERANCES.get(dtype.name, EXACT)
    if contract is EXACT or (rtol is None and atol is None):
        return contract
    return Tolerance(rtol=rtol or 0.0, atol=atol or 0.0)
