"""The user's own source line, where the exporter recorded one."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import onnx_ir as ir

from sardonyx.model.names import title

__all__ = ["describe", "source_line"]

_STACK_TRACES = (
    "pkg.torch.onnx.stack_trace",
    "sardonyx.stack_trace",
)  # torch's, and of our own frontends
# torch.export, outermost first:  File "model.py", line 41, in forward
_FRAME = re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)')
# the older exporter, innermost first:  model.py(41): forward
_LEGACY_FRAME = re.compile(r"^[ \t]*(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): ", re.MULTILINE)
_LIBRARY = ("site-packages", "dist-packages", "/torch/")
_MOST_TEXT = 1 << 16


def source_line(node: ir.Node) -> str | None:
    """`model.py:41` for a node of an exporter that keeps stack traces; None where nothing was recorded.

    The innermost frame of the user's own code wins; a frame inside a library serves when there is no other.
    """
    kept = node.metadata_props or {}
    trace = next((kept[key] for key in _STACK_TRACES if kept.get(key)), None)
    if trace:
        frames = [(m["file"], m["line"]) for m in _FRAME.finditer(trace[-_MOST_TEXT:])][::-1]
    elif node.doc_string:
        frames = [
            (m["file"], m["line"]) for m in _LEGACY_FRAME.finditer(node.doc_string[:_MOST_TEXT])
        ]
    else:
        return None
    paths = [(file.replace("\\", "/"), line) for file, line in frames]
    own = [path for path in paths if not any(part in path[0] for part in _LIBRARY)]
    for file, line in own or paths:
        return f"{PurePosixPath(file).name}:{line}"
    return None


def describe(node: ir.Node) -> str:
    """`Conv 'layer1.0'`, as a person would name the node; one without a name goes by its first output."""
    outputs = [output.name for output in node.outputs if output.name]
    return title(node.domain, node.op_type, node.name, outputs)
