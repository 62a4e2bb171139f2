"""One function's syntax, with ifs and loops by data as calls.

    if t:                      def true(y):
        y = f(x)                   y = f(x)
    else:            becomes       return (y,)
        y = g(x)               def false(y): …
                               (y,) = flow.branch(t, true, false, (y,))

What comes after a return, break or continue by data moves into the other side.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

from sardonyx.convert.torch.decisions import is_conversion
from sardonyx.errors import ConvertError

__all__ = ["HELPERS", "FlowRewriter"]

HELPERS = "_sardonyx_control_flow"
_CHANGE_LISTS = ("append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault")
Jump = ast.Return | ast.Break | ast.Continue
_Node = TypeVar("_Node", bound=ast.AST)


class FlowRewriter:
    """Rewrites one function; `done` has the lines that became part of the graph, `left_out` those of checks."""

    def __init__(self, function: ast.FunctionDef, decided: set[ast.AST], file: str) -> None:
        self._function = function
        self._decided = decided
        self._file = Path(file).name
        self._count = 0
        self.done: list[str] = []
        self.left_out: list[str] = []

    def rewrite(self) -> ast.FunctionDef:
        arguments = [a.arg for a in ast.walk(self._function.args) if isinstance(a, ast.arg)]
        self._function.body = self._block(self._function.body, set(arguments), set(), None)
        return self._function

    # ---------------------------------------------------------------- statements

    def _block(
        self,
        statements: Sequence[ast.stmt],
        defined: set[str],
        live: set[str],
        stop: str | None,
    ) -> list[ast.stmt]:
        """The statements rewritten.

        Args:
            defined: names that have a value before; grows.
            live: names that are read after the block.
            stop: the name that a `break` sets, inside a loop by data.
        """
        found: list[ast.stmt] = []
        for index, statement in enumerate(statements):
            rest = list(statements[index + 1 :])
            after = live | _loads(rest)
            if isinstance(statement, ast.If) and self._is_decided(statement):
                kept = _without_raises(statement)
                if kept is not None:
                    self._tell(statement, self.left_out)
                    return found + self._block([*kept, *rest], defined, live, stop)
                if _jumps(statement.body) or _jumps(statement.orelse):
                    return found + self._jumping(statement, rest, defined, live, stop)
                found += self._if(statement, defined, after, stop)
            elif isinstance(statement, ast.Assert) and statement in self._decided:
                self._tell(statement, self.left_out)
                continue
            elif isinstance(statement, ast.While) and self._is_loop_by_data(statement):
                found += self._while(statement, defined, after)
            elif isinstance(statement, ast.For) and self._is_loop_by_data(statement):
                found += self._for(statement, defined, after)
            else:
                found.append(self._plain(statement, defined, after, stop))
            defined |= _stores([statement])
        return found

    def _is_decided(self, node: ast.AST) -> bool:
        return node in self._decided

    def _is_loop_by_data(self, node: ast.For | ast.While) -> bool:
        """Decided itself, or left by a decided break."""
        return node in self._decided or any(
            isinstance(inner, ast.If)
            and inner in self._decided
            and any(isinstance(j, ast.Break | ast.Continue) for j in _jumps([inner]))
            for inner in _own_statements(node.body)
        )

    def _plain(
        self, statement: ast.stmt, defined: set[str], live: set[str], stop: str | None
    ) -> ast.stmt:
        """A statement that Python goes on deciding; what is inside it may be by data."""
        if isinstance(statement, ast.If | ast.For | ast.While):
            again = live | (_loads([statement]) if not isinstance(statement, ast.If) else set())
            inside = None if not isinstance(statement, ast.If) else stop
            new: ast.stmt = self._expressions(statement, blocks=True)
            assert isinstance(new, ast.If | ast.For | ast.While)
            before = defined | (_stores([statement]) if isinstance(statement, ast.For) else set())
            new.body = self._block(statement.body, set(before), again, inside)
            new.orelse = self._block(statement.orelse, set(before), again, inside)
            return new
        if isinstance(statement, ast.With):
            statement.body = self._block(statement.body, defined, live, stop)
            return statement
        return self._expressions(statement)

    # ---------------------------------------------------------------- if

    def _jumping(
        self,
        statement: ast.If,
        rest: list[ast.stmt],
        defined: set[str],
        live: set[str],
        stop: str | None,
    ) -> list[ast.stmt]:
        """An if that leaves the block: what follows it belongs to the side that stays."""
        body = [*statement.body, *([] if _ends(statement.body) else rest)]
        orelse = [*statement.orelse, *([] if _ends(statement.orelse) else rest)]
        returns = any(isinstance(j, ast.Return) for j in _jumps([*body, *orelse]))
        leaves = any(not isinstance(j, ast.Return) for j in _jumps([*body, *orelse]))
        if returns and (leaves or stop is not None):
            self._refuse(statement, "returns from inside a loop")
        new = ast.copy_location(ast.If(statement.test, body, orelse), statement)
        self._decided.add(new)
        if returns:
            return self._returning(new, defined)
        if stop is None:
            self._refuse(statement, "leaves a loop that is not by data")
        new.body, new.orelse = (_without_jumps(side, stop) for side in (body, orelse))
        return self._if(new, defined, live | {stop}, stop)

    def _returning(self, statement: ast.If, defined: set[str]) -> list[ast.stmt]:
        if not _ends(statement.body) or not _ends(statement.orelse):
            self._refuse(statement, "returns on one side only")
        names = sorted((_stores(statement.body) | _stores(statement.orelse)) & defined)
        sides = [
            self._function_of(kind, side, names, defined, set(), None, None)
            for kind, side in (("true", statement.body), ("false", statement.orelse))
        ]
        self._tell(statement)
        call = self._call("branch", statement.test, sides, names)
        return [*sides, ast.copy_location(ast.Return(call), statement)]

    def _if(
        self, statement: ast.If, defined: set[str], live: set[str], stop: str | None
    ) -> list[ast.stmt]:
        self._check_sound([*statement.body, *statement.orelse])
        first, second = _stores(statement.body), _stores(statement.orelse)
        names = sorted((first | second) & defined)
        given = sorted(
            n for n in first | second if n in live and (n in defined or n in first & second)
        )
        sides = [
            self._function_of(kind, side, names, defined, set(given), given, stop)
            for kind, side in (("true", statement.body), ("false", statement.orelse))
        ]
        self._tell(statement)
        call = self._call("branch", statement.test, sides, names)
        if not given:
            return []
        return [*sides, _located(_assign(given, call), statement)]

    def _function_of(
        self,
        kind: str,
        body: Sequence[ast.stmt],
        names: Sequence[str],
        defined: set[str],
        live: set[str],
        gives: Sequence[str] | None,
        stop: str | None,
    ) -> ast.FunctionDef:
        """A block as a function of the names that it changes; it gives some of them, or returns by itself."""
        self._count += 1
        statements = self._block(body, set(defined), live, stop)
        if gives is not None:
            statements.append(ast.Return(_tuple(gives)))
        where = body[0] if body else self._function.body[0]
        return _located(_define(f"_{kind}_{self._count}", names, statements), where)

    # ---------------------------------------------------------------- loops

    def _while(self, statement: ast.While, defined: set[str], live: set[str]) -> list[ast.stmt]:
        if statement.orelse:
            self._refuse(statement, "has an else")
        return self._loop(statement, statement.test, statement.body, defined, live)

    def _for(self, statement: ast.For, defined: set[str], live: set[str]) -> list[ast.stmt]:
        """`for i in range(…)` as a while over a counter."""
        call = statement.iter
        ranged = (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id == "range"
        )
        if not ranged or not isinstance(statement.target, ast.Name) or statement.orelse:
            self._refuse(statement, "is no plain loop over a range")
        assert isinstance(call, ast.Call)
        self._count += 1
        counter, end = f"_at_{self._count}", f"_end_{self._count}"
        bounds = call.args if len(call.args) > 1 else [ast.Constant(0), *call.args]
        step = bounds[2] if len(bounds) > 2 else ast.Constant(1)
        if not isinstance(step, ast.Constant) or not isinstance(step.value, int) or step.value <= 0:
            self._refuse(statement, "has a step that is no positive number")
        begin = [
            _located(_assign_one(counter, self._convert(bounds[0])), statement),
            _located(_assign_one(end, self._convert(bounds[1])), statement),
        ]
        test = ast.Compare(_load(counter), [ast.Lt()], [_load(end)])
        head = [
            _assign_one(statement.target.id, _load(counter)),
            _assign_one(counter, ast.BinOp(_load(counter), ast.Add(), step)),
        ]
        indexing = _Elements(statement.target.id)
        inner_body = [indexing.visit(each) for each in statement.body]
        body = [*(_located(each, statement) for each in head), *inner_body]
        # The name has a value before its first use in the body, so that it need not be carried.
        inner = defined | {counter, end}
        return [*begin, *self._loop(statement, _located(test, statement), body, inner, live)]

    def _loop(
        self,
        statement: ast.For | ast.While,
        test: ast.expr,
        body: Sequence[ast.stmt],
        defined: set[str],
        live: set[str],
    ) -> list[ast.stmt]:
        self._check_sound(body)
        jumps = _jumps(body)
        if any(isinstance(jump, ast.Return) for jump in jumps):
            self._refuse(statement, "returns from inside")
        self._count += 1
        stop = f"_stop_{self._count}"
        before: list[ast.stmt] = []
        if any(isinstance(jump, ast.Break) for jump in jumps):
            before = [_located(_assign_one(stop, ast.Constant(False)), statement)]
            test = ast.BoolOp(ast.And(), [ast.UnaryOp(ast.Not(), _load(stop)), test])
            defined = defined | {stop}
        changed = _stores(body) | ({stop} if before else set())
        names = sorted(changed & defined)
        again = live | _loads(body) | _loads([ast.Expr(test)]) | set(names)
        stepping = self._function_of("step", body, names, defined, again, names, stop)
        asking = _define(f"_test_{self._count}", names, [ast.Return(self._convert(test))])
        asking = _located(asking, statement)
        call = _helper("loop", _load(asking.name), _load(stepping.name), _tuple(names))
        self._tell(statement)
        return [*before, stepping, asking, _located(_assign(names, call), statement)]

    # ---------------------------------------------------------------- expressions

    def _call(
        self,
        helper: str,
        test: ast.expr,
        functions: Sequence[ast.FunctionDef],
        names: Sequence[str],
    ) -> ast.expr:
        found = [_load(function.name) for function in functions]
        return _helper(helper, self._convert(test), *found, _tuple(names))

    def _convert(self, test: ast.expr) -> ast.expr:
        """A test or a number that may be a tensor's."""
        new: ast.expr = _Expressions(self._decided, every=True).visit(test)
        return ast.copy_location(new, test)

    def _expressions(self, statement: ast.stmt, blocks: bool = False) -> ast.stmt:
        visitor = _Expressions(self._decided, every=False)
        if not blocks:
            new: ast.stmt = visitor.visit(statement)
            return new
        if isinstance(statement, ast.If | ast.While):
            statement.test = visitor.visit(statement.test)
        elif isinstance(statement, ast.For):
            statement.iter = visitor.visit(statement.iter)
        return statement

    # ---------------------------------------------------------------- what cannot be said

    def _check_sound(self, body: Iterable[ast.stmt]) -> None:
        """Nothing outside may be changed but names: both sides of a decision are traced."""
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    self._refuse(node, f"changes the attribute {node.attr!r}")
                if isinstance(node, ast.Global | ast.Nonlocal | ast.Yield | ast.Await | ast.Try):
                    self._refuse(node, f"has a {type(node).__name__.lower()} statement")
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr in _CHANGE_LISTS
                ):
                    self._refuse(node, f"changes a list or dict ({node.func.attr})")

    def _refuse(self, node: ast.AST, why: str) -> NoReturn:
        raise ConvertError(
            f"control flow by data {why}, which a graph cannot say.",
            source=f"{self._file}:{getattr(node, 'lineno', 0)}",
            hint="Let both sides give the same names, shapes and types, or write torch.where(condition, a, b).",
        )

    def _tell(self, node: ast.AST, where: list[str] | None = None) -> None:
        told = self.done if where is None else where
        place = f"{self._file}:{getattr(node, 'lineno', 0)}"
        if place not in told:
            told.append(place)


class _Expressions(ast.NodeTransformer):
    """Conditional expressions by data, numbers taken from tensors and, in tests, `and`, `or` and `not`."""

    def __init__(self, decided: set[ast.AST], *, every: bool) -> None:
        self._decided = decided
        self._every = every

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if node not in self._decided:
            return self.generic_visit(node)
        test = _Expressions(self._decided, every=True).visit(node.test)
        sides = [_thunk(self.visit(side)) for side in (node.body, node.orelse)]
        return ast.copy_location(_helper("choose", test, *sides), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not is_conversion(node):
            return node
        if isinstance(node.func, ast.Name):
            kind, value = node.func.id, node.args[0]
        else:
            assert isinstance(node.func, ast.Attribute)
            kind, value = "item", node.func.value
        return ast.copy_location(_helper("number", ast.Constant(kind), value), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if not self._every:
            return node
        name = "both" if isinstance(node.op, ast.And) else "either"
        found = node.values[0]
        for value in node.values[1:]:
            found = _helper(name, found, _thunk(value))
        return ast.copy_location(found, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not self._every or not isinstance(node.op, ast.Not):
            return node
        return ast.copy_location(_helper("negated", node.operand), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if not self._every or len(node.ops) == 1:
            return node
        sides = [node.left, *node.comparators]
        pairs: list[ast.expr] = [
            ast.Compare(sides[i], [op], [sides[i + 1]]) for i, op in enumerate(node.ops)
        ]
        found = pairs[0]
        for pair in pairs[1:]:
            found = _helper("both", found, _thunk(pair))
        return ast.copy_location(found, node)


class _Elements(ast.NodeTransformer):
    """`x[i]` by the counter of a loop."""

    def __init__(self, counter: str) -> None:
        self._counter = counter

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        by_counter = isinstance(node.slice, ast.Name) and node.slice.id == self._counter
        if not by_counter or not isinstance(node.ctx, ast.Load):
            return node
        return ast.copy_location(_helper("element", node.value, node.slice), node)


# ---------------------------------------------------------------- building and reading syntax


def _helper(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(_load(HELPERS), name, ast.Load()), list(arguments), [])


def _load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _thunk(value: ast.expr) -> ast.expr:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def _tuple(names: Sequence[str]) -> ast.expr:
    return ast.Tuple([_load(name) for name in names], ast.Load())


def _assign(names: Sequence[str], value: ast.expr) -> ast.stmt:
    if not names:
        return ast.Expr(value)
    return ast.Assign([ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())], value)


def _assign_one(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _define(name: str, names: Sequence[str], body: list[ast.stmt]) -> ast.FunctionDef:
    arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
    function = ast.FunctionDef(name, arguments, body or [ast.Pass()], [])
    if sys.version_info >= (3, 12):
        function.type_params = []
    return function


def _located(node: _Node, where: ast.AST) -> _Node:
    """New syntax stands at the line that it came from; what has a place of its own keeps it."""
    ast.copy_location(node, where)
    return ast.fix_missing_locations(node)


def _own_statements(body: Sequence[ast.stmt]) -> Iterable[ast.stmt]:
    """Statements that belong to this function and this loop."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If):
            yield from _own_statements([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.With):
            yield from _own_statements(statement.body)


def _jumps(body: Sequence[ast.stmt]) -> list[Jump]:
    """Returns anywhere in these statements, and breaks and continues of the loop that they stand in."""
    own = [s for s in _own_statements(body) if isinstance(s, Jump)]
    loops = [s for s in _own_statements(body) if isinstance(s, ast.For | ast.While)]
    returns = [n for s in loops for n in ast.walk(s) if isinstance(n, ast.Return)]
    return own + returns


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Whether a block never goes on to what follows it."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return isinstance(last, Jump | ast.Raise)


def _without_jumps(body: Sequence[ast.stmt], stop: str) -> list[ast.stmt]:
    """The block with its last break as a flag; nothing follows it any more."""
    if body and isinstance(body[-1], ast.Break):
        return [*body[:-1], _located(_assign_one(stop, ast.Constant(True)), body[-1])]
    if body and isinstance(body[-1], ast.Continue):
        return list(body[:-1])
    return list(body)


def _without_raises(statement: ast.If) -> list[ast.stmt] | None:
    """What is left of an if one of whose sides only raises: the other side."""
    if statement.body and isinstance(statement.body[-1], ast.Raise):
        return statement.orelse
    if statement.orelse and isinstance(statement.orelse[-1], ast.Raise):
        return statement.body
    return None


def _loads(body: Iterable[ast.stmt]) -> set[str]:
    return {
        node.id
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
        and not isinstance(node.ctx, ast.Del)
        and (isinstance(node.ctx, ast.Load))
    } | {
        statement.target.id
        for outer in body
        for statement in ast.walk(outer)
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name)
    }


def _stores(body: Iterable[ast.stmt]) -> set[str]:
    """Names that statements give a value, or write into: `x = …`, `x[i] = …`, `x.add_(…)`."""
    found: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                found |= _base(node.value)
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr.endswith("_")
                and not node.func.attr.endswith("__")
            ):
                found |= _base(node.func.value)
    return found


def _base(node: ast.expr) -> set[str]:
    """The name that something is written into; a module's own tensors have none."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()
