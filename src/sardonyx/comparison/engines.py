"""Engines by name, each opened on a model and run on feeds. Peers are imported only when asked for.

run = open_engine("onnxruntime", "model.onnx")
outputs = run({"x": x})                      # name -> value
"""

from __future__ import annotations

import ctypes
import importlib
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from sardonyx.backends.reference import Value
from sardonyx.errors import InputError, MissingExtraError, RunError, SardonyxError
from sardonyx.model.limits import DEFAULT_LIMITS, Limits
from sardonyx.model.load import Source, load
from sardonyx.model.save import save
from sardonyx.runtime.chosen import Precision
from sardonyx.runtime.session import Session

__all__ = ["ENGINES", "Opening", "Run", "engine_version", "open_engine"]

Run: TypeAlias = Callable[[Mapping[str, Value]], dict[str, Value]]


@dataclass(frozen=True)
class Opening:
    """How to open a model.

    Attributes:
        limits: of loading.
        threads: that one run may use; None for what the engine takes by itself.
        progress: hears (steps done, steps in all) while our own engine compiles.
        tune: our own engine measures its kernels.
        sizes: what the dynamic dimensions will always be.
        precision: of our own engine.
    """

    limits: Limits = DEFAULT_LIMITS
    threads: int | None = None
    progress: Callable[[int, int], None] | None = None
    tune: bool = False
    sizes: Mapping[str, int] | None = None
    precision: Precision = "float32"


def open_engine(name: str, source: Source, how: Opening | None = None) -> Run:
    """Open a model on an engine.

    Raises:
        InputError: there is no such engine.
        MissingExtraError: it is not installed.
        RunError: it does not take the model.
    """
    opener = ENGINES.get(name)
    if opener is None:
        raise InputError(
            f"there is no engine {name[:80]!r}.",
            value=name,
            hint=f"The engines are: {', '.join(ENGINES)}.",
        )
    return opener(source, how or Opening())


def engine_version(name: str) -> str:
    """`onnxruntime 1.31.1`, as a report names the engine."""
    package = {"reference": "onnx"}.get(name, name)
    version = getattr(importlib.import_module(package), "__version__", "?")
    return f"onnx.reference {version}" if name == "reference" else f"{name} {version}"


def _open_sardonyx(source: Source, how: Opening) -> Run:
    session = Session(
        source,
        limits=how.limits,
        threads=how.threads,
        progress=how.progress,
        tune=how.tune,
        fixed_dims=how.sizes,
        precision=how.precision,
    )
    names = [port.name for port in session.outputs]

    def run(feeds: Mapping[str, Value]) -> dict[str, Value]:
        return dict(zip(names, session.run(None, feeds), strict=True))

    return run


def _open_reference(source: Source, how: Opening) -> Run:
    """onnx.reference with nothing of ours: a second opinion, without guards and on one thread."""
    evaluators: Any = importlib.import_module("onnx.reference")
    model = load(source, limits=how.limits)
    with tempfile.TemporaryDirectory(prefix="sardonyx-") as folder:
        path = Path(folder) / "model.onnx"
        save(model, path, external_data=False)
        proto = onnx.load(path)
    evaluator = _asked(
        "reference", "does not take the model", lambda: evaluators.ReferenceEvaluator(proto)
    )
    names = list(evaluator.output_names)

    def run(feeds: Mapping[str, Value]) -> dict[str, Value]:
        with np.errstate(all="ignore"):
            answers = _asked("reference", "cannot run", lambda: evaluator.run(None, dict(feeds)))
        return dict(zip(names, answers, strict=True))

    return run


def _open_onnxruntime(source: Source, how: Opening) -> Run:
    ort = _import_peer("onnxruntime", "peers")
    model = load(source, limits=how.limits)  # refuses what is not safe to hand on
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = how.threads or 0  # 0 is as many as it likes
    providers = ["CPUExecutionProvider"]

    def create(path: str | os.PathLike[str]) -> Any:
        return _asked(
            "onnxruntime",
            "does not take the model",
            lambda: ort.InferenceSession(os.fspath(path), options, providers=providers),
        )

    if isinstance(source, str | os.PathLike) and Path(source).is_file():
        session = create(source)
    else:
        with tempfile.TemporaryDirectory(prefix="sardonyx-") as folder:
            path = Path(folder) / "model.onnx"
            save(model, path)
            session = create(path)
    names = [output.name for output in session.get_outputs()]
    small = {
        value.name or "": value.dtype
        for value in (*model.graph.inputs, *model.graph.outputs)
        if value.dtype is not None and _is_foreign(value.dtype)
    }

    def run(feeds: Mapping[str, Value]) -> dict[str, Value]:
        if not small:
            return dict(zip(names, session.run(names, dict(feeds)), strict=True))
        given = {name: _to_ort(ort, value, small.get(name)) for name, value in feeds.items()}
        answers = session.run_with_ort_values(names, given)
        return {name: _from_ort(a, small.get(name)) for name, a in zip(names, answers, strict=True)}

    return lambda feeds: _asked("onnxruntime", "cannot run", lambda: run(feeds))


ENGINES: Mapping[str, Callable[[Source, Opening], Run]] = {
    "sardonyx": _open_sardonyx,
    "onnxruntime": _open_onnxruntime,
    "reference": _open_reference,
}


def _import_peer(name: str, extra: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"{name} is not installed.",
            value=str(error),
            hint=f'Run: pip install "sardonyx[{extra}]"',
        ) from None


def _asked(engine: str, what: str, call: Callable[[], Any]) -> Any:
    """Whatever a peer throws becomes one of our errors, in one line."""
    try:
        return call()
    except SardonyxError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())[:400] or type(error).__name__
        raise RunError(f"{what}: {text}", where=f"engine {engine}") from error


def _is_foreign(dtype: ir.DataType) -> bool:
    """Types that numpy has no name for: onnxruntime takes their bits, with the type beside."""
    if dtype in (ir.DataType.STRING, ir.DataType.UNDEFINED):
        return False
    return np.dtype(dtype.numpy()).isbuiltin != 1


def _to_ort(ort: Any, value: Value, dtype: ir.DataType | None) -> Any:
    if dtype is None or not isinstance(value, np.ndarray):
        return ort.OrtValue.ortvalue_from_numpy(value)
    bits = np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}")
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, dtype.value)


def _from_ort(answer: Any, dtype: ir.DataType | None) -> Value:
    if dtype is None:
        plain: Value = answer.numpy()
        return plain
    # numpy() knows no such type, so the bits are copied from where they lie.
    bits = ctypes.string_at(answer.data_ptr(), answer.tensor_size_in_bytes())
    return np.frombuffer(bits, dtype.numpy()).reshape(answer.shape())
