"""The answers of torch itself, which a conversion is held to.

They are those of inference: modules in eval mode, no gradients, and TransformerEncoder without its fast path, which
answers zeros at padded positions and leaves off what is padded everywhere. Every call begins from the state that the
user's model had.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from sardonyx.conversion.candidate import Feeds
from sardonyx.conversion.torch.arrays import to_array, to_tensor
from sardonyx.conversion.torch.structure import Layout, answers_of

__all__ = ["Flat", "Reference", "inference", "modules_of"]


_TABLES: tuple[str, ...] = ("_buffers", "_parameters")


class Flat(nn.Module):
    """The model between tensors alone: it takes those of the layout and gives a tuple."""

    def __init__(self, model: Callable[..., Any], layout: Layout) -> None:
        super().__init__()
        self.model = model
        self._call = layout.call
        self._complex = tuple(tensor.is_complex() for tensor in layout.tensors)

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pairs = zip(tensors, self._complex, strict=True)
        given = [torch.view_as_complex(t) if pair else t for t, pair in pairs]
        args, kwargs = self._call(given)
        _, found = answers_of(self.model(*args, **kwargs))
        return tuple(torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for t in found)


@dataclass(frozen=True)
class Reference:
    """The user's model, run as it is.

    Attributes:
        model: a module or a function.
        layout: of its calls.
        names: of its inputs, as the converted model has them.
    """

    model: Callable[..., Any]
    layout: Layout
    names: tuple[str, ...]

    def run(self, feeds: Feeds) -> tuple[tuple[str, ...], list[torch.Tensor]]:
        """The names and values of the outputs."""
        tensors = [
            to_tensor(feeds[name], like)
            for name, like in zip(self.names, self.layout.tensors, strict=True)
        ]
        with inference(self.model), _plain_control_flow():
            args, kwargs = self.layout.call(tensors)
            return answers_of(self.model(*args, **kwargs))

    def writes(self, feeds: Feeds) -> tuple[list[str], list[str]]:
        """The inputs and the buffers that a call writes into."""
        tensors = [
            to_tensor(feeds[name], like)
            for name, like in zip(self.names, self.layout.tensors, strict=True)
        ]
        given = [tensor._version for tensor in tensors]
        module = self.model if isinstance(self.model, nn.Module) else nn.Module()
        with inference(self.model), _plain_control_flow():
            before = {name: (b, b._version) for name, b in module.named_buffers()}
            args, kwargs = self.layout.call(tensors)
            self.model(*args, **kwargs)
            after = dict(module.named_buffers())
            buffers = [
                name
                for name, (buffer, version) in before.items()
                if after.get(name) is not buffer or buffer._version != version
            ]
        pairs = zip(self.names, tensors, given, strict=True)
        return [name for name, tensor, version in pairs if tensor._version != version], buffers

    def answer(self, feeds: Feeds) -> Sequence[Any]:
        return [to_array(tensor) for tensor in self.run(feeds)[1]]


@contextmanager
def _plain_control_flow() -> Iterator[None]:
    """torch.cond and torch.while_loop as Python: torch would compile them first, and nobody could watch them."""
    untyped: Any = torch
    own = untyped.cond, untyped.while_loop
    untyped.cond, untyped.while_loop = _cond, _while_loop
    try:
        yield
    finally:
        untyped.cond, untyped.while_loop = own


def _cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()
) -> Any:
    return true_fn(*operands) if pred else false_fn(*operands)


def _while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> Any:
    while cond_fn(*carried_inputs):
        carried_inputs = body_fn(*carried_inputs)
    return carried_inputs


def modules_of(model: Any) -> list[nn.Module]:
    """The modules that a model is made of: itself, or those that a function or an object holds."""
    if isinstance(model, nn.Module):
        return list(model.modules())
    parts = _parts(model)
    found = [m for part in parts if isinstance(part, nn.Module) for m in part.modules()]
    nested = [part for part in parts if isinstance(part, functools.partial)]
    return found + [module for part in nested for module in modules_of(part)]


def _parts(model: Any) -> list[Any]:
    """What a callable refers to: arguments given before, its object, its closure, and globals that it names."""
    if isinstance(model, functools.partial):
        inner = [] if isinstance(model.func, nn.Module) else _parts(model.func)
        return [model.func, *model.args, *model.keywords.values(), *inner]
    function = getattr(model, "__func__", model)
    code = getattr(function, "__code__", None)
    if code is None:
        return list(getattr(model, "__dict__", {}).values())
    names = [function.__globals__.get(name) for name in code.co_names]
    cells = [_content(cell) for cell in function.__closure__ or ()]
    return [getattr(model, "__self__", None), *cells, *names]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


@contextmanager
def inference(model: Any) -> Iterator[None]:
    """The model in eval mode without gradients; afterwards it is as it was, what a call wrote into it included."""
    modules = modules_of(model)
    modes = [(module, module.training) for module in modules]
    state = [_State.of(module) for module in modules]
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        for module in modules:
            # An exported graph refuses eval(), and a script has the flag as an attribute of its own.
            if module.training:
                module.training = False
        with torch.no_grad():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for kept in state:
            kept.restore()
        for module, mode in modes:
            if module.training != mode:
                module.training = mode


@dataclass(frozen=True)
class _State:
    """What a call may change in a module: its attributes, and the values of its buffers and loose tensors."""

    module: nn.Module
    attributes: dict[str, Any]
    tables: dict[str, dict[str, Any]]
    values: list[tuple[torch.Tensor, torch.Tensor, int]]
    containers: list[tuple[Any, Any]]

    @classmethod
    def of(cls, module: nn.Module) -> _State:
        if isinstance(module, torch.jit.ScriptModule):
            held = list(module.buffers(recurse=False))
            return cls(module, {}, {}, [(t, t.clone(), t._version) for t in held], [])
        own = dict(vars(module))
        tables = {name: dict(own[name]) for name in _TABLES if name in own}
        loose = [value for value in own.values() if isinstance(value, torch.Tensor)]
        buffers = [value for value in tables.get("_buffers", {}).values() if value is not None]
        held = [tensor for tensor in (*loose, *buffers) if not _is_fake(tensor)]
        values = [(t, t.detach().clone(), t._version) for t in held]
        lists = [(v, v.copy()) for k, v in own.items() if k[0] != "_" and type(v) in (list, dict)]
        return cls(module, own, tables, values, lists)

    def restore(self) -> None:
        if self.attributes:
            vars(self.module).clear()
            vars(self.module).update(self.attributes)
            for name, table in self.tables.items():
                vars(self.module)[name].clear()
                vars(self.module)[name].update(table)
        for container, content in self.containers:
            container.clear()
            (container.extend if isinstance(container, list) else container.update)(content)
        for tensor, value, version in self.values:
            if tensor._version != version:
                with torch.no_grad():
                    tensor.copy_(value)


def _is_fake(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, torch._subclasses.FakeTensor) or tensor.device.type == "meta"
