"""A model as an nn.Module: its parameters are trainable, its source is there to be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx_ir as ir
import torch

from sardonyx.conversion.back.prepare import prepare_back
from sardonyx.conversion.back.source import load_source, module_source
from sardonyx.conversion.back.text import INDENT, function_lines
from sardonyx.conversion.back.torch.language import TORCH
from sardonyx.conversion.back.weights import Weight, weight_array
from sardonyx.conversion.back.writer import Program, write
from sardonyx.conversion.torch.arrays import to_tensor

__all__ = ["make_module", "write_folder"]

WEIGHTS = "weights.pt"


def make_module(model: ir.Model) -> torch.nn.Module:
    """An nn.Module that computes what the model does; `module.source` is its text."""
    prepared, shapes = prepare_back(model, TORCH)
    program = write(prepared, shapes, TORCH, "forward")
    source = _source(program)
    module: torch.nn.Module = load_source(source, "torch")["Model"]()
    module.load_state_dict(_state(program))
    module.source = source  # type: ignore[assignment]
    module.original_names = {w.name: w.original for w in program.weights.values()}  # type: ignore[assignment]
    return module.eval()


def write_folder(module: torch.nn.Module, folder: Path) -> list[Path]:
    """`model.py` and its weights, which need nothing of ours."""
    folder.mkdir(parents=True, exist_ok=True)
    source, weights = folder / "model.py", folder / WEIGHTS
    source.write_text(str(module.source), encoding="utf-8")
    torch.save(module.state_dict(), weights)
    return [source, weights]


def _state(program: Program) -> dict[str, torch.Tensor]:
    return {name: to_tensor(weight_array(weight)) for name, weight in program.weights.items()}


def _source(program: Program) -> str:
    title = "An ONNX model as an nn.Module, written by Sardonyx. load() gives it with its weights."
    return module_source(TORCH, title, program.helpers, list(_lines(program)))


def _lines(program: Program) -> Iterator[str]:
    yield "class Model(nn.Module):"
    yield f"{INDENT}def __init__(self):"
    yield f"{INDENT * 2}super().__init__()"
    for weight in program.weights.values():
        yield f"{INDENT * 2}{_declared(weight)}"
    yield ""
    yield from (
        f"{INDENT}{line}" if line else "" for line in function_lines(program.function, ["self"])
    )
    yield ""
    yield ""
    yield f"def load(path='{WEIGHTS}'):"
    yield f"{INDENT}model = Model()"
    yield f"{INDENT}model.load_state_dict(torch.load(path, weights_only=True))"
    yield f"{INDENT}return model.eval()"


def _declared(weight: Weight) -> str:
    shape = tuple(int(size) for size in weight.tensor.shape.numpy())
    dtype = TORCH.dtypes[weight.tensor.dtype]
    empty = f"torch.empty({shape}, dtype={dtype})"
    if weight.trained:
        return f"self.{weight.name} = nn.Parameter({empty})"
    return f"self.register_buffer({weight.name!r}, {empty})"
