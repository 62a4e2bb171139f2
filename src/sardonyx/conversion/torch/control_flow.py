"""What the control flow of a rewritten function calls: Python's own for Python values, torch's for tensors.

if t: y = a            (y,) = branch(t, true, false, (y,))
else: y = b
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch.utils import _pytree

__all__ = ["both", "branch", "choose", "either", "element", "loop", "negated", "number"]

Values: TypeAlias = tuple[Any, ...]


def branch(
    test: Any, true: Callable[..., Any], false: Callable[..., Any], values: Values = ()
) -> Any:
    """What one of two functions gives for the values, by a test."""
    if not isinstance(test, torch.Tensor):
        return true(*values) if test else false(*values)
    return torch.cond(
        _truth(test), lambda: _fresh(true(*_own(values))), lambda: _fresh(false(*_own(values))), ()
    )


def choose(test: Any, true: Callable[[], Any], false: Callable[[], Any]) -> Any:
    """A conditional expression."""
    return branch(test, true, false)


def loop(test: Callable[..., Any], body: Callable[..., Values], values: Values) -> Values:
    """The values after a body was repeated while a test held; as long as the test is Python's, so is the loop."""
    goes_on = test(*values)
    while not isinstance(goes_on, torch.Tensor):
        if not goes_on:
            return values
        values = body(*values)
        goes_on = test(*values)
    values = _settled(body, values)
    carried = [index for index, value in enumerate(values) if isinstance(value, torch.Tensor)]

    def full(tensors: Values) -> Values:
        given = list(values)
        for index, tensor in zip(carried, tensors, strict=True):
            given[index] = tensor
        return tuple(given)

    def step(*tensors: torch.Tensor) -> Values:
        found = body(*_own(full(tensors)))
        types = [values[index].dtype for index in carried]
        return tuple(
            _as_tensor(found[index]).to(dtype).clone()
            for index, dtype in zip(carried, types, strict=True)
        )

    start = tuple(values[index].clone() for index in carried)
    untyped: Any = torch
    result = untyped.while_loop(lambda *tensors: _truth(test(*full(tensors))), step, start)
    return full(result)


def _settled(body: Callable[..., Values], values: Values) -> Values:
    """Numbers that a loop carries, as tensors of the type that they will have after a step."""
    numbers = [i for i, value in enumerate(values) if type(value) in (bool, int, float)]
    if not numbers:
        return values
    after = body(*_own(values))
    given = list(values)
    for index in numbers:
        tensor = _as_tensor(values[index])
        given[index] = tensor.to(torch.promote_types(tensor.dtype, _as_tensor(after[index]).dtype))
    return tuple(given)


def both(first: Any, second: Callable[[], Any]) -> Any:
    """`and`: with tensors both sides are computed."""
    if not isinstance(first, torch.Tensor):
        return second() if first else first
    other = second()
    if not isinstance(other, torch.Tensor):
        return first if other else False
    return torch.logical_and(_truth(first), _truth(other))


def either(first: Any, second: Callable[[], Any]) -> Any:
    """`or`: with tensors both sides are computed."""
    if not isinstance(first, torch.Tensor):
        return first if first else second()
    other = second()
    if not isinstance(other, torch.Tensor):
        return True if other else first
    return torch.logical_or(_truth(first), _truth(other))


def negated(value: Any) -> Any:
    return torch.logical_not(_truth(value)) if isinstance(value, torch.Tensor) else not value


def element(value: Any, index: Any) -> Any:
    """`value[index]` by a loop's counter, which may be a tensor."""
    if not isinstance(value, torch.Tensor) or not isinstance(index, torch.Tensor):
        return value[index]
    return value.index_select(0, index.reshape(1)).squeeze(0)


def number(kind: str, value: Any) -> Any:
    """`int(value)`, `float(value)`, `bool(value)` or `value.item()`; a tensor stays one, without axes."""
    if not isinstance(value, torch.Tensor):
        builtin: dict[str, Callable[[Any], Any]] = {"int": int, "float": float, "bool": bool}
        return builtin[kind](value) if kind in builtin else value.item()
    alone = value.reshape(())
    if kind == "int":
        return alone.to(torch.int64)
    if kind == "float":
        return alone if alone.is_floating_point() else alone.to(torch.float32)
    return alone != 0 if kind == "bool" else alone


def _truth(test: torch.Tensor) -> torch.Tensor:
    alone = test.reshape(())
    return alone if alone.dtype == torch.bool else alone != 0


def _own(values: Values) -> Values:
    """Copies, so that writing in place reaches nobody else."""
    return tuple(v.clone() if isinstance(v, torch.Tensor) else v for v in values)


def _fresh(found: Any) -> Any:
    """What both ways must give alike: tensors, none of them another's."""
    return _pytree.tree_map(lambda leaf: _as_tensor(leaf).clone(), found)


def _as_tensor(value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value
    # An operator and not torch.tensor(): a constant made inside a branch has no place in torch's graph of it.
    types = {bool: torch.bool, int: torch.int64, float: torch.float32}
    return torch.full((), value, dtype=types[type(value)])
