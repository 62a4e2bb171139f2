"""LSTM, GRU and RNN whose time is open.

torch.export runs these step by step to learn their shapes, and so fixes how many steps there are. While we export
they are operators of our own with a shape rule, which become the ONNX operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import torch
from torch import _VF

__all__ = ["recurrent_operators", "recurrent_translations"]

_NAMES = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_ARGUMENTS = (
    "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, "
    "bool bidirectional, bool batch_first"
)


@cache
def _library() -> Any:
    untyped: Any = torch.library
    library: Any = untyped.Library("sardonyx", "DEF")
    for name in _NAMES:
        lstm = name == "lstm"
        hidden = "Tensor[] hx" if lstm else "Tensor hx"
        results = "(Tensor, Tensor, Tensor)" if lstm else "(Tensor, Tensor)"
        library.define(f"{name}(Tensor input, {hidden}, {_ARGUMENTS}) -> {results}")
        library.impl(name, getattr(torch, name), "CompositeExplicitAutograd")
        torch.library.register_fake(f"sardonyx::{name}", _shapes, lib=library)
    return library


def _shapes(
    x: torch.Tensor,
    hx: Any,
    params: list[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, ...]:
    states = list(hx) if isinstance(hx, list | tuple) else [hx]
    width = states[0].shape[-1] * (2 if bidirectional else 1)
    return (
        x.new_empty((*x.shape[:-1], width)),
        *(state.new_empty(state.shape) for state in states),
    )


@contextmanager
def recurrent_operators() -> Iterator[None]:
    """Inside, modules call our operators; packed sequences still go to torch's own."""
    _library()
    own: dict[str, Any] = {}

    def call(name: str, theirs: Callable[..., Any], *args: Any) -> Any:
        packed = isinstance(args[3], list | tuple)  # (data, batch_sizes, hx, params, …)
        operator = getattr(torch.ops.sardonyx, name)
        return theirs(*args) if packed else operator(*args)

    for name in _NAMES:
        own[name] = getattr(_VF, name)
        setattr(_VF, name, partial(call, name, own[name]))
    try:
        yield
    finally:
        for name in _NAMES:
            setattr(_VF, name, own[name])


def recurrent_translations() -> Mapping[Any, Callable[..., Any]]:
    """For `custom_translation_table`."""
    _library()
    return {getattr(torch.ops.sardonyx, name).default: _translation(name) for name in _NAMES}


# By torch's name: the ONNX operator, torch's gates in the order of ONNX, and the operator's further attributes.
_OPERATORS: Mapping[str, tuple[str, tuple[int, ...], Mapping[str, Any]]] = {
    "lstm": ("LSTM", (0, 3, 1, 2), {}),
    "gru": ("GRU", (1, 0, 2), {"linear_before_reset": 1}),
    "rnn_tanh": ("RNN", (0,), {}),
    "rnn_relu": ("RNN", (0,), {"activations": "Relu"}),
}


def _translation(name: str) -> Callable[..., Any]:
    from onnxscript.onnx_opset import opset18

    op: Any = opset18
    kind, gates, further = _OPERATORS[name]

    def translate(
        x: Any,
        hx: Any,
        params: Any,
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> Any:
        directions = 2 if bidirectional else 1
        states = list(hx) if isinstance(hx, list | tuple) else [hx]
        hidden = int(states[0].shape[2])
        extra = {
            key: [value] * directions for key, value in further.items() if key == "activations"
        }
        extra |= {key: value for key, value in further.items() if key != "activations"}
        last: list[list[Any]] = [[] for _ in states]
        steps = op.Transpose(x, perm=[1, 0, 2]) if batch_first else x
        per = 4 if has_biases else 2
        for layer in range(num_layers):
            first = layer * directions
            mine = [params[(first + d) * per : (first + d + 1) * per] for d in range(directions)]
            weights = [_stack(op, [_gates(op, p[k], gates, hidden) for p in mine]) for k in (0, 1)]
            bias = None
            if has_biases:
                pairs = [[_gates(op, b, gates, hidden) for b in p[2:]] for p in mine]
                bias = _stack(op, [op.Concat(*pair, axis=0) for pair in pairs])
            begin = [op.Slice(s, [first], [first + directions], [0]) for s in states]
            direction = "bidirectional" if bidirectional else "forward"
            found = getattr(op, kind)(
                *(steps, *weights, bias, None, *begin),
                direction=direction,
                hidden_size=hidden,
                **extra,
            )
            steps = op.Reshape(op.Transpose(found[0], perm=[0, 2, 1, 3]), [0, 0, -1])
            for kept, state in zip(last, found[1:], strict=True):
                kept.append(state)
        result = op.Transpose(steps, perm=[1, 0, 2]) if batch_first else steps
        ends = [op.Concat(*kept, axis=0) if len(kept) > 1 else kept[0] for kept in last]
        return (result, *ends)

    return translate


def _gates(op: Any, weight: Any, order: tuple[int, ...], hidden: int) -> Any:
    if len(order) == 1:
        return weight
    parts = [op.Slice(weight, [g * hidden], [(g + 1) * hidden], [0]) for g in order]
    return op.Concat(*parts, axis=0)


def _stack(op: Any, parts: list[Any]) -> Any:
    """One after another on a new first axis."""
    axis = [op.Unsqueeze(part, [0]) for part in parts]
    return op.Concat(*axis, axis=0) if len(axis) > 1 else axis[0]
