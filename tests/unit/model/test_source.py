"""The user's own source line, from what exporters write down; and how nodes are called in messages."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from tests.hostile.build import node

from sardonyx.model.names import name_of, quote, shorten
from sardonyx.model.source import describe, source_line

DYNAMO = """File "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1775, in _call_impl
    return forward_call(*args, **kwargs)
File "/home/ann/work/model.py", line 41, in forward
    x = self.block(x)
File "/home/ann/work/blocks.py", line 7, in forward
    return torch.relu(self.conv(x))
File "/usr/lib/python3.11/site-packages/torch/nn/modules/conv.py", line 554, in forward
    return self._conv_forward(input, self.weight, self.bias)
"""
LEGACY = """/usr/lib/python3.11/site-packages/torch/nn/modules/conv.py(458): _conv_forward
/home/ann/work/my blocks.py(7): forward
/home/ann/work/model.py(41): forward
/usr/lib/python3.11/site-packages/torch/jit/_trace.py(118): wrapper
"""
LIBRARY = 'File "/usr/lib/python3.11/site-packages/torch/nn/modules/conv.py", line 554, in forward'


def traced(trace: str | None = None, doc: str | None = None) -> ir.Node:
    metadata = {"pkg.torch.onnx.stack_trace": trace} if trace is not None else None
    return ir.Node("", "Relu", [], doc_string=doc, metadata_props=metadata)


@pytest.mark.parametrize(
    ("trace", "doc", "line"),
    [
        (DYNAMO, None, "blocks.py:7"),
        (None, LEGACY, "my blocks.py:7"),
        (LIBRARY, None, "conv.py:554"),
        (DYNAMO, LEGACY, "blocks.py:7"),
        (None, "Just a comment (see page 3): nothing more.", None),
        (None, "", None),
        ("no frames here", None, None),
        (None, None, None),
    ],
)
def test_source_line(trace: str | None, doc: str | None, line: str | None) -> None:
    assert source_line(traced(trace, doc)) == line


@pytest.mark.parametrize(
    "text", ["\n" * 65536, "a\n" * 32768, "a" * 65536, "(" * 65536, " " * 65536]
)
def test_no_text_takes_long(text: str) -> None:
    """The patterns look at each line once; a search that went back would not end."""
    assert source_line(traced(None, text)) is None
    assert source_line(traced(text)) is None


def test_long_traces_are_read_at_the_right_end() -> None:
    padding = "x" * 80_000
    assert source_line(traced(padding + "\n" + DYNAMO)) == "blocks.py:7"
    assert source_line(traced(None, LEGACY + padding)) == "my blocks.py:7"


@pytest.mark.parametrize(
    ("proto", "text"),
    [
        (node("Conv", ["x"], ["y"], name="layer1.0"), "Conv 'layer1.0'"),
        (node("Conv", ["x"], ["y"]), "Conv '→ y'"),
        (node("Conv", ["x"], ["", "z"]), "Conv '→ z'"),
        (node("Conv", ["x"], []), "Conv"),
        (node("Op", ["x"], ["y"], domain="own"), "own::Op '→ y'"),
        (node("Op", ["x"], ["y"], domain="ai.onnx"), "Op '→ y'"),
        (node("O\x1bp", ["x"], ["y\n"]), "'O\\x1bp' '→ y\\n'"),
        (node("", ["x"], ["y"]), "node '→ y'"),
    ],
)
def test_a_node_has_one_name_before_and_after_loading(proto: object, text: str) -> None:
    assert name_of(proto) == text  # type: ignore[arg-type]
    if text != "node '→ y'":
        assert describe(ir.serde.deserialize_node(proto)) == text  # type: ignore[arg-type]


def test_long_names_are_cut() -> None:
    assert len(shorten("n" * 1000)) == 120
    assert quote("n" * 1000).endswith("…'")
    assert shorten("n" * 120) == "n" * 120
