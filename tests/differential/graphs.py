"""Small random ONNX graphs, each drawn from one seed.

    graph = draw("Reduce", seed=7)      # one node, of a family of operators
    graph = compose(seed=7)             # two to eight nodes that feed each other
    graph.model, graph.feeds, graph.outputs

A family is a function that adds one valid node to a `Builder`. What onnxruntime is known to answer
otherwise than the standard, the families leave out, each with a word on why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
import onnx
from ml_dtypes import bfloat16
from onnx import helper, numpy_helper

import sardonyx as sx

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Family: TypeAlias = "Callable[[Builder], None]"

FLOATS = ("float32", "float64", "float16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NUMBERS = (*FLOATS, *INTEGERS)
TYPES = (*NUMBERS, "bool")
ML = "ai.onnx.ml"

FAMILIES: dict[str, Family] = {}
SCHEMA_TYPES = {"float32": "tensor(float)", "float64": "tensor(double)"}
TRIES = 60


class Skip(Exception):
    """This draw leads nowhere: the operator is not in this opset, or the shapes do not suit it."""


@dataclass(frozen=True)
class Graph:
    """A model, what to feed it, and the values to compare; all of them are outputs."""

    model: onnx.ModelProto
    feeds: Mapping[str, Any]
    outputs: tuple[str, ...]
    symbolic: onnx.ModelProto  # the same, with a symbol for each dimension of each input

    @property
    def symbols(self) -> dict[str, int]:
        return {
            f"{name}_{axis}": size
            for name, value in self.feeds.items()
            for axis, size in enumerate(value.shape)
        }


@dataclass
class Builder:
    """A graph in the making."""

    rng: np.random.Generator
    opset: int
    ml: int = 3
    reuse: float = 0.0  # how often a node reads a value that is already there
    small: str | None = None  # draw every number of this type
    feeds: dict[str, Array] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    known: dict[str, Array] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)  # where onnx infers no type
    names: int = 0

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def chance(self, likely: float = 0.5) -> bool:
        return bool(self.rng.random() < likely)

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def integers(self, count: int, low: int, high: int) -> list[int]:
        return [self.integer(low, high) for _ in range(count)]

    def some(self, likely: float = 0.5, /, **attributes: Any) -> dict[str, Any]:
        """Each of the attributes, or not."""
        return {name: value for name, value in attributes.items() if self.chance(likely)}

    def axis(self, rank: int, negative_since: int = 0) -> int:
        return self.integer(-rank if self.opset >= negative_since else 0, rank - 1)

    def axes(self, rank: int, least: int = 1) -> list[int]:
        """Some axes, each written from the front or from the back."""
        count = self.integer(min(least, rank), rank)
        chosen = self.rng.permutation(rank)[:count].tolist()
        return [axis - rank if self.chance(0.3) else axis for axis in chosen]

    def shape(self, low: int = 0, high: int = 4, empty: float = 0.04) -> list[int]:
        rank = self.integer(low, high)
        return [0 if self.chance(empty) else self.integer(1, 4) for _ in range(rank)]

    def broadcasting(self, shape: Sequence[int]) -> list[int]:
        """A shape that broadcasts to this one."""
        kept = [size if self.chance(0.75) else 1 for size in shape]
        return kept[self.integer(0, len(kept)) :] if self.chance(0.4) else kept

    def version(self, op: str, domain: str = "") -> int:
        """The version of an operator that this graph's opset selects."""
        try:
            schema = onnx.defs.get_schema(op, self.ml if domain else self.opset, domain)
        except onnx.defs.SchemaError:
            raise Skip from None
        if schema.deprecated:
            raise Skip
        return int(schema.since_version)

    def dtype(self, op: str, among: Sequence[str] = TYPES, index: int = 0, domain: str = "") -> str:
        """A type that input `index` of an operator may have."""
        self.version(op, domain)
        schema = onnx.defs.get_schema(op, self.ml if domain else self.opset, domain)
        among = [self.small, "float32"] if self.small else among
        allowed = [
            name
            for name in among
            if SCHEMA_TYPES.get(name, f"tensor({name})") in schema.inputs[index].types
        ]
        if not allowed or (self.small and len(allowed) < 2):
            raise Skip
        if self.small:
            return self.small
        return "float32" if "float32" in allowed and self.chance(0.3) else self.pick(allowed)

    def array(
        self,
        dtype: str,
        shape: Sequence[int],
        low: float = -4,
        high: float = 4,
        odd: bool = False,
    ) -> Array:
        """Random elements; `odd` adds NaN, infinities and the ends of the range."""
        kind = as_dtype(dtype)
        if kind.kind == "b":
            return np.asarray(self.rng.random(shape) < 0.5)
        where = self.rng.random(shape) < (0.2 if odd else 0)
        if kind.kind in "iu":
            info = np.iinfo(kind)
            first, last = max(int(low), int(info.min)), min(int(high), int(info.max))
            plain = self.rng.integers(first, last + 1, shape)
            extremes = np.array([info.min, info.max, info.max // 2], kind)
            picked = extremes[self.rng.integers(3, size=shape)]
            return np.asarray(np.where(where, picked, plain.astype(kind)), kind)
        real = self.rng.uniform(low, high, shape)
        if self.chance(0.4):
            real = np.round(real * 2) / 2  # ties, zeros and exact halves
        strange = np.array([np.nan, np.inf, -np.inf, -0.0, 3e4, -3e4, 2.5, -2.5, 1e-7])
        picked = strange[self.rng.integers(len(strange), size=shape)]
        return np.asarray(np.where(where, picked, real), kind)

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def put(self, value: Any, constant: bool | None = None) -> str:
        """A new value: an input of the graph, an initializer, or what a Constant puts out."""
        array = np.asarray(value)
        if not (self.chance(0.3) if constant is None else constant):
            name = self.name("x")
            self.feeds[name] = array
        else:
            name = self.name("c")
            tensor = numpy_helper.from_array(array, name)
            if self.chance(0.3):
                self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
            else:
                self.initializers.append(tensor)
        self.known[name] = array
        return name

    def new(self, dtype: str, shape: Sequence[int], low: float = -4, high: float = 4) -> str:
        return self.put(self.array(dtype, shape, low, high))

    def whole(self, values: Sequence[int], dtype: str = "int64") -> str:
        """Whole numbers that a node reads, most often known before the run."""
        return self.put(np.array(values, dtype), self.chance(0.75))

    def tensor(
        self,
        dtype: str,
        low: int = 0,
        high: int = 4,
        *,
        least: float = -4,
        most: float = 4,
        odd: bool = False,
        empty: float = 0.04,
    ) -> tuple[str, Array]:
        """A value of this type and rank: one that is there, or a new input."""
        there = [
            (name, array)
            for name, array in self.known.items()
            if array.dtype == dtype
            and low <= array.ndim <= high
            and (empty or array.size)
            and array.size <= 500
            and tame(array, least)
        ]
        if there and self.chance(self.reuse):
            found: tuple[str, Array] = self.pick(there)
            return found
        array = self.array(dtype, self.shape(low, high, empty), least, most, odd)
        return self.put(array, False), array

    def node(
        self, op: str, inputs: Sequence[str], outputs: int = 1, domain: str = "", **attributes: Any
    ) -> list[str]:
        names = [self.name("y") for _ in range(outputs)]
        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        self.nodes.append(helper.make_node(op, given, names, domain=domain, **attributes))
        self.outputs += names
        return names

    def finish(self) -> Graph:
        return Graph(self._model(False), dict(self.feeds), tuple(self.outputs), self._model(True))

    def _model(self, symbolic: bool) -> onnx.ModelProto:
        infos = [
            helper.make_tensor_value_info(
                name,
                element_type(array),
                [f"{name}_{axis}" for axis in range(array.ndim)] if symbolic else array.shape,
            )
            for name, array in self.feeds.items()
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "g", infos, outputs, self.initializers)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(ML, self.ml)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        inferred = onnx.shape_inference.infer_shapes(model).graph.output
        for output, found in zip(model.graph.output, inferred, strict=True):
            if found.type.WhichOneof("value"):
                output.type.CopyFrom(found.type)
            else:
                kind = self.types.get(output.name, "float32")
                output.type.tensor_type.elem_type = element_type(np.empty(0, as_dtype(kind)))
            output.type.tensor_type.ClearField("shape")
        return model


def as_dtype(name: str) -> np.dtype[Any]:
    return np.dtype(bfloat16 if name == "bfloat16" else name)


def element_type(array: Array) -> int:
    if array.dtype == object:
        return int(onnx.TensorProto.STRING)
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


def tame(array: Array, least: float) -> bool:
    """Whether elements are finite and of moderate size."""
    if array.size == 0 or array.dtype.kind == "b":
        return True
    real = array.astype(np.float64)
    return bool(
        np.isfinite(real).all() and np.abs(real).max() < 1e4 and (least < 0 or real.min() >= least)
    )


def family(build: Family) -> Family:
    FAMILIES[build.__name__] = build
    return build


def draw(name: str, seed: int, small: str | None = None) -> Graph:
    """The first valid node of a family that a seed leads to."""
    rng = np.random.default_rng([seed, crc32(name.encode())])
    for _ in range(TRIES):
        opset = int(rng.integers(13 if small else 7, 27))
        builder = Builder(rng, opset, int(rng.integers(1, 5)), small=small)
        try:
            FAMILIES[name](builder)
            return builder.finish()
        except Skip:
            continue
    raise AssertionError(f"{name} draws nothing from seed {seed}")


def compose(seed: int, chained: Sequence[str]) -> Graph:
    """Nodes of several families, most of them fed by earlier ones."""
    rng = np.random.default_rng([seed, len(chained)])
    builder = Builder(rng, int(rng.integers(9, 27)))
    wanted = int(rng.integers(2, 9))
    for _ in range(TRIES):
        before = (dict(builder.feeds), list(builder.nodes), list(builder.initializers))
        kept = (dict(builder.known), list(builder.outputs))
        builder.reuse = 0.9 if builder.outputs else 0.0
        try:
            FAMILIES[builder.pick(chained)](builder)
            values = sx.Session(builder.finish().model).run_all(builder.feeds)
        except (Skip, sx.SardonyxError):
            builder.feeds, builder.nodes, builder.initializers = before
            builder.known, builder.outputs = kept
            continue
        for name in builder.outputs:
            if isinstance(values[name], np.ndarray):
                builder.known[name] = values[name]
        if len(builder.outputs) >= wanted:
            break
    return builder.finish()
