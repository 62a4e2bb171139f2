"""Operators of the user's own: one decorated function is a new operator.

    @sx.operator("com.acme::SoftStep")
    def soft_step(v, *, sharpness=1.0):                     # element by element: native, fused with its neighbours
        return expressions.sigmoid(v * sharpness)

    @sx.operator("com.acme::Roll", shapes=lambda call: [call.same()])
    def roll(x, *, shift=1):                                # any numpy code: runs on the reference backend
        return np.roll(x, shift)

Positional parameters are the inputs, keyword-only ones the attributes with their defaults. An operator
is known to the whole process from then on: to load, check, Session and everything that comes after.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from sardonyx.errors import UnsupportedError
from sardonyx.loops.nodes import Expr
from sardonyx.model.opset import latest_opset
from sardonyx.ops.broadcast import broadcast_shapes
from sardonyx.ops.call import Call
from sardonyx.ops.entry import Operator, ShapeRule
from sardonyx.ops.facts import Facts
from sardonyx.ops.lowering import Element, Position, Site
from sardonyx.ops.registry import register

__all__ = ["CustomOperator", "find_custom", "operator"]

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class CustomOperator:
    """A user's operator: what it is called, its function, and its attributes with their defaults."""

    domain: str
    name: str
    function: Callable[..., Any]
    attributes: Mapping[str, Any]

    def arguments(self, call: Call) -> dict[str, Any]:
        """The node's attributes, or their defaults; text comes as str."""
        return {name: _plain(call.attr(name, default)) for name, default in self.attributes.items()}


_CUSTOM: dict[tuple[str, str], CustomOperator] = {}


def find_custom(domain: str, name: str) -> CustomOperator | None:
    """The user's operator of this name, if there is one."""
    return _CUSTOM.get((domain, name))


def operator(name: str, *, shapes: ShapeRule | None = None) -> Callable[[Function], Function]:
    """Make a function an operator.

    Args:
        name: "domain::Name"; the domain must be one of your own.
        shapes: facts about the outputs from a `Call`, as the rules in `sardonyx.ops` are written. Without it the
            operator works element by element, its inputs broadcast, and it is compiled.
    """
    domain, separator, op_type = name.partition("::")
    if not separator or not domain or not op_type or latest_opset(domain) is not None:
        raise UnsupportedError(
            f"{name!r} cannot be the name of an operator of yours.",
            value=name,
            hint='Name it "domain::Name", with a domain that is not one of the standard\'s.',
        )

    def decorate(function: Function) -> Function:
        custom = CustomOperator(domain, op_type, function, _attributes(function))
        _CUSTOM[domain, op_type] = custom
        if shapes is None:
            rule: ShapeRule = _broadcasting
            lowering = Element(_element_of(custom), weight=8, pointwise=True)
            register(Operator(op_type, "pointwise", rule, lower=lowering, domain=domain))
        else:
            register(Operator(op_type, "opaque", shapes, domain=domain))
        return function

    return decorate


def _attributes(function: Callable[..., Any]) -> dict[str, Any]:
    found = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            if parameter.default is inspect.Parameter.empty:
                raise UnsupportedError(
                    f"the attribute {parameter.name!r} has no default.",
                    value=parameter.name,
                    hint="Give every keyword-only parameter a default value.",
                )
            found[parameter.name] = parameter.default
    return found


def _broadcasting(call: Call) -> list[Facts]:
    first = call.input(0)
    shape = broadcast_shapes(call, [facts.shape for facts in call.inputs if facts])
    return [Facts("tensor", first.dtype, shape)]


def _element_of(custom: CustomOperator) -> Callable[[Site, Position], Expr]:
    def value(site: Site, position: Position) -> Expr:
        operands = [
            site.broadcast(index, position)
            for index, facts in enumerate(site.call.inputs)
            if facts is not None
        ]
        try:
            result = custom.function(*operands, **custom.arguments(site.call))
        except (TypeError, AttributeError) as error:
            site.refuse(f"{custom.name} is not written in the expression language: {error}")
        if not isinstance(result, Expr):
            site.refuse(f"{custom.name} is not written in the expression language")
        return result

    return value


def _plain(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
