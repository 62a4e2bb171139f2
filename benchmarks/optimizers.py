"""Node counts after `simplify` and `optimize`, beside onnxsim, onnxslim and onnxruntime's own level 1.

    python -m benchmarks.optimizers                      every model, each tool; docs/optimizer.md is made of it
    python -m benchmarks.optimizers bert                 those whose name has it in it
    python -m benchmarks.optimizers --page               the page anew, from what is known

Every tool works on every model in a process of its own. Whatever was counted is kept in build/optimizers.json, so that
a second run counts only what is new; ours is always counted anew. `pip install 'sardonyx[optimizers]'` brings the peers.
Answers: each of our results runs in onnxruntime if the original did, on the same inputs, and agrees within the contract of
docs/numerics.md; so it does in OpenVINO where that is installed, in a process of its own: it may crash.
Models are what lies in build/: python -m benchmarks.models (with --dynamic and --exporter legacy), benchmarks.real_models,
benchmarks.keras_models and benchmarks.sklearn_models bring them.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx

ROOT = Path(__file__).resolve().parents[1]
KNOWN = ROOT / "build" / "optimizers.json"
PAGE = ROOT / "docs" / "optimizer.md"
PEERS = ("onnxsim", "onnxslim", "onnxruntime")
OURS = ("simplify", "optimize")
MOST_SECONDS = 120
MARK = "RESULT "
SELF = (sys.executable, "-m", "benchmarks.optimizers")


def models() -> Iterator[tuple[str, Path]]:
    """Group and path of every model: the standard set by both exporters, light ones, trained ones, of other converters."""
    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    for group, folder in (
        ("standard set, and two of trees", ROOT / "build" / "models"),
        ("light models of onnx", light),
        ("trained models", ROOT / "build" / "real"),
        ("made by tf2onnx", ROOT / "build" / "keras"),
        ("made by skl2onnx", ROOT / "build" / "sklearn"),
    ):
        for path in sorted(folder.glob("*.onnx")):
            yield group, path


# One tool on one model, in a process of its own


def count(model: onnx.ModelProto) -> int:
    """Nodes of the graph, its subgraphs and functions."""

    def inside(graph: onnx.GraphProto) -> int:
        inner = (a.g for node in graph.node for a in node.attribute if a.HasField("g"))
        return len(graph.node) + sum(map(inside, inner))

    return inside(model.graph) + sum(len(function.node) for function in model.functions)


def by_onnxsim(path: Path) -> onnx.ModelProto:
    import onnxsim

    return onnxsim.simplify(onnx.load(path))[0]


def by_onnxslim(path: Path) -> onnx.ModelProto:
    import onnxslim

    return onnxslim.slim(onnx.load(path))


def by_onnxruntime(path: Path) -> onnx.ModelProto:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 4
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = str(Path(folder) / "model.onnx")
        onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


def by_us(path: Path, level: int) -> onnx.ModelProto:
    import sardonyx
    from sardonyx.model.save import to_proto

    return to_proto(sardonyx.optimize(path, level=level, verify=False).model)


TOOLS: dict[str, Callable[[Path], onnx.ModelProto]] = {
    "original": onnx.load,
    "onnxsim": by_onnxsim,
    "onnxslim": by_onnxslim,
    "onnxruntime": by_onnxruntime,
    "simplify": lambda path: by_us(path, 2),
    "optimize": lambda path: by_us(path, 3),
}


def feeds_of(path: Path) -> list[dict[str, Any]]:
    """What a model is fed: its own cases where it is one of the trained models, seeded examples elsewhere."""
    from benchmarks.real_inputs import draw_case
    from benchmarks.real_models import real_models
    from sardonyx.comparison.inputs import example_inputs
    from sardonyx.model.load import load

    cases = [case for model in real_models() if model.path == path for case in model.cases]
    return [draw_case(case) for case in cases] or [example_inputs(load(path))]


def agreement(path: Path, made: onnx.ModelProto) -> dict[str, str]:
    """What the peers' engines say of a result of ours: "agrees", or why not."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        onnx.save(made, file)
        engines = [name for name in ("onnxruntime", "openvino") if _has(name)]
        return {name: _said_by(name, path, file) for name in engines}


def _said_by(engine: str, path: Path, made: Path) -> str:
    """The same in a process of its own: whatever an engine does, the run goes on."""
    command = [*SELF, "--agree", engine, str(path), str(made)]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=MOST_SECONDS, cwd=ROOT
        )
        said, ended = done.stdout, f"ended with {done.returncode}"
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode() if isinstance(error.stdout, bytes) else ""
        ended = f"not done after {MOST_SECONDS} s"
    lines = [line[len(MARK) :] for line in said.splitlines() if line.startswith(MARK)]
    if len(lines) == 2:
        return str(json.loads(lines[1]))
    return ended if lines and json.loads(lines[0]) == "" else f"the original: {lines or ended}"


def agree(engine: str, path: Path, made: Path) -> None:
    """Print what an engine says of the original, "" where it runs, and then of the result."""
    from sardonyx.errors import SardonyxError

    try:
        every = feeds_of(path)
        wanted = _answers(engine, path, every)
        if _differences(wanted, _answers(engine, path, every)):
            print(MARK + json.dumps("its own answers change from run to run"))
            return
    except (SardonyxError, RuntimeError) as error:
        print(MARK + json.dumps(_line(error)))
        return
    print(MARK + json.dumps(""), flush=True)
    try:
        wrong = _differences(wanted, _answers(engine, made, every))
    except (SardonyxError, RuntimeError) as error:
        print(MARK + json.dumps(_line(error)))
        return
    print(MARK + json.dumps("; ".join(wrong) or "agrees"))


def _differences(wanted: list[dict[str, Any]], found: list[dict[str, Any]]) -> list[str]:
    from sardonyx.comparison.difference import differences

    return [
        f"{one.name}: {one.reason}"
        for expected, got in zip(wanted, found, strict=True)
        for name in expected
        for one in differences(name, expected[name], got[name], None, None)
        if not one.ok
    ]


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


def _answers(engine: str, path: Path, every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if engine == "openvino":
        return _by_openvino(path, every)
    from sardonyx.comparison.engines import open_engine

    run = open_engine(engine, path)
    return [dict(run(feeds)) for feeds in every]


def _by_openvino(path: Path, every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    import openvino

    core = openvino.Core()
    model = core.read_model(path)
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    names = [f"output {index}" for index in range(len(compiled.outputs))]  # one may have many names
    found = []
    for feeds in every:
        given = {port.any_name: feeds[port.any_name] for port in compiled.inputs}
        answers = compiled(given)
        found.append({name: answers[index].copy() for index, name in enumerate(names)})
    return found


def run_one(tool: str, path: Path, check: bool) -> None:
    begin = time.perf_counter()
    model = TOOLS[tool](path)
    result: dict[str, Any] = {"nodes": count(model), "seconds": time.perf_counter() - begin}
    if check and tool in OURS:
        result["agreement"] = agreement(path, model)
    print(MARK + json.dumps(result))


def in_process(tool: str, path: Path, check: bool) -> dict[str, Any]:
    """The result of one tool on one model; {"error": …} when it crashed or took too long."""
    command = [*SELF, "--one", tool, str(path)]
    command += ["--check"] if check else []
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=4 * MOST_SECONDS, cwd=ROOT
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {4 * MOST_SECONDS} s"}
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            return dict(json.loads(line[len(MARK) :]))
    return {"error": (done.stderr.strip().splitlines() or ["no answer"])[-1][:200]}


# The page


def page(known: dict[str, dict[str, Any]]) -> str:
    """docs/optimizer.md, but for the part before the first table, which people write."""
    head = PAGE.read_text().split("<!-- made by benchmarks.optimizers -->")[0]
    lines = [head.rstrip(), "", "<!-- made by benchmarks.optimizers -->", ""]
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in PEERS if _has(name)
    )
    lines += [
        f"Nodes, those of subgraphs and functions among them. Peers: {versions} (onnxruntime at level 1, written back).",
        "",
        "| model | original | onnxsim | onnxslim | onnxruntime | **simplify** | **optimize** | answers |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    totals = dict.fromkeys(("original", "best", *OURS), 0)
    worse: list[str] = []
    for _, path in models():
        row = known.get(path.stem)
        if row is None or not all("nodes" in row.get(tool, {}) for tool in ("original", *OURS)):
            continue
        counts = {tool: row.get(tool, {}).get("nodes") for tool in TOOLS}
        best = min(counts[tool] for tool in ("original", *PEERS) if counts[tool] is not None)
        for tool in totals:
            totals[tool] += best if tool == "best" else counts[tool]
        worse += [path.stem] if any(counts[tool] > best for tool in OURS) else []
        said = [text for tool in OURS for text in row[tool].get("agreement", {}).values()]
        bad = [text for text in said if text != "agrees" and not text.startswith("the original")]
        cells = ["–" if counts[tool] is None else str(counts[tool]) for tool in TOOLS]
        lines.append(f"| {path.stem} | {' | '.join(cells)} | {'; '.join(bad) or 'agree'} |")
    saved = 1 - totals["optimize"] / max(1, totals["best"])
    lines += [
        "",
        f"In all: {totals['original']:,} nodes; the best peer of each model {totals['best']:,}; "
        f"`simplify` {totals['simplify']:,}; `optimize` {totals['optimize']:,}, {saved:.0%} fewer than the best peers. "
        f"More nodes than the best peer on: {', '.join(worse) or 'none'}.",
    ]
    return "\n".join(lines) + "\n"


def _has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of models' names")
    parser.add_argument("--one", nargs=2, metavar=("TOOL", "PATH"), help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--agree", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--peers-again", action="store_true", help="count peers anew too")
    arguments = parser.parse_args()
    if arguments.agree:
        agree(arguments.agree[0], Path(arguments.agree[1]), Path(arguments.agree[2]))
        return
    if arguments.one:
        run_one(arguments.one[0], Path(arguments.one[1]), arguments.check)
        return
    known: dict[str, dict[str, Any]] = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    for _, path in models() if not arguments.page else ():
        if arguments.names and not any(name in path.stem for name in arguments.names):
            continue
        row = known.setdefault(path.stem, {})
        for tool in TOOLS:
            if tool in OURS or arguments.peers_again or tool not in row:
                row[tool] = in_process(tool, path, check=True)
        shown = "  ".join(f"{tool} {row[tool].get('nodes', 'failed')}" for tool in TOOLS)
        print(f"{path.stem:32} {shown}", flush=True)
        KNOWN.parent.mkdir(exist_ok=True)
        KNOWN.write_text(json.dumps(known, indent=1))
    PAGE.write_text(page(known))


if __name__ == "__main__":
    main()
