"""`check` as a whole: it never raises, it sorts, it counts, it names the user's own line."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import onnx
import onnx.parser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sardonyx as sx
from sardonyx.inspection import check as module
from sardonyx.inspection.findings import SEVERITIES, Finding, Report
from sardonyx.inspection.rules import RULES
from sardonyx.inspection.subject import Subject

RELU = '<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) { y = Relu (x) }'


@pytest.mark.parametrize(
    "source",
    [b"", b"not a model", "/does/not/exist.onnx", RELU.replace("Relu", "Relo"), b"\x08\x08" * 50],
)
def test_a_model_that_does_not_load_is_one_error(source: object) -> None:
    report = sx.check(source)  # type: ignore[arg-type]
    assert not report.loaded
    assert not report.ok
    (finding,) = report.findings
    assert (finding.severity, finding.rule) == ("error", "load")
    assert finding.message


def test_limits_are_passed_on() -> None:
    report = sx.check(RELU, limits=sx.Limits(nodes=0))
    assert not report.loaded
    assert "Limits.nodes" in report.findings[0].message


def test_every_kind_of_source(tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(RELU)
    path = tmp_path / "relu.onnx"
    onnx.save(proto, path)
    sources: list[object] = [RELU, proto, path, str(path), path.read_bytes(), sx.load(RELU)]
    for source in (*sources, io.BytesIO(path.read_bytes())):
        report = sx.check(source)  # type: ignore[arg-type]
        assert report.ok, str(report)
    assert sx.check(path).name == str(path)
    assert sx.check(RELU).name == "ONNX text"


def test_the_gravest_findings_come_first_and_json_has_all() -> None:
    source = (
        '<ir_version: 8, opset_import: ["" : 17]> '
        "g (float[2] x, float[2] unused) => (float[9] y) { y = Relu (x) }"
    )
    report = sx.check(source)
    order = [SEVERITIES.index(finding.severity) for finding in report]
    assert order == sorted(order)
    assert report.counts == {"error": 1, "warning": 1, "info": 2}
    data = json.loads(json.dumps(report.to_json()))
    assert data["counts"] == report.counts
    assert data["ok"] is False
    assert [finding["rule"] for finding in data["findings"]] == [f.rule for f in report]


def test_the_users_own_source_line_is_named() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> '
        "g (float[N] x) => (float[N] y) { [noise] y = RandomNormalLike (x) }"
    )
    trace = 'File "/home/me/net.py", line 41, in forward\n    return torch.randn_like(x)'
    proto.graph.node[0].metadata_props.add(key="pkg.torch.onnx.stack_trace", value=trace)
    (finding,) = sx.check(proto).of("random-without-seed")
    assert finding.source == "net.py:41"
    assert "RandomNormalLike 'noise' (net.py:41)" in str(finding)


def test_many_findings_of_one_rule_are_counted() -> None:
    nodes = " ".join(f"[n{i}] d{i} = Neg (x)" for i in range(200))
    report = sx.check(RELU.replace("y = Relu (x)", f"y = Relu (x) {nodes}"))
    findings = report.of("unreachable-node")
    assert len(findings) == 51
    assert findings[-1].message == "and 150 more like these."


def test_a_rule_that_trips_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def trips(subject: Subject) -> Iterator[Finding]:
        yield Finding("info", "first", "said before")
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(module, "RULES", (trips, *RULES))
    report = sx.check(RELU)
    assert report.of("first")
    (defect,) = report.of("internal")
    assert "'trips'" in defect.message
    assert "ZeroDivisionError: oh" in defect.message
    assert report.of("runtime-support")


def test_a_shape_that_cannot_be_is_an_error_with_the_node() -> None:
    report = sx.check(
        '<ir_version: 8, opset_import: ["" : 17]> '
        "g (float[2, 3] x, float[4, 5] w) => (float[2, 5] y) { [product] y = MatMul (x, w) }"
    )
    (finding,) = report.of("shapes")
    assert finding.severity == "error"
    assert "'product'" in str(finding.node)


def test_a_report_reads_as_text() -> None:
    assert str(Report("m.onnx", ())) == "m.onnx: nothing to report"
    finding = Finding("warning", "rule", "it is so.", "Relu 'r'", "net.py:4", "Change it.")
    assert str(finding) == "warning: rule: Relu 'r' (net.py:4): it is so. Change it."
    assert str(Report("m.onnx", (finding,))) == str(finding)
    assert len(Report("m.onnx", (finding,))) == 1


def test_the_callers_model_is_left_alone() -> None:
    model = sx.load(RELU)
    before = onnx.printer.to_text(sx.model.save.to_proto(model))  # type: ignore[attr-defined]
    sx.check(model)
    assert onnx.printer.to_text(sx.model.save.to_proto(model)) == before  # type: ignore[attr-defined]


def _official() -> list[Path]:
    folder = Path(onnx.__file__).parent / "backend/test/data"
    return sorted(folder.glob("*/*/model.onnx"))[::25] + sorted(folder.glob("light/*.onnx"))


@pytest.mark.parametrize("path", _official(), ids=lambda path: path.parent.name + "/" + path.stem)
def test_official_models_are_judged_without_a_defect(path: Path) -> None:
    report = sx.check(path)
    assert not report.of("internal"), str(report)
    assert not report.of("onnx-checker"), str(report)


DIGITS = (Path(sx.__file__).parent / "data/digits.onnx").read_bytes()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(DIGITS) - 1), st.integers(0, 255), st.integers(1, len(DIGITS)))
def test_damaged_files_give_a_report(position: int, byte: int, length: int) -> None:
    damaged = bytearray(DIGITS)
    damaged[position] = byte
    for content in (bytes(damaged), DIGITS[:length]):
        report = sx.check(content)
        assert not report.of("internal"), str(report)
        assert report.loaded or len(report) == 1
