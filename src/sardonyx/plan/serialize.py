"""A Plan as JSON text and back, exactly: a model that was planned before opens without planning.

    {"format": "5c1e…", "sizes": [[[1, [["symbol", "batch"], 1]]], …], "plan": {"Plan": […]}}

    {"For": ["%i", {"Size": 0}, [{"Let": […]}], "parallel", 64]}      an object by its class, fields in order
    {"Size": 0}                                                       number 0 of the table
    [1, 2, 3]                                                         a tuple

Expressions over symbols stand once in the table, term by term and after those that they are made of: they
come back as they were, without being parsed or simplified again. `format` says which classes and fields
the writer had; a plan of another version is refused and not misread.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from sardonyx.errors import CacheError
from sardonyx.loops import nodes as loops
from sardonyx.plan import plan as plans
from sardonyx.plan.plan import Plan
from sardonyx.sizes.expr import Atom, Expr, Monomial, Size

__all__ = ["plan_from_json", "plan_to_json"]

# Whatever plans and kernels are made of: a new class or field needs nothing here.
_CLASSES: dict[str, type[Any]] = {
    one.__name__: one
    for room in (loops, plans)
    for one in vars(room).values()
    if isinstance(one, type) and is_dataclass(one)
}
_FIELDS = {name: [field.name for field in fields(one)] for name, one in _CLASSES.items()}
_FORMAT = hashlib.blake2s(json.dumps(_FIELDS, sort_keys=True).encode(), digest_size=8).hexdigest()
_NESTED = frozenset({list, dict})  # all else is what it stands for
_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}  # JSON has no word for them


def plan_to_json(plan: Plan) -> str:
    """The plan as text; equal plans have equal text."""
    writer = _Writer()
    body = writer.write(plan)
    content = {"format": _FORMAT, "sizes": writer.sizes, "plan": body}
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def plan_from_json(text: str | bytes) -> Plan:
    """The plan that `plan_to_json` wrote.

    Raises:
        CacheError: the text is not a plan, or one of another version.
    """
    try:
        content = json.loads(text)
        written_by = content["format"]
        if written_by == _FORMAT:
            plan = _Reader(content["sizes"]).read(content["plan"])
            if isinstance(plan, Plan):
                return plan
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise CacheError(f"the stored plan is damaged: {error!r}", hint=_HINT) from error
    if written_by == _FORMAT:
        raise CacheError("the stored plan is damaged: it is something else", hint=_HINT)
    raise CacheError(
        f"the stored plan has the format {str(written_by)[:40]!r}, which is of another version",
        value=str(written_by)[:40],
        limit=_FORMAT,
        hint=_HINT,
    )


_HINT = "Clear it away with: sardonyx cache clear"


class _Writer:
    def __init__(self) -> None:
        self.sizes: list[Any] = []
        self._numbers: dict[Expr, int] = {}

    def write(self, value: Any) -> Any:
        kind = type(value)
        if kind is tuple:
            return [self.write(one) for one in value]
        names = _FIELDS.get(kind.__name__)
        if names is not None:
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
        return _CLASSES[name](*self._read_all(content))

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
