"""The JAX rows of the conversion matrix."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax

from benchmarks.conversions import jax_models as zoo
from benchmarks.conversions.case import Case
from benchmarks.conversions.jax_models import normal, weight
from sardonyx.conversion.convert import Converted
from sardonyx.conversion.request import Example, Request

__all__ = ["CASES"]

Check = Callable[[Converted], None]


def _case(
    name: str,
    model: Callable[[], Any],
    inputs: Callable[[], tuple[Any, ...]],
    *,
    keywords: Callable[[], dict[str, Any]] = dict,
    check: Check | None = None,
    refusal: str = "",
    **wanted: Any,
) -> Case:
    def request() -> Request:
        return Request(model(), (Example(inputs(), keywords()),), **wanted)

    return Case(name, request, check, refusal)


def _function(name: str, function: Any, *shapes: tuple[int, ...], **wanted: Any) -> Case:
    """A plain function of normal numbers."""

    def inputs() -> tuple[Any, ...]:
        return tuple(jnp.asarray(normal(*shape, seed=i)) for i, shape in enumerate(shapes))

    return _case(name, lambda: function, inputs, **wanted)


def _rand(*shape: int) -> Callable[[], tuple[Any, ...]]:
    return lambda: (jnp.asarray(normal(*shape)),)


def _ids(*shape: int, below: int) -> Callable[[], tuple[Any, ...]]:
    return lambda: (jnp.asarray(np.random.default_rng(0).integers(0, below, shape), jnp.int32),)


# ---------------------------------------------------------------- checks beyond the answers


def _all(*checks: Check) -> Check:
    def check(converted: Converted) -> None:
        for one in checks:
            one(converted)

    return check


def _names(inputs: str, outputs: str) -> Check:
    def check(converted: Converted) -> None:
        graph = converted.model.graph
        assert [value.name for value in graph.inputs] == inputs.split()
        assert [value.name for value in graph.outputs] == outputs.split()

    return check


def _holds(*weights: str) -> Check:
    """Weights go by the user's own names."""

    def check(converted: Converted) -> None:
        found = set(converted.model.graph.initializers)
        assert found.issuperset(weights), f"{sorted(found)} lack {sorted(set(weights) - found)}"

    return check


def _has(*kinds: str) -> Check:
    def check(converted: Converted) -> None:
        nodes = ir.traversal.RecursiveGraphIterator(converted.model.graph)
        found = {node.op_type for node in nodes}
        assert found.issuperset(kinds), f"{sorted(found)} lack {sorted(set(kinds) - found)}"

    return check


def _most(nodes: int) -> Check:
    def check(converted: Converted) -> None:
        count = converted.model.graph.num_nodes()
        assert count <= nodes, f"{count} nodes"

    return check


def _open(*symbols: str) -> Check:
    def check(converted: Converted) -> None:
        shapes = [value.shape for value in converted.model.graph.inputs]
        found = {str(d.value) for s in shapes if s for d in s if isinstance(d, ir.SymbolicDim)}
        assert found == set(symbols), found

    return check


# ---------------------------------------------------------------- models that need some making


def _bound(kind: Any, *shape: int, dtype: Any = np.float32) -> Callable[[], Any]:
    return lambda: zoo.bound(kind(), jnp.zeros(shape, dtype))


def _applied() -> Any:
    model = zoo.LinenConv()
    return functools.partial(model.apply, zoo.variables_of(model, jnp.zeros((1, 8, 8, 3))))


def _exported() -> Any:
    return jax.export.export(jax.jit(jnp.sin))(jnp.zeros(3))


def _called_back(x: Any) -> Any:
    return jax.pure_callback(np.sin, x, x)


def _if_on_data(x: Any) -> Any:
    return x if x.sum() > 0 else -x


def _static(x: Any, train: bool) -> Any:
    return x * 2 if train else x + 1


def _tree(batch: dict[str, Any], scale: Any) -> dict[str, Any]:
    mixed = batch["a"] * scale + batch["b"]
    return {"sum": mixed.sum(0), "parts": (mixed, [batch["a"]]), "copy": batch["b"]}


def _random(key: Any, x: Any) -> Any:
    first, second = jax.random.split(key)
    kept = jax.random.bernoulli(first, 0.7, x.shape)
    return jnp.where(kept, x / 0.7, 0) + 0.1 * jax.random.normal(second, x.shape)


def _resized(method: str, *size: int) -> Callable[[Any], Any]:
    return lambda x: jax.image.resize(x, (x.shape[0], *size, x.shape[3]), method)


def _conv(x: Any, *, spec: str, window: tuple[int, ...] = (3, 3), **given: Any) -> Any:
    groups = given.get("feature_group_count", 1)
    channels = x.shape[spec.index("C")]
    kernel = weight(*window, channels // groups, 8, seed=3)
    numbers = (spec, "HWIO", spec)
    wanted = {"window_strides": (1, 1), "padding": "SAME", **given}
    return lax.conv_general_dilated(x, kernel, dimension_numbers=numbers, **wanted)


def _pick(x: Any, places: Any) -> Any:
    return x[places], jnp.take(x, places, axis=1), jnp.take_along_axis(x, places[:, None] % 6, 1)


def _put(x: Any, places: Any) -> Any:
    return x.at[places].set(1.0), x.at[:, places].add(2.0), x.at[places, places].multiply(3.0)


def _segments(x: Any, groups: Any) -> Any:
    total = jax.ops.segment_sum(x, groups, num_segments=4)
    return total, jax.ops.segment_max(x, groups, num_segments=4)


def _places(*shape: int) -> tuple[Any, ...]:
    return jnp.asarray(normal(*shape)), jnp.array([0, 3, -1, 2, 9, -8], jnp.int32)


def _two() -> Request:
    examples = (Example(_rand(3, 8)()), Example(_rand(5, 8)()))
    return Request(functools.partial(zoo.mlp, zoo.mlp_params()), examples)


_BATCH: dict[str, Any] = {"dynamic": {"x": {0: "batch"}}}
_TEXT: dict[str, Any] = {"dynamic": {"ids": {0: "batch", 1: "time"}}}

CASES = (
    _case(
        "MLP, partial of a dict of weights",
        lambda: functools.partial(zoo.mlp, zoo.mlp_params()),
        _rand(3, 8),
        check=_all(_names("x", "output_0"), _holds("params.hidden.w", "params.out.b"), _most(5)),
    ),
    _case(
        "MLP, jitted closure, symbolic batch",
        lambda: jax.jit(functools.partial(zoo.mlp, zoo.mlp_params())),
        _rand(3, 8),
        check=_open("batch"),
        **_BATCH,
    ),
    _case(
        "MLP, weights as inputs",
        lambda: zoo.mlp,
        lambda: (zoo.mlp_params(), jnp.asarray(normal(3, 8))),
        check=_names(
            "params.hidden.b params.hidden.w params.out.b params.out.w x", "output_0"
        ),
    ),
    _case(
        "linen CNN, positional max_pool",
        _bound(zoo.LinenConv, 1, 8, 8, 3),
        _rand(2, 8, 8, 3),
        check=_holds("params.Dense_0.kernel"),
    ),
    _case("linen CNN, partial of apply", _applied, _rand(2, 8, 8, 3), check=_names("x", "output_0")),
    _case("linen CNN, symbolic batch", _bound(zoo.LinenConv, 1, 8, 8, 3), _rand(2, 8, 8, 3), **_BATCH),
    _case("linen ResNet", _bound(zoo.ResNet, 1, 32, 32, 3), _rand(2, 32, 32, 3), check=_has("Conv", "MaxPool")),
    _case("linen ResNet, symbolic image size", _bound(zoo.ResNet, 1, 32, 32, 3), _rand(1, 32, 32, 3), dynamic={"x": {1: "height", 2: "width"}}),
    _case("linen ViT, symbolic batch", _bound(zoo.VisionTransformer, 1, 16, 16, 3), _rand(2, 16, 16, 3), **_BATCH),
    _case("linen bidirectional LSTM", _bound(zoo.Recurrent, 2, 7, dtype=np.int32), _ids(2, 7, below=11), check=_names("words", "output_0")),
    _case("linen module without variables", zoo.LinenConv, _rand(2, 8, 8, 3), refusal="has no variables"),
    _case("nnx MLP, BatchNorm and Dropout off", lambda: zoo.nnx_model(zoo.NnxMlp), _rand(3, 8), check=_holds("last.kernel", "last.bias"), **_BATCH),
    _case("nnx method", lambda: zoo.nnx_model(zoo.NnxMlp).encode, _rand(3, 8)),
    _case("nnx GRU", lambda: zoo.nnx_model(zoo.NnxGru), _rand(2, 7, 5), check=_has("Scan")),
    _case("nnx GRU, symbolic time", lambda: zoo.nnx_model(zoo.NnxGru), _rand(2, 7, 5), dynamic={"x": {0: "batch", 1: "time"}}),
    _case("nnx LayerNorm, RMSNorm, GroupNorm", lambda: zoo.nnx_model(zoo.NnxNorms), _rand(2, 3, 8), check=_names("x", "group layer root")),
    _case("nnx GPT, symbolic batch and time", lambda: zoo.nnx_model(zoo.NnxGpt), _ids(2, 9, below=31), check=_open("batch", "time"), **_TEXT),
    _case("equinox MLP, vmap", lambda: jax.vmap(zoo.eqx_model(lambda key: eqx.nn.MLP(8, 4, 16, 2, key=key))), _rand(3, 8)),
    _case("equinox MLP, one row", lambda: zoo.eqx_model(lambda key: eqx.nn.MLP(8, 4, 16, 2, key=key)), _rand(8), check=_names("x", "output_0")),
    _case("equinox Conv, ConvTranspose, Dropout off", lambda: zoo.eqx_model(zoo.EqxConv), _rand(3, 8, 8), check=_has("ConvTranspose")),
    _case("equinox attention, symbolic time", lambda: zoo.eqx_model(zoo.EqxAttention), _rand(5, 16), dynamic={"x": {0: "time"}}),
    _case("LSTM by scan", lambda: functools.partial(zoo.lstm, zoo.lstm_params()), _rand(7, 2, 5), check=_names("x", "c h rows")),
    _case("LSTM by scan, symbolic time and batch", lambda: functools.partial(zoo.lstm, zoo.lstm_params()), _rand(7, 2, 5), dynamic={"x": {0: "time", 1: "batch"}}),
    _case("transformer block by einsum", lambda: functools.partial(zoo.block, zoo.block_params()), _rand(2, 5, 16), check=_has("MatMul", "Softmax", "Gelu", "LayerNormalization")),
    _case("transformer block, symbolic time", lambda: functools.partial(zoo.block, zoo.block_params()), _rand(2, 5, 16), dynamic={"x": {0: "batch", 1: "time"}}),
    _case(
        "attention with a mask",
        lambda: functools.partial(zoo.block, zoo.block_params()),
        lambda: (jnp.asarray(normal(2, 5, 16)), jnp.asarray(normal(2, 1, 5, 5) > -0.5).at[..., 0].set(True)),
        check=_names("x mask", "output_0"),
    ),
    _function("jax.nn.dot_product_attention, causal", lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True), (2, 5, 4, 8), (2, 5, 4, 8), (2, 5, 4, 8)),
    _function("GELU, exact and tanh", lambda x: (jax.nn.gelu(x, approximate=False), jax.nn.gelu(x)), (4, 7), check=_has("Gelu")),
    _function("activations", lambda x: [f(x) for f in (jax.nn.silu, jax.nn.elu, jax.nn.softplus, jax.nn.mish, jax.nn.hard_swish, jax.nn.leaky_relu, jax.nn.glu, jax.nn.relu6)], (4, 6)),
    _function("vmap of dot", jax.vmap(jnp.dot), (5, 8), (5, 8)),
    _function("vmap over two axes", jax.vmap(jax.vmap(jnp.outer), in_axes=(1, None)), (3, 2, 4), (3, 5)),
    _function("einsum with repeated letters", lambda a, b: (jnp.einsum("ii->i", a), jnp.einsum("ij,kj,k->i", a, b, b[:, 0])), (4, 4), (3, 4)),
    _function("cumsum, cumprod, cummax", lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1)), (4, 6)),
    _function("cumsum, cummax, symbolic", lambda x: (jnp.cumsum(x, 0), lax.cummax(x, 0)), (4, 6), **_BATCH),
    _function("linalg.inv, det, solve", lambda a: (jnp.linalg.inv(a), jnp.linalg.det(a), jnp.linalg.solve(a, a[:, :2])), (4, 4)),
    _function("linalg.cholesky", lambda a: jnp.linalg.cholesky(a @ a.T + jnp.eye(4)), (4, 4)),
    _function("linalg.eigh", jnp.linalg.eigh, (4, 4), refusal="has no such factorization"),
    _function("top_k", lambda x: lax.top_k(x, 3), (4, 9), **_BATCH),
    _function("sort, argsort", lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1), jnp.sort(x, descending=True)), (4, 9), **_BATCH),
    _function("argmax, median, percentile", lambda x: (x.argmax(1), jnp.median(x, 1), jnp.percentile(x, 25.0, axis=0)), (4, 9)),
    _function("cond", lambda x: lax.cond(x.sum() > 0, jnp.sin, lambda y: y * 2, x), (3, 4), check=_has("If")),
    _function("switch", lambda x: lax.switch(jnp.int32(x[0, 0] * 2), [jnp.sin, jnp.cos, jnp.tanh], x), (3, 4)),
    _case("while_loop", lambda: zoo.newton, lambda: (jnp.abs(normal(5)) + 0.1,), check=_all(_has("Loop"), _names("x", "root steps"))),
    _function("while_loop under vmap", jax.vmap(lambda r: lax.while_loop(lambda s: s.sum() < 9, lambda s: s + 1, r)), (3, 4)),
    _function("fori_loop", lambda x: lax.fori_loop(0, 6, lambda i, s: s * 0.5 + i, x), (3, 4)),
    _case("index and take, places outside", lambda: _pick, lambda: _places(6, 6)),
    _case("at[].set, add, multiply, places outside", lambda: _put, lambda: _places(6, 6)),
    _case("segment_sum, segment_max", lambda: _segments, lambda: (jnp.asarray(normal(6, 3)), jnp.array([0, 2, 2, 1, 5, 0], jnp.int32))),
    _case("dynamic_update_slice, a cache", lambda: zoo.cached_step, lambda: (jnp.asarray(normal(6, 4)), jnp.asarray(normal(4)), jnp.int32(2))),
    _case("one_hot and embedding", lambda: lambda ids: (jax.nn.one_hot(ids, 5), jnp.take(weight(5, 3), ids, axis=0)), _ids(2, 4, below=5)),
    _function("conv NHWC, strided", functools.partial(_conv, spec="NHWC", window_strides=(2, 2)), (2, 9, 8, 4)),
    _function("conv NCHW", functools.partial(_conv, spec="NCHW"), (2, 4, 9, 8)),
    _function("conv dilated and grouped", functools.partial(_conv, spec="NHWC", rhs_dilation=(2, 1), feature_group_count=2), (2, 9, 8, 4)),
    _function("conv transposed", lambda x: lax.conv_transpose(x, weight(3, 3, 4, 5), (2, 2), "SAME"), (2, 6, 5, 4)),
    _function("conv SAME, symbolic size", functools.partial(_conv, spec="NHWC", window_strides=(2, 2)), (2, 9, 8, 4), dynamic={"x": {1: "height"}}),
    _function("average pool by reduce_window", lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "SAME") / 4, (2, 7, 6, 3)),
    _function("jax.image.resize, bilinear", _resized("bilinear", 9, 5), (2, 6, 7, 3)),
    _function("jax.image.resize, nearest and cubic", lambda x: (_resized("nearest", 9, 5)(x), _resized("cubic", 8, 8)(x)), (2, 6, 7, 3)),
    _function("rotary positions, symbolic time", zoo.rope, (2, 5, 2, 8), dynamic={"x": {1: "time"}}),
    _case("mixture of experts, top 2", lambda: functools.partial(zoo.mixture, zoo.mixture_params()), _rand(5, 8)),
    _function("gradient as the model", jax.grad(lambda x: jnp.sum(jnp.tanh(x) * x)), (3, 4)),
    _case("random numbers of a key", lambda: _random, lambda: (jax.random.key(3), jnp.asarray(normal(3, 4)))),
    _function("fft", zoo.spectrum, (3, 16)),
    _function("fft2, ifft, irfft", lambda x: (jnp.fft.fft2(x).real, jnp.fft.ifft(jnp.fft.fft(x) * 1j).imag, jnp.fft.irfft(jnp.fft.rfft(x), n=9)), (4, 9)),
    _case("complex input and output", lambda: lambda z: (z * z.conj(), jnp.exp(z) / (z + 2)), lambda: (jnp.asarray(normal(3, 4) + 1j * normal(3, 4, seed=1)),)),
    _function("complex numbers inside", lambda x: jnp.abs(jnp.exp(1j * x) * (x + 2j)), (3, 4)),
    _case("dict in, tree out", lambda: _tree, lambda: ({"a": jnp.asarray(normal(3, 4)), "b": jnp.asarray(normal(4, seed=1))}, jnp.float32(2)), check=_names("batch.a batch.b scale", "copy parts_0 parts_1_0 sum")),
    _case("keyword and constant", lambda: _static, _rand(3, 4), keywords=lambda: {"train": False}, check=_names("x", "output_0")),
    _function("names and opset as asked", lambda x: (x + 1, x * 2), (3, 4), input_names=("first",), output_names=("a", "b"), opset=18, check=_names("first", "a b")),
    Case("two examples find the axes", _two, _open("batch")),
    _case("bfloat16 weights", lambda: lambda x: jnp.tanh(x.astype(jnp.bfloat16) @ weight(8, 4).astype(jnp.bfloat16)), _rand(3, 8)),
    _case("int8 product to int32", lambda: lambda x: lax.dot(x, jnp.arange(32, dtype=jnp.int8).reshape(8, 4), preferred_element_type=jnp.int32), lambda: (jnp.asarray(normal(3, 8) * 40, jnp.int8),)),
    _function("Python if on data", _if_on_data, (3, 4), refusal="jax.lax.cond"),
    _function("pure_callback", _called_back, (3, 4), refusal="Python runs inside"),
    _case("jax.export.Exported", _exported, _rand(3), refusal="StableHLO"),
)  # fmt: skip
