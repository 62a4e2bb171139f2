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
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn

from sardonyx.conversion.torch.decisions import is_conversion
from sardonyx.conversion.torch.syntax import (
    assign,
    assign_one,
    call_helper,
    function_def,
    jumps_of,
    located,
    name_of,
    names_read,
    names_written,
    never_goes_on,
    own_statements,
    thunk,
    tuple_of,
    without_jumps,
    without_raises,
)
from sardonyx.errors import ConvertError

__all__ = ["FlowRewriter"]

_CHANGE_LISTS = ("append", "extend", "insert", "pop", "remove", "clear", "update", "setdefault")


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
            after = live | names_read(rest)
            if isinstance(statement, ast.If) and self._is_decided(statement):
                kept = without_raises(statement)
                if kept is not None:
                    self._tell(statement, self.left_out)
                    return found + self._block([*kept, *rest], defined, live, stop)
                if jumps_of(statement.body) or jumps_of(statement.orelse):
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
            defined |= names_written([statement])
        return found

    def _is_decided(self, node: ast.AST) -> bool:
        return node in self._decided

    def _is_loop_by_data(self, node: ast.For | ast.While) -> bool:
        """Decided itself, or left by a decided break."""
        return node in self._decided or any(
            isinstance(inner, ast.If)
            and inner in self._decided
            and any(isinstance(j, ast.Break | ast.Continue) for j in jumps_of([inner]))
            for inner in own_statements(node.body)
        )

    def _plain(
        self, statement: ast.stmt, defined: set[str], live: set[str], stop: str | None
    ) -> ast.stmt:
        """A statement that Python goes on deciding; what is inside it may be by data."""
        if isinstance(statement, ast.If | ast.For | ast.While):
            again = live | (names_read([statement]) if not isinstance(statement, ast.If) else set())
            inside = None if not isinstance(statement, ast.If) else stop
            new: ast.stmt = self._expressions(statement, blocks=True)
            assert isinstance(new, ast.If | ast.For | ast.While)
            before = defined | (
                names_written([statement]) if isinstance(statement, ast.For) else set()
            )
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
        body = [*statement.body, *([] if never_goes_on(statement.body) else rest)]
        orelse = [*statement.orelse, *([] if never_goes_on(statement.orelse) else rest)]
        returns = any(isinstance(j, ast.Return) for j in jumps_of([*body, *orelse]))
        leaves = any(not isinstance(j, ast.Return) for j in jumps_of([*body, *orelse]))
        if returns and (leaves or stop is not None):
            self._refuse(statement, "returns from inside a loop")
        new = ast.copy_location(ast.If(statement.test, body, orelse), statement)
        self._decided.add(new)
        if returns:
            return self._returning(new, defined)
        if stop is None:
            self._refuse(statement, "leaves a loop that is not by data")
        new.body, new.orelse = (without_jumps(side, stop) for side in (body, orelse))
        return self._if(new, defined, live | {stop}, stop)

    def _returning(self, statement: ast.If, defined: set[str]) -> list[ast.stmt]:
        if not never_goes_on(statement.body) or not never_goes_on(statement.orelse):
            self._refuse(statement, "returns on one side only")
        names = sorted((names_written(statement.body) | names_written(statement.orelse)) & defined)
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
        first, second = names_written(statement.body), names_written(statement.orelse)
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
        return [*sides, located(assign(given, call), statement)]

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
            statements.append(ast.Return(tuple_of(gives)))
        where = body[0] if body else self._function.body[0]
        return located(function_def(f"_{kind}_{self._count}", names, statements), where)

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
            located(assign_one(counter, self._convert(bounds[0])), statement),
            located(assign_one(end, self._convert(bounds[1])), statement),
        ]
        test = ast.Compare(name_of(counter), [ast.Lt()], [name_of(end)])
        head = [
            assign_one(statement.target.id, name_of(counter)),
            assign_one(counter, ast.BinOp(name_of(counter), ast.Add(), step)),
        ]
        indexing = _Elements(statement.target.id)
        inner_body = [indexing.visit(each) for each in statement.body]
        body = [*(located(each, statement) for each in head), *inner_body]
        # The name has a value before its first use in the body, so that it need not be carried.
        inner = defined | {counter, end}
        return [*begin, *self._loop(statement, located(test, statement), body, inner, live)]

    def _loop(
        self,
        statement: ast.For | ast.While,
        test: ast.expr,
        body: Sequence[ast.stmt],
        defined: set[str],
        live: set[str],
    ) -> list[ast.stmt]:
        self._check_sound(body)
        jumps = jumps_of(body)
        if any(isinstance(jump, ast.Return) for jump in jumps):
            self._refuse(statement, "returns from inside")
        self._count += 1
        stop = f"_stop_{self._count}"
        before: list[ast.stmt] = []
        if any(isinstance(jump, ast.Break) for jump in jumps):
            before = [located(assign_one(stop, ast.Constant(False)), statement)]
            test = ast.BoolOp(ast.And(), [ast.UnaryOp(ast.Not(), name_of(stop)), test])
            defined = defined | {stop}
        changed = names_written(body) | ({stop} if before else set())
        names = sorted(changed & defined)
        again = live | names_read(body) | names_read([ast.Expr(test)]) | set(names)
        stepping = self._function_of("step", body, names, defined, again, names, stop)
        asking = function_def(f"_test_{self._count}", names, [ast.Return(self._convert(test))])
        asking = located(asking, statement)
        call = call_helper("loop", name_of(asking.name), name_of(stepping.name), tuple_of(names))
        self._tell(statement)
        return [*before, stepping, asking, located(assign(names, call), statement)]

    # ---------------------------------------------------------------- expressions

    def _call(
        self,
        helper: str,
        test: ast.expr,
        functions: Sequence[ast.FunctionDef],
        names: Sequence[str],
    ) -> ast.expr:
        found = [name_of(function.name) for function in functions]
        return call_helper(helper, self._convert(test), *found, tuple_of(names))

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
        sides = [thunk(self.visit(side)) for side in (node.body, node.orelse)]
        return ast.copy_location(call_helper("choose", test, *sides), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not is_conversion(node):
            return node
        if isinstance(node.func, ast.Name):
            kind, value = node.func.id, node.args[0]
        else:
            assert isinstance(node.func, ast.Attribute)
            kind, value = "item", node.func.value
        return ast.copy_location(call_helper("number", ast.Constant(kind), value), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if not self._every:
            return node
        name = "both" if isinstance(node.op, ast.And) else "either"
        found = node.values[0]
        for value in node.values[1:]:
            found = call_helper(name, found, thunk(value))
        return ast.copy_location(found, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not self._every or not isinstance(node.op, ast.Not):
            return node
        return ast.copy_location(call_helper("negated", node.operand), node)

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
            found = call_helper("both", found, thunk(pair))
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
        return ast.copy_location(call_helper("element", node.value, node.slice), node)
