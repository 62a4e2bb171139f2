from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir

from sardonyx.comparison.tolerance import EXACT, TOLERANCES, Tolerance, tolerance_of


def test_integers_booleans_and_strings_are_exact() -> None:
    for name in ("int8", "uint64", "bool", "object"):
        assert tolerance_of(np.dtype(name), rtol=0.5) is EXACT
    assert tolerance_of(np.dtype(ml_dtypes.int4)) is EXACT


def test_every_float_type_of_the_standard_has_a_tolerance() -> None:
    for dtype in ir.DataType:
        if dtype.is_floating_point():
            assert tolerance_of(np.dtype(dtype.numpy())).rtol > 0, dtype.name


def test_a_tolerance_is_never_finer_than_the_type() -> None:
    for name in ("float16", "float32", "float64"):
        assert TOLERANCES[name].rtol > float(np.finfo(name).eps)
    assert TOLERANCES["bfloat16"].rtol > float(ml_dtypes.finfo(ml_dtypes.bfloat16).eps)


def test_the_callers_numbers_replace_the_contract() -> None:
    assert tolerance_of(np.dtype(np.float32), atol=1e-6) == Tolerance(rtol=0.0, atol=1e-6)
    assert tolerance_of(np.dtype(np.float32), rtol=0.0) == Tolerance()
    assert tolerance_of(np.dtype(np.float32)) is TOLERANCES["float32"]


def test_it_reads_as_text() -> None:
    assert str(EXACT) == "exact"
    assert str(Tolerance(1e-3, 0, 1e-5)) == "rtol 0.001, of largest 1e-05"
