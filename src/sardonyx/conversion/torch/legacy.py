"""By TorchScript: scripted, where the control flow of the source is kept, or traced, where one run is recorded."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch
from torch import nn
from torch.onnx._internal.torchscript_exporter import utils as exporter

from sardonyx.conversion.candidate import Feeds
from sardonyx.conversion.torch.arrays import to_tensor
from sardonyx.conversion.torch.failure import is_own_file
from sardonyx.conversion.torch.finish import Wanted
from sardonyx.model.load import load

__all__ = ["export_script", "trace"]

_OLDEST, _NEWEST = 9, 20  # opsets that the TorchScript exporter writes


def trace(flat: nn.Module, feeds: Feeds, names: Sequence[str]) -> tuple[Any, list[str]]:
    """One run of a module, recorded; calls of scripts inside it keep their control flow.

    The second result is where torch warns of values that became constants of the record.
    """
    tensors = tuple(to_tensor(feeds[name]) for name in names)
    jit: Any = torch.jit
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # Its own check repeats the run, and says nothing that verification does not.
        traced = jit.trace(flat, tensors, check_trace=False)
    lost = [
        f"{Path(w.filename).name}:{w.lineno}"
        for w in caught
        if issubclass(w.category, jit.TracerWarning) and is_own_file(w.filename)
    ]
    return traced, list(dict.fromkeys(lost))


def export_script(script: Any, feeds: Feeds, wanted: Wanted) -> ir.Model:
    """A TorchScript module between flat tensors as ONNX, with the source lines in its nodes."""
    tensors = tuple(to_tensor(feeds[name]) for name in wanted.inputs)
    inner = [f"input_{index}" for index in range(len(tensors))]
    axes = {
        own: dict(wanted.dynamic[name])
        for own, name in zip(inner, wanted.inputs, strict=True)
        if name in wanted.dynamic
    }
    with tempfile.TemporaryDirectory(prefix="sardonyx-") as folder, _source_lines():
        path = Path(folder) / "model.onnx"
        torch.onnx.export(
            script,
            tensors,
            str(path),
            dynamo=False,
            verbose=True,
            input_names=inner,
            dynamic_axes=axes,
            opset_version=min(max(wanted.opset, _OLDEST), _NEWEST),
        )
        model = load(path)
    _restore_inputs(model, inner, feeds, wanted)
    return model


@contextlib.contextmanager
def _source_lines() -> Iterator[None]:
    """The exporter writes source lines only where it also prints the whole graph, past Python's own streams."""
    module: Any = exporter
    printing = module.setup_onnx_logging
    module.setup_onnx_logging = lambda verbose: contextlib.nullcontext()
    try:
        yield
    finally:
        module.setup_onnx_logging = printing


def _restore_inputs(model: ir.Model, inner: Sequence[str], feeds: Feeds, wanted: Wanted) -> None:
    """Inputs that nothing reads were left out, and the rest may stand in another order."""
    found = {value.name: value for value in model.graph.inputs}
    ordered = []
    for own, name in zip(inner, wanted.inputs, strict=True):
        value = found.get(own)
        if value is None:
            array: Any = feeds[name]
            kind = ir.TensorType(ir.DataType.from_numpy(array.dtype))
            value = ir.Value(name=own, shape=ir.Shape(array.shape), type=kind)
        ordered.append(value)
    model.graph.inputs.clear()
    model.graph.inputs.extend(ordered)
