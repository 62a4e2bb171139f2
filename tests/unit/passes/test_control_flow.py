"""If, Loop, Scan, SequenceMap and functions."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest

from sardonyx.errors import ShapeError
from sardonyx.ops import find_operator
from sardonyx.passes.shapes import infer_shapes

HEAD = '<ir_version: 10, opset_import: ["": 21]>\n'


def outputs(text: str, head: str = HEAD) -> list[str]:
    model = ir.from_proto(onnx.parser.parse_model(head + text))
    shapes = infer_shapes(model)
    return [str(shapes.of(value)) for value in model.graph.outputs]


IF = """g (bool c, float[n, 4] x) => (float[] y) {{
    y = If (c) <
        then_branch = t () => (float[] a) {{ a = {then} }},
        else_branch = e () => (float[] b) {{ b = {other} }}
    >
}}"""


@pytest.mark.parametrize(
    ("then", "other", "expected"),
    [
        ("Relu(x)", "Neg(x)", "float[n, 4]"),
        ("Concat<axis=0>(x, x)", "Neg(x)", "float[y.0, 4]"),
        ("Flatten(x)", "Identity(x)", "float[n, 4]"),
        ("ReduceSum<keepdims=0>(x)", "Neg(x)", "float[...]"),
        ("MatMul(x, x)", "Neg(x)", "float[n, 4]"),
    ],
)
def test_if_keeps_what_both_branches_agree_on(then: str, other: str, expected: str) -> None:
    text = IF.format(then=then, other=other).replace("float[n, 4] x", "float[n, 4] x")
    if then.startswith("MatMul"):  # a branch that cannot work is never taken
        text, expected = text.replace("[n, 4]", "[3, 4]"), "float[3, 4]"
    assert outputs(text) == [expected]


def test_if_with_no_branch_that_works_is_refused() -> None:
    text = IF.format(then="MatMul(x, x)", other="MatMul(x, x)").replace("[n, 4]", "[3, 4]")
    with pytest.raises(ShapeError, match="inner dimensions"):
        outputs(text)


def test_if_with_a_known_condition_is_one_branch() -> None:
    text = """g (float[n, 4] x) => (float[] y) {
        r = Shape<start=1>(x)
        four = Constant<value_ints=[4]>()
        same = Equal(r, four)
        c = Squeeze(same)
        y = If (c) <
            then_branch = t () => (float[] a) { a = Concat<axis=0>(x, x) },
            else_branch = e () => (float[] b) { b = Neg(x) }
        >
    }"""
    assert outputs(text) == ["float[2*n, 4]"]


def test_if_with_a_known_condition_needs_that_branch_to_work() -> None:
    text = IF.format(then="MatMul(x, x)", other="Neg(x)").replace("[n, 4]", "[3, 4]")
    text = text.replace("=> (float[] y) {", "=> (float[] y) <bool k = {1}> {").replace(
        "If (c)", "If (k)"
    )
    with pytest.raises(ShapeError, match="inner dimensions"):
        outputs(text)
    assert outputs(text.replace("{1}", "{0}")) == ["float[3, 4]"]


def test_data_symbols_of_two_branches_are_two_symbols() -> None:
    """Both call theirs 'a', but what one finds is not what the other finds."""
    text = """g (bool c, float[n, 4] x, float[n, 4] z) => (int64[] y) {
        y = If (c) <
            then_branch = t () => (int64[] a) { a = NonZero(x) },
            else_branch = e () => (int64[] a) { a = NonZero(z) }
        >
    }"""
    assert outputs(text) == ["int64[2, y.1]"]


LOOP = """g (int64 m, bool c, float[n, 4] x) => (float[] y, float[] s)
<int64 five = {{5}}, bool yes = {{1}}> {{
    y, s = Loop ({limit}, {go}, x) <
        body = b (int64 i, bool going, float[] v) => (bool on, float[] w, float[] o) {{
            on = {on}
            w = {w}
            o = ReduceSum<keepdims=0>(v, one)
            one = Constant<value_ints=[1]>()
        }}
    >
}}""".replace(
    """            o = ReduceSum<keepdims=0>(v, one)
            one = Constant<value_ints=[1]>()
""",
    """            one = Constant<value_ints=[1]>()
            o = ReduceSum<keepdims=0>(v, one)
""",
)


@pytest.mark.parametrize(
    ("limit", "go", "on", "w", "expected"),
    [
        ("five", "yes", "Identity(going)", "Relu(v)", ["float[n, 4]", "float[5, n]"]),
        ("five", "", "Not(going)", "Relu(v)", ["float[n, 4]", "float[5, n]"]),
        ("five", "yes", "Not(going)", "Relu(v)", ["float[n, 4]", "float[s.0, n]"]),
        ("five", "c", "Identity(going)", "Relu(v)", ["float[n, 4]", "float[s.0, n]"]),
        ("m", "yes", "Identity(going)", "Relu(v)", ["float[n, 4]", "float[s.0, n]"]),
        ("five", "yes", "Identity(going)", "Concat<axis=0>(v, x)", ["float[y.0, 4]", "float[5, s.1]"]),
        ("five", "yes", "Identity(going)", "ReduceSum<keepdims=0>(v)", ["float[...]", "float[...]"]),
    ],
)  # fmt: skip
def test_loop_states_reach_a_fixpoint(
    limit: str, go: str, on: str, w: str, expected: list[str]
) -> None:
    text = LOOP.format(limit=limit, go=go, on=on, w=w)
    if w.startswith("ReduceSum"):
        text = text.replace("ReduceSum<keepdims=0>(v, one)", "Identity(v)")
    assert outputs(text) == expected


def test_loop_that_never_turns_has_empty_stacks() -> None:
    text = LOOP.format(limit="five", go="no", on="Identity(going)", w="Relu(v)")
    assert outputs(text.replace("bool yes = {1}", "bool no = {0}"))[1] == "float[0, n]"


def test_loop_counts_turns_in_symbols() -> None:
    text = """g (float[n, 4] x) => (float[] s) {
        d = Shape<end=1>(x)
        m = Squeeze(d)
        yes = Constant<value_int=1>()
        c = Cast<to=9>(yes)
        s = Loop (m, c) <
            body = b (int64 i, bool going) => (bool on, float[] o) {
                on = Identity(going)
                o = Gather(x, i)
            }
        >
    }"""
    assert outputs(text) == ["float[n, 4]"]


def test_loop_with_a_body_of_the_wrong_arity_is_refused() -> None:
    text = LOOP.format(limit="five", go="yes", on="Identity(going)", w="Relu(v)")
    with pytest.raises(ShapeError, match="its body has 3 inputs and 3 outputs, but the node calls"):
        outputs(text.replace("y, s = Loop (five, yes, x)", "y, s = Loop (five, yes, x, x)"))


SCAN = """g (float[4] init, float[batch, seq, 4] x) => (float[] y, float[] s) {{
    y, s = Scan (init, x) <
        num_scan_inputs = 1, {attributes}
        body = b (float[] v, float[] e) => (float[] w, float[] o) {{
            r = ReduceSum<keepdims=0>(e, zero)
            zero = Constant<value_ints=[0]>()
            w = Add(v, r)
            o = Identity(e)
        }}
    >
}}""".replace(
    """            r = ReduceSum<keepdims=0>(e, zero)
            zero = Constant<value_ints=[0]>()
""",
    """            zero = Constant<value_ints=[0]>()
            r = ReduceSum<keepdims=0>(e, zero)
""",
)


def test_scan_takes_slices_and_stacks_them() -> None:
    assert outputs(SCAN.format(attributes="")) == ["float[4]", "float[batch, seq, 4]"]
    moved = "scan_input_axes = [1], scan_output_axes = [-1],"
    assert outputs(SCAN.format(attributes=moved)) == ["float[4]", "float[batch, 4, seq]"]


def test_scan_8_has_a_batch_in_front() -> None:
    text = """g (float[batch, 2] init, float[batch, seq, 2] x) => (float[] y, float[] s) {
        y, s = Scan ("", init, x) <
            num_scan_inputs = 1,
            body = b (float[] v, float[] e) => (float[] w, float[] o) { w = Add(v, e) o = Identity(w) }
        >
    }""".replace('""', "")
    head = '<ir_version: 4, opset_import: ["": 8]>\n'
    assert outputs(text, head) == ["float[batch, 2]", "float[batch, seq, 2]"]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("scan_input_axes = [5],", "scan axis 5 is outside the rank 3"),
        ("num_scan_inputs = 7,", "num_scan_inputs is 7, but it has 2 inputs"),
    ],
)
def test_scan_refusals(attributes: str, message: str) -> None:
    text = SCAN.format(attributes=attributes)
    if attributes.startswith("num"):
        text = text.replace("num_scan_inputs = 1, ", "")
    with pytest.raises(ShapeError, match=message):
        outputs(text)


def test_sequence_map_walks_its_body_once() -> None:
    text = """g (float[n, 4] x, float[m, 4] z) => (seq(float[]) y) {
        s = SequenceConstruct(x, z)
        y = SequenceMap (s) <
            body = b (float[] e) => (float[] o) { o = Concat<axis=0>(e, e) }
        >
    }"""
    model = ir.from_proto(onnx.parser.parse_model(HEAD + text))
    facts = infer_shapes(model).of(model.graph.outputs[0])
    assert str(facts) == "sequence(float['*', 4])"
    assert facts.shape == (2,)


FUNCTIONS = '<ir_version: 10, opset_import: ["": 21, "local": 1]>\n'


def test_functions_are_walked_at_each_call() -> None:
    text = """g (float[n, 4] x, float[m] z) => (float[] a, float[] b, float[] c) {
        a = local.twice<axis=0>(x)
        b = local.twice<axis=1>(x)
        c = local.twice(z)
    }
    <domain: "local", opset_import: ["": 21]>
    twice <axis: int = 0> (v) => (w) { w = Concat<axis: int = @axis>(v, v) }"""
    assert outputs(text, FUNCTIONS) == ["float[2*n, 4]", "float[n, 8]", "float[2*m]"]


def test_data_symbols_of_two_calls_are_two_symbols() -> None:
    text = """g (float[n, 4] x, float[n, 4] z) => (int64[] a, int64[] b) {
        a = local.find(x)
        b = local.find(z)
    }
    <domain: "local", opset_import: ["": 21]>
    find (v) => (w) { w = NonZero(v) }"""
    assert outputs(text, FUNCTIONS) == ["int64[2, 'a/w.1']", "int64[2, 'b/w.1']"]


def test_attributes_pass_through_nested_calls() -> None:
    text = """g (float[n, 4] x) => (float[] a) { a = local.outer<k=1>(x) }
    <domain: "local", opset_import: ["": 21, "local": 1]>
    outer <k> (v) => (w) { w = local.inner<axis: int = @k>(v) }
    <domain: "local", opset_import: ["": 21]>
    inner <axis> (v) => (w) { w = Concat<axis: int = @axis>(v, v) }"""
    assert outputs(text, FUNCTIONS) == ["float[n, 8]"]


def test_a_chain_that_calls_the_last_twice_is_linear() -> None:
    text = "g (float[n] x) => (float[] y) { y = local.f40(x) }\n"
    text += '<domain: "local", opset_import: ["": 21]> f0 (v) => (w) { w = Relu(v) }\n'
    for index in range(1, 41):
        text += f'<domain: "local", opset_import: ["": 21, "local": 1]> f{index} (v) => (w) '
        text += f"{{ t = local.f{index - 1}(v) w = local.f{index - 1}(t) }}\n"
    assert outputs(text, FUNCTIONS) == ["float[...]"]  # deeper than functions may nest
    shallow = text.replace("f40(x)", "f30(x)")
    assert outputs(shallow, FUNCTIONS) == ["float[n]"]


def test_a_function_that_calls_itself_ends() -> None:
    text = """g (float[n] x) => (float[] y) { y = local.again(x) }
    <domain: "local", opset_import: ["": 21, "local": 1]>
    again (v) => (w) { w = local.again(v) }"""
    assert outputs(text, FUNCTIONS) == ["float[...]"]


@pytest.mark.parametrize("op", ["MeanVarianceNormalization", "GroupNormalization"])
def test_an_operator_without_inference_is_walked_through_its_body(
    op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were there no rule of ours: onnx has none for these, but says how they are computed."""
    known = find_operator
    for place in (
        "sardonyx.ops.infer.find_operator",
        "sardonyx.passes.inference.walk.find_operator",
    ):
        monkeypatch.setattr(
            place,
            lambda domain, name, version: None if name == op else known(domain, name, version),
        )
    inputs = "x" if op.startswith("Mean") else "x, s, s"
    attributes = "" if op.startswith("Mean") else "<num_groups=2>"
    text = (
        f"g (float[n, 6, h, w] x, float[6] s) => (float[] y) {{ y = {op}{attributes}({inputs}) }}"
    )
    assert outputs(text) == ["float[n, 6, h, w]"]
