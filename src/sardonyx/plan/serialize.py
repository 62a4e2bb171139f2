"""A Plan as JSON text and back, exactly: a model that was planned before opens without planning.

    {"classes": {"Plan": ["inputs", …], …}, "sizes": [[[1, [["symbol", "batch"], 1]]], …], "plan": {"Plan": […]}}

    {"For": ["%i", {"Size": 0}, [{"Let": […]}], "parallel", 64]}      an object by its class, fields in order
    {"Size": 0}                                                       number 0 of the table
    [1, 2, 3]                                                         a tuple

Expressions over symbols stand once in the table, term by term and after those that they are made of: they
come back as they were, without being parsed or simplified again. `classes` says which fields the classes in the
text had when it was written; a plan of another version is refused and not misread.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any

from sardonyx.errors import CacheError
from sardonyx.plan import plan as plans
from sardonyx.plan.plan import Plan
from sardonyx.sizes.expr import Atom, Expr, Monomial, Size

__all__ = ["plan_from_json", "plan_to_json"]

_NESTED = frozenset({list, dict})  # all else is what it stands for
_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}  # JSON has no word for them


def _rooms() -> Iterator[ModuleType]:
    """Where the classes are that plans and kernels are made of. A run needs the first only, and waits for no other."""
    yield plans
    from sardonyx.loops import nodes
    from sardonyx.plan import kernels, origins

    yield from (origins, kernels, nodes)


def _is_record(one: type[Any]) -> bool:
    return is_dataclass(one) or hasattr(one, "_fields")


@lru_cache(maxsize=128)
def _class_of(name: str) -> type[Any]:
    for room in _rooms():
        found = vars(room).get(name)
        if isinstance(found, type) and _is_record(found):
            return found
    raise KeyError(name)


@lru_cache(maxsize=128)
def _fields_of(name: str) -> list[str]:
    one = _class_of(name)
    return [field.name for field in fields(one)] if is_dataclass(one) else list(one._fields)


def plan_to_json(plan: Plan) -> str:
    """The plan as text; equal plans have equal text."""
    writer = _Writer()
    body = writer.write(plan)
    content = {"classes": writer.classes, "sizes": writer.sizes, "plan": body}
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def plan_from_json(text: str | bytes) -> Plan:
    """The plan that `plan_to_json` wrote.

    Raises:
        CacheError: the text is not a plan, or one of another version.
    """
    try:
        content = json.loads(text)
        classes = content["classes"]
        others = [name for name, names in classes.items() if _fields_of(name) != names]
        if not others:
            plan = _Reader(content["sizes"]).read(content["plan"])
            if isinstance(plan, Plan):
                return plan
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise CacheError(f"the stored plan is damaged: {error!r}", hint=_HINT) from error
    if not others:
        raise CacheError("the stored plan is damaged: it is something else", hint=_HINT)
    raise CacheError(
        f"the stored plan is of another version: {others[0][:40]} has other fields there",
        value=classes[others[0]],
        limit=_fields_of(others[0]),
        hint=_HINT,
    )


_HINT = "Clear it away with: sardonyx cache clear"


class _Writer:
    def __init__(self) -> None:
        self.classes: dict[str, list[str]] = {}
        self.sizes: list[Any] = []
        self._numbers: dict[Expr, int] = {}

    def write(self, value: Any) -> Any:
        kind = type(value)
        if kind is tuple:
            return [self.write(one) for one in value]
        if _is_record(kind):
            names = self.classes.setdefault(kind.__name__, _fields_of(kind.__name__))
            return {kind.__name__: [self.write(getattr(value, name)) for name in names]}
        if kind is Expr:
            return {"Size": self._number(value)}
        if kind is float and not math.isfinite(value):
            return {"Number": repr(value)}
        assert value is None or kind in (int, float, bool, str), f"no plan holds a {kind.__name__}"
        return value

    def _number(self, size: Expr) -> int:
        if size not in self._numbers:
            terms = [[coefficient, self._monomial(mono)] for mono, coefficient in size.terms]
            self._numbers[size] = len(self.sizes)
            self.sizes.append(terms)
        return self._numbers[size]

    def _monomial(self, mono: Monomial) -> list[Any]:
        """Atoms and powers, by turns."""
        found: list[Any] = []
        for atom, power in mono:
            args = [atom.name] if atom.op == "symbol" else [self.write(arg) for arg in atom.args]
            found += [[atom.op, *args], power]
        return found


class _Reader:
    def __init__(self, table: list[Any]) -> None:
        self._sizes: list[Size] = []
        self._symbols: dict[str, Atom] = {}
        for terms in table:
            read = tuple((self._monomial(mono), coefficient) for coefficient, mono in terms)
            self._sizes.append(Expr(read))

    def read(self, value: Any) -> Any:
        if type(value) is list:
            return tuple(self._read_all(value))
        ((name, content),) = value.items()
        if name == "Size":
            return self._sizes[content]
        if name == "Number":
            return _NUMBERS[content]
        return _class_of(name)(*self._read_all(content))

    def _read_all(self, values: Sequence[Any]) -> list[Any]:
        return [self.read(one) if type(one) in _NESTED else one for one in values]

    def _monomial(self, mono: list[Any]) -> Monomial:
        atoms = [self._atom(*atom) for atom in mono[::2]]
        return tuple(zip(atoms, mono[1::2], strict=True))

    def _atom(self, op: str, *args: Any) -> Atom:
        if op != "symbol":
            return Atom(op, tuple(self._read_all(args)))
        (name,) = args
        if name not in self._symbols:
            self._symbols[name] = Atom(op, (), name)
        return self._symbols[name]
