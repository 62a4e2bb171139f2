"""ONNX's text syntax: its parser recurses and stops at surprises, so it is guarded."""

from __future__ import annotations

import pytest
from tests.hostile.bounded import run_bounded

import sardonyx as sx
from sardonyx.errors import FormatError, LimitError
from sardonyx.model.limits import Limits
from sardonyx.model.text import is_text, parse_text

HEAD = '<ir_version: 10, opset_import: ["" : 20, "own" : 1]>'
BODY = "{ y = Identity(x) }"


def typed(kind: str) -> str:
    return f"{HEAD} g ({kind} x) => (float y) {BODY}"


DEEP = {
    "sequences": typed("seq(" * 100_000 + "float" + ")" * 100_000),
    "optionals": typed("optional(" * 100_000 + "float" + ")" * 100_000),
    "maps": typed("map(int64, " * 100_000 + "float" + ")" * 100_000),
    "unclosed": typed("seq(" * 100_000),
    "subgraphs": f"{HEAD} g (bool x) => (float y) {{"
    + " y = If(x) <then_branch: graph = g () => (float y) {" * 100_000,
    "types as attributes": f"{HEAD} g (float x) => (float y) {{ y = own.F <a: type_proto = "
    + "seq(" * 100_000,
    "hidden by strings": f"{HEAD} g (bool x) => (float y) {{"
    + ' y = own.F <a = ")]}", then_branch: graph = g () => (float y) {' * 100_000,
    "hidden by comments": f"{HEAD} g (" + "seq( # )\n" * 100_000,
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_nesting_is_refused_before_the_parser_sees_it(name: str) -> None:
    with pytest.raises(LimitError, match=r"brackets nest [\d,]+ deep; the limit is 128") as caught:
        sx.load(DEEP[name])
    assert caught.value.where == "text"
    assert caught.value.limit == 128


def test_nesting_up_to_the_limit_does_not_crash_the_parser() -> None:
    outcome = run_bounded(
        """
text = '<ir_version: 10, opset_import: ["" : 20]> g (' + "seq(" * 120 + "float" + ")" * 120
sx.load(text + " x) => (float y) { y = Identity(x) }")
"""
    )
    assert outcome.kind == "FormatError"
    assert outcome.where == "text"


def test_brackets_in_strings_and_comments_do_not_count() -> None:
    text = f'<ir_version: 10, opset_import: ["" : 20], producer_name: "{"(" * 500}\\"{"[" * 500}"> # {"{" * 500}\n'
    loaded = sx.load(f"{text} g (float x) => (float y) {BODY}")
    assert loaded.producer_name is not None
    assert loaded.producer_name.count("(") == 500


@pytest.mark.parametrize(
    "text",
    [
        f"<ir_version: {'9' * 10_000}>",
        typed(f"float[{'9' * 40}]"),
        f"{HEAD} g (float x) => (float y) {{ y = LeakyRelu <alpha = 1e{'9' * 1000}> (x) }}",
        f"{HEAD} g (float x) => (float y) {{ y = own.F <a = {'9' * 1000}> (x) }}",
        f"{HEAD} g (float x) => (float y) {{ y = own.F <a = [1, 2> (x) }}",
        '<ir_version: 10, producer_name: "' + "a" * 100_000,
        '<ir_version: 10, producer_name: "abc\\',
        "<" * 100_000,
        "<ir_version: 10" + "," * 100_000,
        "<ir_version: -" + "-" * 100_000,
        HEAD,
        f"{HEAD} g (float x) =>",
        typed("float[1.5]"),
        typed("unknown_type"),
        f"{HEAD} gé (float x) => (float y) {BODY}",
        "#" * 100_000,
        "# only a comment",
        "<",
    ],
    ids=lambda text: ascii(text[:40]),
)
def test_text_that_does_not_parse(text: str) -> None:
    with pytest.raises(FormatError, match="the ONNX text does not parse") as caught:
        sx.load(text)
    assert caught.value.where == "text"
    assert len(str(caught.value)) < 600


def test_the_place_is_said() -> None:
    with pytest.raises(FormatError, match=r"line: 2 column: \d+"):
        sx.load(f"{HEAD}\ng (float x) => (float y) {{ y = }}")


def test_nul_would_end_the_text_early() -> None:
    with pytest.raises(FormatError, match="a NUL character"):
        sx.load(typed("float") + "\0 and what is hidden behind it")


def test_text_that_is_not_utf8() -> None:
    with pytest.raises(FormatError, match="not UTF-8 at byte 1") as caught:
        sx.load(b"<\xff")
    assert caught.value.value == 1


def test_too_much_text() -> None:
    with pytest.raises(LimitError, match=r"Limits\.text_bytes"):
        parse_text(b"<" * 1001, Limits(text_bytes=1000))


def test_what_is_text() -> None:
    assert all(map(is_text, (b"<", b" \n<", b"#", b"\xef\xbb\xbf<")))
    assert not any(map(is_text, (b"", b"\x08\x0a", b"  ", b"{", b"onnx<")))


def test_tensors_in_text_are_held_to_their_dimensions() -> None:
    for shape in ("float[999999999999]", "float[-1]", "float[3]", "string[3]"):
        value = '{"a"}' if "string" in shape else "{1.0}"
        text = f"{HEAD} g (float x) => (float y) {{ c = Constant <value = {shape} {value}> () y = Identity(x) }}"
        with pytest.raises(sx.SardonyxError, match="attribute 'value' of Constant"):
            sx.load(text)


def test_external_data_in_text_is_opened_like_any_other() -> None:
    text = f'{HEAD} g (float x) => (float y) <float[1] w = ["location": "/etc/passwd"]> {BODY}'
    with pytest.raises(sx.SardonyxError, match="came without a folder"):
        sx.load(text)
    with pytest.raises(sx.SardonyxError, match="does not stay inside"):
        sx.load(text, base_dir="/tmp")
