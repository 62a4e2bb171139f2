"""One layer of a stored network, and the tables that say what layers mean.

    @table.layer("Activation")
    def activation(layer):
        return layer.op(_ACTIVATIONS[layer.text("act_type")], layer.input(0))

What a rule does not read of a layer's attributes it cannot have obeyed: a layer with attributes that nobody asked for
is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import onnx_ir as ir

from sardonyx.conversion.stored.graph import Graph
from sardonyx.errors import ConvertError

__all__ = ["Layer", "Rule", "Table"]

_Given = TypeVar("_Given")


class Layer:
    """A layer as the file has it, with its operands written already.

    Attributes:
        graph: to write into.
        kind: as the framework calls it.
        name: of this one.
        inputs: its operands; None for one that is left out.
        outputs: how many results the file names.
    """

    def __init__(
        self,
        graph: Graph,
        kind: str,
        name: str,
        inputs: Sequence[ir.Value | None],
        attributes: Mapping[str, Any],
        outputs: int = 1,
    ) -> None:
        self.graph = graph
        self.kind = kind
        self.name = name
        self.inputs = tuple(inputs)
        self.outputs = outputs
        self._attributes = dict(attributes)
        self._read: set[str] = set()

    # ------------------------------------------------------------ operands

    def input(self, index: int) -> ir.Value:
        """An operand that must be there.

        Raises:
            ConvertError: it is not.
        """
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            raise self.refuse(f"it has no operand {index}; the file names {len(self.inputs)}.")
        return found

    def optional(self, index: int) -> ir.Value | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def weight(self, index: int, what: str) -> Any:
        return self.graph.weight(self.input(index), what)

    def op(self, kind: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        made: ir.Value = self.graph.op(kind, *inputs, **attributes)
        return made

    def scalar(self, number: float) -> ir.Value:
        """A constant of the first operand's type."""
        return self.graph.constant(number, like=self.input(0))

    # ------------------------------------------------------------ attributes

    def has(self, name: str) -> bool:
        return self._attributes.get(name) is not None

    def get(self, name: str) -> Any:
        """The attribute as the file has it; None where it has none."""
        self._read.add(name)
        return self._attributes.get(name)

    def integer(self, name: str, default: int | None = None) -> int:
        value = self.get(name)
        if value is None:
            return self._must(name, default)
        if isinstance(value, bool | int) or (isinstance(value, float) and value.is_integer()):
            return int(value)
        raise self._not(name, value, "an integer")

    def number(self, name: str, default: float | None = None) -> float:
        value = self.get(name)
        if value is None:
            return self._must(name, default)
        if isinstance(value, bool | int | float):
            return float(value)
        raise self._not(name, value, "a number")

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.get(name)
        if value is None:
            return default
        if isinstance(value, bool | int) and value in (0, 1):
            return bool(value)
        raise self._not(name, value, "true or false")

    def text(self, name: str, default: str | None = None) -> str:
        value = self.get(name)
        if value is None:
            return self._must(name, default)
        if isinstance(value, str):
            return value
        raise self._not(name, value, "a text")

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        value = self.get(name)
        if value is None:
            return [*self._must(name, default)]
        items = value if isinstance(value, list | tuple) else [value]
        if all(isinstance(item, int) for item in items):
            return [int(item) for item in items]
        raise self._not(name, value, "integers")

    def choice(self, name: str, default: str | None, options: Collection[str]) -> str:
        """A text that must be one of these."""
        found = self.text(name, default)
        if found not in options:
            raise self.refuse(
                f"{name} is {found[:40]!r}; what can be written is {', '.join(sorted(options))}."
            )
        return found

    def ignore(self, *names: str) -> None:
        """Attributes that change no answer."""
        self._read.update(names)

    def check_read(self, harmless: Collection[str]) -> None:
        """Refuse what the rule never looked at.

        Raises:
            ConvertError: an attribute that nobody read and that may change the answers.
        """
        unread = sorted(
            name
            for name, value in self._attributes.items()
            if value is not None and name not in self._read and name not in harmless
        )
        if unread:
            raise self.refuse(f"its attributes {', '.join(unread)[:120]} are not known.")

    # ------------------------------------------------------------ refusals

    def refuse(self, why: str, hint: str | None = None) -> ConvertError:
        return self.graph.refuse(why, hint)

    def _must(self, name: str, default: _Given | None) -> _Given:
        if default is None:
            raise self.refuse(f"it has no attribute {name}.")
        return default

    def _not(self, name: str, value: Any, what: str) -> ConvertError:
        return self.refuse(f"its attribute {name} is {value!r:.60}, not {what}.")


Rule: TypeAlias = Callable[[Layer], "ir.Value | Sequence[ir.Value]"]


class Table:
    """What the layers of one framework mean in ONNX.

    Attributes:
        framework: as users say it.
        harmless: attributes of any layer that change no answer.
    """

    def __init__(self, framework: str, harmless: Collection[str] = ()) -> None:
        self.framework = framework
        self.harmless = frozenset(harmless)
        self._rules: dict[str, Rule] = {}

    def layer(self, *kinds: str) -> Callable[[Rule], Rule]:
        """Register how these layers are written."""

        def register(rule: Rule) -> Rule:
            for kind in kinds:
                self._rules[kind] = rule
            return rule

        return register

    def unary(self, pairs: Mapping[str, str]) -> None:
        """Register layers that are one ONNX operator of their operands."""
        for kind, operator in pairs.items():
            self._rules[kind] = _plain(operator)

    def __contains__(self, kind: object) -> bool:
        return kind in self._rules

    def check_known(self, kinds: Collection[str]) -> None:
        """Refuse a network before anything of it is written.

        Raises:
            ConvertError: with all the kinds that have no rule.
        """
        unknown = sorted(set(kinds) - set(self._rules))
        if unknown:
            names = ", ".join(unknown)
            raise ConvertError(
                f"{self.framework} layers without a translation: {names[:300]}.", value=unknown
            )

    def write(self, layer: Layer) -> list[ir.Value]:
        """The layer's results.

        Raises:
            ConvertError: it cannot be written; the message names it.
        """
        graph = layer.graph
        graph.layer = f"{layer.kind} {layer.name[:80]}"
        rule = self._rules.get(layer.kind)
        if rule is None:
            raise layer.refuse(f"{self.framework}'s {layer.kind[:80]} has no translation.")
        try:
            made = rule(layer)
        except (ArithmeticError, IndexError, KeyError, TypeError, ValueError) as error:
            raise layer.refuse(f"its attributes do not fit its operands: {error}.") from error
        layer.check_read(self.harmless)
        results = [made] if isinstance(made, ir.Value) else list(made)
        graph.layer = ""
        return results


def _plain(operator: str) -> Rule:
    def rule(layer: Layer) -> ir.Value:
        operands = [layer.input(index) for index in range(len(layer.inputs))]
        return layer.op(operator, *operands)

    return rule
