"""The walk: a graph becomes a function, node after node, by a language's operator table.

Integers that inference knows (shapes, axes) are written as sizes where they are read, and the nodes that compute
them are not written at all:

    batch = input_ids.shape[0]
    reshape = linear.reshape(batch, length, 12, 64)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.back.language import Language
from sardonyx.conversion.back.names import PYTHON_WORDS, Names, snake_case
from sardonyx.conversion.back.sizes import size_text
from sardonyx.conversion.back.step import NIBBLES, Step
from sardonyx.conversion.back.support import HELPERS
from sardonyx.conversion.back.text import Function, Statement, without_unread
from sardonyx.conversion.back.weights import Weight, is_trained
from sardonyx.errors import UnsupportedError
from sardonyx.model.opset import normal_domain
from sardonyx.ops.facts import DISCRETE, VARYING, fact_symbols
from sardonyx.passes.shapes import Shapes
from sardonyx.sizes import Size, symbols

__all__ = ["Program", "Writer", "write"]

_NUMBERED = re.compile(r"val_\d+")


@dataclass(frozen=True)
class Program:
    """A model as a function of its inputs and its weights.

    Attributes:
        function: its text.
        inputs, outputs: the model's own names of what the function takes and gives.
        weights: by their identifiers.
        helpers: functions that the text calls, in the order of their first use.
    """

    function: Function
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: dict[str, Weight]
    helpers: tuple[Callable[..., Any], ...]


def write(model: ir.Model, shapes: Shapes, language: Language, name: str) -> Program:
    """The model's graph in the words of a language; what it cannot say is refused."""
    writer = Writer(model, shapes, language)
    for value in (*writer.ports(model.graph), *model.graph.outputs):
        if shapes.of(value).kind != "tensor" and not language.integer:
            raise UnsupportedError(
                f"{language.name}: it is no tensor ({shapes.of(value).kind}), and traced programs take and give nothing else.",
                where=f"{(value.name or '')[:80]!r}",
            )
        if shapes.of(value).dtype in NIBBLES:
            raise UnsupportedError(
                f"{language.name}: it is of {shapes.of(value).dtype}, which the framework has no tensors of.",
                where=f"{(value.name or '')[:80]!r}",
            )
    function = writer.function(model.graph, name)
    return Program(
        function,
        tuple(value.name or "" for value in writer.ports(model.graph)),
        tuple(value.name or "" for value in model.graph.outputs),
        {one.name: one for one in writer.weights.values() if one.name in writer.read},
        tuple(one for name, one in writer.helpers.items() if name in writer.read),
    )


class Writer:
    """The state of a walk.

    Attributes:
        names: of values that have been written.
        weights: of constants that something reads.
        read: names of weights that what is left of the text reads.
        helpers: functions to go with the text.
    """

    def __init__(self, model: ir.Model, shapes: Shapes, language: Language) -> None:
        self.model = model
        self.shapes = shapes
        self.language = language
        self.versions = {normal_domain(d): v for d, v in model.opset_imports.items()}
        self.fresh = Names(PYTHON_WORDS | language.reserved | language.support.keys() | HELPERS)
        self.names: dict[ir.Value, str] = {}
        self.weights: dict[ir.Value, Weight] = {}
        self.read: set[str] = set()
        self.helpers: dict[str, Callable[..., Any]] = {}
        self._sources: dict[str, tuple[str, int]] = {}  # which dimension a symbol is the size of
        self._bound: dict[str, str] = {}  # names of symbols that have been asked for
        self._statements: list[Statement] = []
        self._first = ""

    def ports(self, graph: ir.Graph) -> list[ir.Value]:
        """What a graph must be given: inputs that have no value of their own."""
        return [value for value in graph.inputs if value.name not in graph.initializers]

    def function(self, graph: ir.Graph, wish: str) -> Function:
        """A graph as a function."""
        name = self.fresh.fresh(wish)
        with self._inside() as statements:
            parameters = []
            for value in self.ports(graph):
                self._define(value, self.fresh.fresh(value.name or "", "x"))
                parameters.append(self.names[value])
                if self.shapes.of(value).kind == "tensor":
                    self._first = self._first or self.names[value]
            for node in graph:
                self._node(node)
            uses: set[str] = set()
            returns = [self._returned(value, uses) for value in graph.outputs]
            body = without_unread(statements, uses)
        self.read |= {one for statement in body for one in statement.reads} | uses
        return Function(name, tuple(parameters), body, tuple(returns), frozenset(uses))

    def _returned(self, value: ir.Value, uses: set[str]) -> str:
        """An output; of what is no name yet, by a statement of its own."""
        step = _Returning(uses)
        return self.tensor(value, step)

    @contextmanager
    def _inside(self) -> Iterator[list[Statement]]:
        """A scope: what is bound inside is not known outside."""
        before = self._sources, self._bound, self._statements
        self._sources, self._bound, self._statements = dict(before[0]), dict(before[1]), []
        yield self._statements
        self._sources, self._bound, self._statements = before

    def _node(self, node: ir.Node) -> None:
        if node.op_type == "Constant" or all(self.is_known(value) for value in node.outputs):
            return
        version = self.versions.get(normal_domain(node.domain), 1)
        step = Step(self, node, version)
        step.check_types()
        answer = self.language.entry(node.op_type)(step)
        base = snake_case(node.op_type)
        outputs = [value for value in node.outputs if value.name]
        if isinstance(answer, str):
            names = tuple(
                self.fresh.fresh(base) for _ in range(max(len(node.outputs), step.returns))
            )
            self._add(Statement(names, answer, frozenset(step.uses), tuple(step.functions)))
        else:
            names = tuple(self.fresh.fresh(base) for _ in outputs)
            functions = tuple(step.functions)
            for name, text in zip(names, answer, strict=False):
                self._add(Statement((name,), text, frozenset(step.uses), functions))
                functions = ()
        for value, name in zip(node.outputs, names, strict=False):
            self._define(value, name)

    def _add(self, statement: Statement) -> None:
        self._statements.append(statement)

    def _define(self, value: ir.Value, name: str) -> None:
        self.names[value] = name
        facts = self.shapes.of(value)
        if facts.kind != "tensor":
            return
        for axis, size in enumerate(facts.shape or ()):
            lone = None if isinstance(size, int) else size.lone_symbol
            if lone is not None and size != VARYING:
                self._sources.setdefault(lone, (name, axis))

    # What steps ask for

    def is_known(self, value: ir.Value) -> bool:
        """Whether a value is integers that are written where they are read."""
        facts = self.shapes.of(value)
        if facts.kind != "tensor" or facts.value is None or facts.dtype not in DISCRETE:
            return False
        return fact_symbols(facts) <= self._sources.keys()

    def can_size(self, size: Size) -> bool:
        return symbols(size) <= self._sources.keys()

    def size(self, size: Size, step: Step | _Returning) -> str:
        """A size as text; symbols are bound to names as they are first asked for."""

        def name_of(lone: str) -> str:
            if lone not in self._bound:
                source, axis = self._sources[lone]
                name = self.fresh.fresh(lone.replace(".", "_"), "size")
                text = self.language.dimension.format(source, axis)
                self._add(Statement((name,), text, frozenset({source})))
                self._bound[lone] = name
            step.uses.add(self._bound[lone])
            return self._bound[lone]

        return size_text(size, name_of)

    def tensor(self, value: ir.Value, step: Step | _Returning) -> str:
        """A value as text: its name, a weight, or integers made into a tensor."""
        name = self.names.get(value)
        if name is not None:
            step.uses.add(name)
            return name
        tensor = ir.convenience.get_const_tensor(value)
        if tensor is None and self.is_known(value):
            facts = self.shapes.of(value)
            known = facts.value
            assert known is not None
            assert facts.dtype is not None
            if fact_symbols(facts):
                return self._made(value, step)
            tensor = ir.Tensor(known.astype(facts.dtype.numpy()), facts.dtype, name=value.name)
        if tensor is None:
            raise KeyError(value.name)
        return self._weight(value, tensor, step)

    def _weight(self, value: ir.Value, tensor: ir.TensorProtocol, step: Step | _Returning) -> str:
        weight = self.weights.get(value)
        if weight is None:
            # A number is no name; and torch's exporter, which gives these, needs them for its own values.
            wish = "" if _NUMBERED.fullmatch(value.name or "") else value.name or ""
            name = self.fresh.fresh(wish, "constant")
            weight = Weight(name, value.name or "", tensor, is_trained(value, tensor))
            self.weights[value] = weight
        step.uses.add(weight.name)
        template = self.language.parameter if weight.trained else self.language.constant
        return template.format(weight.name)

    def table(self, array: np.ndarray[Any, Any], wish: str, step: Step, *, trained: bool) -> str:
        """Numbers of an attribute as a constant of the program."""
        name = self.fresh.fresh(wish, "table")
        value = ir.Value(name=name)
        weight = Weight(name, name, ir.tensor(array, name=name), trained)
        self.weights[value] = weight
        step.uses.add(name)
        return (self.language.parameter if trained else self.language.constant).format(name)

    def let(self, wish: str, text: str, step: Step) -> str:
        """A statement before the step's own; its name."""
        name = self.fresh.fresh(wish)
        self._add(Statement((name,), text, frozenset(step.uses)))
        step.uses.add(name)
        return name

    def anything(self, step: Step | _Returning) -> str:
        """The name of a tensor that is there, to be on the same device; "None" where there is none."""
        if not self._first:
            return "None"
        step.uses.add(self._first)
        return self._first

    def _made(self, value: ir.Value, step: Step | _Returning) -> str:
        """Sizes as a tensor."""
        facts = self.shapes.of(value)
        known = np.asarray(facts.value)
        first = next(iter(sorted(fact_symbols(facts))))
        beside = self._sources[first][0]
        step.uses.add(beside)
        texts = [
            self.language.size.format(
                self.size(one, step) if not isinstance(one, bool) else one, beside
            )
            for one in known.reshape(-1)
        ]
        phrases = self.language.phrases
        text = texts[0]
        if known.ndim:
            text = phrases["stack"].format(", ".join(texts), 0)
        if known.ndim > 1:
            text = phrases["reshape"].format(text, f"({', '.join(map(str, known.shape))})")
        if facts.dtype != ir.DataType.INT64 and facts.dtype is not None:
            text = phrases["cast"].format(text, self.language.dtypes[facts.dtype])
        return text


class _Returning:
    """What a function returns reads names too."""

    def __init__(self, uses: set[str]) -> None:
        self.uses = uses
