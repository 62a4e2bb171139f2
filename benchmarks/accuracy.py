"""How far answers are from the truth: ours at each precision, and the peers', against float64.

    python -m benchmarks.accuracy                          the standard models
    python -m benchmarks.accuracy resnet50 --draws 9       one of them, with more inputs
    python -m benchmarks.accuracy --real                   the trained models of build/real, where they are
    python -m benchmarks.accuracy --engines "sardonyx bfloat16" "openvino bfloat16" "bfloat16 operands"

The truth is the same model with every float32 turned into float64 (`doubles.py`), on the same inputs. An error is
the root mean square of the differences, as part of the root mean square of the output; beside it the largest
difference, as part of the largest output. The ratio is our error over onnxruntime's: the median over the inputs.
Truths are kept in build/accuracy/, for they take the longest. "bfloat16 operands" is the model with what is multiplied rounded to
bfloat16 first (`rounding.py`), all else in float32.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import statistics
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from rich.console import Console

from benchmarks import models
from benchmarks.doubles import in_double, still_single
from benchmarks.engines import OURS, Call, open_engine
from benchmarks.peers import describe_machine, new_table
from benchmarks.real_inputs import draw_case
from benchmarks.real_models import real_models
from benchmarks.rounding import round_operands
from sardonyx import Session

__all__ = ["Errors", "errors_of", "truths"]

KEPT = Path(__file__).resolve().parents[1] / "build" / "accuracy"
PEERS = ("onnxruntime", "openvino")
ROUNDED = "bfloat16 operands"
MORE = ("openvino bfloat16", ROUNDED)  # only where somebody asks for them
KINDS = ("normal", "uniform")

Array = NDArray[Any]
Feeds = dict[str, Array]


@dataclass(frozen=True)
class Task:
    """A model, and the inputs that it is asked about."""

    name: str
    path: Path
    inputs: tuple[Feeds, ...]


@dataclass(frozen=True)
class Errors:
    """Of one answer: the root mean square and the largest, each as part of the output's own."""

    mean: float
    largest: float


# ---------------------------------------------------------------- what is asked


def standard_tasks(names: Sequence[str], draws: int) -> Iterator[Task]:
    for name in names or list(models.STANDARD):
        drawn = [
            spread(models.example_inputs(name, seed=seed), KINDS[seed % len(KINDS)], seed)
            for seed in range(draws)
        ]
        yield Task(name, models.build(name), tuple(drawn))


def spread(feeds: Feeds, kind: str, seed: int) -> Feeds:
    """Normal numbers as they are, or uniform ones in their place: no negative ones, as in images."""
    if kind == "normal":
        return feeds
    random = np.random.default_rng(seed)
    return {
        name: random.random(feed.shape, np.float32) if feed.dtype == np.float32 else feed
        for name, feed in feeds.items()
    }


def real_tasks(names: Sequence[str], draws: int) -> Iterator[Task]:
    for model in real_models():
        if model.path.exists() and (not names or model.name in names):
            for case in model.cases:
                drawn = tuple(draw_case(case, seed) for seed in range(draws))
                yield Task(f"{model.name} {case['name']}", model.path, drawn)


# ---------------------------------------------------------------- the truth


def truths(task: Task) -> list[list[Array]]:
    """For every input, the outputs in float64; a ValueError where a part of the model stays in float32."""
    place = KEPT / f"{digest(task)}.npz"
    if not place.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        found = compute_truths(task)
        # An open file, because numpy would add an ending to another name.
        unfinished = place.with_suffix(".unfinished")
        named: dict[str, Any] = {
            f"{i} {j}": y for i, ys in enumerate(found) for j, y in enumerate(ys)
        }
        with unfinished.open("wb") as file:
            np.savez(file, **named)
        unfinished.replace(place)
    with np.load(place) as kept:
        outputs = len(kept.files) // len(task.inputs)
        return [[kept[f"{i} {j}"] for j in range(outputs)] for i in range(len(task.inputs))]


def compute_truths(task: Task) -> list[list[Array]]:
    model = in_double(onnx.load(task.path))
    if left := still_single(model):
        raise ValueError(f"still float32: {', '.join(left[:5])}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "double.onnx"
        onnx.save(model, path)
        del model
        session = Session(path)
        if slow := {p.op for p in session.placement if p.backend != "native"}:
            raise ValueError(f"not native in float64: {', '.join(sorted(slow))}")
        return [[np.asarray(y) for y in session.run(None, widened(f))] for f in task.inputs]


def widened(feeds: Mapping[str, Array]) -> Feeds:
    return {n: x.astype(np.float64) if x.dtype == np.float32 else x for n, x in feeds.items()}


def digest(task: Task) -> str:
    content = hashlib.sha256(task.path.read_bytes())
    for feeds in task.inputs:
        for name, feed in feeds.items():
            content.update(f"{name}{feed.dtype}{feed.shape}".encode() + feed.tobytes())
    return content.hexdigest()


# ---------------------------------------------------------------- errors


def errors_of(answers: Sequence[Array], truth: Sequence[Array]) -> Errors | None:
    """Over all float outputs; None where there is none to compare."""
    means, largest = [], []
    for found, right in zip(answers, truth, strict=True):
        if right.dtype != np.float64 or found.shape != right.shape or not np.any(right):
            continue
        off = found.astype(np.float64) - right
        if np.all(np.isfinite(off)):
            means.append(np.mean(off * off) / np.mean(right * right))
            largest.append(np.abs(off).max() / np.abs(right).max())
    if not means:
        return None
    return Errors(float(np.sqrt(np.mean(means))), float(max(largest)))


def measure(task: Task, engine: str, truth: Sequence[Sequence[Array]]) -> list[Errors] | None:
    """The errors for every input; None where the engine does not run the model."""
    feeds: Feeds = dict(task.inputs[0])
    try:
        call = (
            open_rounded(task, feeds)
            if engine == ROUNDED
            else open_engine(engine, task.path, feeds, threads=2)
        )
        found = []
        for given, right in zip(task.inputs, truth, strict=True):
            feeds.update(given)
            answer: Any = call()
            outputs = list(answer.values()) if isinstance(answer, Mapping) else answer
            errors = errors_of([np.asarray(y) for y in outputs], right)
            if errors is None:
                return None
            found.append(errors)
        return found
    except Exception as error:  # the other engines still have their turn
        print(f"{task.name}: {engine} does not run it: {str(error).splitlines()[0][:160]}")
        return None


def open_rounded(task: Task, feeds: Feeds) -> Call:
    session = Session(round_operands(onnx.load(task.path)), threads=2)
    return lambda: session.run(None, feeds)


def ratio(ours: Sequence[Errors], theirs: Sequence[Errors]) -> float | None:
    """The median over inputs; None where the peer is exact."""
    found = [a.mean / b.mean for a, b in zip(ours, theirs, strict=True) if b.mean > 0]
    return statistics.median(found) if found else None


def row_of(task: Task, engines: Sequence[str]) -> dict[str, Any] | None:
    try:
        truth = truths(task)
    except Exception as error:
        print(f"{task.name}: no truth: {str(error).splitlines()[0][:160]}")
        return None
    found = {engine: measure(task, engine, truth) for engine in engines}
    known = {engine: errors for engine, errors in found.items() if errors}
    peer = known.get("onnxruntime", [])
    return {
        "model": task.name,
        "errors": {
            engine: {
                "mean": statistics.median(e.mean for e in errors),
                "largest": max(e.largest for e in errors),
                "ratio": ratio(errors, peer) if peer else None,
            }
            for engine, errors in known.items()
        },
    }


def cell(row: Mapping[str, Any], engine: str) -> str:
    errors = row["errors"].get(engine)
    if errors is None:
        return "–"
    said = "" if errors["ratio"] is None else f" {errors['ratio']:.2f} ×"
    return f"{errors['mean']:.1e}, {errors['largest']:.1e}{said}"


def main() -> None:
    known = [*OURS, *PEERS]
    there = [name for name in known if name in OURS or importlib.util.find_spec(name)]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", help="names; all where none is given")
    parser.add_argument("--real", action="store_true", help="trained models instead")
    parser.add_argument("--draws", type=int, default=5, help="inputs for each model")
    parser.add_argument(
        "--engines", nargs="+", choices=[*known, *MORE], default=there, metavar="ENGINE"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers there")
    arguments = parser.parse_args()
    engines = arguments.engines
    warnings.simplefilter("ignore")
    machine = describe_machine(2, [engine for engine in engines if engine not in (*OURS, ROUNDED)])
    tasks = real_tasks if arguments.real else standard_tasks
    table, rows = new_table("errors against float64: mean, largest", ["model", *engines]), []
    for task in tasks(arguments.models, arguments.draws):
        row = row_of(task, engines)
        if row is not None:
            rows.append(row)
            table.add_row(task.name, *(cell(row, engine) for engine in engines))
    Console(width=160).print(table)
    if arguments.json:
        content = {"kind": "accuracy", "real": arguments.real, "machine": machine, "results": rows}
        arguments.json.write_text(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
