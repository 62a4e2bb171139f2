"""Functions whose Python decides by tensors, rewritten so that torch.export sees the decision.

The source of such a function is read, its ifs and loops by data become calls of `control_flow`, and while the model is
exported the function runs the new code; its lines stay those of the user's file.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType

from sardonyx.conversion.torch import control_flow
from sardonyx.conversion.torch.branches import Point
from sardonyx.conversion.torch.decisions import decisions_of, function_of
from sardonyx.conversion.torch.flow_rewriter import FlowRewriter
from sardonyx.conversion.torch.syntax import HELPERS
from sardonyx.errors import ConvertError

__all__ = ["rewritten"]


@contextmanager
def rewritten(points: Collection[Point]) -> Iterator[list[str]]:
    """Inside, the functions that have these points run their new code; the result says what was rewritten.

    Raises:
        ConvertError: a function cannot be rewritten; the error has its line and the reason.
    """
    notes: list[str] = []
    changes: list[tuple[FunctionType, CodeType]] = []
    for code in {code for code, _ in points}:
        lines = [line for other, line in points if other is code]
        new, told = _new_code(code, lines)
        notes.extend(told)
        found = [f for f in gc.get_referrers(code) if isinstance(f, FunctionType)]
        changes.extend((function, new) for function in found)
    before = [(function, function.__code__) for function, _ in changes]
    spaces = [function.__globals__ for function, _ in changes]
    try:
        for function, new in changes:
            function.__globals__[HELPERS] = control_flow
            function.__code__ = new
        yield sorted(set(notes))
    finally:
        for function, old in before:
            function.__code__ = old
        for space in spaces:
            space.pop(HELPERS, None)


def _new_code(code: CodeType, lines: list[int]) -> tuple[CodeType, list[str]]:
    place = f"{Path(code.co_filename).name}:{min(lines)}"
    function = function_of(code)
    if function is None:
        raise ConvertError(
            f"data decide in {code.co_name!r}, whose source cannot be read.",
            source=place,
            hint="Define it in a file, with def.",
        )
    decisions = decisions_of(function, lines)
    if not decisions:
        raise ConvertError("a tensor's value is used as a Python number.", source=place)
    rewriter = FlowRewriter(function, {d.statement for d in decisions}, code.co_filename)
    new = _compile(rewriter.rewrite(), code, place)
    told = [f"control flow by data at {place} is part of the graph" for place in rewriter.done]
    told += [f"the check at {place} is not part of the ONNX model" for place in rewriter.left_out]
    return new, told


def _compile(function: ast.FunctionDef, code: CodeType, place: str) -> CodeType:
    """Code that can stand in for the old one: of the same name, with the same free variables."""
    function.decorator_list = []
    function.returns = None
    for argument in ast.walk(function.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    outer = ast.FunctionDef(
        name="outer",
        args=ast.arguments(
            [], [ast.arg(name) for name in code.co_freevars], None, [], [], None, []
        ),
        body=[function],
        decorator_list=[],
    )
    if sys.version_info >= (3, 12):
        outer.type_params = []
    ast.copy_location(outer, function)
    module = ast.fix_missing_locations(ast.Module([outer], []))
    try:
        compiled = compile(module, code.co_filename, "exec")
    except SyntaxError as error:
        raise ConvertError(
            f"{code.co_name!r} cannot be rewritten: {error.msg}.", source=place
        ) from None
    found = _inner(_inner(compiled, "outer"), code.co_name)
    if found.co_freevars != code.co_freevars:
        raise ConvertError(
            f"{code.co_name!r} reads variables of the function around it, and cannot be rewritten.",
            source=place,
            hint="Give them as arguments.",
        )
    return found


def _inner(code: CodeType, name: str) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
