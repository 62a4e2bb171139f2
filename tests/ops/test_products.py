from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from tests.ops.harness import Case, agree, plan_of, run_compiled, run_reference

import sardonyx as sx
from sardonyx.errors import RunError
from sardonyx.plan.kernels import ProductKernel

RNG = np.random.default_rng(11)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def product(op: str, inner: int, other: int, **attributes: Any) -> Case:
    """A product of matrices of symbolic sizes, with inner dimensions of these sizes."""
    a, b = normal(2, inner), normal(other, 4)
    if attributes.get("transA"):
        a = a.T.copy()
    if attributes.get("transB"):
        b = b.T.copy()
    return Case(op, [a, b], attributes, symbolic=True)


PRODUCTS: list[tuple[str, dict[str, Any]]] = [
    ("MatMul", {}),
    ("Gemm", {}),
    ("Gemm", {"transA": 1, "transB": 1}),
]


@pytest.mark.parametrize(("op", "attributes"), PRODUCTS)
def test_products_of_symbolic_sizes(op: str, attributes: dict[str, Any]) -> None:
    agree(product(op, 3, 3, **attributes))


@pytest.mark.parametrize(("op", "attributes"), PRODUCTS)
@pytest.mark.parametrize("inner", [1, 2, 300])
def test_factors_that_do_not_fit_stop_the_run(
    op: str, attributes: dict[str, Any], inner: int
) -> None:
    """Neither plain loops nor the packed kernels read past the smaller factor."""
    model = sx.load(product(op, 3, 3, **attributes).model())
    feeds = product(op, inner, 3, **attributes).feeds()
    with pytest.raises(RunError):
        run_reference(model, feeds)
    with pytest.raises(RunError, match="inner"):
        run_compiled(model, plan_of(model), feeds)
    with pytest.raises(RunError, match="inner"):
        sx.Session(model).run(None, feeds)


def test_integer_factors_that_do_not_fit_stop_the_run() -> None:
    fits = [np.ones((2, 3), np.uint8), np.ones((3, 4), np.uint8)]
    model = sx.load(Case("MatMulInteger", fits, symbolic=True).model())
    feeds = {"x0": np.ones((2, 9), np.uint8), "x1": fits[1]}
    with pytest.raises(RunError, match="inner"):
        run_compiled(model, plan_of(model), feeds)


def test_an_operand_whose_elements_are_looked_up() -> None:
    """As torch's as_strided is written: every element by an index that is computed beside it."""
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 20]>
        strided (float[m] x, int64[n, 1, 1] start, float[4, 5] w) => (float[n, 5] y)
        <int64[1, 4, 1] steps = {0, 1, 2, 3}, int64[2] shape = {-1, 4}> {
            index = Add (start, steps)
            columns = Gather <axis = 0> (x, index)
            rows = Reshape (columns, shape)
            y = Gemm (rows, w)
        }
    """)
    x, w, start = normal(12), normal(4, 5), np.array([8, 0, 3])
    feeds = {"x": x, "start": start[:, None, None], "w": w}
    (y,) = sx.Session(model, fallback="refuse").run(None, feeds)
    np.testing.assert_allclose(y, x[start[:, None] + np.arange(4)] @ w, rtol=1e-5, atol=1e-6)


THIN = "ab,bc->ac", "ab,cb->ac", "zab,zbc->zac", "zab,zcb->zac", "ab,zbc->zac"


@pytest.mark.parametrize("equation", THIN)
@pytest.mark.parametrize("rows", [1, 2, 4])
@pytest.mark.parametrize(
    ("inner", "columns"), [(5, 1000), (193, 300), (1000, 513), (4097, 1), (0, 4096), (700, 0)]
)
def test_few_rows_with_a_matrix_that_is_fed(
    equation: str, rows: int, inner: int, columns: int
) -> None:
    """It is read where it lies, with whatever stands behind the product in the same kernel."""
    sizes = {"a": str(rows), "b": "K", "c": "N", "z": "3"}
    first, second = equation.partition("->")[0].split(",")
    shapes = [",".join(sizes[letter] for letter in term) for term in (first, second)]
    model = sx.load(
        onnx.parser.parse_model(
            '<ir_version: 10, opset_import: ["": 18]> '
            f"g (float[{shapes[0]}] x, float[{shapes[1]}] y) => (float[] out) "
            f'{{ p = Einsum<equation = "{equation}">(x, y) out = Tanh(p) }}'
        )
    )
    real = {"a": rows, "b": inner, "c": columns, "z": 3}
    x, y = (normal(*(real[letter] for letter in term)) for term in (first, second))
    x *= np.float32(max(inner, 1) ** -0.5)
    for fed in (y, np.asfortranarray(y), np.repeat(y, 2, axis=-1)[..., ::2]):
        (got,) = sx.Session(model).run(None, {"x": x, "y": fed})
        want = np.tanh(np.einsum(equation, x.astype(np.float64), y.astype(np.float64)))
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6)


def test_few_rows_whose_factors_do_not_fit_stop_the_run() -> None:
    model = sx.load(
        onnx.parser.parse_model(
            '<ir_version: 10, opset_import: ["": 18]> '
            "g (float[1, K] x, float[L, N] y) => (float[] out) { out = MatMul(x, y) }"
        )
    )
    with pytest.raises(RunError, match="inner"):
        sx.Session(model).run(None, {"x": normal(1, 200), "y": normal(199, 300)})


def test_few_rows_give_the_same_bits_for_any_number_of_threads() -> None:
    case = Case("MatMul", [normal(2, 3, 901), normal(2, 901, 1203)])
    one, two = (sx.Session(case.model(), threads=n).run(None, case.feeds()) for n in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])


@pytest.mark.parametrize("shape", [(37, 1, 48), (5, 1, 9, 1, 48), (1, 37, 1, 48), (0, 1, 48)])
@pytest.mark.parametrize("constants", [frozenset[int](), frozenset({1})])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_many_products_of_one_row_are_rows_of_one_product(
    shape: tuple[int, ...], constants: frozenset[int], dtype: Any
) -> None:
    """As of a model whose sequences come first, with a batch of one."""
    op = "MatMulInteger" if dtype is np.uint8 else "MatMul"
    inputs = [np.abs(normal(*of) * 50).astype(dtype) for of in (shape, (48, 33))]
    case = Case(op, inputs, constants=constants)
    agree(case, interpreted=False)
    kernels = plan_of(sx.load(case.model())).kernels
    heights = [kernel.rows for kernel in kernels if isinstance(kernel, ProductKernel)]
    assert heights in ([], [inputs[0].size // 48])  # none: without elements


def test_one_row_taken_out_of_each_matrix() -> None:
    """The last state of every sequence, as a classifier reads it: rows that lie far from each other."""
    model = sx.load(
        onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["": 18]>
        last (float[N, 7, 48] x, float[48, 33] w) => (float[N, 1, 33] y)
        <int64[1] begin = {6}, int64[1] end = {7}, int64[1] axis = {1}> {
            row = Slice (x, begin, end, axis)
            y = MatMul (row, w)
        }""")
    )
    x, w = normal(20, 7, 48), normal(48, 33)
    (y,) = sx.Session(model).run(None, {"x": x, "w": w})
    np.testing.assert_allclose(y, x[:, 6:] @ w, rtol=1e-5, atol=1e-5)


EXPERTS = {
    "Gather": "chosen = Gather <axis = 0> (experts, router)",
    "GatherND": "at = Unsqueeze (router, last)  chosen = GatherND (experts, at)",
    "scaled": "some = Gather <axis = 0> (experts, router)  chosen = Mul (some, scale)",
}


def experts(kind: str, sizes: str) -> onnx.ModelProto:
    """Each token times the weights of the expert that was chosen for it, as torch writes a mixture of experts."""
    return onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 20]>
        g (float[{sizes}, 40] x, int64[{sizes}] router) => (float[{sizes}, 33, 1] y)
        <int64[1] last = {{-1}}, float[1] scale = {{0.5}}, float[3, 33, 40] experts = {{{", ".join(["0"] * 3960)}}}> {{
            {EXPERTS[kind]}
            vectors = Unsqueeze (x, last)
            y = MatMul (chosen, vectors)
        }}
    """)


@pytest.mark.parametrize("kind", EXPERTS)
@pytest.mark.parametrize("sizes", ["7", "n"])
def test_experts_are_read_where_they_lie(kind: str, sizes: str) -> None:
    model, weights = experts(kind, sizes), normal(3, 33, 40)
    held = {one.name: one for one in model.graph.initializer}
    held["experts"].CopyFrom(onnx.numpy_helper.from_array(weights, "experts"))
    session = sx.Session(model, fallback="refuse")
    x, router = normal(7, 40), np.array([2, 0, -1, 1, 1, -3, 2])
    (y,) = session.run(None, {"x": x, "router": router})
    want = weights[router] @ x[:, :, None] * (0.5 if kind == "scaled" else 1)
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)
    assert session._native is not None
    stored = {tensor.name for tensor in session._native.plan.tensors}
    assert ("chosen" in stored) == (kind == "scaled")
    for wrong in (3, -4):
        with pytest.raises(RunError):
            session.run(None, {"x": x, "router": np.full(7, wrong)})
