"""Networks of many kinds beside onnxruntime, exported with sizes that are fixed and with sizes that only a run knows.

    python -m benchmarks.open_sizes                        all of `architectures`, both ways
    python -m benchmarks.open_sizes shufflenet detector --rounds 9

What a size costs that is not known beforehand shows where the second column is above the first. Answers are held to
onnxruntime's with one thread: with two it may add up what is scattered to one place, and lose some of it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.architectures import ARCHITECTURES, Architecture
from benchmarks.engines import open_engine
from benchmarks.peers import Ratio, describe_machine, in_turns, ratio_of
from sardonyx import Session

__all__ = ["FOLDER", "export"]

FOLDER = Path(__file__).resolve().parents[1] / "build" / "architectures"
WAYS = ("fixed", "open")
TOLERANCE = 1e-4  # of the largest number

Array = NDArray[Any]


def export(name: str, way: str) -> Path:
    """The network's file, made where it is missing."""
    path = FOLDER / f"{name}_{way}.onnx"
    if path.exists():
        return path
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = ARCHITECTURES[name]
    torch.manual_seed(0)
    net, inputs = made.make().eval(), [torch.from_numpy(one) for one in draw(made).values()]
    axes: Any = None
    if way == "open":
        axes = tuple(dict.fromkeys(open_, torch.export.Dim.DYNAMIC) for open_ in made.open)
        # A batch of one would be taken for a constant.
        if all(0 in open_ for open_ in made.open) and inputs[0].shape[0] == 1:
            inputs = [torch.cat([one, one]) for one in inputs]
    names = [f"x{number}" for number in range(len(inputs))]
    with torch.no_grad():
        torch.onnx.export(
            net,
            tuple(inputs),
            path,
            input_names=names,
            dynamic_shapes=axes,
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    return path


def draw(made: Architecture) -> dict[str, Array]:
    """The same numbers every time."""
    random = np.random.default_rng(0)
    found: dict[str, Array] = {}
    for number, (shape, below) in enumerate(zip(made.shapes, made.below, strict=False)):
        some = random.integers(0, below, shape) if below else random.standard_normal(shape)
        found[f"x{number}"] = some.astype(np.int64 if below else np.float32)
    return found


def measure(name: str, way: str, threads: int, rounds: int) -> dict[str, Any]:
    """Milliseconds of ours, their ratio, how far the answers are apart, and what is not native."""
    path, feeds = export(name, way), draw(ARCHITECTURES[name])
    session = Session(path, threads=threads)
    alone = open_engine("onnxruntime", path, feeds, 1)
    theirs = open_engine("onnxruntime", path, feeds, threads)
    pairs = zip(session.run(None, feeds), alone(), strict=True)
    apart = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)
    calls = {"ours": partial(session.run, None, feeds), "theirs": theirs}
    seconds = in_turns(calls, rounds)
    ratio = ratio_of(seconds["ours"], seconds["theirs"])
    slow = [one.node for one in session.placement if one.backend != "native"]
    took = statistics.median(seconds["ours"]) * 1e3
    return {"name": name, "way": way, "ms": took, "ratio": ratio, "apart": apart, "reference": slow}


def main() -> None:
    arguments = _arguments()
    warnings.simplefilter("ignore")
    console, machine = Console(), describe_machine(arguments.threads, ["onnxruntime"])
    console.print("; ".join(machine.values()))
    rows: list[dict[str, Any]] = []
    for name in arguments.names or ARCHITECTURES:
        cells: list[str] = []
        for way in WAYS:
            row = measure(name, way, arguments.threads, arguments.rounds)
            rows.append(row)
            wrong = "" if row["apart"] <= TOLERANCE else f", apart by {row['apart']:.1e}"
            some = f", {len(row['reference'])} not native" if row["reference"] else ""
            cells.append(f"{way} {row['ms']:8.3f} ms  {row['ratio']}{wrong}{some}")
        console.print(f"{name:18}", "    ".join(cells), highlight=False, soft_wrap=True)
    means = (f"{way} {_mean(rows, way):.2f}" for way in WAYS)
    console.print(f"geometric mean × onnxruntime: {', '.join(means)}")
    if arguments.json:
        results = [{**row, "ratio": vars(row["ratio"])} for row in rows]
        content = {"kind": "open sizes", "machine": machine, "results": results}
        arguments.json.write_text(json.dumps(content, indent=1))


def _mean(rows: Sequence[dict[str, Any]], way: str) -> float:
    ratios: list[Ratio] = [row["ratio"] for row in rows if row["way"] == way]
    return statistics.geometric_mean(one.median for one in ratios)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[*ARCHITECTURES, []], help="all without any")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
