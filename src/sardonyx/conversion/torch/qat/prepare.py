"""A module made ready for quantization-aware training.

    x ─► conv ─► norm ─► relu ─► pool ─► conv        x ─[q]─► conv+norm ─► relu ─[q]─► pool ─[q]─► conv

Every value that a quantized layer reads is put onto a grid where it is made, so that all who read it (a residual too)
read the same integers. Pooling and reshaping keep a value on its grid: it is quantized before them, and by the same
quantizer behind them, so that they work on bytes when deployed. A module that torch.fx cannot trace has its layers
replaced one by one instead, each with a quantizer of its own for what it reads.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch import fx, nn

from sardonyx.conversion.torch.qat.layers import LAYERS, NORMS, QuantizedLayer
from sardonyx.conversion.torch.qat.quantizers import ActivationQuantizer
from sardonyx.errors import InputError

__all__ = ["freeze_qat", "prepare_qat"]

_KEEPING_MODULES = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.Flatten, nn.Identity)
_KEEPING_METHODS = ("view", "reshape", "flatten", "permute", "transpose", "contiguous", "squeeze", "unsqueeze")  # fmt: skip
_KEEPING_FUNCTIONS = (torch.flatten, torch.reshape, torch.permute, torch.transpose, torch.squeeze, torch.unsqueeze)  # fmt: skip


def prepare_qat(
    module: nn.Module, *, activations: str = "uint8", exclude: Collection[str] = ()
) -> nn.Module:
    """A copy whose convolutions and linear layers compute as they will in INT8, and that trains like the original.

    Args:
        module: in train mode or not; it is left alone.
        activations: "uint8", or "int8" around zero.
        exclude: names of submodules that stay as they are, with all inside them.

    Raises:
        InputError: nothing in it can be quantized, or a name of `exclude` is none of its submodules.
    """
    if activations not in ("uint8", "int8"):
        raise InputError(
            f"activations of {activations!r}.", value=activations, hint='Choose "uint8" or "int8".'
        )
    names = dict(module.named_modules())
    unknown = sorted(set(exclude) - set(names))
    if unknown:
        raise InputError(
            f"there is no submodule {unknown[0]!r} to exclude.",
            value=unknown[0],
            hint=f"There are: {', '.join(list(names)[1:13])}, …",
        )
    twin = copy.deepcopy(module)
    if not any(_layers(twin, exclude)):
        raise InputError(
            "there is no convolution and no linear layer to quantize.",
            hint=f"Quantized are {', '.join(kind.__name__ for kind in LAYERS)}.",
        )
    graph = _trace(twin)
    if graph is None:
        return _swap(twin, activations, exclude)
    return _weave(graph, activations, exclude)


def freeze_qat(module: nn.Module) -> nn.Module:
    """Ranges and BatchNorm's statistics stand still from here on, for the last epochs; the same module."""
    for one in module.modules():
        if isinstance(one, ActivationQuantizer):
            one.watching = False
        if isinstance(one, QuantizedLayer):
            one.frozen = True
    return module


def _layers(module: nn.Module, exclude: Collection[str]) -> Iterator[tuple[str, nn.Module]]:
    """What is to be quantized: layers of exactly these classes, for others may compute otherwise."""
    barred = [*exclude]
    for name, one in module.named_modules():
        if isinstance(one, nn.MultiheadAttention):  # it reads its layers' weights itself
            barred.append(name)
        inside = any(name == bar or name.startswith(f"{bar}.") for bar in barred)
        if type(one) in LAYERS and not inside:
            yield name, one


def _trace(module: nn.Module) -> fx.GraphModule | None:
    """The module as a graph; None where there is none, or another one in training than in inference."""
    training = module.training
    try:
        inferring, traced = (fx.symbolic_trace(module.train(mode)) for mode in (False, True))
    except (
        Exception
    ):  # fx runs the user's own code, which may raise anything on values that are none
        return None
    finally:
        module.train(training)
    return traced.train(training) if inferring.code == traced.code else None


def _swap(module: nn.Module, activations: str, exclude: Collection[str]) -> nn.Module:
    for name, layer in list(_layers(module, exclude)):
        quantized = QuantizedLayer(layer, None, ActivationQuantizer(activations))
        if not name:
            return quantized.train(module.training)
        module.set_submodule(name, quantized.train(module.training))
    for one in module.modules():
        if isinstance(one, nn.TransformerEncoderLayer):
            one.activation_relu_or_gelu = (
                0  # no fast path, which would read the weights past the layers
            )
    return module


def _weave(traced: fx.GraphModule, activations: str, exclude: Collection[str]) -> nn.Module:
    chosen = dict(_layers(traced, exclude))
    readers = [
        node for node in traced.graph.nodes if node.op == "call_module" and node.target in chosen
    ]
    once = {target for target in chosen if sum(node.target == target for node in readers) == 1}
    for node in readers:
        layer = chosen[str(node.target)]
        if isinstance(layer, QuantizedLayer):
            continue  # a layer that is called twice has one replacement
        norm = _norm_behind(node, traced) if node.target in once else None
        if norm is not None:
            behind, module = norm
            behind.replace_all_uses_with(node)
            traced.graph.erase_node(behind)
            quantized = QuantizedLayer(layer, module)
        else:
            quantized = QuantizedLayer(layer)
        traced.set_submodule(str(node.target), quantized.train(traced.training))
        chosen[str(node.target)] = quantized
    _quantize_values(traced, readers, activations)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced


def _norm_behind(node: fx.Node, traced: fx.GraphModule) -> tuple[fx.Node, Any] | None:
    """The BatchNorm that alone reads a layer's result, and that is called once."""
    users = list(node.users)
    if len(users) != 1 or users[0].op != "call_module":
        return None
    behind = users[0]
    norm = traced.get_submodule(str(behind.target))
    calls = sum(one.target == behind.target for one in traced.graph.nodes)
    if type(norm) not in NORMS or calls != 1 or getattr(norm, "running_mean", None) is None:
        return None
    return behind, norm


def _quantize_values(traced: fx.GraphModule, readers: list[fx.Node], activations: str) -> None:
    quantizers: dict[fx.Node, str] = {}
    for reader in readers:
        path = [reader.all_input_nodes[0]]
        while _keeps(path[-1], traced):
            path.append(path[-1].all_input_nodes[0])
        origin = path[-1]
        if origin not in quantizers:
            name = f"quantizer_{len(quantizers)}"
            traced.add_submodule(name, ActivationQuantizer(activations).train(traced.training))
            quantizers[origin] = name
        for value in path:
            _put_behind(value, quantizers[origin], traced.graph)
        layer, source = (
            traced.get_submodule(name) for name in (str(reader.target), quantizers[origin])
        )
        assert isinstance(layer, QuantizedLayer)
        assert isinstance(source, ActivationQuantizer)
        layer.reads(source)


def _keeps(node: fx.Node, traced: fx.GraphModule) -> bool:
    """Whether a value on a grid is still on it behind this node."""
    if len(node.all_input_nodes) != 1:
        return False
    if node.op == "call_module":
        return isinstance(traced.get_submodule(str(node.target)), _KEEPING_MODULES)
    if node.op == "call_method":
        return node.target in _KEEPING_METHODS
    return node.op == "call_function" and node.target in _KEEPING_FUNCTIONS


def _put_behind(value: fx.Node, name: str, graph: fx.Graph) -> None:
    if any(user.target == name for user in value.users):
        return
    with graph.inserting_after(value):
        quantized = graph.call_module(name, (value,))
    value.replace_all_uses_with(quantized, delete_user_cb=lambda user: user is not quantized)
