"""Each rule of `check`: a model that it must speak about, and one that it must leave alone."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from sardonyx.inspection.check import check
from sardonyx.inspection.findings import Finding


def text(body: str, *, opset: int = 17, ir_version: int = 8) -> str:
    return f'<ir_version: {ir_version}, opset_import: ["" : {opset}]> {body}'


def found(source: object, rule: str) -> tuple[Finding, ...]:
    report = check(source)  # type: ignore[arg-type]
    assert report.loaded, str(report)
    assert not report.of("internal"), str(report)
    return report.of(rule)


CLEAN = text("g (float[N, 4] x) => (float[N, 4] y) { [relu] y = Relu (x) }")

SPEAKS: list[tuple[str, str, str]] = [
    # rule, model, words that the finding must hold
    ("unused-input", text("g (float[N] x, float[N] z) => (float[N] y) { y = Relu (x) }"), "'z'"),
    (
        "unused-initializer",
        text("g (float[N] x) => (float[N] y) <float[2] w = {1.0, 2.0}> { y = Relu (x) }"),
        "8 B",
    ),
    (
        "unreachable-node",
        text("g (float[N] x) => (float[N] y) { y = Relu (x) [lost] z = Neg (x) }"),
        "'lost'",
    ),
    (
        "overridable-initializer",
        text("g (float[2] x, float[2] w = {1.0, 2.0}) => (float[2] y) { y = Add (x, w) }"),
        "overridden",
    ),
    ("unnamed-node", text("g (float[N] x) => (float[N] y) { y = Relu (x) }"), "1 of 1"),
    (
        "float64-constant",
        text(
            "g (float[N] x) => (float[N] y) <double two = {2.0}> "
            "{ a = Cast <to = 11> (x) b = Mul (a, two) y = Cast <to = 1> (b) }"
        ),
        "casts its partner up",
    ),
    (
        "float64-region",
        text(
            "g (float[N] x) => (float[N] y) "
            "{ [up] a = Cast <to = 11> (x) b = Exp (a) y = Cast <to = 1> (b) }"
        ),
        "'up'",
    ),
    (
        "mixed-float-types",
        text(
            "g (float[N] x) => (float[N] y) "
            "{ a = Cast <to = 10> (x) b = Exp (a) y = Cast <to = 1> (b) }"
        ),
        "float32 → float16",
    ),
    (
        "cast-there-and-back",
        text("g (float[N] x) => (float[N] y) { a = Cast <to = 11> (x) y = Cast <to = 1> (a) }"),
        "two passes",
    ),
    (
        "cast-there-and-back",
        text("g (int64[N] x) => (int64[N] y) { a = Cast <to = 9> (x) y = Cast <to = 7> (a) }"),
        "does not keep every value",
    ),
    (
        "int64-arithmetic",
        text("g (int64[2000, 1000] x) => (int64[2000, 1000] y) { y = Add (x, x) }"),
        "2.00 M",
    ),
    ("unbound-dimension", text("g (float[?] x) => (float[?] y) { y = Relu (x) }"), "no name"),
    ("unbound-dimension", text("g (float[N] x) => (float[M] y) { y = Relu (x) }"), "always N"),
    (
        "unbound-dimension",
        text("g (float[N] x) => (int64[1, M] y) { y = NonZero (x) }"),
        "decided by the data",
    ),
    (
        "contradicted-shape",
        text("g (float[2, 3] x) => (float[7] y) { y = Relu (x) }"),
        "declared as float[7]",
    ),
    (
        "training-mode",
        text(
            "g (float[N] x) => (float[N] y) <float r = {0.5}, bool t = {1}> "
            "{ y = Dropout (x, r, t) }"
        ),
        "drops values",
    ),
    (
        "training-mode",
        text(
            "g (float[N, 2] x) => (float[N, 2] y) "
            "<float[2] s = {1.0, 1.0}, float[2] b = {0.0, 0.0}, float[2] m = {0.0, 0.0}, "
            "float[2] v = {1.0, 1.0}> "
            "{ y, rm, rv = BatchNormalization <training_mode = 1> (x, s, b, m, v) }"
        ),
        "statistics of the batch",
    ),
    (
        "random-without-seed",
        text("g (float[N] x) => (float[N] y) { y = RandomNormalLike (x) }"),
        "no seed",
    ),
    ("runtime-support", text("g (float[N] x) => (float[N] y) { y = Relu (x) }"), "≥ 1.12"),
    (
        "runtime-support",
        text("g (float[N] x) => (float[N] y) { y = Relu (x) }", opset=28, ir_version=14),
        "no known onnxruntime",
    ),
    (
        "runtime-support",
        text("g (float[N] x) => (float[N] y) { y = Relu (x) }", opset=6),
        "promises opset 7",
    ),
    ("old-opset", text("g (float[N] x) => (float[N] y) { y = Relu (x) }", opset=11), "opset 11"),
    (
        "foreign-operator",
        '<ir_version: 8, opset_import: ["" : 17, "com.acme" : 1]> '
        "g (float[N] x) => (float[N] y) { y = com.acme.Fancy (x) }",
        "'com.acme'",
    ),
    (
        "experimental-domain",
        '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]> '
        "g (float r, int64 t, float[N] x, float[N] grad, float[N] h) => (float[N] y, float[N] g2) "
        "{ y, g2 = ai.onnx.preview.training.Adagrad (r, t, x, grad, h) }",
        "may change",
    ),
]


@pytest.mark.parametrize(("rule", "source", "words"), SPEAKS)
def test_the_rule_speaks(rule: str, source: str, words: str) -> None:
    findings = found(source, rule)
    assert findings, f"{rule} has nothing to say"
    assert any(words in str(finding) for finding in findings), "\n".join(map(str, findings))


def test_a_clean_model_has_only_a_word_about_runtimes() -> None:
    report = check(CLEAN)
    assert report.ok
    assert [finding.rule for finding in report] == ["runtime-support"]


def test_every_finding_that_wants_action_says_what_to_do() -> None:
    for rule, source, _ in SPEAKS:
        for finding in found(source, rule):
            assert finding.severity == "info" or finding.hint, str(finding)


def test_a_double_model_may_hold_doubles() -> None:
    source = text("g (double[N] x) => (double[N] y) <double two = {2.0}> { y = Mul (x, two) }")
    assert not found(source, "float64-constant")
    assert not found(source, "float64-region")


def test_small_int64_arithmetic_is_shape_arithmetic() -> None:
    source = text(
        "g (int64[N] x, int64[4] z) => (int64[N] y, int64[4] w) { y = Add (x, x) w = Add (z, z) }"
    )
    assert not found(source, "int64-arithmetic")


def test_inference_dropout_and_seeded_noise_are_fine() -> None:
    source = text(
        "g (float[N] x) => (float[N] y) "
        "{ a = Dropout (x) n = RandomNormalLike <seed = 1.0> (x) y = Add (a, n) }"
    )
    assert not found(source, "training-mode")
    assert not found(source, "random-without-seed")


def test_nodes_that_only_a_subgraph_reads_are_reached() -> None:
    source = text(
        "g (bool c, float[N] x) => (float[N] y) { "
        "[outside] a = Neg (x) "
        "y = If (c) <then_branch = t () => (float[N] p) { p = Relu (a) }, "
        "else_branch = e () => (float[N] q) { q = Abs (a) }> }"
    )
    assert not found(source, "unreachable-node")


def test_dead_chains_are_counted_and_their_ends_named() -> None:
    source = text(
        "g (float[N] x) => (float[N] y) { y = Relu (x) [a] p = Neg (x) [b] q = Neg (p) [c] r = Neg (q) }"
    )
    findings = found(source, "unreachable-node")
    assert [f.node for f in findings] == ["Neg 'c'", None]
    assert "2 more nodes only feed" in findings[1].message


def weights_model(**weights: np.ndarray) -> onnx.ModelProto:
    """Every weight is added to x, one after another."""
    nodes, last = [], "x"
    for name in weights:
        nodes.append(helper.make_node("Add", [last, name], [f"after_{name}"], name=f"add_{name}"))
        last = f"after_{name}"
    dtype = helper.np_dtype_to_tensor_dtype(next(iter(weights.values())).dtype)
    shape = next(iter(weights.values())).shape
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info(last, dtype, shape)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nan_and_infinite_weights(dtype: type) -> None:
    bad = np.zeros(5000, dtype)
    bad[[7, 4999]] = np.nan
    bad[[1, 2]] = np.inf, -np.inf
    mask = np.zeros(5000, dtype)
    mask[10:20] = -np.inf
    model = weights_model(bad=bad, mask=mask)
    (nan,) = found(model, "nan-weight")
    assert (nan.severity, nan.node) == ("error", "tensor 'bad'")
    assert nan.message.startswith("2 of 5.00 k values")
    infinite = {f.node: f.severity for f in found(model, "infinite-weight")}
    assert infinite == {"tensor 'bad'": "warning", "tensor 'mask'": "info"}


def test_nan_is_found_past_the_first_block_and_in_external_data(tmp_path: object) -> None:
    big = np.zeros((1 << 20) + 5, np.float32)
    big[-1] = np.nan
    path = f"{tmp_path}/m.onnx"
    onnx.save(weights_model(big=big), path, save_as_external_data=True, location="m.data")
    (nan,) = found(path, "nan-weight")
    assert nan.message.startswith("1 of 1.05 M")


@pytest.mark.parametrize(("dtype", "tiny"), [(np.float32, 1e-40), (np.float64, 1e-310)])
def test_denormal_weights(dtype: type, tiny: float) -> None:
    few, many = np.ones(20_000, dtype), np.ones(20_000, dtype)
    few[:2], many[:5000] = tiny, -tiny
    severities = {
        f.node: f.severity for f in found(weights_model(few=few, many=many), "denormal-weight")
    }
    assert severities == {"tensor 'few'": "info", "tensor 'many'": "warning"}


def test_half_precision_subnormals_are_its_useful_range() -> None:
    assert not found(weights_model(w=np.full(1000, 1e-7, np.float16)), "denormal-weight")


@pytest.mark.parametrize(
    "kind", [TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2]
)
def test_nan_in_small_floats(kind: int) -> None:
    weight = helper.make_tensor("w", kind, [3], [1.0, float("nan"), 2.0])
    graph = helper.make_graph(
        [helper.make_node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)],
        "g",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    assert len(found(model, "nan-weight")) == 1


def test_duplicate_weights_are_found_by_their_bytes() -> None:
    ramp = np.arange(1000, dtype=np.float32)
    other = ramp.copy()
    other[-1] = 0
    (finding,) = found(weights_model(a=ramp, b=other, c=ramp.copy()), "duplicate-weight")
    assert finding.node == "tensor 'a'"
    assert "tensor 'c'" in finding.message
    assert "tensor 'b'" not in finding.message


def test_huge_constants_inside_nodes() -> None:
    big = numpy_helper.from_array(np.zeros(300_000, np.float32))
    graph = helper.make_graph(
        [helper.make_node("Constant", [], ["y"], name="table", value=big)],
        "g",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [300_000])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (finding,) = found(model, "huge-constant")
    assert "1.14 MiB" in finding.message
    assert "'table'" in str(finding.node)


def test_a_checksum_that_does_not_match(tmp_path: object) -> None:
    path = f"{tmp_path}/m.onnx"
    onnx.save(
        weights_model(w=np.arange(1000, dtype=np.float32)),
        path,
        save_as_external_data=True,
        location="m.data",
        size_threshold=0,
    )
    proto = onnx.load(path, load_external_data=False)
    import hashlib
    from pathlib import Path

    true = hashlib.sha1(Path(f"{tmp_path}/m.data").read_bytes()).hexdigest()
    entry = proto.graph.initializer[0].external_data.add(key="checksum", value=true)
    onnx.save(proto, path)
    assert not found(path, "checksum-mismatch")
    entry.value = "0" * 40
    onnx.save(proto, path)
    (finding,) = found(path, "checksum-mismatch")
    assert finding.severity == "error"
    assert true in finding.message


def test_training_recipes_are_mentioned() -> None:
    model = weights_model(w=np.ones(2, np.float32))
    model.training_info.add()
    assert found(model, "training-info")


def test_what_onnx_checker_refuses_is_an_error() -> None:
    model = weights_model(w=np.ones(5000, np.float32))
    model.ir_version = 3  # before version 4, an initializer had to be an input as well
    (finding,) = found(model, "onnx-checker")
    assert finding.severity == "error"
    assert "w in initializer but not in graph input" in finding.message


def test_weights_listed_as_inputs_before_ir_version_4_are_as_they_must_be() -> None:
    model = weights_model(w=np.ones(2, np.float32))
    model.ir_version = 3
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [2]))
    (finding,) = found(model, "overridable-initializer")
    assert finding.severity == "info"
    assert not found(model, "onnx-checker")
