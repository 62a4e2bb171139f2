"""What each primitive of JAX is in ONNX; `primitives/` has the entries, one family a file.

    @primitive("neg")
    def negate(site, x):
        return site.graph.op("Neg", x)

A primitive whose meaning is said best in JAX itself is lowered to other primitives:

    @lowered("square")
    def square(x):
        return x * x
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
import onnx_ir as ir
from jax.extend.core import ClosedJaxpr

from sardonyx.conversion.jax.graph import Graph
from sardonyx.errors import ConvertError

__all__ = ["Inline", "Rule", "Site", "find_rule", "jaxpr_of", "lowered", "primitive", "refused"]

# Writes a jaxpr's equations into the graph: (closed jaxpr, its arguments, which outputs are read) → outputs.
Inline: TypeAlias = Callable[..., list[ir.Value]]


@dataclass(frozen=True)
class Site:
    """One equation of a jaxpr.

    Attributes:
        graph: to write into.
        name: of the primitive.
        params: of the equation.
        ins, outs: what JAX knows of its operands and results: `.shape` and `.dtype`.
        inline: writes another jaxpr into the graph.
        line: of the user's source, for errors.
        used: which of its results somebody reads.
    """

    graph: Graph
    name: str
    params: Mapping[str, Any]
    ins: tuple[Any, ...]
    outs: tuple[Any, ...]
    inline: Inline
    line: str | None
    used: tuple[bool, ...]

    def refuse(self, why: str, hint: str | None = None) -> ConvertError:
        """The error that says what cannot be written."""
        return ConvertError(why, where=f"the primitive {self.name}", source=self.line, hint=hint)


Rule: TypeAlias = Callable[..., "ir.Value | Sequence[ir.Value]"]

_RULES: dict[str, Rule] = {}


def primitive(*names: str) -> Callable[[Rule], Rule]:
    """Register how these primitives are written."""

    def register(rule: Rule) -> Rule:
        for name in names:
            _RULES[name] = rule
        return rule

    return register


def jaxpr_of(function: Callable[..., Any], *like: Any) -> ClosedJaxpr:
    """What a function of JAX does with arrays of these shapes and types."""
    untyped: Any = jax.ShapeDtypeStruct
    return jax.make_jaxpr(function)(*(untyped(aval.shape, aval.dtype) for aval in like))


def lowered(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of JAX that computes the primitive by others; params are keyword arguments."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def rule(site: Site, *operands: ir.Value) -> list[ir.Value]:
            bound = functools.partial(function, **site.params)
            return site.inline(jaxpr_of(bound, *site.ins), operands)

        for name in names:
            _RULES[name] = rule
        return function

    return register


def refused(reason: str, hint: str | None, *names: str) -> None:
    """Register primitives that ONNX cannot express."""

    def rule(site: Site, *operands: ir.Value) -> list[ir.Value]:
        raise site.refuse(reason, hint)

    for name in names:
        _RULES[name] = rule


def find_rule(name: str) -> Rule | None:
    return _RULES.get(name)
