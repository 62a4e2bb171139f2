"""One node as an entry of an operator table sees it: texts for its inputs, numbers where they are known."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from string import Formatter
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.conversion.back.node import NodeReader
from sardonyx.model.opset import normal_domain
from sardonyx.ops.facts import CONTINUOUS, DISCRETE, is_concrete
from sardonyx.ops.schema import find_schema
from sardonyx.sizes import Size

if TYPE_CHECKING:
    from sardonyx.conversion.back.text import Function
    from sardonyx.conversion.back.writer import Writer

__all__ = ["NIBBLES", "Step", "number_text", "tuple_text"]

# In a byte each, where nothing is computed with them.
NIBBLES = (ir.DataType.INT4, ir.DataType.UINT4)
_OF_NIBBLES = ("QuantizeLinear", "DequantizeLinear")
_CALLED = re.compile(r"(?<![\w.])(\w+)\(")


class Step(NodeReader):
    """A node on its way into source text.

    Attributes:
        uses: names that its text reads, gathered as they are asked for.
        functions: bodies that its text calls.
        returns: how many values its text gives, where that may be more than the node has outputs.
    """

    def __init__(self, writer: Writer, node: ir.Node, version: int) -> None:
        super().__init__(node, version, writer.shapes, writer.language.name)
        self.writer = writer
        self.uses: set[str] = set()
        self.functions: list[Function] = []
        self.returns = 1

    # What the node says

    def check_types(self) -> None:
        """Refuse what the framework has no tensors of."""
        for facts in (*self.call.inputs, *self.outputs):
            if facts is not None and facts.kind == "tensor" and facts.dtype is not None:
                if facts.dtype in NIBBLES and self.node.op_type not in _OF_NIBBLES:
                    self.refuse(f"it has no type {facts.dtype}")
                self.type_text(facts.dtype)

    def number(self, name: str, default: float) -> str:
        """A float attribute as text."""
        return number_text(np.float32(self.call.attr(name, default)))

    # What is known of inputs and outputs

    def dtype(self, index: int) -> ir.DataType:
        found = self.call.dtype(index)
        if found is None:
            self.refuse(f"the type of input {index} is not known before a run")
        return found

    def is_float(self, index: int) -> bool:
        return self.dtype(index) in CONTINUOUS

    def numbers(self, index: int) -> np.ndarray[Any, Any] | None:
        """The elements of an input, where they are plain numbers that are known."""
        if not self.has(index):
            return None
        facts = self.facts(index)
        if facts.value is not None:
            if not is_concrete(facts.value) or facts.dtype is None:
                return None
            return np.asarray(facts.value.astype(facts.dtype.numpy()))
        value = self.node.inputs[index]
        tensor = None if value is None else ir.convenience.get_const_tensor(value)
        return None if tensor is None else tensor.numpy()

    def integers(self, index: int) -> list[int] | None:
        """Elements of an input that are plain integers; None where it is absent or not known."""
        found = self.numbers(index)
        return None if found is None else [int(one) for one in found.reshape(-1)]

    def need_integers(self, index: int, what: str) -> list[int]:
        found = self.integers(index)
        if found is None:
            self.refuse(f"its {what} are not known before a run")
        return found

    # Texts

    def __getitem__(self, index: int) -> str:
        """An input, as a tensor."""
        value = self.node.inputs[index] if index < len(self.node.inputs) else None
        if value is None:
            return "None"
        return self.writer.tensor(value, self)

    def tensors(self) -> list[str]:
        return [self[index] for index in range(self.count)]

    def operand(self, index: int, other: int) -> str:
        """An input of something elementwise: a number, where it is one that leaves the other's shape as it is."""
        facts, beside = self.facts(index), self.facts(other)
        fits = facts.shape is not None and beside.shape is not None
        if fits and len(facts.shape or ()) <= len(beside.shape or ()):
            found = self._literal(index)
            both = self._literal(other) is not None and index < other
            if found is not None and not both:
                return found
        return self[index]

    def _literal(self, index: int) -> str | None:
        facts = self.facts(index)
        if facts.shape is None or any(size != 1 for size in facts.shape):
            return None
        if facts.dtype in DISCRETE:
            known = self.sizes(index)
            if known is None or facts.dtype == ir.DataType.BOOL:
                return None
            text = self.size(known[0])
            return text if text.isidentifier() or text.isdigit() else f"({text})"
        found = self.numbers(index)
        if found is None or not np.isfinite(found).all():
            return None
        text = number_text(found.reshape(-1)[0])
        return f"({text})" if text.startswith("-") else text

    def sizes(self, index: int) -> list[Size] | None:
        """Integers that an input holds, over sizes of values that are there; None where only a run tells."""
        value = self.node.inputs[index]
        if value is None or not self.writer.is_known(value):
            return None
        known = self.facts(index).value
        return None if known is None else list(known.reshape(-1))

    def size(self, size: Size) -> str:
        """A size as Python text."""
        return self.writer.size(size, self)

    def integer_texts(self, index: int, what: str) -> list[str]:
        """Integers that an input holds, as Python text; asked of the data where the framework can."""
        known = self.sizes(index)
        if known is not None:
            return [self.size(one) for one in known]
        count = self.facts(index).elements
        template = self.writer.language.integer
        if not template or not isinstance(count, int):
            self.refuse(f"its {what} are data, which a traced program cannot ask for")
        if self.rank(index) == 0:
            return [template.format(self[index])]
        return [template.format(f"{self[index]}[{place}]") for place in range(count)]

    def output_sizes(self, output: int = 0) -> list[str] | None:
        """The shape of an output, where it is a matter of what is there before."""
        shape = self.outputs[output].shape
        if shape is None or not all(self.writer.can_size(size) for size in shape):
            return None
        return [self.size(size) for size in shape]

    def type_text(self, dtype: ir.DataType | None) -> str:
        language = self.writer.language
        if dtype is None or dtype not in language.dtypes:
            self.refuse(f"it has no type {dtype}")
        reason = language.accepts(dtype)
        if reason is not None:
            self.refuse(reason)
        return language.dtypes[dtype]

    def output_type(self, output: int = 0) -> str:
        return self.type_text(self.outputs[output].dtype)

    def fill(self, template: str) -> str:
        """A template of the table with this node's inputs (`{0}`) and numeric attributes (`{alpha}`)."""
        names = {field for _, field, _, _ in Formatter().parse(template) if field}
        attributes = {name: self.attribute_text(name) for name in names if not name.isdigit()}
        self._use_words(template)
        return template.format(*self.tensors(), **attributes)

    def _use_words(self, template: str) -> None:
        """Functions that a template calls go with the model."""
        for word in _CALLED.findall(template):
            if word in self.writer.language.support:
                self.help(word)

    def attribute_text(self, name: str) -> str:
        """An attribute that is a number, or what the schema has for it."""
        value = self.call.attr(name)
        if value is None:
            schema = find_schema(
                normal_domain(self.node.domain), self.node.op_type, self.call.version
            )
            assert schema is not None
            value = onnx.helper.get_attribute_value(schema.attributes[name].default_value)
        return number_text(np.float32(value)) if isinstance(value, float) else str(int(value))

    def say(self, phrase: str, *parts: object) -> str:
        """What the framework says for something; refused where it has no word for it."""
        template = self.writer.language.phrases.get(phrase)
        if template is None:
            self.refuse(f"there is no {phrase}")
        self._use_words(template)
        return template.format(*parts)

    def cast(self, text: str, dtype: ir.DataType | None) -> str:
        return self.say("cast", text, self.type_text(dtype))

    def use(self, helper: Callable[..., Any]) -> str:
        """The name of a function whose source goes with the model's."""
        name = helper.__name__
        self.writer.helpers[name] = helper
        self.uses.add(name)
        return name

    def help(self, name: str) -> str:
        """The same of a function that every framework has in its own words."""
        return self.use(self.writer.language.support[name])

    def table(self, array: Any, wish: str, *, trained: bool = False) -> str:
        """Numbers that the node has as an attribute, as a tensor of the program."""
        return self.writer.table(np.asarray(array), wish, self, trained=trained)

    def let(self, wish: str, text: str) -> str:
        """A name for what is read more than once."""
        return self.writer.let(wish, text, self)

    def body(self, attribute: str, wish: str) -> Function:
        """A subgraph as a function."""
        found = self.call.attribute(attribute)
        if found is None:
            self.refuse(f"attribute {attribute} is missing")
        function = self.writer.function(found.as_graph(), wish)
        self.functions.append(function)
        return function


def number_text(number: Any) -> str:
    """A number as Python reads it; the shortest text that is this one in its own type."""
    value = float(number)
    if math.isnan(value):
        return "float('nan')"
    if math.isinf(value):
        return "float('inf')" if value > 0 else "-float('inf')"
    text = str(number) if isinstance(number, np.float32) else repr(value)
    return (
        repr(value) if float(np.float32(text)) != value and isinstance(number, np.float32) else text
    )


def tuple_text(items: Sequence[object]) -> str:
    """`(a, b)`, `(a,)`, `()`."""
    inner = ", ".join(map(str, items))
    return f"({inner},)" if len(items) == 1 else f"({inner})"
