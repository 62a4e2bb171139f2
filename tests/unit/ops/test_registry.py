"""The table of operators is complete, and the fallback is safe for what it does not have."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import pytest
from tests.unit.ops.build import facts, node

from sardonyx.errors import ShapeError
from sardonyx.ops import Facts, find_operator, infer_node
from sardonyx.ops.registry import all_operators

CONTROL_FLOW = {"If", "Loop", "Scan", "SequenceMap"}  # passes walk their subgraphs


def test_every_operator_of_every_version_has_a_shape_rule() -> None:
    missing = {
        f"{schema.domain}::{schema.name}-{schema.since_version}"
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.name not in CONTROL_FLOW
        and getattr(find_operator(schema.domain, schema.name, schema.since_version), "shapes", None)
        is None
    }
    assert missing == set()


def test_no_entry_is_for_an_operator_that_does_not_exist() -> None:
    known = {(s.domain, s.name) for s in onnx.defs.get_all_schemas_with_history()}
    assert {(entry.domain, entry.name) for entry in all_operators()} <= known


def test_no_two_entries_claim_one_version() -> None:
    for schema in onnx.defs.get_all_schemas_with_history():
        claims = [
            entry
            for entry in all_operators()
            if (entry.domain, entry.name) == (schema.domain, schema.name)
            and entry.since <= schema.since_version
            and (entry.until is None or schema.since_version <= entry.until)
        ]
        assert len(claims) <= 1, schema.name


def test_an_unknown_operator_says_nothing() -> None:
    assert infer_node(node("Mystery", 1, domain="my.domain"), [facts((2,))], 1) == [Facts()]


@pytest.fixture
def doubling() -> Iterator[None]:
    """A user's own schema whose inference computes 2 * dim, and reads a symbol as 0."""

    def rule(ctx: onnx.shape_inference.InferenceContext) -> None:
        kind = ctx.get_input_type(0)
        if kind.tensor_type.shape.dim[0].dim_value == 13:
            raise onnx.shape_inference.InferenceError("thirteen is refused")
        result = onnx.helper.make_tensor_type_proto(kind.tensor_type.elem_type, [])
        doubled = 2 * kind.tensor_type.shape.dim[0].dim_value
        result.tensor_type.shape.dim.add(dim_value=doubled)
        result.tensor_type.shape.dim.add().CopyFrom(kind.tensor_type.shape.dim[1])
        result.tensor_type.shape.dim.add(dim_value=7)
        ctx.set_output_type(0, result)

    schema = onnx.defs.OpSchema(
        "Doubling",
        "my.own",
        1,
        inputs=[onnx.defs.OpSchema.FormalParameter("X", "T")],
        outputs=[onnx.defs.OpSchema.FormalParameter("Y", "T")],
        type_constraints=[("T", ["tensor(float)"], "")],
    )
    schema.set_type_and_shape_inference_function(rule)
    onnx.defs.register_schema(schema)
    yield
    onnx.defs.deregister_schema("Doubling", 1, "my.own")


@pytest.mark.usefixtures("doubling")
def test_the_fallback_serves_schemas_that_users_register() -> None:
    found = infer_node(node("Doubling", 1, domain="my.own"), [facts((3, 4))], 1)
    assert str(found[0]) == "float[6, 4, 7]"


@pytest.mark.usefixtures("doubling")
def test_the_fallback_never_takes_a_symbol_for_zero() -> None:
    found = infer_node(node("Doubling", 1, domain="my.own"), [facts("float[a + 1, b]")], 1)
    assert str(found[0]) == "float[y.0, b, 7]"


def test_what_the_fallback_refuses_is_a_shape_error() -> None:
    from sardonyx.ops.call import Call
    from sardonyx.ops.fallback import infer_with_onnx

    known = [facts((2, 3)), facts((4, 5))]
    with pytest.raises(ShapeError, match="MatMul 'the_MatMul': Incompatible dimensions"):
        infer_with_onnx(Call(node("MatMul", 2), known, 13))
