from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper
from tests.ops.harness import (
    Case,
    agree,
    close,
    plan_of,
    run_compiled,
    run_interpreted,
    run_reference,
)

import sardonyx as sx
from sardonyx.errors import RunError
from sardonyx.loops.build import Builder
from sardonyx.loops.index import flatten
from sardonyx.loops.interpret import interpret
from sardonyx.loops.nodes import Expr, For, Kernel, Store
from sardonyx.loops.verify import verify
from sardonyx.loops.walk import statements
from sardonyx.ops import find_operator
from sardonyx.ops.call import Call
from sardonyx.ops.lowering import Nest, NotNative, Site
from sardonyx.ops.lowerings.softmaxes import ROW_KEPT
from sardonyx.passes.shapes import infer_shapes
from sardonyx.sizes import Size, substitute

RNG = np.random.default_rng(2)
PARAMETERS = frozenset({1, 2, 3, 4})


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.asarray(RNG.standard_normal(shape)).astype(dtype)


X = normal(2, 3, 4, 5)


class Typed(Case):
    """A case whose output type onnx does not infer: that of the first input."""

    def model(self) -> onnx.ModelProto:
        made = super().model()
        assert self.inputs[0] is not None
        kind = helper.np_dtype_to_tensor_dtype(self.inputs[0].dtype)
        made.graph.output[0].type.tensor_type.elem_type = kind
        return made


def fails(case: Case) -> None:
    """The reference backend and the compiled kernel both stop."""
    model = sx.load(case.model())
    with pytest.raises(RunError):
        run_reference(model, case.feeds())
    with pytest.raises(RunError):
        run_compiled(model, plan_of(model), case.feeds())


# Softmax, LogSoftmax, Hardmax

SOFTMAXES = ("Softmax", "LogSoftmax", "Hardmax")


@pytest.mark.parametrize("op", SOFTMAXES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmaxes(op: str, axis: int) -> None:
    agree(Case(op, [X], {"axis": axis}))
    agree(Case(op, [X], {"axis": axis}, symbolic=True))


@pytest.mark.parametrize("op", SOFTMAXES)
@pytest.mark.parametrize("axis", [0, 1, 3, -2])
def test_before_opset_13_an_axis_splits_a_matrix(op: str, axis: int) -> None:
    agree(Case(op, [X], {"axis": axis}, opset=11))


@pytest.mark.parametrize("op", SOFTMAXES)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_softmaxes_of_other_floats(op: str, dtype: type) -> None:
    agree(Case(op, [normal(3, 9, dtype=dtype)]))


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_float16_is_rounded_at_every_step(op: str) -> None:
    """As the official cases are: bit by bit what the reference backend says."""
    x = np.random.default_rng(4).standard_normal((8, 50)).astype(np.float16)
    case = Case(op, [x])
    model = sx.load(case.model())
    (expected,) = run_reference(model, case.feeds())
    (got,) = run_compiled(model, plan_of(model), case.feeds())
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("shape", [(), (1,), (4, 1), (3, 0), (0, 3)], ids=str)
def test_softmaxes_of_little_or_nothing(shape: tuple[int, ...]) -> None:
    for op in SOFTMAXES:
        agree(Typed(op, [normal(*shape)]))


@pytest.mark.parametrize("op", SOFTMAXES)
def test_large_numbers_infinities_and_ties(op: str) -> None:
    rows = [[1000, 999, 1000], [-1e30, 0, 1e30], [-np.inf, 2, 2], [np.nan, 1, 2]]
    agree(Case(op, [np.array(rows, np.float32)]))


@pytest.mark.parametrize("length", [ROW_KEPT, ROW_KEPT + 1])
def test_rows_too_long_to_keep_their_exponentials(length: int) -> None:
    x = normal(2, length)
    for symbolic in (False, True):
        agree(Case("Softmax", [x], symbolic=symbolic), interpreted=False)


def test_softmax_is_as_exact_as_plain_float32() -> None:
    x = np.random.default_rng(3).standard_normal((64, 333)).astype(np.float32) * 8
    case = Case("Softmax", [x])
    model = sx.load(case.model())
    (got,) = run_compiled(model, plan_of(model), case.feeds())
    exact = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    plain = np.exp(x - x.max(1, keepdims=True))
    plain /= np.add.accumulate(plain, axis=1)[:, -1:]
    error, plain_error = (np.abs(one - exact) / exact for one in (got, plain))
    assert error.max() <= plain_error.max()
    assert error.mean() <= plain_error.mean()


# LayerNormalization, RMSNormalization


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_layer_norm_with_its_statistics(axis: int) -> None:
    parameter = X.shape[axis:]
    inputs = [X, normal(*parameter), normal(*parameter)]
    agree(Case("LayerNormalization", inputs, {"axis": axis}, outputs=3, constants=PARAMETERS))


@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
@pytest.mark.parametrize("shape", [(4, 1), (5,), (1, 5), (1,)], ids=str)
def test_parameters_that_broadcast(op: str, shape: tuple[int, ...]) -> None:
    agree(Case(op, [X, normal(*shape)], {"axis": 2}, constants=PARAMETERS))


@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_layer_norms_of_other_floats(op: str, dtype: type) -> None:
    inputs = [normal(3, 8, dtype=dtype), normal(8, dtype=dtype)]
    agree(Case(op, inputs, {"epsilon": 1e-3}, constants=PARAMETERS))


@pytest.mark.parametrize("stash", [TensorProto.DOUBLE, TensorProto.BFLOAT16])
def test_the_first_stage_is_computed_in_stash_type(stash: int) -> None:
    inputs = [X, normal(5), normal(5)]
    case = Case(
        "LayerNormalization", inputs, {"stash_type": stash}, outputs=3, constants=PARAMETERS
    )
    model = sx.load(case.model())
    plan = plan_of(model)
    expected = [np.asarray(one) for one in run_reference(model, case.feeds())]
    for run in (run_interpreted, run_compiled):
        got = run(model, plan, case.feeds())
        if stash == TensorProto.BFLOAT16:  # float32 numbers, made of bfloat16 ones: their tolerance
            off = np.abs(got[0] - expected[0])
            size = np.abs(expected[0])
            assert (off <= 4e-2 * size + 1.6e-2 * size.max()).all()
        else:
            close(got[0], expected[0], "y")
        for one, want in zip(got[1:], expected[1:], strict=True):
            close(one, want, "statistics")


def test_a_mean_far_from_zero_does_not_cancel() -> None:
    x = normal(4, 256) + np.float32(1000)
    case = Case("LayerNormalization", [x, np.ones(256, np.float32)], constants=PARAMETERS)
    model = sx.load(case.model())
    (got,) = run_compiled(model, plan_of(model), case.feeds())
    wide = x.astype(np.float64)
    exact = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    assert np.abs(got - exact).max() < 2e-4


def test_layer_norm_of_symbolic_sizes() -> None:
    inputs = [X, normal(5), normal(5)]
    agree(Case("LayerNormalization", inputs, outputs=3, constants=PARAMETERS, symbolic=True))
    agree(Case("RMSNormalization", inputs[:2], constants=PARAMETERS, symbolic=True))


def test_a_scale_of_another_size_is_an_error() -> None:
    for op in ("LayerNormalization", "RMSNormalization"):
        fails(Case(op, [X, normal(4)], constants=PARAMETERS, symbolic=True))


def test_layer_norm_of_one_element_and_of_none() -> None:
    for shape in ((3, 1), (0, 4)):
        inputs = [normal(*shape), normal(shape[1]), normal(shape[1])]
        agree(Case("LayerNormalization", inputs, outputs=3, constants=PARAMETERS))


# By channel and by group


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 7), (1, 3, 2, 2, 2)], ids=str)
@pytest.mark.parametrize("symbolic", [False, True])
def test_instance_norm(shape: tuple[int, ...], symbolic: bool) -> None:
    inputs = [normal(*shape), normal(3), normal(3)]
    agree(Case("InstanceNormalization", inputs, constants=PARAMETERS, symbolic=symbolic))


@pytest.mark.parametrize("groups", [1, 3, 6])
@pytest.mark.parametrize("symbolic", [False, True])
def test_group_norm(groups: int, symbolic: bool) -> None:
    inputs = [normal(2, 6, 3, 4), normal(6), normal(6)]
    attributes = {"num_groups": groups}
    agree(Typed("GroupNormalization", inputs, attributes, constants=PARAMETERS, symbolic=symbolic))


def test_group_norm_of_other_floats() -> None:
    for dtype in (np.float16, np.float64):
        inputs = [normal(2, 4, 3, dtype=dtype), normal(4, dtype=dtype), normal(4, dtype=dtype)]
        agree(Typed("GroupNormalization", inputs, {"num_groups": 2}, constants=PARAMETERS))


def test_a_group_had_one_scale_before_opset_21() -> None:
    """The loader refuses that version as deprecated, but a graph made in memory may have it."""
    inputs = [normal(2, 6, 3), normal(3), normal(3)]
    case = Typed("GroupNormalization", inputs, {"num_groups": 3}, opset=18, constants=PARAMETERS)
    model = ir.from_proto(case.model())
    plan = plan_of(model)
    grouped = inputs[0].astype(np.float64).reshape(2, 3, 6)
    centred = grouped - grouped.mean(2, keepdims=True)
    scaled = centred / np.sqrt(grouped.var(2, keepdims=True) + 1e-5) * inputs[1][:, None]
    expected = (scaled + inputs[2][:, None]).reshape(2, 6, 3).astype(np.float32)
    close(run_interpreted(model, plan, case.feeds())[0], expected, "interpreted")
    close(run_compiled(model, plan, case.feeds())[0], expected, "compiled")


@pytest.mark.parametrize(
    ("op", "attributes"),
    [("InstanceNormalization", {}), ("GroupNormalization", {"num_groups": 2})],
)
def test_parameters_of_too_few_channels_are_an_error(op: str, attributes: dict[str, int]) -> None:
    inputs = [normal(2, 6, 3), normal(4), normal(4)]
    fails(Typed(op, inputs, attributes, constants=PARAMETERS, symbolic=True))


def test_channels_that_do_not_divide_into_groups_are_an_error() -> None:
    inputs = [normal(2, 5, 3), normal(5), normal(5)]
    fails(
        Typed("GroupNormalization", inputs, {"num_groups": 2}, constants=PARAMETERS, symbolic=True)
    )


@pytest.mark.parametrize("axes", [None, [1], [0, 3]], ids=str)
@pytest.mark.parametrize("symbolic", [False, True])
def test_mean_variance_norm(axes: list[int] | None, symbolic: bool) -> None:
    attributes = {} if axes is None else {"axes": axes}
    agree(Case("MeanVarianceNormalization", [X], attributes, symbolic=symbolic))


# BatchNormalization


def batch_norm(x: np.ndarray, parameter: Sequence[int]) -> list[np.ndarray]:
    scale, bias, mean = (normal(*parameter).astype(x.dtype) for _ in range(3))
    return [x, scale, bias, mean, np.abs(normal(*parameter)).astype(x.dtype)]


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (4, 3), (2, 3, 2, 2, 2)], ids=str)
def test_batch_norm(shape: tuple[int, ...]) -> None:
    inputs = batch_norm(normal(*shape), (3,))
    agree(Case("BatchNormalization", inputs, {"epsilon": 1e-2}, constants=PARAMETERS))


def test_batch_norm_of_other_types_and_versions() -> None:
    for dtype in (np.float16, np.float64):
        agree(Case("BatchNormalization", batch_norm(normal(2, 3, 4, dtype=dtype), (3,))))
    inputs = batch_norm(X, (3,))
    agree(Case("BatchNormalization", inputs, opset=9))
    agree(Case("BatchNormalization", inputs, {"is_test": 1}, opset=6))
    agree(Case("BatchNormalization", batch_norm(X, (3, 4, 5)), {"spatial": 0}, opset=7))


def test_batch_norm_of_symbolic_channels() -> None:
    agree(Case("BatchNormalization", batch_norm(X, (3,)), constants=PARAMETERS, symbolic=True))
    fails(Case("BatchNormalization", batch_norm(X, (2,)), constants=PARAMETERS, symbolic=True))


def test_training_is_left_to_the_reference() -> None:
    case = Case("BatchNormalization", batch_norm(X, (3,)), {"training_mode": 1}, outputs=3)
    with pytest.raises(NotNative, match="training"):
        plan_of(sx.load(case.model()))


# LpNormalization, LRN


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [1, -1])
def test_lp_norm(p: int, axis: int) -> None:
    x = X.copy()
    x[0, :, 1, :] = 0
    agree(Case("LpNormalization", [x], {"p": p, "axis": axis}))
    agree(Case("LpNormalization", [x.astype(np.float64)], {"p": p, "axis": axis}, symbolic=True))


@pytest.mark.parametrize("size", [1, 2, 5, 9])
@pytest.mark.parametrize("symbolic", [False, True])
def test_local_response(size: int, symbolic: bool) -> None:
    attributes = {"size": size, "alpha": 0.5, "beta": 0.6, "bias": 2.0}
    agree(Case("LRN", [normal(2, 7, 3, 4)], attributes, symbolic=symbolic))


def test_local_response_of_much_space_and_of_none() -> None:
    agree(Case("LRN", [normal(1, 3, 300)], {"size": 3}))
    agree(Case("LRN", [normal(2, 6)], {"size": 3}))
    agree(Case("LRN", [normal(2, 3, 0)], {"size": 3}))


# Channels last


def interpret_channels_last(case: Case) -> tuple[np.ndarray, Kernel]:
    """The node's kernel where the first input and the output lie as batch, space, channels."""
    model = sx.load(case.model())
    shapes = infer_shapes(model)
    node = model.graph[0]
    call = Call(node, [None if v is None else shapes.of(v) for v in node.inputs], case.opset)
    b = Builder()
    given = [np.moveaxis(case.inputs[0], 1, -1), *case.inputs[1:]]
    sources = [b.buffer("f32", "in") for _ in given]
    result = b.buffer("f32", "out")

    def offset(position: Sequence[Size]) -> Size:
        n, c, *space = position
        return flatten((n, *space, c), given[0].shape)

    def read(index: int, position: tuple[Size, ...]) -> Expr:
        if index:
            return b.let(b.load(sources[index], position[0]))
        return b.let(b.load(sources[0], offset(position)))

    def store(output: int, position: tuple[Size, ...], value: Expr) -> None:
        b.store(result, offset(position), value)

    operator = find_operator("", case.op, case.opset)
    assert operator is not None
    assert isinstance(operator.lower, Nest)
    outputs = [shapes.of(value) for value in node.outputs]
    operator.lower.build(Site(call, outputs, b, read, store, channels_last=True))
    kernel = b.kernel()
    verify(kernel)
    got = np.zeros(given[0].size, np.float32)
    interpret(kernel, [*(np.ascontiguousarray(x).reshape(-1) for x in given), got], {})
    return np.moveaxis(got.reshape(given[0].shape), -1, 1), kernel


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Softmax", {"axis": 1}),
        ("Softmax", {"axis": 2}),
        ("Hardmax", {"axis": 1}),
        ("InstanceNormalization", {}),
        ("GroupNormalization", {"num_groups": 3}),
        ("MeanVarianceNormalization", {}),
        ("LpNormalization", {"axis": 1}),
    ],
    ids=str,
)
def test_where_channels_lie_last_they_are_the_innermost_loop(
    op: str, attributes: dict[str, int]
) -> None:
    parameters = [normal(6), normal(6)] if op[:5] in ("Insta", "Group") else []
    case = Typed(op, [normal(2, 6, 3, 4), *parameters], attributes, constants=PARAMETERS)
    got, kernel = interpret_channels_last(case)
    (expected,) = run_reference(sx.load(case.model()), case.feeds())
    close(got, expected, op)
    for loop in (one for one in statements(kernel.body) if isinstance(one, For)):
        inside = [one for one in statements(loop.body) if isinstance(one, Store)]
        inside = [one for one in inside if one.buffer.startswith("out")]
        if loop.kind == "vector" and inside:
            steps = [
                substitute(one.offset, {loop.var: 1}) - substitute(one.offset, {loop.var: 0})
                for one in inside
            ]
            assert steps == [1] * len(steps), "neighbours in memory are stored one after the other"


@pytest.mark.parametrize(("channels", "groups"), [(6, 3), (40, 8), (66, 33), (130, 2), (96, 1)])
def test_groups_of_channels_that_lie_last(channels: int, groups: int) -> None:
    """Blocks of whole groups, a last one that is shorter, and groups longer than a block."""
    parameters = [normal(channels), normal(channels)]
    for space in ((3, 4), (1, 1), (17, 11), (0, 4)):
        inputs = [normal(2, channels, *space) + 3, *parameters]
        given = {"num_groups": groups, "epsilon": 0.01}
        case = Typed("GroupNormalization", inputs, given, constants=PARAMETERS)
        got, _ = interpret_channels_last(case)
        (expected,) = run_reference(sx.load(case.model()), case.feeds())
        close(got, expected, f"{space}")


# Fusion


def chain(*nodes: onnx.NodeProto) -> ir.Model:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [6, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [6, 8])
    scale = onnx.numpy_helper.from_array(np.linspace(1, 2, 8, dtype=np.float32), "scale")
    graph = helper.make_graph(nodes, "chain", [x], [y], [scale])
    opset = [helper.make_opsetid("", 23)]
    return sx.load(helper.make_model(graph, opset_imports=opset, ir_version=10))


@pytest.mark.parametrize("op", ["Softmax", "LayerNormalization", "RMSNormalization"])
def test_what_follows_a_row_is_part_of_its_kernel(op: str) -> None:
    inputs = ["x"] if op == "Softmax" else ["x", "scale"]
    model = chain(
        helper.make_node(op, inputs, ["a"]),
        helper.make_node("Mul", ["a", "scale"], ["b"]),
        helper.make_node("Add", ["b", "x"], ["y"]),
    )
    plan = plan_of(model)
    assert len(plan.steps) == 1
    feeds = {"x": normal(6, 8)}
    (expected,) = run_reference(model, feeds)
    close(run_interpreted(model, plan, feeds)[0], expected, "interpreted")
    close(run_compiled(model, plan, feeds)[0], expected, "compiled")


def test_the_number_of_threads_changes_no_bit() -> None:
    for case in (
        Case("Softmax", [normal(97, 1001)]),
        Case("LayerNormalization", [normal(97, 1001), normal(1001)], constants=PARAMETERS),
    ):
        model = sx.load(case.model())
        plan = plan_of(model)
        one, two = (run_compiled(model, plan, case.feeds(), threads)[0] for threads in (1, 2))
        np.testing.assert_array_equal(one, two)
