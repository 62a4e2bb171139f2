"""The engines that are measured, each opened with one model and ready to be called.

    call = open_engine("openvino", path, feeds, threads=2)
    call()

Ours by their precision: "sardonyx" (float32), "sardonyx strict", "sardonyx fast", "sardonyx bfloat16".
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

# Nothing heavy above: a process that measures its own memory imports this file and one engine.

__all__ = ["ENGINES", "OURS", "Call", "Feeds", "import_engine", "open_engine", "package_of"]

Feeds = Mapping[str, NDArray[Any]]
Call = Callable[[], object]
Opener = Callable[[Path, Feeds, int], Call]


def _sardonyx(path: Path, feeds: Feeds, threads: int, precision: str) -> Call:
    session = importlib.import_module("sardonyx").Session(
        path, threads=threads, precision=precision
    )
    return lambda: session.run(None, feeds)


def _onnxruntime(path: Path, feeds: Feeds, threads: int) -> Call:
    ort: Any = importlib.import_module("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


def _openvino(path: Path, feeds: Feeds, threads: int, precision: str) -> Call:
    openvino: Any = importlib.import_module("openvino")
    how = {
        "INFERENCE_NUM_THREADS": threads,
        # Without it, some CPUs would compute in float16, which is other work.
        "INFERENCE_PRECISION_HINT": precision,
        "PERFORMANCE_HINT": "LATENCY",
    }
    request = openvino.Core().compile_model(path, "CPU", how).create_infer_request()
    return lambda: request.infer(feeds)


def _torch(path: Path, feeds: Feeds, threads: int, compiled: bool) -> Call:
    """The module that the file was exported from."""
    from benchmarks import models

    torch: Any = importlib.import_module("torch")
    if path.stem not in models.STANDARD:
        raise LookupError("the model does not come from torch")
    torch.set_num_threads(threads)
    net: Any = models.network(path.stem)
    net = torch.compile(net) if compiled else net
    given = [torch.from_numpy(feeds[entry.name]) for entry in models.spec_of(path.stem).inputs]

    def call() -> object:
        with torch.inference_mode():
            return net(*given)

    return call


OURS: Mapping[str, Opener] = {
    "sardonyx": partial(_sardonyx, precision="float32"),
    **{
        f"sardonyx {precision}": partial(_sardonyx, precision=precision)
        for precision in ("strict", "fast", "bfloat16")
    },
}
ENGINES: Mapping[str, Opener] = {
    **OURS,
    "onnxruntime": _onnxruntime,
    "openvino": partial(_openvino, precision="f32"),
    "openvino bfloat16": partial(_openvino, precision="bf16"),
    "torch": partial(_torch, compiled=False),
    "torch.compile": partial(_torch, compiled=True),
}

# `import sardonyx` alone loads nothing yet.
_MODULES = {"sardonyx": "sardonyx.runtime.session"}


def package_of(engine: str) -> str:
    """What to install for it."""
    return engine.partition(" ")[0].partition(".")[0]


def module_of(engine: str) -> str:
    """What to import for it."""
    package = package_of(engine)
    return _MODULES.get(package, package)


def import_engine(engine: str) -> None:
    importlib.import_module(module_of(engine))


def open_engine(engine: str, path: Path, feeds: Feeds, threads: int) -> Call:
    """The engine with the model; whatever it says where it does not take it."""
    return ENGINES[engine](path, feeds, threads)
