"""What a user may hand over: functions, jitted or partial, and modules of flax and equinox with their weights."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
from jax import tree_util

from sardonyx.conversion.jax.structure import is_array, named_leaves
from sardonyx.errors import ConvertError, InputError

__all__ = ["Source", "open_source"]

_DEEPEST = 8  # functions around functions


@dataclass(frozen=True)
class Source:
    """A function of arrays, with the names of the weights that it holds.

    Attributes:
        function: as the user would call it, for inference.
        signature: with the user's own names of the arguments.
        weights: the arrays that it holds, by name.
        notes: what the user should know.
    """

    function: Callable[..., Any]
    signature: inspect.Signature
    weights: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def open_source(model: Any) -> Source:
    """Find out what it is.

    Raises:
        InputError: a module without its weights.
        ConvertError: nothing that can be traced.
    """
    if isinstance(model, jax.export.Exported):
        raise ConvertError(
            "an Exported has no jaxpr any more, only compiled StableHLO.",
            hint="Convert the function that it was exported from.",
        )
    owner, method = _method_of(model)
    for package, kind, opened in (
        ("flax.nnx", "Module", _nnx),
        ("flax.linen", "Module", _linen),
        ("equinox", "Module", _equinox),
    ):
        library = sys.modules.get(package)  # what was never imported is nobody's class
        if library is not None and isinstance(owner, getattr(library, kind)):
            return opened(library, owner, method, model)
    if not callable(model):
        raise ConvertError(
            f"a {type(model).__qualname__} is no function.",
            hint="Give a function of arrays, or a module of flax or equinox.",
        )
    return Source(model, _signature(model), _weights_of(model))


def _method_of(model: Any) -> tuple[Any, str]:
    """The object and its method: `model` is its call, `model.encode` is the method of that name."""
    function = model.func if isinstance(model, functools.partial) else model
    owner = getattr(function, "__self__", None)
    if owner is not None and inspect.ismethod(function):
        return owner, function.__name__
    return model, "__call__"


def _signature(function: Any) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # a builtin
        rest = inspect.Parameter("input", inspect.Parameter.VAR_POSITIONAL)
        return inspect.Signature([rest])


def _own_signature(owner: Any, method: str) -> inspect.Signature:
    """Without self."""
    signature = inspect.signature(getattr(type(owner), method))
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def _nnx(library: Any, owner: Any, method: str, model: Any) -> Source:
    """Every call begins from the module's own state, in eval mode, and leaves it as it was."""
    graph, state = library.split(owner)

    def call(*args: Any, **kwargs: Any) -> Any:
        again = library.merge(graph, state, copy=True)
        again.eval()
        given = model.keywords if isinstance(model, functools.partial) else {}
        before = model.args if isinstance(model, functools.partial) else ()
        return getattr(again, method)(*before, *args, **{**given, **kwargs})

    signature = _own_signature(owner, method)
    if isinstance(model, functools.partial):
        signature = _signature(model)
    plain = tree_util.tree_map(lambda leaf: leaf, state.to_pure_dict())
    return Source(call, signature, _arrays("", plain), _mode_notes(library, owner))


def _mode_notes(library: Any, owner: Any) -> tuple[str, ...]:
    training = any(
        getattr(module, "deterministic", None) is False
        or getattr(module, "use_running_average", None) is False
        for _, module in library.iter_modules(owner)
    )
    if not training:
        return ()
    return ("converted as for inference (eval mode); the module was in training mode",)


def _linen(library: Any, owner: Any, method: str, model: Any) -> Source:
    """A module with its variables: `model.bind(variables)`, or partial(model.apply, variables)."""
    if isinstance(model, functools.partial) and method == "apply" and model.args:
        variables, *before = model.args
        options = model.keywords
        inner = options.get("method") or "__call__"
        name = inner if isinstance(inner, str) else inner.__name__
        signature = _own_signature(owner, name)
        left = [
            p for p in list(signature.parameters.values())[len(before) :] if p.name not in options
        ]
        return Source(model, signature.replace(parameters=left), _arrays("", variables))
    if owner.scope is None:
        raise InputError(
            f"the {type(owner).__name__} of flax.linen has no variables.",
            hint="Bind them: sx.convert(model.bind(variables), x), or functools.partial(model.apply, variables).",
        )
    module, variables = owner.unbind()

    def call(*args: Any, **kwargs: Any) -> Any:
        return module.apply(variables, *args, method=method, **kwargs)

    return Source(call, _own_signature(owner, method), _arrays("", variables))


def _equinox(library: Any, owner: Any, method: str, model: Any) -> Source:
    inference = library.nn.inference_mode(owner)
    changed = any(
        getattr(a, "inference", None) is False
        for a in tree_util.tree_leaves(owner, is_leaf=lambda x: hasattr(x, "inference"))
    )
    notes = ("converted as for inference; the module was in training mode",) if changed else ()
    call = getattr(inference, method)
    if isinstance(model, functools.partial):
        call = functools.partial(call, *model.args, **model.keywords)
    return Source(call, _signature(call), _arrays("", inference), notes)


def _arrays(prefix: str, tree: Any) -> dict[str, Any]:
    try:
        leaves = named_leaves(prefix, tree)
    except Exception:  # a dict whose keys have no order, or the like: no weights of a model
        return {}
    return {name: leaf for name, leaf in leaves if is_array(leaf)}


def _weights_of(function: Any, depth: int = 0) -> dict[str, Any]:
    """The arrays that a function closes over or was given before, by the names that its source has for them."""
    if depth > _DEEPEST or function is None:
        return {}
    found: dict[str, Any] = {}
    if isinstance(function, functools.partial):
        names = list(_signature(function.func).parameters)
        for name, value in (*zip(names, function.args, strict=False), *function.keywords.items()):
            found.update(_held(name, value, depth))
        return {**found, **_weights_of(function.func, depth + 1)}
    inner = getattr(function, "__wrapped__", None)
    if inner is not None:
        found.update(_weights_of(inner, depth + 1))
    code = getattr(function, "__code__", None)
    if code is not None:
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                found.update(_held(name, cell.cell_contents, depth))
            except ValueError:  # not filled yet
                continue
        for name in code.co_names:
            if name in function.__globals__:
                found.update(_held(name, function.__globals__[name], depth))
    elif not inspect.isbuiltin(function) and inner is None:
        found.update(_held("", function, depth))
    return found


def _held(name: str, value: Any, depth: int) -> dict[str, Any]:
    if inspect.isfunction(value) or isinstance(value, functools.partial):
        return _weights_of(value, depth + 1)
    if inspect.ismodule(value) or isinstance(value, type):
        return {}
    arrays = _arrays(name, value)
    if not arrays:
        nnx: Any = sys.modules.get("flax.nnx")
        if nnx is not None and isinstance(value, nnx.Module):
            return _arrays(name, nnx.state(value).to_pure_dict())
    return arrays
