"""What the ONNX schemas say about types: which inputs share one, and where outputs take theirs.

Where: condition B, X and Y of one type T  →  output like input 1, and inputs 1 and 2 must agree
ArgMax: output tensor(int64)               →  output is INT64 whatever comes in
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import onnx
import onnx_ir as ir

__all__ = ["Formal", "Signature", "find_schema", "signature_of"]

# The spelling of the schemas, where it is not the data type's own name.
SPELLING = {
    "float": ir.DataType.FLOAT,
    "double": ir.DataType.DOUBLE,
    "string": ir.DataType.STRING,
    "bool": ir.DataType.BOOL,
}
TENSOR = re.compile(r"tensor\((\w+)\)")


@dataclass(frozen=True)
class Formal:
    """One formal input or output."""

    name: str
    type_name: str
    tensors: frozenset[ir.DataType]  # the tensor types it may have
    only_tensors: bool  # neither sequences nor optionals nor maps
    required: bool
    uniform: bool  # False: the actual inputs of a variadic one may differ in type


@dataclass(frozen=True)
class Signature:
    """The formal inputs and outputs of one operator version."""

    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    variadic_input: bool
    variadic_output: bool
    required: int  # inputs up to the last that must be there
    attributes: dict[str, ir.AttributeType]
    output_dtypes: tuple[ir.DataType | None, ...]  # fixed by the schema
    output_sources: tuple[tuple[int, ...], ...]  # else: formal inputs of the same type

    def input(self, index: int) -> Formal | None:
        if index < len(self.inputs):
            return self.inputs[index]
        return self.inputs[-1] if self.variadic_input else None

    def output(self, index: int) -> int | None:
        if index < len(self.outputs):
            return index
        return len(self.outputs) - 1 if self.variadic_output else None


def find_schema(domain: str, name: str, version: int) -> onnx.defs.OpSchema | None:
    """The schema in force at this opset version, or None."""
    try:
        return _schema(domain, name, version)
    except onnx.defs.SchemaError:
        return None


def signature_of(domain: str, name: str, version: int) -> Signature | None:
    """The formal inputs and outputs in force at this opset version, or None."""
    try:
        return _signature(domain, name, version)
    except onnx.defs.SchemaError:
        return None


# What is not found is not remembered: a user may register it later, and strangers' names are many.


@lru_cache(maxsize=4096)
def _schema(domain: str, name: str, version: int) -> onnx.defs.OpSchema:
    return onnx.defs.get_schema(name, version, domain)


@lru_cache(maxsize=4096)
def _signature(domain: str, name: str, version: int) -> Signature:
    schema = _schema(domain, name, version)
    inputs = tuple(_formal(parameter) for parameter in schema.inputs)
    outputs = tuple(_formal(parameter) for parameter in schema.outputs)
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    return Signature(
        inputs=inputs,
        outputs=outputs,
        variadic_input=bool(inputs) and schema.inputs[-1].option == variadic,
        variadic_output=bool(outputs) and schema.outputs[-1].option == variadic,
        required=max((i + 1 for i, formal in enumerate(inputs) if formal.required), default=0),
        attributes={
            name: ir.AttributeType[str(attribute.type).rpartition(".")[2]]
            for name, attribute in schema.attributes.items()
        },
        output_dtypes=tuple(_fixed_dtype(formal) for formal in outputs),
        output_sources=tuple(
            tuple(
                index
                for index, source in enumerate(inputs)
                if source.type_name == formal.type_name and formal.uniform and source.uniform
            )
            for formal in outputs
        ),
    )


def _formal(parameter: onnx.defs.OpSchema.FormalParameter) -> Formal:
    found = {text: TENSOR.fullmatch(text) for text in parameter.types}
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    return Formal(
        name=parameter.name,
        type_name=parameter.type_str,
        tensors=frozenset(_dtype(match[1]) for match in found.values() if match),
        only_tensors=all(found.values()),
        required=parameter.option == single,
        uniform=parameter.is_homogeneous,
    )


def _dtype(text: str) -> ir.DataType:
    return SPELLING.get(text) or ir.DataType[text.upper()]


def _fixed_dtype(formal: Formal) -> ir.DataType | None:
    if formal.only_tensors and len(formal.tensors) == 1:
        return next(iter(formal.tensors))
    return None
