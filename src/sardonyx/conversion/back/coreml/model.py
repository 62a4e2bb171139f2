"""A model as a CoreML specification: prepared, walked, described, read back and proved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.backends.reference import Value
from sardonyx.comparison.inputs import example_inputs, input_ports
from sardonyx.conversion.back.coreml.network import MOST_RANK
from sardonyx.conversion.back.coreml.operators import TABLE, knows
from sardonyx.conversion.back.coreml.proof import Port, prove
from sardonyx.conversion.back.coreml.walk import WHOLE, Walk
from sardonyx.conversion.back.fixing import fix_dims
from sardonyx.conversion.back.prepare import in_one_opset
from sardonyx.conversion.coreml.specification import message_class
from sardonyx.conversion.verification import Verification
from sardonyx.errors import ConvertError, UnsupportedError
from sardonyx.model.atomic import AtomicFiles
from sardonyx.passes.optimize import Settings, optimize
from sardonyx.passes.shapes import Shapes
from sardonyx.runtime.folding import fold_node

__all__ = ["Written", "write_coreml", "write_file"]

_FLOAT32, _INT32 = 65568, 131104  # of ArrayFeatureType.ArrayDataType


@dataclass(frozen=True)
class Written:
    """What was written.

    Attributes:
        specification: coremltools' message of a model, with one neural network.
        verification: of its layers, read back, beside the model; None where that was not asked for.
        notes: what the user should know, beginning with what was not done: it was not run.
    """

    specification: Any
    verification: Verification | None
    notes: tuple[str, ...]

    @property
    def layers(self) -> int:
        return len(self.specification.neuralNetwork.layers)

    @property
    def version(self) -> int:
        """Of the specification: 4 runs from macOS 10.15 and iOS 13 on, 5 from macOS 11 and iOS 14 on."""
        return int(self.specification.specificationVersion)


def write_coreml(
    model: ir.Model,
    *,
    dims: Mapping[str, int] | None = None,
    check: bool = True,
    engine: str = "sardonyx",
) -> Written:
    """The model as a neural network of CoreML.

    Args:
        dims: sizes that open dimensions get for good.
        check: read the layers back, and hold them to the model's answers.
        engine: that runs both for the check.

    Raises:
        UnsupportedError: nodes have no form in CoreML; the message has all of them.
        ConvertError: the layers answer otherwise than the model.
        MissingExtraError: coremltools is not installed.
    """
    fixed = fix_dims(model, dims or {})
    folded = optimize(fixed, Settings(2), evaluate=fold_node).model
    expanded = in_one_opset(folded, knows)
    example = example_inputs(fixed)
    made, inputs, outputs, notes = _specification(expanded.model, expanded.shapes, example)
    proof = None
    if check:
        proof = prove(fixed, made, inputs, outputs, example, engine)
        if not proof.ok:
            raise ConvertError(
                f"the layers that were written answer otherwise than the model.\n{proof}",
                hint="Please report this model: it is a fault of the writer or of the reader.",
            )
    how = "its layers, read back, answer as the model" if check else "nothing of it was checked"
    told = f"written, not run: Core ML runs on macOS and iOS alone; {how}"
    return Written(made, proof, (told, *notes))


def write_file(written: Written, path: Path) -> None:
    """The specification as a file, whole or not at all."""
    with AtomicFiles() as files:
        with files.open(path) as stream:
            stream.write(written.specification.SerializeToString())
        files.commit()


def _specification(
    model: ir.Model, shapes: Shapes, example: Mapping[str, Value]
) -> tuple[Any, list[Port], list[Port], list[str]]:
    walk = Walk(model, shapes, TABLE)
    made = message_class("Model_pb2", "Model")()
    notes: list[str] = []
    inputs, outputs = [], []
    for value, _ in input_ports(model):
        port = _port(walk, value, "input", walk.network.names.fresh(value.name or "", "input"))
        _describe(
            made.description.input.add(), port, np.asarray(example[port.original]).shape or (1,)
        )
        walk.define(value, port.name)
        inputs.append(port)
    names = [walk.network.names.fresh(value.name or "", "output") for value in model.graph.outputs]
    walk.write(model.graph)
    for value, name in zip(model.graph.outputs, names, strict=True):
        port = _port(walk, value, "output", name)
        sizes = [size for size in shapes.of(value).shape or (1,) if isinstance(size, int)]
        _describe(made.description.output.add(), port, () if port.axes else sizes)
        outputs.append(port)
    _give_names(walk, model.graph.outputs, inputs, outputs)
    made.specificationVersion = walk.network.version
    made.neuralNetwork.CopyFrom(walk.network.message)
    for port in (*inputs, *outputs):
        if port.name != port.original:
            notes.append(f"{port.original[:80]!r} is called {port.name} there")
        if port.dtype not in (np.float32, np.int32):
            notes.append(f"{port.name} is of int32, and of {port.dtype} in the model")
    if walk.has_integers:
        notes.append(f"integers are floats inside of Core ML, and exact up to {WHOLE:,}")
    return made, inputs, outputs, notes


def _port(walk: Walk, value: ir.Value, what: str, name: str) -> Port:
    facts, original = walk.shapes.of(value), value.name or ""
    where = f"{what} {original[:80]!r}"
    if facts.kind != "tensor" or facts.dtype is None or facts.shape is None:
        raise UnsupportedError("coreml: its type or rank is not known before a run.", where=where)
    if len(facts.shape) > MOST_RANK:
        raise UnsupportedError(
            f"coreml: it has {len(facts.shape)} axes, and CoreML's layers take {MOST_RANK}.",
            where=where,
            limit=MOST_RANK,
        )
    why = walk.objection(facts.dtype)
    if why is not None:
        raise UnsupportedError(f"coreml: it {why}.", where=where)
    axes: dict[int, str] = {}
    for axis, size in enumerate(facts.shape):
        if isinstance(size, int):
            continue
        lone = size.lone_symbol
        if lone is None and what == "input":
            raise UnsupportedError(
                f"coreml: its axis {axis} is {size}, and CoreML's ranges are independent of each other.",
                where=where,
                hint="Fix it: --dim NAME=N.",
            )
        axes[axis] = lone or str(size)
    return Port(original, name, facts.dtype.numpy(), axes)


def _describe(feature: Any, port: Port, shape: Sequence[int]) -> None:
    """An array of this shape, which is the default of ranges where axes are open; no shape leaves it to CoreML."""
    feature.name = port.name
    array = feature.type.multiArrayType
    array.dataType = _FLOAT32 if port.dtype.kind == "f" else _INT32
    array.shape.extend(shape)
    for axis, size in enumerate(shape if port.axes else ()):
        bounds = array.shapeRange.sizeRanges.add()
        bounds.lowerBound = 1 if axis in port.axes else size
        bounds.upperBound = -1 if axis in port.axes else size


def _give_names(
    walk: Walk, values: Sequence[ir.Value], inputs: Sequence[Port], outputs: Sequence[Port]
) -> None:
    """Outputs by their own names; what is an input, or an output already, is copied."""
    taken = {port.name for port in inputs}
    names: dict[str, str] = {}
    for value, port in zip(values, outputs, strict=True):
        blob = walk.blob(value)
        if blob in taken or blob in names:
            blob = walk.network.layer("copy", [blob])
        names[blob] = port.name
    walk.network.rename(names)
