"""The walk: a graph becomes layers, node after node, by the operator table.

What inference knows (shapes, axes) is read where it is needed, and the nodes that compute it are not written. Nodes that
cannot be written do not end the walk: all of them are told together.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.back.coreml.network import Array, Network
from sardonyx.conversion.back.coreml.step import Entry, Step
from sardonyx.conversion.back.refusal import refusal
from sardonyx.errors import UnsupportedError
from sardonyx.model.opset import normal_domain
from sardonyx.ops.facts import DISCRETE, fact_symbols, is_concrete
from sardonyx.passes.shapes import Shapes
from sardonyx.sizes import Size

__all__ = ["WHOLE", "Walk"]

WHOLE = 1 << 24  # integers of float32 are whole numbers up to here
_SMALL = 1 << 10  # elements of constants that are kept once
_TOLD = 5  # refusals that are told in full
_TYPES = (ir.DataType.FLOAT, *DISCRETE)
_INTEGERS = DISCRETE - {ir.DataType.BOOL}


class Walk:
    """The state of a walk.

    Attributes:
        network: the layers so far.
        shapes: of the model's values.
        has_integers: whether a layer computes integers.
    """

    def __init__(self, model: ir.Model, shapes: Shapes, table: Mapping[str, Entry]) -> None:
        self.network = Network()
        self.shapes = shapes
        self.has_integers = False
        self._table = table
        self._versions = {normal_domain(d): v for d, v in model.opset_imports.items()}
        self._blobs: dict[ir.Value, str] = {}
        self._known: dict[ir.Value, Array] = {}
        self._sources: dict[
            str, tuple[str, int, int]
        ] = {}  # whose axis of how many an open size is
        self._small: dict[tuple[tuple[int, ...], bytes], str] = {}
        self._refusals: list[UnsupportedError] = []

    def define(self, value: ir.Value, blob: str) -> None:
        """An input of the network."""
        self._blobs[value] = blob
        shape = self.shapes.of(value).shape or ()
        for axis, size in enumerate(shape):
            lone = None if isinstance(size, int) else size.lone_symbol
            if lone is not None:
                self._sources.setdefault(lone, (blob, axis, len(shape)))

    def source_of(self, size: Size) -> tuple[str, int, int] | None:
        """The blob that has an open size, which of its axes that is, and how many there are."""
        lone = None if isinstance(size, int) else size.lone_symbol
        return None if lone is None else self._sources.get(lone)

    def write(self, graph: ir.Graph) -> None:
        """All nodes of a graph.

        Raises:
            UnsupportedError: with all the nodes that cannot be written.
        """
        for node in graph:
            if node.op_type == "Constant" or all(self._is_known(one) for one in node.outputs):
                continue
            try:
                self._node(node)
            except UnsupportedError as error:
                self._refusals.append(error)
                for value in node.outputs:
                    self._blobs[value] = "?"
        if self._refusals:
            raise _together(self._refusals)

    def _node(self, node: ir.Node) -> None:
        entry = self._table.get(node.op_type)
        if entry is None or normal_domain(node.domain):
            raise refusal(node, f"coreml: the operator table does not have {node.op_type[:80]!r}")
        step = Step(self, node, self._versions.get("", 1))
        step.check()
        found = entry(step)
        kinds = {facts.dtype for facts in step.outputs}
        self.has_integers = self.has_integers or bool(kinds & _INTEGERS)
        if isinstance(found, np.ndarray):
            self._known[node.outputs[0]] = found
            return
        blobs = [found] if isinstance(found, str) else list(found)
        for value, blob in zip(node.outputs, blobs, strict=False):
            self._blobs[value] = blob

    def _is_known(self, value: ir.Value) -> bool:
        """Whether a value is integers that are read where they are needed."""
        facts = self.shapes.of(value)
        return facts.kind == "tensor" and facts.value is not None and facts.dtype in DISCRETE

    # What steps ask for

    def objection(self, dtype: ir.DataType) -> str | None:
        """Why there are no blobs of a type; None where there are."""
        return None if dtype in _TYPES else f"is of {dtype}, and CoreML's layers compute in float32"

    def numbers(self, value: ir.Value) -> Array | None:
        """The elements of a value, where they are known before a run."""
        if value in self._known:
            return self._known[value]
        facts = self.shapes.of(value)
        if facts.value is not None and facts.dtype in DISCRETE:
            if not is_concrete(facts.value):
                return None
            return np.asarray(facts.value.astype(facts.dtype.numpy()))
        tensor = ir.convenience.get_const_tensor(value)
        return None if tensor is None else tensor.numpy()

    def blob(self, value: ir.Value) -> str:
        """A value as a blob; constants are loaded where they are first read."""
        if value not in self._blobs:
            found = self.numbers(value)
            if found is None:
                names = sorted(fact_symbols(self.shapes.of(value)))
                raise UnsupportedError(
                    f"coreml: it is computed from open sizes ({', '.join(names)[:120]}).",
                    where=f"value {(value.name or '')[:80]!r}",
                    hint="Fix them: " + " ".join(f"--dim {name}=N" for name in names[:4]) + ".",
                )
            self._blobs[value] = self.constant(_as_floats(found, value), value.name or "")
        return self._blobs[value]

    def constant(self, array: Array, wish: str = "") -> str:
        """Numbers as a blob."""
        array = array.reshape(array.shape or (1,))
        key = (array.shape, array.tobytes()) if array.size <= _SMALL else None
        if key is not None and key in self._small:
            return self._small[key]
        made = self.network.layer(
            "loadConstantND", [], wish or "constant", shape=list(array.shape), data=array
        )
        if key is not None:
            self._small[key] = made
        return made


def _as_floats(array: Array, value: ir.Value) -> Array:
    if array.dtype.kind in "iu" and array.size and np.abs(array.astype(float)).max() > WHOLE:
        raise UnsupportedError(
            f"coreml: it has integers above {WHOLE:,}, which float32 does not have.",
            where=f"constant {(value.name or '')[:80]!r}",
            limit=WHOLE,
        )
    return array.astype(np.float32)


def _together(refusals: list[UnsupportedError]) -> UnsupportedError:
    """One error of several: the first as it is, then where the others are and why."""
    first = refusals[0]
    others = [f"{one.where}: {one.message}" for one in refusals[1:_TOLD]]
    if len(refusals) > _TOLD:
        rest = sorted({str(one.value) for one in refusals[_TOLD:] if one.value is not None})
        others.append(f"and {len(refusals) - _TOLD} more ({', '.join(rest)[:200]})")
    if not others:
        return first
    return UnsupportedError(
        f"{first.message} Nor can these be written: {'; '.join(others)}",
        where=first.where,
        source=first.source,
        value=sorted({str(one.value) for one in refusals}),
        hint=first.hint,
    )
