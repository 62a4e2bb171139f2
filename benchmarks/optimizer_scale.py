"""The optimizer on large models: 20,000 nodes, and more weights than memory should have to hold twice.

    python -m benchmarks.optimizer_scale                 both, at levels 2 and 3: seconds, and memory at its peak
    python -m benchmarks.optimizer_scale --nodes 50000 --gigabytes 4

Models are made in a temporary folder, which is deleted. Each is loaded, optimized and written in a process of its own. Of
the large one, weights lie in a file beside the model: `anonymous` is what the process allocated at its peak, without pages
of mapped files. That it is far below the weights' size says that no pass copied them.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).resolve().parents[1]
MARK = "RESULT "


def many_nodes(path: Path, nodes: int) -> None:
    """Layers as exporters write them: product, bias, activation, and a shape put together from sizes."""
    random = np.random.default_rng(0)
    made: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    x, layer = "x", 0
    while len(made) < nodes:
        layer += 1

        def call(op: str, *inputs: str, layer: int = layer, **attributes: Any) -> str:
            name = f"{op}{layer}.{len(made)}"
            made.append(helper.make_node(op, list(inputs), [name], **attributes))
            return name

        def weight(*shape: int, layer: int = layer) -> str:
            array = (random.normal(size=shape) / 4).astype(np.float32)
            weights.append(numpy_helper.from_array(array, f"w{layer}.{len(weights)}"))
            return weights[-1].name

        zero, width = (
            call("Constant", value=numpy_helper.from_array(np.array([n]))) for n in (0, 16)
        )
        y = call("Relu", call("Add", call("MatMul", x, weight(16, 16)), weight(16)))
        rows = call("Gather", call("Shape", call("Identity", y)), zero)
        x = call("Reshape", y, call("Concat", rows, width, axis=0))
    _save(path, made, weights, x, 16)


def _save(
    path: Path, nodes: list[onnx.NodeProto], weights: list[onnx.TensorProto], last: str, width: int
) -> None:
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width]) for name in ("x", last)
    ]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    imports = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), path)


def large_weights(path: Path, size: int) -> None:
    """Products of 64 MiB, written piece by piece into a file beside the model; two of them are equal."""
    width = 4096
    one = 4 * width * width
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    x = "x"
    random = np.random.default_rng(0)
    with path.with_suffix(".data").open("wb") as file:
        for layer in range(max(2, -(-size // one))):
            tensor = TensorProto(name=f"w{layer}", data_type=TensorProto.FLOAT, dims=[width, width])
            tensor.data_location = TensorProto.EXTERNAL
            place = {
                "location": path.with_suffix(".data").name,
                "offset": layer * one,
                "length": one,
            }
            for key, value in place.items():
                tensor.external_data.add(key=key, value=str(value))
            weights.append(tensor)
            if layer != 1:
                block = (random.standard_normal((width, width), np.float32) / 64).tobytes()
            file.write(block)
            nodes.append(helper.make_node("MatMul", [x, tensor.name], [f"m{layer}"]))
            nodes.append(helper.make_node("Identity", [f"m{layer}"], [f"i{layer}"]))
            nodes.append(helper.make_node("Relu", [f"i{layer}"], [f"r{layer}"]))
            x = f"r{layer}"
    _save(path, nodes, weights, x, width)


class Watch(threading.Thread):
    """The most memory that this process has allocated, looked at a hundred times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.01):
            for line in Path("/proc/self/status").read_text().splitlines():
                if line.startswith("RssAnon:"):
                    self.peak = max(self.peak, int(line.split()[1]) * 1024)


def run_one(path: Path, level: int) -> None:
    import sardonyx
    from sardonyx.cli.console import compiling, progress_bar
    from sardonyx.model.save import save

    watch = Watch()
    watch.start()
    begin = time.perf_counter()
    model = sardonyx.load(path)
    loaded = time.perf_counter()
    with progress_bar("optimizing") as (progress, _):
        result = sardonyx.optimize(
            model, level=level, verify=False, progress=compiling(progress, "step")
        )
    optimized = time.perf_counter()
    with tempfile.TemporaryDirectory(
        dir=path.parent
    ) as folder:  # elsewhere, so that weights are written too
        save(result.model, Path(folder) / "optimized.onnx")
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    written = time.perf_counter()
    watch.done.set()
    watch.join()
    print(
        MARK
        + json.dumps(
            {
                "nodes": [result.ledger.before.nodes, result.ledger.after.nodes],
                "load": loaded - begin,
                "optimize": optimized - loaded,
                "write": written - optimized,
                "written": size,
                "anonymous": watch.peak,
                "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--gigabytes", type=float, default=2.5)
    parser.add_argument("--one", nargs=2, metavar=("PATH", "LEVEL"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_one(Path(arguments.one[0]), int(arguments.one[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        nodes, weights = Path(folder) / "nodes.onnx", Path(folder) / "weights.onnx"
        many_nodes(nodes, arguments.nodes)
        large_weights(weights, int(arguments.gigabytes * 1e9))
        for path in (nodes, weights):
            data = path.with_suffix(".data")
            size = path.stat().st_size + (data.stat().st_size if data.exists() else 0)
            print(f"{path.stem}: {size / 1e6:,.0f} MB")
            for level in (2, 3):
                show(path, level)


def show(path: Path, level: int) -> None:
    command = [sys.executable, "-m", "benchmarks.optimizer_scale", "--one", str(path), str(level)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    line = next(line for line in done.stdout.splitlines() if line.startswith(MARK))
    found = json.loads(line[len(MARK) :])
    before, after = found["nodes"]
    print(
        f"  O{level}: {before:,} nodes → {after:,}; load {found['load']:.1f} s, optimize {found['optimize']:.1f} s, "
        f"write {found['written'] / 1e6:,.0f} MB {found['write']:.1f} s; anonymous {found['anonymous'] / 1e6:,.0f} MB, "
        f"resident {found['resident'] / 1e6:,.0f} MB",
        flush=True,
    )


if __name__ == "__main__":
    main()
