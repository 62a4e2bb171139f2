"""Operators one by one, at sizes that models have, beside onnxruntime: is any of them slow?

    python -m benchmarks.operators                       all of operator_cases.txt
    python -m benchmarks.operators Resize Pool           those whose line contains one of the words
    python -m benchmarks.operators --over 1.5            shows those that take 1.5 times as long, or longer

Whole models hide an operator that takes ten times as long as it should, until somebody's model has little else. Engines take
turns as in `benchmarks.peers`; a call includes what a Session asks of Python.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper, parser

from benchmarks.peers import Ratio, Work, describe_machine, in_turns, open_peer, ratio_of
from sardonyx import Session

CASES = Path(__file__).with_name("operator_cases.txt")
OPSETS = [helper.make_opsetid("", 23), helper.make_opsetid("ai.onnx.ml", 4)]
SLOW = 1.2

_ENTRY = re.compile(r"(\w+)(?:\[([\d,]*)\])? (\w+)(?:<(\d+))?(?:=\{(.*?)\})?(?:, |$)")

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """One node, what it is fed, and its constants."""

    line: str
    node: str
    feeds: Mapping[str, Array]
    constants: Mapping[str, Array]

    def save(self, folder: Path) -> Path:
        """A model of this node."""
        node = self.node if re.match(r"[\w, ]+ = ", self.node) else f"out = {self.node}"
        results = ", ".join(name.strip() for name in node.partition(" = ")[0].split(","))
        entries = ", ".join(f"{_type(array)} {name}" for name, array in self.feeds.items())
        graph = parser.parse_graph(f"one ({entries}) => ({results}) {{ {node} }}")
        graph.initializer.extend(
            numpy_helper.from_array(array, name) for name, array in self.constants.items()
        )
        model = helper.make_model(graph, opset_imports=OPSETS, ir_version=10)
        first = model.graph.input[0].type.tensor_type.elem_type
        inferred = onnx.shape_inference.infer_shapes(model).graph.output
        for entry, found in zip(
            model.graph.output, inferred, strict=True
        ):  # sizes are the engines' own matter
            entry.type.tensor_type.elem_type = found.type.tensor_type.elem_type or first
        path = folder / "case.onnx"
        onnx.save(model, path)
        return path


def cases(words: Sequence[str]) -> Iterator[Case]:
    """Those whose line contains one of the words; all without any."""
    for line in CASES.read_text().splitlines():
        if line and not line.startswith("#") and (not words or any(word in line for word in words)):
            yield _case(line)


def _case(line: str) -> Case:
    entries, node = line.split(" -> ")
    draw = np.random.default_rng(0)
    arrays = {found[3]: _array(found, draw) for found in _ENTRY.finditer(entries)}
    return Case(
        line,
        node,
        {name: array for name, array in arrays.items() if name.islower()},
        {name: array for name, array in arrays.items() if not name.islower()},
    )


def _array(found: re.Match[str], draw: np.random.Generator) -> Array:
    kind, sizes, _, below, values = found.groups()
    dtype = np.dtype({"float": "float32", "double": "float64"}.get(kind, kind))
    shape = [int(size) for size in sizes.split(",") if size] if sizes is not None else []
    if values is not None:
        return np.array([float(one) for one in values.split(",") if one], dtype).reshape(shape)
    if below is not None:
        return np.asarray(draw.random(shape) * int(below), dtype)
    if dtype.kind == "f":
        scale = prod(shape[1:]) ** -0.5 if found[3].isupper() and len(shape) > 1 else 1
        return (draw.standard_normal(shape) * scale).astype(dtype)
    return draw.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)


def _type(array: Array) -> str:
    name = helper.tensor_dtype_to_string(helper.np_dtype_to_tensor_dtype(array.dtype)).partition(
        "."
    )[2]
    shape = ",".join(map(str, array.shape))
    return f"{name.lower()}[{shape}]" if shape else name.lower()


def measure(case: Case, threads: int, rounds: int) -> dict[str, Any]:
    """Seconds of ours, the ratio where the peer runs it, and why anything runs on the reference backend."""
    with tempfile.TemporaryDirectory(prefix="sardonyx-operators-") as folder:
        work = Work(case.line, case.save(Path(folder)), case.feeds, "operators")
        session = Session(work.path, threads=threads)
        reasons = [p.reason for p in session.placement if p.backend != "native"]
        theirs = open_peer("onnxruntime", work, threads)
        calls = {"ours": lambda: session.run(None, case.feeds)}
        seconds = in_turns(calls | ({"theirs": theirs} if theirs else {}), rounds)
    ratio = ratio_of(seconds["ours"], seconds["theirs"]) if theirs else None
    return {
        "case": case.line,
        "ours": statistics.median(seconds["ours"]),
        "ratio": asdict(ratio) if ratio else None,
        "reference": reasons,
    }


def main() -> None:
    arguments = _arguments()
    warnings.simplefilter("ignore")
    machine = describe_machine(arguments.threads, ["onnxruntime"])
    print("; ".join(machine.values()))
    rows = []
    for case in cases(arguments.words):
        row = measure(case, arguments.threads, arguments.rounds)
        rows.append(row)
        ratio = Ratio(**row["ratio"]) if row["ratio"] else None
        if row["reference"] or not ratio or ratio.median >= arguments.over:
            took = f"{1e6 * row['ours']:.0f} µs"
            print(case.line, took, ratio or "–", *row["reference"], flush=True)
    print(summary(rows))
    if arguments.json:
        content = {"kind": "operators", "machine": machine, "results": rows}
        arguments.json.write_text(json.dumps(content, indent=1))


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    ratios = [row["ratio"]["median"] for row in rows if row["ratio"]]
    mean = (
        f", geometric mean {statistics.geometric_mean(ratios):.2f} × onnxruntime" if ratios else ""
    )
    return f"{len(ratios)} cases{mean}, {sum(ratio > SLOW for ratio in ratios)} above {SLOW}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="of the lines to take; all without any")
    parser.add_argument("--over", type=float, default=0, help="show ratios from here on")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
