"""By torch.export: the model as a graph of aten operators, and these as ONNX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import onnx_ir as ir
import torch
from torch import nn
from torch.export import Dim, ExportedProgram
from torch.onnx._internal.exporter import _constants, _ir_passes

from sardonyx.conversion.candidate import Feeds
from sardonyx.conversion.request import Dynamic
from sardonyx.conversion.torch.arrays import to_tensor
from sardonyx.conversion.torch.attention import attention_translations
from sardonyx.conversion.torch.recurrent import recurrent_operators, recurrent_translations
from sardonyx.errors import InputError

__all__ = ["export_flat", "find_operators", "to_onnx"]

_OLDEST, _NEWEST = 18, 23  # opsets that torch's exporter writes


def export_flat(
    flat: nn.Module, feeds: Feeds, names: Sequence[str], dynamic: Dynamic
) -> ExportedProgram:
    """The program of a module between flat tensors; sizes that it fixes although they are to stay open are an error."""
    tensors = tuple(to_tensor(feeds[name]) for name in names)
    axes = tuple(
        {
            axis: Dim.DYNAMIC if axis in dynamic.get(name, {}) else Dim.STATIC
            for axis in range(t.ndim)
        }
        for name, t in zip(names, tensors, strict=True)
    )
    with recurrent_operators():
        return torch.export.export(
            flat,
            tensors,
            dynamic_shapes={"tensors": axes},
            strict=False,
            prefer_deferred_runtime_asserts_over_guards=True,
        )


def to_onnx(
    program: ExportedProgram, opset: int, translations: Mapping[str, Callable[..., Any]]
) -> ir.Model:
    """The program as ONNX, in the opset nearest to the one asked for that torch writes."""
    table = {**recurrent_translations(), **attention_translations()}
    table.update(find_operators(translations))
    with _one_version_of_bodies():
        made = torch.onnx.export(
            program,
            (),
            dynamo=True,
            opset_version=min(max(opset, _OLDEST), _NEWEST),
            custom_translation_table=table,
            verbose=False,
        )
    assert made is not None
    return made.model


@contextmanager
def _one_version_of_bodies() -> Iterator[None]:
    """Bodies of cond and while_loop are functions of one domain; torch gives it two versions where they nest, and then
    cannot put them in their places."""
    passes: Any = _ir_passes
    add = passes.add_opset_imports

    def add_alike(model: ir.Model) -> None:
        add(model)
        for imports in (model.opset_imports, *(f.opset_imports for f in model.functions.values())):
            if _constants.LOCAL_FUNCTION_DOMAIN in imports:
                imports[_constants.LOCAL_FUNCTION_DOMAIN] = 1

    passes.add_opset_imports = add_alike
    try:
        yield
    finally:
        passes.add_opset_imports = add


def find_operators(translations: Mapping[Any, Any]) -> dict[Any, Any]:
    """The translations by torch's own operators.

    Raises:
        InputError: there is no such operator.
    """
    return {_operator(name): function for name, function in translations.items()}


def _operator(name: Any) -> Any:
    """`library::name` or `library::name.overload`, as torch has it."""
    if not isinstance(name, str):
        return name
    library, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, library), operator), overload or "default")
    except AttributeError:
        raise InputError(
            f"there is no operator {name[:80]!r} to translate.",
            value=name,
            hint="Import what defines it; names are as 'library::name'.",
        ) from None
