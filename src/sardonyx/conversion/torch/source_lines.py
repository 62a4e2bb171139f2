"""The user's own source line in every node, whichever exporter wrote it."""

from __future__ import annotations

import re

import onnx_ir as ir

__all__ = ["keep_user_lines", "point_at_test"]

_STACK_TRACE = "pkg.torch.onnx.stack_trace"
_FRAME = re.compile(r'(?=^[ \t]*File ")', re.MULTILINE)
# the tracer, innermost first:  model.py(41): forward
_TRACED = re.compile(r"^(?P<file>[^\n(]+)\((?P<line>\d+)\): (?P<function>.*)$", re.MULTILINE)
_OURS = "sardonyx/conversion/"
# Frames that the way of exporting adds: our own wrapper, and graphs that torch has turned into code.
_FOREIGN = (_OURS, "<eval_with_key>", "torch/fx/passes", "_higher_order_ops")


def keep_user_lines(node: ir.Node) -> None:
    """The stack trace as metadata, outermost first, without the frames of the export itself.

    torch.export writes it so; scripts and traces leave it in the doc string, each in its own way.
    """
    frames = _frames(node)
    kept = [frame for frame in frames if not any(part in frame for part in _FOREIGN)]
    node.metadata_props.pop(_STACK_TRACE, None)
    if kept:
        node.metadata_props[_STACK_TRACE] = "".join(kept)


def point_at_test(node: ir.Node) -> None:
    """An If or Loop stands where its test is; torch gives it the last line of its bodies."""
    place = {"If": 0, "Loop": 1}.get(node.op_type)
    test = None if place is None or place >= len(node.inputs) else node.inputs[place]
    producer = None if test is None else test.producer()
    trace = None if producer is None else producer.metadata_props.get(_STACK_TRACE)
    if trace:
        node.metadata_props[_STACK_TRACE] = trace


def _frames(node: ir.Node) -> list[str]:
    trace = node.metadata_props.get(_STACK_TRACE)
    if not trace and node.doc_string:
        trace, node.doc_string = node.doc_string, None
        traced = [(m["file"], m["line"], m["function"]) for m in _TRACED.finditer(trace)]
        if traced:
            # Whoever called our wrapper is no part of the model.
            own = next((i for i, (file, _, _) in enumerate(traced) if _OURS in file), len(traced))
            return [
                f'File "{file}", line {line}, in {name}\n'
                for file, line, name in traced[:own][::-1]
            ]
    return [frame for frame in _FRAME.split(trace or "") if frame.strip()]
