"""Attention as exporters write it becomes one kernel, and means what its nodes mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir
import pytest
from onnx import parser
from tests.ops.harness import close, plan_of, run_compiled, run_reference

import sardonyx as sx
from sardonyx.backends.c.contractions import target_of
from sardonyx.backends.c.emit import emit
from sardonyx.backends.c.kernels.isa import AVX2, AVX512, NEON, PORTABLE, Isa
from sardonyx.backends.guard import Guard
from sardonyx.passes.shapes import infer_shapes
from sardonyx.plan.kernels import AttentionKernel
from sardonyx.plan.make import make_plan
from sardonyx.plan.plan import Plan, Step
from sardonyx.plan.serialize import plan_from_json, plan_to_json
from sardonyx.plan.text import plan_text
from sardonyx.plan.traffic import accesses
from sardonyx.runtime.chosen import Choosing
from sardonyx.runtime.compiled import compile_native
from sardonyx.runtime.native import NativeModel

rng = np.random.default_rng(3)


@dataclass(frozen=True)
class Graph:
    """Inputs q, k, v and others, and the nodes between them and y."""

    nodes: str
    inputs: str = "float[B, 2, S, 6] q, float[B, 2, T, 6] k, float[B, 2, T, 9] v"
    constants: str = "float half = {0.5}, float zero = {0.0}, float low = {-3.0}"
    outputs: str = "float[] y"
    opset: int = 18

    def load(self) -> ir.Model:
        head = f'<ir_version: 10, opset_import: ["": {self.opset}]>'
        text = f"{head} g ({self.inputs}) => ({self.outputs}) <{self.constants}> {{ {self.nodes} }}"
        proto = parser.parse_model(text)
        for value in proto.graph.output:
            value.type.tensor_type.ClearField("shape")
        return sx.load(proto)


def compiled(model: ir.Model, threads: int = 2) -> NativeModel:
    return compile_native(model, infer_shapes(model), Choosing(threads))


def run(native: NativeModel, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    plan = native.plan
    return native.run([feeds[plan.tensors[n].name] for n in plan.inputs], Guard())


def attentions(plan: Plan) -> int:
    kernels = [plan.kernels[step.kernel] for step in plan.steps if isinstance(step, Step)]
    return sum(isinstance(kernel, AttentionKernel) for kernel in kernels)


def floats(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def operands(batch: int, queries: int, keys: int) -> dict[str, np.ndarray]:
    return {
        "q": floats(batch, 2, queries, 6),
        "k": floats(batch, 2, keys, 6),
        "v": floats(batch, 2, keys, 9),
    }


def some_mask(*shape: int) -> np.ndarray:
    """Numbers to add: -inf here and there, and throughout in the first row."""
    mask = np.where(rng.random(shape) < 0.4, -np.inf, 0).astype(np.float32)
    mask[..., :1, :] = -np.inf
    return mask


TURNED = "kt = Transpose<perm = [0, 1, 3, 2]>(k)"
GUARD = "bad = IsNaN(p) w = Where(bad, zero, p)"
Q_K_V = Graph.inputs

PLAIN = Graph(f"{TURNED} s = MatMul(q, kt) p = Softmax<axis = -1>(s) y = MatMul(p, v)")
SCALED_BEFORE = Graph(
    f"{TURNED} qs = Mul(q, half) ks = Mul(kt, half) s = MatMul(qs, ks) p = Softmax(s) y = MatMul(p, v)"
)
SCALED_AFTER = Graph(f"{TURNED} s = MatMul(q, kt) t = Div(s, low) p = Softmax(t) y = MatMul(p, v)")
MASKED = Graph(
    f"{TURNED} s = MatMul(q, kt) t = Add(s, m) p = Softmax(t) {GUARD} y = MatMul(w, v)",
    f"{Q_K_V}, float[B, 1, S, T] m",
)
MASKED_ROWS_ARE_NAN = Graph(
    f"{TURNED} s = MatMul(q, kt) t = Add(m, s) p = Softmax(t) y = MatMul(p, v)",
    f"{Q_K_V}, float[S, T] m",
)
CHOSEN = Graph(
    f"{TURNED} s = MatMul(q, kt) t = Where(seen, s, low) p = Softmax(t) y = MatMul(p, v)",
    f"{Q_K_V}, bool[S, T] seen",
)
READ_TWICE = Graph(
    f"{TURNED} s = MatMul(q, kt) h = Mul(s, half) t = Tanh(h) u = Mul(t, s) bad = IsNaN(u) "
    "x = Where(bad, low, u) p = Softmax(x) y = MatMul(p, v)"
)
WITH_EPILOGUE = Graph(
    f"{TURNED} s = MatMul(q, kt) p = Softmax(s) a = MatMul(p, v) x = Mul(a, half) y = Add(x, r)",
    f"{Q_K_V}, float[B, 2, S, 9] r",
)
DOUBLE = Graph(
    f"{TURNED} s = MatMul(q, kt) p = Softmax(s) y = MatMul(p, v)",
    Q_K_V.replace("float", "double"),
    "float unused = {0.0}",
    "double[] y",
)


def test_one_kernel_serves_all_sizes() -> None:
    model = PLAIN.load()
    native = compiled(model)
    assert len(native.plan.steps) == attentions(native.plan) == 1
    sizes = [(2, 5, 7), (1, 1, 1), (1, 8, 8), (3, 17, 64), (1, 3, 1100), (1, 130, 513), (1, 600, 9)]
    for batch, queries, keys in sizes:
        feeds = operands(batch, queries, keys)
        (want,) = run_reference(model, feeds)
        close(run(native, feeds)[0], np.asarray(want), f"{batch}, {queries}, {keys}")


@pytest.mark.parametrize(
    ("batch", "queries", "keys"), [(0, 3, 4), (2, 0, 4), (2, 3, 0), (2, 1, 0), (0, 0, 0)]
)
def test_nothing_to_attend_to(batch: int, queries: int, keys: int) -> None:
    """Without keys every sum is empty: zeros, and not what 0 / 0 would be."""
    (got,) = run(compiled(PLAIN.load()), operands(batch, queries, keys))
    np.testing.assert_array_equal(got, np.zeros((batch, 2, queries, 9), np.float32))


@pytest.mark.parametrize(
    ("graph", "more"),
    [
        (SCALED_BEFORE, {}),
        (SCALED_AFTER, {}),
        (MASKED, {"m": some_mask(2, 1, 11, 13)}),
        (MASKED_ROWS_ARE_NAN, {"m": some_mask(11, 13)}),
        (CHOSEN, {"seen": np.tril(np.ones((11, 13), bool))}),
        (READ_TWICE, {}),
        (WITH_EPILOGUE, {"r": floats(2, 2, 11, 9)}),
    ],
    ids=["scale before", "scale after", "guarded", "unguarded", "causal", "twice", "epilogue"],
)
def test_what_happens_to_the_scores(graph: Graph, more: Mapping[str, np.ndarray]) -> None:
    model = graph.load()
    native = compiled(model)
    feeds = {**operands(2, 11, 13), **more}
    assert len(native.plan.steps) == attentions(native.plan) == 1
    (got,), (want,) = run(native, feeds), run_reference(model, feeds)
    close(got, np.asarray(want), "the nodes one by one")
    (plain,) = run_compiled(model, plan_of(model), feeds)
    close(got, plain, "the definition")
    assert np.isnan(got).any() == (graph is MASKED_ROWS_ARE_NAN)


def test_masks_over_several_blocks_of_keys() -> None:
    """A block that is -inf throughout counts for nothing, wherever it stands."""
    model = MASKED.load()
    native = compiled(model)
    feeds = {**operands(1, 9, 1500), "m": some_mask(1, 1, 9, 1500)}
    feeds["m"][..., 1:, :] = 0
    feeds["m"][..., 2, :1200] = -np.inf
    feeds["m"][..., 3, 100:] = -np.inf
    (got,), (want,) = run(native, feeds), run_reference(model, feeds)
    close(got, np.asarray(want), "blocks")
    assert not got[..., 0, :].any()


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("graph", [MASKED, MASKED_ROWS_ARE_NAN], ids=["guarded", "unguarded"])
def test_scores_that_have_no_softmax(graph: Graph, value: float) -> None:
    model = graph.load()
    feeds = {**operands(1, 4, 600), "m": np.zeros((4, 600), np.float32)}
    feeds["m"][1, 3] = feeds["m"][2, 599] = value
    feeds["v"][0, 0, 17, 4] = np.inf  # 0 * inf is NaN, in whatever row
    if graph is MASKED:
        feeds["m"] = feeds["m"].reshape(1, 1, 4, 600)
    with np.errstate(invalid="ignore"):
        (want,) = run_reference(model, feeds)
    close(run(compiled(model), feeds)[0], np.asarray(want), "NaN and inf")


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("graph", [PLAIN, MASKED, MASKED_ROWS_ARE_NAN, WITH_EPILOGUE])
def test_one_query(graph: Graph, known: bool) -> None:
    """Nothing is packed for it; a mask may leave pieces of its keys out, or all of them."""
    if known:
        graph = replace(graph, inputs=graph.inputs.replace("S", "1"))
    model = graph.load()
    native = compiled(model)
    assert len(native.plan.steps) == attentions(native.plan) == 1
    for keys in (1, 3, 4, 191, 192, 197, 700):
        masks = [np.zeros((1, keys), np.float32) for _ in range(4)]
        masks[0][:, 1:] = -np.inf
        masks[1][:, : keys - 1] = -np.inf
        masks[2][:] = -np.inf
        masks[3][:, keys // 2] = np.nan
        for mask in masks:
            feeds = operands(1, 1, keys)
            feeds["k"] *= np.linspace(0.5, 4, keys, dtype=np.float32)[:, None]  # tops that rise
            if graph.inputs.endswith(" m"):
                feeds["m"] = mask[None, None] if "[B, 1" in graph.inputs.split("v, ")[1] else mask
            feeds |= {"r": floats(1, 2, 1, 9)} if " r" in graph.inputs else {}
            (got,), (want,) = run(native, feeds), run_reference(model, feeds)
            close(got, np.asarray(want), f"{keys} keys")


def test_doubles() -> None:
    model = DOUBLE.load()
    native = compiled(model)
    assert attentions(native.plan) == 1
    feeds = {name: array.astype(np.float64) for name, array in operands(2, 7, 30).items()}
    (got,), (want,) = run(native, feeds), run_reference(model, feeds)
    np.testing.assert_allclose(got, want, 1e-13, 1e-14)


EVERY_WEIGHT = Graph(
    "s = MatMul(q, k) p = Softmax(s) y = MatMul(p, v)",
    "float[1, 1] q, float[1, 509] k, float[509, 509] v",
)


def test_weights_are_exact_to_the_last_bits() -> None:
    """Scores from 0 down to where weights vanish, and values that pick out every weight."""
    scores = np.linspace(0, -120, 509, dtype=np.float32).reshape(1, -1)
    native = compiled(EVERY_WEIGHT.load())
    assert attentions(native.plan) == 1
    ones = np.ones((1, 1), np.float32)
    (got,) = run(native, {"q": ones, "k": scores, "v": np.eye(509, dtype=np.float32)})
    exact = np.exp(scores.astype(np.float64))
    exact /= exact.sum()
    np.testing.assert_allclose(got, exact, 4e-7, 2e-38)
    assert got[0, -1] == 0


GROUPED = Graph(
    "ku = Unsqueeze(k, two) ke = Expand(ku, five) kr = Reshape(ke, four) kt = Transpose<perm = [0, 1, 3, 2]>(kr) "
    "vu = Unsqueeze(v, two) ve = Expand(vu, five) vr = Reshape(ve, four) "
    "s = MatMul(q, kt) p = Softmax(s) y = MatMul(p, vr)",
    "float[2, 6, 5, 8] q, float[2, 2, 7, 8] k, float[2, 2, 7, 8] v",
    "int64[1] two = {2}, int64[5] five = {2, 2, 3, 7, 8}, int64[4] four = {2, 6, 7, 8}",
)


@pytest.mark.parametrize("queries", ["1", "S"])
def test_one_query_of_every_head_that_shares_keys(queries: str) -> None:
    """They are read once for all of these heads."""
    model = replace(GROUPED, inputs=GROUPED.inputs.replace("6, 5, 8", f"6, {queries}, 8")).load()
    native = compiled(model)
    (kernel,) = native.plan.kernels
    assert isinstance(kernel, AttentionKernel)
    assert kernel.shared == 3
    feeds = {"q": floats(2, 6, 1, 8), "k": floats(2, 2, 7, 8), "v": floats(2, 2, 7, 8)}
    (got,), (want,) = run(native, feeds), run_reference(model, feeds)
    close(got, np.asarray(want), "groups of three")


GROUPED_WITH_A_PAST = Graph(
    "k = Concat<axis = 2>(ko, kn) v = Concat<axis = 2>(vo, vn) whole = Shape(k) "
    "a = Slice(whole, zero, two) b = Slice(whole, two, four) "
    "five = Concat<axis = 0>(a, three, b) heads = Concat<axis = 0>(minus, six, b) "
    "ku = Unsqueeze(k, two) ke = Expand(ku, five) kr = Reshape(ke, heads) kt = Transpose<perm = [0, 1, 3, 2]>(kr) "
    "vu = Unsqueeze(v, two) ve = Expand(vu, five) vr = Reshape(ve, heads) "
    "s = MatMul(q, kt) p = Softmax(s) y = MatMul(p, vr)",
    "float[B, 6, S, 8] q, float[B, 2, P, 8] ko, float[B, 2, S, 8] kn, float[B, 2, P, 8] vo, float[B, 2, S, 8] vn",
    "int64[1] zero = {0}, int64[1] two = {2}, int64[1] four = {4}, int64[1] three = {3}, "
    "int64[1] minus = {-1}, int64[1] six = {6}",
)


@pytest.mark.parametrize(("batch", "new", "past"), [(1, 1, 12), (2, 1, 0), (2, 5, 3), (3, 9, 0)])
def test_heads_that_share_keys_of_a_past_and_new_ones(batch: int, new: int, past: int) -> None:
    """As a decoder has them: how many keys there are is a sum of two sizes."""
    model = GROUPED_WITH_A_PAST.load()
    native = compiled(model)
    (kernel,) = (one for one in native.plan.kernels if isinstance(one, AttentionKernel))
    assert kernel.shared == 3
    sizes = {"q": (6, new), "ko": (2, past), "kn": (2, new), "vo": (2, past), "vn": (2, new)}
    feeds = {name: floats(batch, heads, count, 8) for name, (heads, count) in sizes.items()}
    (got,), (want,) = run(native, feeds), run_reference(model, feeds)
    close(got, np.asarray(want), f"{past} and {new}")


def test_heads_of_their_own_keys_share_none() -> None:
    (kernel,) = compiled(PLAIN.load()).plan.kernels
    assert isinstance(kernel, AttentionKernel)
    assert kernel.shared == 1


def test_several_heads_of_queries_share_one_of_keys() -> None:
    model = GROUPED.load()
    native = compiled(model)
    assert len(native.plan.steps) == attentions(native.plan) == 1
    feeds = {"q": floats(2, 6, 5, 8), "k": floats(2, 2, 7, 8), "v": floats(2, 2, 7, 8)}
    close(run(native, feeds)[0], np.asarray(run_reference(model, feeds)[0]), "grouped")


HEADS = Graph(
    "qr = Reshape(q, split) kr = Reshape(k, split) vr = Reshape(v, split) "
    "qt = Transpose<perm = [0, 2, 1, 3]>(qr) kt = Transpose<perm = [0, 2, 3, 1]>(kr) "
    "vt = Transpose<perm = [0, 2, 1, 3]>(vr) s = MatMul(qt, kt) p = Softmax(s) a = MatMul(p, vt) "
    "at = Transpose<perm = [0, 2, 1, 3]>(a) joined = Reshape(at, join) y = MatMul(joined, weights)",
    "float[B, S, 12] q, float[B, T, 12] k, float[B, T, 12] v, float[12, 5] weights",
    "int64[4] split = {0, 0, 3, 4}, int64[3] join = {0, 0, 12}",
)


def test_heads_are_split_and_joined_without_a_copy() -> None:
    model = HEADS.load()
    native = compiled(model)
    assert attentions(native.plan) == 1
    assert len(native.plan.steps) == 2
    feeds = {"q": floats(2, 5, 12), "k": floats(2, 7, 12), "v": floats(2, 7, 12)}
    feeds["weights"] = floats(12, 5)
    close(run(native, feeds)[0], np.asarray(run_reference(model, feeds)[0]), "heads")


FLAT_BATCH = Graph(
    "s = MatMul(q, k) r = Reshape(s, apart) t = Add(r, m) p = Softmax(t) f = Reshape(p, together) y = MatMul(f, v)",
    "float[6, 5, 8] q, float[6, 8, 7] k, float[6, 7, 4] v, float[2, 1, 5, 7] m",
    "int64[4] apart = {2, 3, 5, 7}, int64[3] together = {6, 5, 7}",
)


def test_the_batch_may_change_its_shape_on_the_way() -> None:
    model = FLAT_BATCH.load()
    native = compiled(model)
    assert len(native.plan.steps) == attentions(native.plan) == 1
    feeds = {"q": floats(6, 5, 8), "k": floats(6, 8, 7), "v": floats(6, 7, 4)}
    feeds["m"] = floats(2, 1, 5, 7)
    close(run(native, feeds)[0], np.asarray(run_reference(model, feeds)[0]), "flat batch")


def test_the_same_bits_for_any_number_of_threads() -> None:
    feeds = {**operands(2, 90, 700), "m": some_mask(2, 1, 90, 700)}
    results = [run(compiled(MASKED.load(), threads), feeds)[0] for threads in (1, 2, 5)]
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()


HALF = Graph(
    f"{TURNED} s = MatMul(q, kt) p = Softmax(s) y = MatMul(p, v)",
    Q_K_V.replace("float", "float16"),
    "float unused = {0.0}",
    "float16[] y",
)
SHORT = "s = MatMul(q, kt) p = Softmax(s)"


@pytest.mark.parametrize(
    "graph",
    [
        Graph(f"{TURNED} {SHORT} y = MatMul(p, v)", outputs="float[] y, float[] p"),
        Graph(f"{TURNED} {SHORT} y = MatMul(p, v)", outputs="float[] y, float[] s"),
        Graph(f"{TURNED} {SHORT} w = Mul(p, half) y = MatMul(w, v)"),
        Graph(f"{TURNED} {SHORT} x = MatMul(p, v) z = ReduceSum(p) y = Add(x, z)"),
        Graph(f"{TURNED} {SHORT} bad = IsNaN(p) w = Where(bad, half, p) y = MatMul(w, v)"),
        Graph(f"{TURNED} s = MatMul(q, kt) p = Softmax<axis = 2>(s) y = MatMul(p, v)"),
        Graph(f"{TURNED} {SHORT} vt = Transpose<perm = [0, 1, 3, 2]>(v) y = MatMul(vt, p)"),
        HALF,
    ],
    ids=[
        "weights go out",
        "scores go out",
        "weighed",
        "read again",
        "not 0",
        "axis",
        "turned",
        "half",
    ],
)
def test_what_is_no_attention_stays_apart(graph: Graph) -> None:
    model = graph.load()
    native = compiled(model)
    assert attentions(native.plan) == 0
    feeds = operands(2, 7, 7)
    if graph is HALF:
        feeds = {name: array.astype(np.float16) for name, array in feeds.items()}
    for got, want in zip(run(native, feeds), run_reference(model, feeds), strict=True):
        close(got, np.asarray(want), "apart")


@pytest.mark.parametrize("isa", [NEON, AVX2, AVX512, PORTABLE], ids=lambda isa: isa.name)
def test_the_plan_is_text_json_and_traffic(isa: Isa) -> None:
    model = MASKED.load()
    plan = make_plan(model, infer_shapes(model), None, target_of(isa)).plan
    assert plan_from_json(plan_to_json(plan)) == plan
    assert "attention   2*B of S × 6, T keys → 9" in plan_text(plan)
    (step,) = plan.steps
    assert isinstance(step, Step)
    roles = [one.role for one in accesses(plan, step)]
    assert (roles.count("in"), roles.count("scratch"), roles.count("out")) == (4, 2, 1)
    assert emit(plan, isa) == emit(plan_from_json(plan_to_json(plan)), isa)


IN_A_BRANCH = Graph(
    f"{TURNED} s = MatMul(q, kt) "
    "y = If(c) <then_branch = then () => (float[B, 2, S, 9] a) { p = Softmax(s) a = MatMul(p, v) }, "
    "else_branch = other () => (float[B, 2, S, 9] b) "
    "{ u = MatMul(q, kt) n = Neg(u) o = Softmax(n) b = MatMul(o, v) }>",
    f"{Q_K_V}, bool c",
)


def test_an_attention_is_inside_of_a_branch_or_outside() -> None:
    """The scores that a branch only reads are made before it; those that it makes are its own."""
    model = IN_A_BRANCH.load()
    native = compiled(model)
    assert attentions(native.plan) == 1
    for chosen in (True, False):
        feeds = {**operands(2, 5, 7), "c": np.array(chosen)}
        close(run(native, feeds)[0], np.asarray(run_reference(model, feeds)[0]), f"{chosen}")
