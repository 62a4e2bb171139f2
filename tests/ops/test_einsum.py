from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper
from tests.ops.harness import Case, agree, plan_of, run_compiled, run_reference

import sardonyx as sx
from sardonyx.backends.c.contractions import target_of
from sardonyx.backends.c.kernels.isa import NEON
from sardonyx.errors import RunError
from sardonyx.ops.lowering import NotNative
from sardonyx.passes.shapes import infer_shapes
from sardonyx.plan.kernels import ProductKernel
from sardonyx.plan.make import make_plan
from sardonyx.plan.plan import Step
from sardonyx.sizes import product

RNG = np.random.default_rng(6)


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape)).astype(dtype)


class Typed(Case):
    """A case whose output type onnx does not always infer."""

    def model(self) -> onnx.ModelProto:
        made = super().model()
        assert self.inputs[0] is not None
        kind = helper.np_dtype_to_tensor_dtype(self.inputs[0].dtype)
        made.graph.output[0].type.tensor_type.elem_type = kind
        return made


def einsum(equation: str, *operands: np.ndarray, symbolic: bool = False) -> Case:
    return Typed("Einsum", operands, {"equation": equation}, symbolic=symbolic)


PRODUCTS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("bhid,bhjd->bhij", (2, 2, 3, 4), (2, 2, 5, 4)),
    ("bihd,bjhd->bhij", (2, 3, 2, 4), (2, 5, 2, 4)),
    ("bld,dhk->blhk", (2, 3, 4), (4, 2, 3)),
    ("blhk,hkd->bld", (2, 3, 2, 3), (2, 3, 4)),
    ("i,j->ji", (3,), (4,)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("...ij,...jk->...ik", (2, 1, 2, 3), (4, 3, 5)),
    ("i...,j...->ij...", (2, 3), (4, 3)),
    ("ibj,cjd->bicd", (2, 3, 4), (2, 4, 3)),
    ("ij,kl->i", (2, 3), (4, 5)),
    ("ii,ij->ij", (3, 3), (3, 2)),
]


@pytest.mark.parametrize(("equation", "a", "b"), PRODUCTS)
@pytest.mark.parametrize("symbolic", [False, True])
def test_products_of_two(
    equation: str, a: tuple[int, ...], b: tuple[int, ...], symbolic: bool
) -> None:
    agree(einsum(equation, normal(*a), normal(*b), symbolic=symbolic))


# An operand is no matrix as it lies, or the result's rows are the second operand's: both are a product all the same.
LAID = [
    ("nkctv,kvw->nctw", (2, 3, 8, 3, 5), (3, 5, 9)),  # a graph's nodes and their neighbours
    ("bildsk,biokl->bolsd", (1, 2, 3, 1, 16, 3), (1, 2, 8, 3, 3)),  # filters of each place
    ("bik,oki->bo", (9, 3, 4), (8, 4, 3)),
    ("aib,bia->", (3, 8, 4), (4, 8, 3)),
    ("jai,bja->bi", (4, 3, 9), (8, 4, 3)),
    ("ij,jk->ki", (9, 4), (4, 8)),
    ("bij,bjk->kbi", (2, 9, 4), (2, 4, 8)),
    ("...ihj,j...ki->...hk", (2, 3, 8, 4), (4, 2, 9, 3)),
    ("ijb,bkji->bk", (2, 3, 8), (8, 1, 3, 2)),
]


def agree_on_kernels(case: Case, tolerance: float = 1e-5) -> None:
    """By its definition, and by the kernels of this machine."""
    agree(case)
    model = sx.load(case.model())
    (expected,) = run_reference(model, case.feeds())
    for threads in (1, 2):
        (got,) = sx.Session(model, threads=threads).run(None, case.feeds())
        assert got.dtype == expected.dtype
        close = {"rtol": tolerance, "atol": tolerance}
        np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), **close)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(("equation", "a", "b"), LAID)
def test_operands_that_are_laid_out(
    equation: str, a: tuple[int, ...], b: tuple[int, ...], symbolic: bool
) -> None:
    agree_on_kernels(einsum(equation, normal(*a), normal(*b), symbolic=symbolic))


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
def test_types_of_what_is_laid_out(dtype: type) -> None:
    x, w = normal(1, 2, 8, 3, 5, dtype=dtype), normal(2, 5, 9, dtype=dtype)
    case = einsum("nkctv,kvw->nctw", x, w)
    agree_on_kernels(case, 2**-7 if dtype is ml_dtypes.bfloat16 else 2**-10)


@pytest.mark.parametrize("seed", range(8))
def test_any_equation_of_two(seed: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(4):
        sizes = {label: int(random.choice([1, 2, 3, 8, 9])) for label in "abcde"}
        terms = [random.permutation([*sizes])[: random.integers(1, 5)] for _ in range(2)]
        result = [one for one in dict.fromkeys(np.concatenate(terms)) if random.random() < 0.6]
        equation = f"{''.join(terms[0])},{''.join(terms[1])}->{''.join(random.permutation(result))}"
        operands = [normal(*[sizes[one] for one in term]) for term in terms]
        agree_on_kernels(einsum(equation, *operands, symbolic=bool(random.random() < 0.3)))


def planned_kernels(case: Case) -> list[str]:
    """The kernels of the plan in their order."""
    model = sx.load(case.model())
    plan = make_plan(model, infer_shapes(model), None, target_of(NEON)).plan
    return [
        type(plan.kernels[step.kernel]).__name__ for step in plan.steps if isinstance(step, Step)
    ]


def test_what_is_laid_out_and_what_is_not() -> None:
    x, w = normal(1, 2, 8, 3, 5), normal(2, 5, 9)
    assert planned_kernels(einsum("nkctv,kvw->nctw", x, w)) == ["Kernel", "ProductKernel"]
    assert planned_kernels(einsum("bij,bjk->bik", normal(2, 9, 4), normal(2, 4, 8))) == [
        "ProductKernel"
    ]
    # A size of 1 stretches: it would be written out.
    wide = einsum("tcv,cvw->tw", normal(9, 8, 1), normal(8, 12, 8))
    assert planned_kernels(wide) == ["Kernel"]
    batch = einsum("bctv,bcvw->btw", normal(1, 3, 10, 4), normal(9, 3, 4, 8))
    model = sx.load(batch.model())
    plan = make_plan(model, infer_shapes(model), None, target_of(NEON)).plan
    laid = [one for one in plan.tensors if one.place.kind == "slot"]
    assert max(product(one.shape or ()) for one in laid) <= 9 * 3 * 4 * 16
    agree_on_kernels(wide)
    agree_on_kernels(batch)


def test_a_result_that_has_the_rows_of_the_second_operand_is_written_along_them() -> None:
    case = einsum("bij,bjk->bki", normal(2, 9, 4), normal(2, 4, 8))
    model = sx.load(case.model())
    plan = make_plan(model, infer_shapes(model), None, target_of(NEON)).plan
    (kernel,) = plan.kernels
    assert isinstance(kernel, ProductKernel)
    assert (kernel.rows, kernel.columns) == (8, 9)


@pytest.mark.parametrize(("a", "b"), [((4, 8), (8, 0)), ((0, 8), (8, 3)), ((4, 0), (0, 9))])
def test_products_of_nothing_are_native(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    case = einsum("ij,jk->ik", normal(*a), normal(*b))
    session = sx.Session(case.model())
    assert {one.backend for one in session.placement} == {"native"}
    np.testing.assert_array_equal(session.run(None, case.feeds())[0], np.zeros((a[0], b[1])))


SUMS = [
    ("ij->ji", (2, 3)),
    ("ij->i", (2, 3)),
    ("ij->", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("...ii->...i", (2, 3, 3)),
    ("bij->bj", (2, 3, 4)),
    ("->", ()),
]


@pytest.mark.parametrize(("equation", "shape"), SUMS)
def test_one_operand(equation: str, shape: tuple[int, ...]) -> None:
    agree(einsum(equation, normal(*shape)))


def test_three_operands_over_one_label() -> None:
    agree(einsum("bi,i,ci->bc", normal(2, 3), normal(3), normal(4, 3)))


def test_longer_products_are_left_to_the_reference_backend() -> None:
    case = einsum("ij,jk,kl->il", normal(2, 3), normal(3, 4), normal(4, 2))
    with pytest.raises(NotNative, match="steps"):
        plan_of(sx.load(case.model()))


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.int8])
def test_types(dtype: type) -> None:
    x = np.asarray(RNG.integers(-4, 5, (2, 2, 3))).astype(dtype)
    agree(einsum("bij,bkj->bik", x, x))


@pytest.mark.parametrize(
    ("a", "b"), [((0, 3), (3, 2)), ((2, 0), (0, 4)), ((1, 1), (1, 1))], ids=str
)
def test_little_and_nothing(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    agree(einsum("ij,jk->ik", normal(*a), normal(*b)))


def test_a_size_of_one_stretches() -> None:
    agree(einsum("ij,jk->ik", normal(2, 1), normal(3, 4)))
    agree(einsum("bij,bjk->bik", normal(1, 2, 3), normal(4, 3, 2), symbolic=True))


def test_sizes_that_differ_stop_the_run() -> None:
    model = sx.load(einsum("ij,ij->i", normal(2, 3), normal(2, 3), symbolic=True).model())
    feeds = einsum("ij,ij->i", normal(2, 3), normal(2, 4)).feeds()
    with pytest.raises(RunError):
        run_reference(model, feeds)
    with pytest.raises(RunError):
        run_compiled(model, plan_of(model), feeds)


# What the lowering calls a product, the backend's kernels take as one.
ON_KERNELS = [one for one in PRODUCTS if one[0] not in ("ij,kl->i", "ii,ij->ij", "ibj,cjd->bicd")]


@pytest.mark.parametrize(("equation", "a", "b"), [*ON_KERNELS, *LAID[:3], *LAID[5:8]])
def test_products_run_on_the_kernels_of_the_backend(
    equation: str, a: tuple[int, ...], b: tuple[int, ...]
) -> None:
    case = einsum(equation, normal(*a), normal(*b))
    model = sx.load(case.model())
    plan = make_plan(model, infer_shapes(model), None, target_of(NEON)).plan
    assert any(isinstance(kernel, ProductKernel) for kernel in plan.kernels)
    (expected,) = run_reference(model, case.feeds())
    (got,) = sx.Session(model).run(None, case.feeds())
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
