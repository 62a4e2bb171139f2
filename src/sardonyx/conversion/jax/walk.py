"""A jaxpr becomes nodes: its equations in order, those alone whose results somebody reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from jax.extend.source_info_util import summarize

from sardonyx.conversion.jax import primitives  # noqa: F401  (registers them)
from sardonyx.conversion.jax.graph import SMALL_FLOAT_OPSET, Graph, onnx_shape, tensor_of
from sardonyx.conversion.jax.structure import is_key, to_numpy
from sardonyx.conversion.jax.table import Site, find_rule
from sardonyx.errors import ConvertError

__all__ = ["Walker"]

_OURS = "sardonyx/conversion/"


class Walker:
    """Writes jaxprs into one graph.

    Args:
        graph: to write into.
        names: of the user's own arrays, by the arrays' identity.
    """

    def __init__(self, graph: Graph, names: Mapping[int, str]) -> None:
        self.graph = graph
        self._names = names
        self._constants: dict[int, tuple[Any, ir.Value]] = {}

    def inline(
        self,
        closed: ClosedJaxpr,
        arguments: Sequence[ir.Value],
        wanted: Sequence[bool] | None = None,
    ) -> list[ir.Value]:
        """The results of a jaxpr; those that are not wanted may be any value at all."""
        jaxpr = closed.jaxpr
        known: dict[Any, ir.Value] = dict(zip(jaxpr.invars, arguments, strict=True))
        held = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        read = wanted or [True] * len(jaxpr.outvars)
        live = {
            v for v, w in zip(jaxpr.outvars, read, strict=True) if w and not isinstance(v, Literal)
        }
        for equation, used in _live_equations(jaxpr, live):
            operands = [self._read(known, held, v) for v in equation.invars]
            results = self._write(equation, operands, used)
            known.update(zip(equation.outvars, results, strict=True))
        nothing = next(iter(known.values()), None) or self.graph.constant(0, np.int64)
        return [
            self._read(known, held, v) if w else nothing
            for v, w in zip(jaxpr.outvars, read, strict=True)
        ]

    def _read(self, known: dict[Any, ir.Value], held: Mapping[Any, Any], variable: Any) -> ir.Value:
        if isinstance(variable, Literal):
            aval: Any = variable.aval
            return self._constant(variable.val, aval.dtype)
        if variable not in known:  # a constant that nobody reads is not written
            known[variable] = self._constant(held[variable])
        return known[variable]

    def _constant(self, value: Any, dtype: Any = None) -> ir.Value:
        if id(value) in self._constants:
            return self._constants[id(value)][1]
        array = to_numpy(value) if is_key(value) else np.asarray(value, dtype)
        name = self._names.get(id(value))
        made = self.graph.constant(array) if name is None else self._weight(name, array)
        if array.ndim:
            self._constants[id(value)] = (value, made)  # an identity holds while its object lives
        return made

    def _weight(self, name: str, array: np.ndarray[Any, np.dtype[Any]]) -> ir.Value:
        made = self.graph.parameter(name, array)
        self.graph.names[made] = name
        return made

    def _write(
        self, equation: JaxprEqn, operands: list[ir.Value], used: Sequence[bool]
    ) -> Sequence[ir.Value]:
        name = equation.primitive.name
        line, trace = _line_of(equation)
        self.graph.line = trace or self.graph.line
        rule = find_rule(name)
        if rule is None:
            raise ConvertError(
                f"the primitive {name} has no translation to ONNX.",
                source=line,
                hint="Write it with other functions of jax.numpy or jax.lax.",
            )
        avals = [v.aval for v in (*equation.invars, *equation.outvars)]
        if any(getattr(aval, "dtype", None) == ml_dtypes.bfloat16 for aval in avals):
            self.graph.require(SMALL_FLOAT_OPSET)
        ins, outs = avals[: len(equation.invars)], avals[len(equation.invars) :]
        site = Site(
            self.graph,
            name,
            equation.params,
            tuple(ins),
            tuple(outs),
            self.inline,
            line,
            tuple(used),
        )
        made = rule(site, *operands)
        results = [made] if isinstance(made, ir.Value) else list(made)
        for result, aval, use in zip(results, outs, used, strict=True):
            if use and result.const_value is None and result.producer() is not None:
                result.shape = onnx_shape(tensor_of(aval)[1])
        return results


def _live_equations(jaxpr: Jaxpr, live: set[Any]) -> list[tuple[JaxprEqn, list[bool]]]:
    """Those that somebody reads, in order, and which of their results."""
    found: list[tuple[JaxprEqn, list[bool]]] = []
    for equation in reversed(jaxpr.eqns):
        used = [variable in live for variable in equation.outvars]
        if any(used):
            found.append((equation, used))
            live.update(v for v in equation.invars if not isinstance(v, Literal))
    return found[::-1]


def _line_of(equation: JaxprEqn) -> tuple[str | None, str | None]:
    """The user's line, as errors tell it and as nodes keep it."""
    text = summarize(equation.source_info)  # path.py:12:8 (function)
    place, _, function = text.partition(" (")
    path, _, rest = place.rpartition(".py:")
    if not path or _OURS in path:
        return None, None
    number = rest.partition(":")[0]
    short = path.replace("\\", "/").rpartition("/")[2]
    return f"{short}.py:{number}", f'File "{path}.py", line {number}, in {function.rstrip(")")}\n'
