"""What becomes of a graph: which nodes share a kernel, which need none, and why one runs elsewhere."""

from __future__ import annotations

import pytest
from tests.golden.models import proto

from sardonyx.backends.c.contractions import target_of
from sardonyx.backends.c.kernels.isa import NEON
from sardonyx.loops.nodes import Apply
from sardonyx.loops.walk import expressions, statements
from sardonyx.model.load import load
from sardonyx.passes.shapes import infer_shapes
from sardonyx.plan.kernels import ConvolutionKernel, ProductKernel
from sardonyx.plan.make import make_plan
from sardonyx.plan.plan import Plan, Step

# Each graph is one kernel.
ONE_KERNEL = {
    "pointwise chain": """g (float[n, 8] x, float[8] b) => (float[n, 8] y) {
        a = Add (x, b)  r = Relu (a)  e = Exp (r)  y = Mul (e, x)
    }""",
    "views": """g (float[n, 4, 6] x) => (float[n, 6, 4] y) {
        t = Transpose <perm = [0, 2, 1]> (x)  y = Neg (t)
    }""",
    "softmax with what follows": """g (float[n, 50] x, float[n, 50] m) => (float[n, 50] y) {
        s = Softmax <axis = -1> (x)  y = Mul (s, m)
    }""",
    "log-softmax": "g (float[n, 50] x) => (float[n, 50] y) { y = LogSoftmax <axis = -1> (x) }",
    "layer norm with what follows": """g (float[n, 64] x, float[64] s, float[64] b) => (float[n, 64] y) {
        a = LayerNormalization <axis = -1> (x, s, b)  y = Relu (a)
    }""",
    "RMS norm": """g (float[n, 64] x, float[64] s) => (float[n, 64] y) {
        y = RMSNormalization <axis = -1> (x, s)
    }""",
    "instance norm": """g (float[n, 4, 9, 9] x, float[4] s, float[4] b) => (float[n, 4, 9, 9] y) {
        y = InstanceNormalization (x, s, b)
    }""",
    "argmax": "g (float[n, 50] x) => (int64[n, 1] y) { y = ArgMax <axis = 1> (x) }",
    "product with its epilogue": """g (float[n, 64] x, float[n, 32] r) => (float[n, 32] y)
        <float[64, 32] w, float[32] b> { h = MatMul (x, w)  a = Add (h, b)  g = Gelu (a)  y = Add (g, r) }""",
    "product with readers that meet": """g (float[n, 64] x) => (float[n, 32] y)
        <float[64, 32] w, float[32] b, float two, float one> {
        h = MatMul (x, w)  a = Add (h, b)
        q = Div (a, two)  e = Erf (q)  p = Add (e, one)  m = Mul (a, p)  y = Div (m, two)
    }""",
    "product with readers that meet twice": """g (float[n, 64] x) => (float[n, 32] y)
        <float[64, 32] w> {
        h = MatMul (x, w)  s = Sigmoid (h)  m = Mul (h, s)  t = Tanh (m)  y = Add (t, m)
    }""",
}


def plan_of(text: str) -> Plan:
    source = proto(text)
    source.opset_import[0].version = 23
    model = load(source)
    return make_plan(model, infer_shapes(model), None, target_of(NEON)).plan


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_neighbours_share_a_kernel(name: str) -> None:
    plan = plan_of(ONE_KERNEL[name])
    assert len(plan.steps) == 1
    (step,) = plan.steps
    assert isinstance(step, Step)
    assert set(step.nodes) == set(range(len(plan.nodes)))
    assert all(node.native for node in plan.nodes)


def test_shape_arithmetic_leaves_no_kernels_behind() -> None:
    plan = plan_of("""g (float[batch, seq, 12] x) => (float[batch, seq, 3, 4] y) {
        s = Shape (x)
        at = Constant <value_ints = [0, 1]> ()
        head = Gather (s, at)
        tail = Constant <value_ints = [3, 4]> ()
        target = Concat <axis = 0> (head, tail)
        r = Reshape (x, target)
        y = Relu (r)
    }""")
    assert len(plan.steps) == 1
    assert [node.reason for node in plan.nodes[:5]] == ["known before the model runs"] * 5


def test_a_value_that_many_read_is_computed_once() -> None:
    plan = plan_of("""g (float[n, 64] x) => (float[n, 32] a, float[n, 32] b)
        <float[64, 64] w, float[64, 32] u, float[64, 32] v> {
        h = MatMul (x, w)
        a = MatMul (h, u)
        b = MatMul (h, v)
    }""")
    computing = [step for step in plan.steps if isinstance(step, Step) and 0 in step.nodes]
    assert len(computing) == 1


def test_a_value_that_many_read_through_a_view_is_computed_once() -> None:
    plan = plan_of(
        """g (float[n, 64] x) => (float[n] a, float[n, 8, 8] b) <int64[3] shape = {0, 8, 8}> {
        e = Erf (x)
        r = Reshape (e, shape)
        a = ReduceSum <keepdims = 0> (r, axes)
        b = Neg (r)
    }""".replace("<int64[3] shape", "<int64[2] axes = {1, 2}, int64[3] shape")
    )
    computing = [step for step in plan.steps if isinstance(step, Step) and 0 in step.nodes]
    assert len(computing) == 1


# What the readers of a product's result may not do, if it is to be stored nowhere.
APART = {
    "one reads it whole": "s = Softmax (h)  y = Mul (h, s)",
    "it is an output": "s = Sigmoid (h)  y = Mul (h, s)",
    "one result is an output": "s = Sigmoid (h)  y = Mul (h, s)",
}


@pytest.mark.parametrize("name", APART)
def test_readers_that_meet_too_late_have_a_kernel_of_their_own(name: str) -> None:
    more = {"it is an output": ", float[n, 32] h", "one result is an output": ", float[n, 32] s"}
    plan = plan_of(f"""g (float[n, 64] x) => (float[n, 32] y{more.get(name, "")}) <float[64, 32] w> {{
        h = MatMul (x, w)  {APART[name]}
    }}""")
    assert len(plan.steps) > 1


def test_what_nobody_reads_is_not_computed() -> None:
    plan = plan_of("""g (float[n] x) => (float[n] y) { unused = Exp (x)  y = Neg (x) }""")
    assert [step.nodes for step in plan.steps if isinstance(step, Step)] == [(1,)]


def test_equal_layers_share_a_kernel() -> None:
    plan = plan_of("""g (float[n, 64] x) => (float[n, 64] y) <float[64, 64] w, float[64, 64] u> {
        h = MatMul (x, w)
        r = Relu (h)
        k = MatMul (r, u)
        y = Relu (k)
    }""")
    assert (len(plan.steps), len(plan.kernels)) == (2, 1)


def test_joins_and_other_names_stay_channels_last() -> None:
    plan = plan_of("""g (float[n, 3, h, w] x) => (float[n, 32, h, w] y)
        <float[16, 3, 3, 3] u, float[16, 16, 3, 3] v, float[32, 32, 1, 1] z> {
        a = Conv <pads = [1, 1, 1, 1]> (x, u)  b = Conv <pads = [1, 1, 1, 1]> (a, v)
        i = Identity (b)  j = Concat <axis = 1> (i, a)  k = Identity (j)  y = Conv (k, z)
    }""")
    between = [tensor for tensor in plan.tensors if tensor.name in ("a", "b", "i", "j", "k")]
    assert {tensor.order for tensor in between} == {(0, 2, 3, 1)}
    assert len(plan.steps) == 5  # x is turned, and then each of the others is one


@pytest.mark.parametrize(("bias", "reads"), [("0, 0, 0, 0", 2), ("0, 0, 1, 0", 3)])
def test_a_bias_of_zeros_is_not_read(bias: str, reads: int) -> None:
    plan = plan_of(f"""g (float[n, 16, 9, 9] x) => (float[n, 4, 9, 9] y)
        <float[4] b = {{{bias}}}, float[4, 16, 1, 1] w> {{ y = Conv (x, w, b) }}""")
    (kernel,) = (one for one in plan.kernels if isinstance(one, ConvolutionKernel))
    assert [buffer.role for buffer in kernel.epilogue.buffers].count("in") == reads


@pytest.mark.parametrize("form", ["e = Erf (q)", "e = Tanh (q)"])
def test_a_gelu_that_is_written_out_is_one_operation(form: str) -> None:
    inside = {
        "e = Erf (q)": "q = Mul (a, root)",
        "e = Tanh (q)": "c = Pow (a, three)  k = Mul (c, cubic)  l = Add (a, k)  q = Mul (l, slope)",
    }
    plan = plan_of(f"""g (float[n, 64] x) => (float[n, 32] y)
        <float root = {{0.70710677}}, float one = {{1}}, float half = {{0.5}}, float three = {{3}},
         float cubic = {{0.044715}}, float slope = {{0.7978846}}, float[64, 32] w, float[32] b> {{
        h = MatMul (x, w)  a = Add (h, b)
        {inside[form]}  {form}  p = Add (e, one)  m = Mul (a, p)  y = Mul (m, half)
    }}""")
    (kernel,) = plan.kernels
    assert isinstance(kernel, ProductKernel)
    parts = [part for one in statements(kernel.epilogue.body) for part in expressions(one)]
    found = {part.op for part in parts if isinstance(part, Apply)}
    assert found & {"erf", "tanh", "gelu", "gelu_tanh"} == {
        "gelu" if "Erf" in form else "gelu_tanh"
    }


def test_a_node_without_native_code_says_why() -> None:
    plan = plan_of("g (float[n] x) => (string[n] y) { a = Neg (x)  y = Cast <to = 8> (a) }")
    neg, cast = plan.nodes
    assert neg.native
    assert (cast.native, cast.reason) == (False, "elements of type string have no native code")
