"""Why torch did not convert, in one line with the user's own source line."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import torch

from sardonyx.errors import ConvertError, SardonyxError

__all__ = ["REWRITE", "explain", "is_own_file", "user_line"]

_TORCH = str(Path(torch.__file__).parent)
_OURS = str(Path(__file__).parents[2])
_LIBRARIES = ("site-packages", "dist-packages", "/lib/python3", "<")
_MOST_TEXT = 300
_CAPTURED = re.compile(r'File "([^"\n]+)", line (\d+)')
REWRITE = (
    "Write the Python if as torch.where(condition, a, b) or torch.cond(condition, f, g, (x,)), and the loop as "
    "torch.while_loop(condition, body, (x,)), with the same shapes and types on every way."
)
_HINTS = {
    "as dynamic but": "The code fixes this size (int(x.shape[…]), a Python loop over it, a reshape to a constant): use "
    "x.shape[…] itself and reshape with -1, or leave the axis out of the dynamic ones.",
    "data-dependent": REWRITE,
    ".numpy() is not supported": "Another library's results are constants to an exporter: compute them with torch.",
    "No ONNX function found": "Give a translation: options={'translations': {'library::name': function}}.",
    "Missing operator": "Give a translation: options={'translations': {'library::name': function}}.",
}


def is_own_file(file: str) -> bool:
    """Whether a frame is of the user's code: not of torch, Python, an installed package or ourselves."""
    return not file.startswith((_TORCH, _OURS)) and not any(part in file for part in _LIBRARIES)


def user_line(error: BaseException) -> str | None:
    """`model.py:41`: the innermost line of the user's code that an error went through.

    Capturing a graph runs the user's code. Translating it does not: there the line is with the node that it failed at.
    """
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(cause)
    frames = [step for seen in chain for step in traceback.walk_tb(seen.__traceback__)]
    went = [
        (frame.f_code.co_filename, line)
        for frame, line in frames
        if frame.f_code.co_name != "<module>"
    ]
    nodes = [frame.f_locals.get("node") for frame, _ in frames]
    captured = [
        (file, int(line))
        for node in nodes
        if isinstance(node, torch.fx.Node)
        for file, line in _CAPTURED.findall(node.meta.get("stack_trace") or "")
    ]
    for lines in (went, captured):
        own = [f"{Path(file).name}:{line}" for file, line in lines if is_own_file(file)]
        if own:
            return own[-1]
    return None


def explain(error: BaseException) -> SardonyxError:
    """The same failure as an error of ours."""
    if isinstance(error, SardonyxError):
        return error
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    text = str(root)
    hint = next((hint for mark, hint in _HINTS.items() if mark in text), None)
    lines = [line.strip(" -") for line in text.splitlines() if line.strip()]
    told = next((line for line in lines if "as dynamic but" in line), lines[0] if lines else "")
    told = f"{type(root).__name__}: {told[:_MOST_TEXT]}"
    return ConvertError(told, source=user_line(error), hint=hint)
