"""A jaxpr with complex numbers inside, as one of real numbers alone: every complex array is a pair of them.

    z = complex(a, b); abs(z * z)       →       c = a * a - b * b; d = 2 * a * b; sqrt(c * c + d * d)

The jaxpr is run once more on tracers, with pairs in the places of complex ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive

from sardonyx.conversion.jax.table import jaxpr_of
from sardonyx.errors import ConvertError

__all__ = ["DFT", "without_complex"]

DFT: Any = Primitive("sardonyx_dft")  # [..., 1 or 2] → [..., 2] along an axis, as ONNX has it


def _dft_shape(x: Any, *, axis: int, inverse: bool, onesided: bool) -> Any:
    sizes = list(x.shape)
    if onesided:
        sizes[axis] = sizes[axis] // 2 + 1
    return ShapedArray((*sizes[:-1], 2), x.dtype)


DFT.def_abstract_eval(_dft_shape)


class Pair(NamedTuple):
    """A complex array."""

    re: Any
    im: Any


def without_complex(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The same function in real numbers; its own inputs and outputs are real already.

    Raises:
        ConvertError: complex numbers meet a primitive that is not written for them.
    """
    if not _has_complex(closed.jaxpr):
        return closed

    def run(*arrays: Any) -> Any:
        return _evaluate(closed.jaxpr, closed.consts, arrays)

    return jaxpr_of(run, *closed.in_avals)


def _is_complex(aval: Any) -> bool:
    return getattr(getattr(aval, "dtype", None), "kind", "") == "c"


def _inner(equation: JaxprEqn) -> list[Any]:
    return [j for value in equation.params.values() for j in _jaxprs(value)]


def _jaxprs(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [j for item in value for j in _jaxprs(item)]
    if isinstance(value, ClosedJaxpr):
        return [value.jaxpr]
    return [value] if isinstance(value, Jaxpr) else []


def _has_complex(jaxpr: Any) -> bool:
    for equation in jaxpr.eqns:
        if any(_is_complex(v.aval) for v in (*equation.invars, *equation.outvars)):
            return True
        if any(_has_complex(inner) for inner in _inner(equation)):
            return True
    return False


def _evaluate(jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    known: dict[Any, Any] = dict(zip(jaxpr.constvars, map(_paired, consts), strict=True))
    known.update(zip(jaxpr.invars, arguments, strict=True))

    def read(variable: Any) -> Any:
        return _paired(variable.val) if isinstance(variable, Literal) else known[variable]

    for equation in jaxpr.eqns:
        results = _apply(equation, [read(variable) for variable in equation.invars])
        known.update(zip(equation.outvars, results, strict=True))
    return [read(variable) for variable in jaxpr.outvars]


def _paired(value: Any) -> Any:
    if getattr(getattr(value, "dtype", None), "kind", "") == "c" or isinstance(value, complex):
        whole = np.asarray(value)
        return Pair(np.real(whole), np.imag(whole))
    return value


def _apply(equation: JaxprEqn, operands: list[Any]) -> Sequence[Any]:
    name = equation.primitive.name
    inner = next(
        (equation.params[k] for k in ("jaxpr", "call_jaxpr") if k in equation.params), None
    )
    if name in _CALLS and inner is not None:
        consts = inner.consts if isinstance(inner, ClosedJaxpr) else ()
        return _evaluate(inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner, consts, operands)
    avals = [v.aval for v in (*equation.invars, *equation.outvars)]
    if not any(map(_is_complex, avals)) and not any(map(_has_complex, _inner(equation))):
        return _bind(equation, operands)
    if name in _EACH:
        parts = [
            _bind(equation, [x[side] if isinstance(x, Pair) else x for x in operands])
            for side in (0, 1)
        ]
        return [Pair(re, im) for re, im in zip(*parts, strict=True)]
    rule = _RULES.get(name)
    if rule is None:
        raise ConvertError(
            f"complex numbers meet the primitive {name}, which is written for real ones alone.",
            hint="Compute it with the real and the imaginary part.",
        )
    return [rule(equation, *operands)]


def _bind(equation: JaxprEqn, operands: Sequence[Any]) -> Sequence[Any]:
    untyped: Any = equation.primitive
    made = untyped.bind(*operands, **untyped.get_bind_params(equation.params))
    return made if equation.primitive.multiple_results else [made]


_CALLS = frozenset(
    {"jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat"}
)
# What is done to the real and to the imaginary parts alike.
_EACH = frozenset(
    {
        "add", "add_any", "broadcast_in_dim", "concatenate", "copy", "cumsum", "dynamic_slice",
        "dynamic_update_slice", "expand_dims", "gather", "neg", "pad", "reduce_sum", "reshape",
        "rev", "scatter", "scatter-add", "select_n", "slice", "split", "squeeze", "stack",
        "stop_gradient", "sub", "transpose",
    }
)  # fmt: skip

Rule = Callable[..., Any]


def _times(_: JaxprEqn, x: Pair, y: Pair) -> Pair:
    return Pair(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)


def _over(_: JaxprEqn, x: Pair, y: Pair) -> Pair:
    """Both divided by the larger part of y first, so that no square overflows."""
    size = jnp.maximum(jnp.abs(y.re), jnp.abs(y.im))
    c, d = y.re / size, y.im / size
    bottom = (c * c + d * d) * size
    return Pair((x.re * c + x.im * d) / bottom, (x.im * c - x.re * d) / bottom)


def _size(_: Any, x: Pair) -> Any:
    a, b = jnp.abs(x.re), jnp.abs(x.im)
    large, small = jnp.maximum(a, b), jnp.minimum(a, b)
    ratio = small / jnp.where(large == 0, 1, large)
    found = large * jnp.sqrt(1 + ratio * ratio)
    return jnp.where(jnp.isinf(large), jnp.asarray(jnp.inf, large.dtype), found)


def _angle(x: Pair) -> Any:
    return lax.atan2(x.im, x.re)


def _root(_: JaxprEqn, x: Pair) -> Pair:
    """The half of the size and of the real part; the sign is that of the imaginary part."""
    size = _size(None, x)
    re = jnp.sqrt(jnp.maximum((size + x.re) / 2, 0))
    im = jnp.sqrt(jnp.maximum((size - x.re) / 2, 0))
    return Pair(re, jnp.where(x.im < 0, -im, im))


def _integer_power(equation: JaxprEqn, x: Pair) -> Pair:
    made = Pair(jnp.ones_like(x.re), jnp.zeros_like(x.im))
    for _ in range(abs(equation.params["y"])):
        made = _times(equation, made, x)
    one = Pair(jnp.ones_like(x.re), jnp.zeros_like(x.im))
    return made if equation.params["y"] >= 0 else _over(equation, one, made)


def _converted(equation: JaxprEqn, x: Any) -> Any:
    wanted = np.dtype(equation.params["new_dtype"])
    if wanted.kind != "c":
        return (x.re if isinstance(x, Pair) else x).astype(wanted)
    part = np.float64 if wanted.itemsize == 16 else np.float32
    if isinstance(x, Pair):
        return Pair(jnp.asarray(x.re, part), jnp.asarray(x.im, part))
    real = jnp.asarray(x).astype(part)
    return Pair(real, jnp.zeros_like(real))


def _product(equation: JaxprEqn, x: Pair, y: Pair) -> Pair:
    given = {**equation.params, "preferred_element_type": x.re.dtype}

    def dot(a: Any, b: Any) -> Any:
        return lax.dot_general_p.bind(a, b, **given)

    return Pair(dot(x.re, y.re) - dot(x.im, y.im), dot(x.re, y.im) + dot(x.im, y.re))


def _transformed(x: Any, axis: int, *, inverse: bool = False, onesided: bool = False) -> Pair:
    parts = jnp.stack([x.re, x.im], -1) if isinstance(x, Pair) else x[..., None]
    made = DFT.bind(parts, axis=axis, inverse=inverse, onesided=onesided)
    return Pair(made[..., 0], made[..., 1])


def _fft(equation: JaxprEqn, x: Any) -> Any:
    kind, lengths = int(equation.params["fft_type"]), equation.params["fft_lengths"]
    rank = (x.re if isinstance(x, Pair) else x).ndim
    axes = list(range(rank - len(lengths), rank))
    if kind == 2:  # of real numbers: the half of the last axis that says all
        x = _transformed(x, axes.pop(), onesided=True)
    if kind == 3:  # back: the other half is put together from the one there is
        for axis in axes[:-1]:
            x = _transformed(x, axis, inverse=True)
        count = lengths[-1]
        mirrored = [jnp.flip(part[..., 1 : (count + 1) // 2], -1) for part in x]
        full = Pair(
            jnp.concatenate([x.re, mirrored[0]], -1), jnp.concatenate([x.im, -mirrored[1]], -1)
        )
        return _transformed(full, axes[-1], inverse=True).re
    for axis in axes:
        x = _transformed(x, axis, inverse=kind == 1)
    return x


_RULES: dict[str, Rule] = {
    "abs": _size,
    "complex": lambda _, re, im: Pair(re, im),
    "conj": lambda _, x: Pair(x.re, -x.im) if isinstance(x, Pair) else Pair(x, jnp.zeros_like(x)),
    "convert_element_type": _converted,
    "cos": lambda _, x: Pair(jnp.cos(x.re) * jnp.cosh(x.im), -jnp.sin(x.re) * jnp.sinh(x.im)),
    "div": _over,
    "dot_general": _product,
    "eq": lambda _, x, y: (x.re == y.re) & (x.im == y.im),
    "exp": lambda _, x: Pair(jnp.exp(x.re) * jnp.cos(x.im), jnp.exp(x.re) * jnp.sin(x.im)),
    "fft": _fft,
    "imag": lambda _, x: x.im,
    "integer_pow": _integer_power,
    "is_finite": lambda _, x: jnp.isfinite(x.re) & jnp.isfinite(x.im),
    "log": lambda _, x: Pair(jnp.log(_size(None, x)), _angle(x)),
    "mul": _times,
    "ne": lambda _, x, y: (x.re != y.re) | (x.im != y.im),
    "real": lambda _, x: x.re,
    "sin": lambda _, x: Pair(jnp.sin(x.re) * jnp.cosh(x.im), jnp.cos(x.re) * jnp.sinh(x.im)),
    "sqrt": _root,
    "square": lambda e, x: _times(e, x, x),
}
