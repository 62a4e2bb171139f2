"""The text of a whole module: imports, the functions that the program calls, the program."""

from __future__ import annotations

import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

from sardonyx.conversion.back.language import Language

__all__ = ["load_source", "module_source"]

_HOME = "sardonyx.conversion.back."


def module_source(
    language: Language, title: str, helpers: Sequence[Callable[..., Any]], body: Sequence[str]
) -> str:
    """A module: `title`, imports, helpers and what they call, and `body`, which is lines."""
    functions = _with_callees(language, helpers)
    parts = [f'"""{title}"""', language.header.strip()]
    words = {name for one in functions for name in _names(one.__code__)}
    if "xp" in words:
        parts[-1] += f"\n\nxp = {language.array}"
    texts = [textwrap.dedent(inspect.getsource(one)).strip() for one in functions]
    return "\n\n\n".join(["\n\n".join(parts), *texts, "\n".join(body)]) + "\n"


def _with_callees(language: Language, helpers: Sequence[Callable[..., Any]]) -> list[FunctionType]:
    """Functions, those that they call before them."""
    found: dict[str, FunctionType] = {}

    def visit(function: FunctionType) -> None:
        if function.__name__ in found:
            return
        for name in _names(function.__code__):
            callee = language.support.get(name, function.__globals__.get(name))
            if not isinstance(callee, FunctionType) or callee is function:
                continue
            if callee.__module__.startswith(_HOME):
                visit(callee)
        found[function.__name__] = function

    for helper in helpers:
        assert isinstance(helper, FunctionType)
        visit(helper)
    return list(found.values())


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def load_source(source: str, name: str) -> dict[str, Any]:
    """What a module defines. Its lines are there for tracebacks, and for what reads a function's source."""
    number = 1
    while (file := f"<sardonyx {name} {number}>") in linecache.cache:
        number += 1
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    space: dict[str, Any] = {"__name__": f"sardonyx_{name}_{number}", "__file__": file}
    exec(compile(source, file, "exec"), space)
    return space
