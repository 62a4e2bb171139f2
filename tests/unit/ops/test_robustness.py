"""Any operator with any inputs and attributes: an answer or a ShapeError, never another exception."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from sardonyx.errors import ShapeError
from sardonyx.ops import Facts, cost_of, facts_of_array, infer_node, sequence_of
from sardonyx.ops.facts import DISCRETE
from sardonyx.ops.schema import Formal, Signature, signature_of
from sardonyx.sizes import Expr, Size, parse

SUBGRAPHS = {"If", "Loop", "Scan", "SequenceMap", "FlexAttention"}
SCHEMAS = [s for s in onnx.defs.get_all_schemas_with_history() if s.name not in SUBGRAPHS]
SIZES: list[Size] = [0, 1, 2, 3, 4, 6, *map(parse, ("a", "b", "a + 1", "a//2", "2*b"))]
INTEGERS = (-3, -2, -1, 0, 1, 2, 3, 4, 9)
NUMBERS = (0.0, 1.0, 2.0, 0.5, -1.0, float("nan"), float("inf"), 1e30)
WORDS = ("SAME_UPPER", "VALID", "ij,jk->ik", "...ij", "none", "bidirectional", "edge", "", "SPARSE")


class Draw:
    """Random nodes, the same ones in every run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def shape(self) -> tuple[Size, ...] | None:
        rank = self.random.choice((0, 1, 1, 2, 2, 3, 3, 4, 4, 5, None))
        return None if rank is None else tuple(self.random.choices(SIZES, k=rank))

    def tensor(self) -> Facts:
        return Facts("tensor", ir.DataType.FLOAT, self.shape())

    def container(self) -> Facts:
        return self.random.choice(
            (
                Facts("sequence", element=self.tensor()),
                sequence_of([self.tensor() for _ in range(self.random.randint(0, 3))]),
                Facts("optional", element=self.tensor()),
                Facts("map", ir.DataType.INT64, element=Facts("tensor", ir.DataType.FLOAT, ())),
            )
        )

    def known(self, dtype: ir.DataType) -> Facts:
        shape = self.random.choices((0, 1, 2, 3, 4), k=self.random.choice((0, 1, 1, 2)))
        pool = INTEGERS if dtype in DISCRETE else NUMBERS
        elements = self.random.choices(pool, k=int(np.prod(shape)))
        with np.errstate(all="ignore"):
            array = np.array(elements).reshape(shape).astype(dtype.numpy())
        facts = facts_of_array(array, dtype)
        if facts.value is not None and facts.value.size and dtype == ir.DataType.INT64:
            value = facts.value.copy()
            value.reshape(-1)[0] = self.random.choice((value.reshape(-1)[0], *SIZES))
            return facts.with_value(value)
        return facts

    def input(self, formal: Formal, types: dict[str, ir.DataType]) -> Facts | None:
        if not formal.required and self.random.random() < 0.1:
            return None
        if not formal.tensors:
            return self.container()
        dtype = types.setdefault(formal.type_name, self.random.choice(sorted(formal.tensors)))
        if dtype in DISCRETE or (dtype == ir.DataType.FLOAT and self.random.random() < 0.4):
            return self.known(dtype)
        return Facts("tensor", dtype, self.shape())

    def inputs(self, signature: Signature) -> list[Facts | None]:
        types: dict[str, ir.DataType] = {}
        formals = list(signature.inputs)
        if signature.variadic_input:
            formals += [formals[-1]] * self.random.randint(0, 3)
        found = [self.input(formal, types) for formal in formals]
        while found and found[-1] is None:
            found.pop()
        return found

    def attribute(self, name: str, kind: ir.AttributeType) -> ir.Attr | None:
        if self.random.random() < 0.05:
            kind = ir.AttributeType.FLOAT  # a wrong one
        several = range(self.random.randint(0, 4))
        values: dict[ir.AttributeType, Any] = {
            ir.AttributeType.INT: self.random.choice(INTEGERS),
            ir.AttributeType.INTS: tuple(self.random.choice(INTEGERS) for _ in several),
            ir.AttributeType.FLOAT: self.random.choice(NUMBERS),
            ir.AttributeType.FLOATS: tuple(self.random.choice(NUMBERS) for _ in several),
            ir.AttributeType.STRING: self.random.choice(WORDS),
            ir.AttributeType.STRINGS: ("a", "b"),
            ir.AttributeType.TENSOR: ir.Tensor(np.zeros(2, np.float32)),
        }
        return ir.Attr(name, kind, values[kind]) if kind in values else None

    def node(self, schema: onnx.defs.OpSchema, inputs: list[Facts | None]) -> ir.Node:
        signature = signature_of(schema.domain, schema.name, schema.since_version)
        assert signature is not None
        attributes = [
            self.attribute(name, kind)
            for name, kind in signature.attributes.items()
            if self.random.random() < 0.6
        ]
        values = [None if f is None else ir.Value(name=f"x{i}") for i, f in enumerate(inputs)]
        outputs = [ir.Value(name=f"y{i}") for i in range(max(len(signature.outputs), 1))]
        kept = [attribute for attribute in attributes if attribute is not None]
        return ir.Node(schema.domain, schema.name, values, kept, outputs=outputs)


@pytest.mark.parametrize("seed", range(8))
def test_only_shape_errors(seed: int) -> None:
    draw = Draw(seed)
    answered = refused = 0
    for schema in SCHEMAS:
        signature = signature_of(schema.domain, schema.name, schema.since_version)
        assert signature is not None
        for _ in range(4):
            inputs = draw.inputs(signature)
            node = draw.node(schema, inputs)
            try:
                outputs = infer_node(node, inputs, schema.since_version)
                cost_of(node, inputs, outputs, schema.since_version)
            except ShapeError:
                refused += 1
                continue
            answered += 1
            assert len(outputs) == len(node.outputs)
            for facts in outputs:
                assert all(isinstance(size, (int, Expr)) for size in facts.shape or ())
                if facts.value is not None and facts.kind == "tensor":
                    assert facts.value.shape == facts.shape
    assert answered > 300
    assert refused > 300
