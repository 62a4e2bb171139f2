"""Programs over torch and JAX answer as the reference backend does."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import sardonyx as sx
from sardonyx.backends.guard import Guard
from sardonyx.backends.reference import compile_model
from sardonyx.errors import UnsupportedError

torch = pytest.importorskip("torch")
jax = pytest.importorskip("jax")

CASES = {
    "window": """agraph (float[n, 4, 9, 8] x, float[6, 2, 3, 3] w, float[6] b) => (float[n, a, c, d] y) {
        z = Conv<auto_pad="SAME_UPPER", strides=[2, 1], group=2>(x, w, b)
        m = MaxPool<kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], ceil_mode=1>(z)
        y = AveragePool<kernel_shape=[2, 3], pads=[0, 1, 1, 1]>(m)
    }""",
    "spread": """agraph (float[2, 4, 5, 3] x, float[4, 3, 3, 2] w) => (float[n, a, c, d] y) {
        z = ConvTranspose<strides=[2, 3], pads=[1, 0, 0, 1], output_padding=[1, 0], group=2>(x, w)
        y = LRN<size=3>(z)
    }""",
    "shape arithmetic": """agraph (float[n, t, 12] x) => (float[a, b, c, d] y) {
        s = Shape(x)
        zero = Constant<value = int64[1] {0}>()
        two = Constant<value = int64[1] {2}>()
        batch = Slice(s, zero, two)
        heads = Constant<value = int64[2] {3, 4}>()
        target = Concat<axis=0>(batch, heads)
        r = Reshape(x, target)
        y = Transpose<perm=[0, 2, 1, 3]>(r)
    }""",
    "normalized": """agraph (float[2, 4, 5] x, float[4] s, float[4] b, float[5] g) => (float[2, 4, 5] y, float[2, 4, 5] z) {
        i = InstanceNormalization(x, s, b)
        k = GroupNormalization<num_groups=2>(i, s, b)
        y = LayerNormalization<axis=-1>(k, g)
        z = LpNormalization<axis=1, p=1>(x)
    }""",
    "reduced": """agraph (float[3, 4, 5] x) => (float[m] a, float[m, n, o] b, int64[m, n] c, float[m, n, o] d) {
        axes = Constant<value = int64[2] {0, -1}>()
        axis = Constant<value = int64 {1}>()
        a = ReduceLogSumExp<keepdims=0>(x, axes)
        b = ReduceL2(x, axes)
        c = ArgMin<axis=1, keepdims=0, select_last_index=1>(x)
        d = CumSum<exclusive=1, reverse=1>(x, axis)
    }""",
    "places": """agraph (float[3, 4, 5] x, int64[3, 2, 5] i, int64[2, 2] j) => (float[a, b, c] y, float[d, e] z, float[3, 4, 5] u) {
        y = GatherElements<axis=1>(x, i)
        z = GatherND(x, j)
        u = ScatterElements<axis=1, reduction="add">(x, i, y)
    }""",
    "parts": """agraph (float[3, 8] x) => (float[a, b] y, float[a, b] z, float[c, d] u) {
        starts = Constant<value = int64[2] {2, -1}>()
        ends = Constant<value = int64[2] {-100, -9223372036854775807}>()
        axes = Constant<value = int64[2] {0, 1}>()
        steps = Constant<value = int64[2] {-1, -3}>()
        y = Slice(x, starts, ends, axes, steps)
        k = Constant<value = int64[1] {3}>()
        z, places = TopK<axis=1, largest=0>(x, k)
        pads = Constant<value = int64[4] {1, 2, 0, 1}>()
        u = Pad<mode="reflect">(x, pads)
    }""",
    "resized": """agraph (float[1, 2, 4, 5] x) => (float[a, b, c, d] y, float[a, b, c, d] z) {
        scales = Constant<value = float[4] {1.0, 1.0, 2.5, 0.6}>()
        y = Resize<mode="cubic", coordinate_transformation_mode="half_pixel">(x, , scales)
        z = Resize<mode="linear", coordinate_transformation_mode="align_corners">(x, , scales)
    }""",
    "attended": """agraph (float[2, 5, 12] q, float[2, 3, 6] k, float[2, 3, 4] v, float[2, 2, 4, 3] pk, float[2, 2, 4, 2] pv,
                       float[5, 6] mask) => (float[a, b, c] y, float[a, b, c, d] all, float[a, b, c, d] s) {
        y, all, values, s = Attention<q_num_heads=4, kv_num_heads=2, is_causal=1, softcap=2.0, qk_matmul_output_mode=2>
            (q, k, v, mask, pk, pv)
    }""",
    "sampled": """agraph (float[2, 3, 4, 5] x, float[2, 2, 3, 2] g) => (float[a, b, c, d] y, float[a, b, c, d] z, float[a, b, c, d] u) {
        two = Constant<value = float {2.0}>()
        wide = Mul(g, two)
        y = GridSample<mode="linear", padding_mode="zeros">(x, wide)
        z = GridSample<mode="cubic", padding_mode="reflection", align_corners=1>(x, wide)
        u = GridSample<mode="nearest", padding_mode="border">(x, wide)
    }""",
    "bytes": """agraph (float[2, 3, 5, 5] x, float[4, 3, 2, 2] w) => (int8[a, b, c, d] y, int32[a, b, c, d] z, int8[a, b, c, d] u) {
        s = Constant<value = float {0.03}>()
        t = Constant<value = float[4] {0.01, 0.02, 0.03, 0.04}>()
        zero = Constant<value = int8 {3}>()
        zeros = Constant<value = int8[4] {0, 1, 0, -2}>()
        qx = QuantizeLinear(x, s, zero)
        qw = QuantizeLinear<axis=0>(w, t, zeros)
        y = QLinearConv<pads=[1, 0, 0, 1]>(qx, s, zero, qw, t, zeros, s, zero)
        z = ConvInteger<strides=[2, 1]>(qx, qw, zero)
        u = QLinearMatMul(qx, s, zero, qx, s, zero, s, zero)
    }""",
    "lost": """agraph (float[4, 3, 2] x) => (float l, float[4, 3, 2] p, float[4, 3, 2] m) {
        labels = Constant<value = int64[4, 2] {0, 2, 1, -1, 2, 2, 0, 1}>()
        weights = Constant<value = float[3] {0.5, 1.0, 2.0}>()
        l, p = SoftmaxCrossEntropyLoss<ignore_index=-1>(x, labels, weights)
        m = MeanVarianceNormalization<axes=[0, 2]>(x)
    }""",
    "lists": """agraph (float[5, 3] x) => (float[a, b] y, int64 n, float[5, 3] p, float[5, 1] e) {
        two = Constant<value = int64 {2}>()
        last = Constant<value = int64 {-1}>()
        parts = SplitToSequence<axis=0>(x, two)
        one = SequenceAt(parts, last)
        more = SequenceInsert(parts, one)
        n = SequenceLength(more)
        y = ConcatFromSequence<axis=0>(more)
        axis = Constant<value = int64 {1}>()
        p = CumProd<exclusive=1>(x, axis)
        scale = Constant<value = float[3] {1.0, 2.0, 3.0}>()
        normal, mean, e = LayerNormalization(x, scale)
    }""",
    "integers": """agraph (float[2, 3] x, int32[4] i, int32[4] j) => (float[2, 3] y, int32[4] q, int32[4] m) {
        s = Constant<value = float[3] {0.1, 0.2, 0.3}>()
        zero = Constant<value = int8[3] {1, -2, 3}>()
        k = QuantizeLinear<axis=1>(x, s, zero)
        y = DequantizeLinear<axis=1>(k, s, zero)
        q = Div(i, j)
        m = Mod<fmod=1>(i, j)
    }""",
}
FEEDS: dict[str, Callable[[np.random.Generator], Any]] = {
    "i": lambda r: r.integers(-4, 4, (3, 2, 5)),
    "j": lambda r: np.array([[0, 1], [-1, 2]]),
}


def _model(text: str, version: int = 21) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {version}]> {text}')


def _feeds(model: onnx.ModelProto) -> dict[str, Any]:
    random = np.random.default_rng(0)
    feeds = {}
    for port in model.graph.input:
        sizes = [d.dim_value or 3 for d in port.type.tensor_type.shape.dim]
        kind = port.type.tensor_type.elem_type
        if kind == onnx.TensorProto.INT32:
            feeds[port.name] = np.array(
                [7, -7, 7, -7] if port.name == "i" else [2, 2, -2, -2], "i4"
            )
        elif kind == onnx.TensorProto.INT64:
            feeds[port.name] = FEEDS[port.name](random)
        else:
            feeds[port.name] = random.standard_normal(sizes).astype("f")
    return feeds


def _reference(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    names = [port.name for port in model.graph.output]
    return compile_model(sx.load(model)).run(feeds, names, Guard())


def _by_torch(model: onnx.ModelProto, inputs: list[Any]) -> Any:
    return sx.to_torch(model)(*(torch.from_numpy(one) for one in inputs))


def _by_jax(model: onnx.ModelProto, inputs: list[Any]) -> Any:
    function, parameters = sx.to_jax(model)
    return jax.jit(function)(parameters, *inputs)


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
@pytest.mark.parametrize("way", [_by_torch, _by_jax])
@pytest.mark.parametrize("name", CASES)
def test_answers(name: str, way: Callable[..., Any]) -> None:
    model = _model(CASES[name], 26 if "CumProd" in CASES[name] else 23)
    feeds = _feeds(model)
    wanted = _reference(model, feeds)
    found = way(model, list(feeds.values()))
    found = found if isinstance(found, tuple) else (found,)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("linear", [0, 1])
@pytest.mark.parametrize("way", [_by_torch, _by_jax])
def test_recurrent(way: Callable[..., Any], linear: int) -> None:
    model = _model(f"""agraph (float[t, n, 3] x, float[2, 16, 3] w, float[2, 16, 4] r, float[2, 32] b,
                       float[1, 12, 3] u, float[1, 12, 4] v, float[1, 24] c) => (float[a, e, n, 4] y, float[a, f, n, 4] z) {{
        y, h, k = LSTM<hidden_size=4, direction="bidirectional">(x, w, r, b)
        z = GRU<hidden_size=4, direction="reverse", linear_before_reset={linear}>(x, u, v, c)
    }}""")
    feeds = _feeds(model)
    wanted = _reference(model, feeds)
    for one, other in zip(way(model, list(feeds.values())), wanted, strict=True):
        np.testing.assert_allclose(
            np.asarray(one.detach() if way is _by_torch else one), other, atol=1e-5
        )


@pytest.mark.parametrize("way", [_by_torch, _by_jax])
def test_sequences_of_their_own_lengths(way: Callable[..., Any]) -> None:
    model = _model("""agraph (float[5, 3, 2] x, float[2, 16, 2] w, float[2, 16, 4] r, float[1, 4, 2] u, float[1, 4, 4] v, int32[3] n)
                       => (float[a, e, c, 4] y, float[e, c, 4] h, float[e, c, 4] k, float[a, f, c, 4] z) {
        y, h, k = LSTM<hidden_size=4, direction="bidirectional">(x, w, r, , n)
        z = RNN<hidden_size=4, direction="reverse">(x, u, v, , n)
    }""")
    random = np.random.default_rng(0)
    shapes = [(5, 3, 2), (2, 16, 2), (2, 16, 4), (1, 4, 2), (1, 4, 4)]
    inputs = [random.standard_normal(shape).astype("f") for shape in shapes]
    inputs.append(np.array([2, 5, 1], "i4"))
    names = [port.name for port in model.graph.input]
    wanted = _reference(model, dict(zip(names, inputs, strict=True)))
    for one, other in zip(way(model, inputs), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, atol=1e-5)


CONTROL = """agraph (float[3] x, bool c, int64 m) => (float[3] y, float[3] z) {
    y = If(c) <then_branch = t () => (float[3] a) { a = Add(x, x) },
               else_branch = e () => (float[3] b) { b = Neg(x) }>
    yes = Constant<value = bool {1}>()
    z = Loop(m, yes, x) <body = turn (int64 i, bool g, float[3] s) => (bool go, float[3] next) {
        go = Identity(g)
        next = Mul(s, x)
    }>
}"""


@pytest.mark.parametrize("way", [_by_torch, _by_jax])
@pytest.mark.parametrize("taken", [True, False])
def test_control_flow(way: Callable[..., Any], taken: bool) -> None:
    x = np.array([1.0, 2.0, -3.0], "f")
    y, z = way(_model(CONTROL), [x, np.array(taken), np.array(2)])
    np.testing.assert_allclose(np.asarray(y), x + x if taken else -x)
    np.testing.assert_allclose(np.asarray(z), x**3)


MLP = """agraph (float[n, 3] x) => (float[n, 2] y)
    <float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[2] mean = {1, 1}, float[2] var = {4, 4}, float[2] s = {1, 2}> {
    h = MatMul(x, w)
    y = BatchNormalization(h, s, mean, mean, var)
}"""


def test_parameters_train_and_constants_do_not(tmp_path: Path) -> None:
    module = sx.to_torch(_model(MLP), folder=tmp_path / "net")
    assert {name for name, _ in module.named_parameters()} == {"w", "s"}
    assert {name for name, _ in module.named_buffers()} == {"mean", "var"}
    x = torch.ones(4, 3)
    module(x).square().mean().backward()
    assert module.w.grad.abs().sum() > 0
    spec = importlib.util.spec_from_file_location("net", tmp_path / "net" / "model.py")
    assert spec is not None
    assert spec.loader is not None
    read = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(read)
    again = read.load(tmp_path / "net" / "weights.pt")
    assert torch.equal(again(x), module(x))
    assert "sardonyx." not in module.source


def test_jax_differentiates_by_parameters() -> None:
    function, parameters = sx.to_jax(_model(MLP))
    assert set(parameters) == {"w", "s"}
    slopes = jax.grad(lambda p: function(p, np.ones((4, 3), "f")).sum())(parameters)
    assert np.abs(slopes["w"]).min() > 0


def test_sizes_that_are_data_are_refused_by_a_traced_program() -> None:
    model = _model("agraph (float[6] x, int64[2] s) => (float[a, b] y) { y = Reshape(x, s) }")
    assert _by_torch(model, [np.arange(6, dtype="f"), np.array([2, 3])]).shape == (2, 3)
    with pytest.raises(UnsupportedError, match=r"jax: its sizes are data"):
        sx.to_jax(model)
    with pytest.raises(UnsupportedError, match=r"scales are not known"):
        sx.to_torch(
            _model("agraph (float[1,1,4] x, float[3] s) => (float[a,b,c] y) { y = Resize(x, , s) }")
        )


def test_double_needs_wide_jax() -> None:
    with pytest.raises(UnsupportedError, match=r"jax_enable_x64"):
        sx.to_jax(_model("agraph (double[6] x) => (double[6] y) { y = Sqrt(x) }"))


SIZED = """agraph (float[1, 4, 4] boxes, float[1, 2, 4] scores) => (int64[n, 3] kept, float[m] values, int64[m] first,
                    int64[k] where, int64[m] counts, float[r] high) {
    three = Constant<value = int64 {3}>()
    half = Constant<value = float {0.5}>()
    kept = NonMaxSuppression(boxes, scores, three, half, half)
    values, first, where, counts = Unique<sorted=0>(scores)
    limits = Greater(scores, half)
    flat = Constant<value = int64[1] {-1}>()
    chosen = Reshape(limits, flat)
    high = Compress(scores, chosen)
}"""


def test_torch_asks_the_data_how_much_there_is() -> None:
    boxes = np.array([[[0, 0, 2, 2], [0, 0, 2, 1.9], [3, 3, 4, 4], [4, 4, 3, 3]]], "f")
    scores = np.array([[[0.6, 0.9, 0.4, 0.7], [0.1, 0.6, 0.8, 0.8]]], "f")
    model = _model(SIZED)
    wanted = _reference(model, {"boxes": boxes, "scores": scores})
    for one, other in zip(_by_torch(model, [boxes, scores]), wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(one), other)
    with pytest.raises(UnsupportedError, match=r"NonMaxSuppression.*Compress, Unique"):
        sx.to_jax(model)


def test_sequences_do_not_enter_programs_that_are_traced() -> None:
    model = _model("agraph (seq(float[3]) x) => (float[a] y) { y = ConcatFromSequence<axis=0>(x) }")
    parts = [torch.ones(3), torch.zeros(3)]
    assert torch.equal(sx.to_torch(model)(parts), torch.cat(parts))
    with pytest.raises(UnsupportedError, match=r"jax: it is no tensor \(sequence\)"):
        sx.to_jax(model)
