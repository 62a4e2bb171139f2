"""`torch.compile(model, backend="sardonyx")`: graphs of torch run by our Session.

For inference. The first call with new shapes is also run by torch, and the answers are compared; whatever cannot be
run, or is not the same, runs in torch from then on, with a warning that says why. Weights are compiled in; when one
changes, the graph is compiled again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch._dynamo import list_backends, register_backend

from sardonyx.comparison.difference import differences
from sardonyx.conversion.quiet import quiet
from sardonyx.conversion.torch.arrays import to_array, to_tensor
from sardonyx.conversion.torch.exported import export_flat, to_onnx
from sardonyx.conversion.torch.failure import explain
from sardonyx.conversion.torch.finish import DEFAULT_OPSET, Wanted, finish
from sardonyx.conversion.torch.graph_weights import Weights, is_weight
from sardonyx.errors import ConvertError, InputError
from sardonyx.runtime.session import Session

__all__ = ["sardonyx_backend"]

_MOST_SHAPES = 16
_MOST_UPDATES = 8
_OPTIONS = ("threads", "precision")
Key: TypeAlias = tuple[Any, ...]


def sardonyx_backend(
    graph: torch.fx.GraphModule,
    examples: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Called by torch for every graph. Options are `threads` and `precision` of `Session`.

    Raises:
        InputError: there is no such option.
    """
    for name in options or {}:
        if name not in _OPTIONS:
            raise InputError(
                f"there is no option {name!r}.",
                value=name,
                hint=f"There are: {', '.join(_OPTIONS)}.",
            )
    if torch.is_grad_enabled() and any(
        isinstance(each, torch.Tensor) and each.requires_grad for each in examples
    ):
        _warn("gradients would be lost; call the model under torch.no_grad()")
        return graph.forward
    return _Compiled(graph, examples, dict(options or {}))


def _warn(why: str) -> None:
    warnings.warn(f"sardonyx: {why}. This graph runs in torch.", RuntimeWarning, stacklevel=2)


class _Compiled:
    """One graph, with a session for every set of shapes that it was called with."""

    def __init__(
        self, graph: torch.fx.GraphModule, examples: Sequence[Any], options: dict[str, Any]
    ) -> None:
        self._graph = graph
        self._options = options
        self._weights = Weights([(i, each) for i, each in enumerate(examples) if is_weight(each)])
        self._runs: dict[Key, Callable[[Sequence[Any]], Any]] = {}
        self._updates = 0
        self._gave_up = False

    def __call__(self, *args: Any) -> Any:
        if self._gave_up:
            return self._graph(*args)
        if not self._weights.are_unchanged(args):
            self._runs.clear()
            self._updates += 1
            self._weights = Weights([(i, args[i]) for i in self._weights.places])
        key = tuple(_kind(each) for i, each in enumerate(args) if i not in self._weights.places)
        run = self._runs.get(key)
        if run is not None:
            return run(args)
        return self._first(key, args)

    def _first(self, key: Key, args: Sequence[Any]) -> Any:
        """Compile, and hold the first answers to torch's own."""
        copies = [each.clone() if isinstance(each, torch.Tensor) else each for each in args]
        expected = self._graph(*copies)
        try:
            if any(map(_was_written, copies, args)):
                raise ConvertError("the graph writes into its inputs or buffers.")
            if len(self._runs) >= _MOST_SHAPES:
                raise ConvertError(f"more than {_MOST_SHAPES} sets of shapes.", limit=_MOST_SHAPES)
            if self._updates > _MOST_UPDATES:
                raise ConvertError("the weights keep changing.", limit=_MOST_UPDATES)
            with quiet():
                run = self._compile(args, expected)
                found = run(args)
            _check(found, expected)
        except Exception as error:  # of torch's exporter, or ours: the graph still has its answer
            self._gave_up = True
            _warn(str(explain(error)).rstrip("."))
            return self._graph(*args)
        self._runs[key] = run
        return found

    def _compile(self, args: Sequence[Any], expected: Any) -> Callable[[Sequence[Any]], Any]:
        places = [
            i
            for i, each in enumerate(args)
            if isinstance(each, torch.Tensor) and i not in self._weights.places
        ]
        module = _Frozen(self._graph, args, places)
        names = tuple(f"input_{i}" for i in range(len(places)))
        feeds = {name: to_array(args[i]) for name, i in zip(names, places, strict=True)}
        with torch.no_grad():
            program = export_flat(module, feeds, names, {})
        kinds = [_result_kind(each) for each in expected]
        outputs = tuple(f"output_{i}" for i, kind in enumerate(kinds) if kind != "none")
        model = to_onnx(program, DEFAULT_OPSET, {})
        session = Session(finish(model, Wanted(names, outputs, {}, DEFAULT_OPSET)), **self._options)

        def run(given: Sequence[Any]) -> Any:
            fed = {n: _array(given[i]) for n, i in zip(names, places, strict=True)}
            stream = iter(session.run(None, fed))
            return type(expected)([_result(kind, stream) for kind in kinds])

        return run


class _Frozen(torch.nn.Module):
    """The graph with everything but the tensors at some places given."""

    def __init__(self, graph: torch.fx.GraphModule, args: Sequence[Any], places: list[int]) -> None:
        super().__init__()
        self._args = [None if i in places else each for i, each in enumerate(args)]
        self._places = places
        self.model = graph
        for index, each in enumerate(self._args):
            if isinstance(each, torch.Tensor):
                self.register_buffer(f"weight_{index}", each.detach())

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        args = [
            getattr(self, f"weight_{i}") if isinstance(each, torch.Tensor) else each
            for i, each in enumerate(self._args)
        ]
        for place, tensor in zip(self._places, tensors, strict=True):
            args[place] = tensor
        found = self.model(*args)
        return tuple(_as_tensor(each) for each in found if each is not None)


def _as_tensor(value: Any) -> torch.Tensor:
    return (
        value if isinstance(value, torch.Tensor) else torch.scalar_tensor(value, dtype=torch.int64)
    )


def _was_written(copy: Any, original: Any) -> bool:
    """Whether a run wrote into a copy that was made for it."""
    if not isinstance(copy, torch.Tensor):
        return False
    if copy.is_inference():  # these count no versions
        return not torch.equal(copy, original)
    return copy._version != 0


def _kind(value: Any) -> Any:
    return (value.dtype, tuple(value.shape)) if isinstance(value, torch.Tensor) else value


def _result_kind(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, torch.Tensor) and value.is_complex():
        raise ConvertError("the graph gives complex numbers.")
    return "tensor" if isinstance(value, torch.Tensor) else "number"


def _result(kind: str, stream: Any) -> Any:
    if kind == "none":
        return None
    value = next(stream)
    if kind == "number":
        return int(value)
    return torch.from_numpy(value) if value.dtype.isbuiltin == 1 else to_tensor(value)


def _array(tensor: torch.Tensor) -> Any:
    """Without a copy, where numpy knows the type."""
    plain = tensor.detach()
    if plain.dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
        return to_array(plain)
    return plain.numpy(force=True)


def _check(found: Any, expected: Any) -> None:
    for index, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        if not isinstance(theirs, torch.Tensor):
            if ours != theirs:
                raise ConvertError(f"output {index} is {ours} and not {theirs}.")
            continue
        with np.errstate(all="ignore"):
            rows = differences(f"output {index}", to_array(ours), to_array(theirs))
            wrong = [row for row in rows if not row.ok]
        if wrong:
            raise ConvertError(f"answers differ from torch's: {wrong[0].name} {wrong[0].reason}.")


# Where the package is installed torch finds the backend by its entry point, and registers it by itself.
if "sardonyx" not in list_backends(exclude_tags=()):
    register_backend(sardonyx_backend, name="sardonyx")
