"""The JAX models of the conversion matrix: plain functions, flax (nnx and linen) and equinox."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from flax import linen, nnx
from jax import lax

__all__: list[str] = []


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def weight(*shape: int, seed: int = 0) -> Any:
    return jnp.asarray(normal(*shape, seed=seed) / math.sqrt(shape[0]))


# ---------------------------------------------------------------- plain functions


def mlp_params() -> dict[str, Any]:
    return {
        "hidden": {"w": weight(8, 16), "b": weight(16, seed=1)},
        "out": {"w": weight(16, 4, seed=2), "b": weight(4, seed=3)},
    }


def mlp(params: dict[str, Any], x: Any) -> Any:
    hidden = jax.nn.relu(x @ params["hidden"]["w"] + params["hidden"]["b"])
    return jax.nn.log_softmax(hidden @ params["out"]["w"] + params["out"]["b"])


def lstm(params: dict[str, Any], x: Any) -> Any:
    """One layer over [time, batch, features] by lax.scan."""

    def step(carry: Any, row: Any) -> Any:
        h, c = carry
        gates = row @ params["input"] + h @ params["state"] + params["bias"]
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((x.shape[1], params["state"].shape[0]), x.dtype)
    (h, c), rows = lax.scan(step, (zeros, zeros), x)
    return {"rows": rows, "h": h, "c": c}


def lstm_params() -> dict[str, Any]:
    return {"input": weight(5, 24), "state": weight(6, 24, seed=1), "bias": weight(24, seed=2)}


def layer_norm(x: Any, scale: Any, bias: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    var = jnp.mean(jnp.square(x - mean), -1, keepdims=True)
    return (x - mean) * lax.rsqrt(var + 1e-5) * scale + bias


def block_params(width: int = 16, heads: int = 4) -> dict[str, Any]:
    head = width // heads
    return {
        "q": weight(width, heads, head),
        "k": weight(width, heads, head, seed=1),
        "v": weight(width, heads, head, seed=2),
        "o": weight(heads, head, width, seed=3),
        "up": weight(width, 4 * width, seed=4),
        "down": weight(4 * width, width, seed=5),
        "scale": 1 + weight(width, seed=6),
        "bias": weight(width, seed=7),
    }


def block(params: dict[str, Any], x: Any, mask: Any | None = None) -> Any:
    """A transformer's block by einsum: causal where no mask is given."""
    y = layer_norm(x, params["scale"], params["bias"])
    q, k, v = (jnp.einsum("btd,dhk->bthk", y, params[name]) for name in "qkv")
    scores = jnp.einsum("bqhk,bshk->bhqs", q, k) / math.sqrt(q.shape[-1])
    if mask is None:
        mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    scores = jnp.where(mask, scores, jnp.finfo(scores.dtype).min)
    mixed = jnp.einsum("bhqs,bshk->bqhk", jax.nn.softmax(scores, axis=-1), v)
    x = x + jnp.einsum("bthk,hkd->btd", mixed, params["o"])
    y = layer_norm(x, params["scale"], params["bias"])
    return x + jax.nn.gelu(y @ params["up"], approximate=False) @ params["down"]


def rope(x: Any) -> Any:
    """Rotary positions over [batch, time, heads, head]."""
    half = x.shape[-1] // 2
    rates = 1 / (10000 ** (jnp.arange(half) / half))
    angles = jnp.arange(x.shape[1])[:, None] * rates
    cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def mixture(params: dict[str, Any], x: Any) -> Any:
    """Two of four experts for every row."""
    logits = x @ params["gate"]
    scores, chosen = lax.top_k(logits, 2)
    shares = jax.nn.softmax(scores, axis=-1)
    weights = jnp.zeros_like(logits).at[jnp.arange(x.shape[0])[:, None], chosen].set(shares)
    outs = jnp.einsum("nd,edf->nef", x, params["experts"])
    return jnp.einsum("nef,ne->nf", jax.nn.silu(outs), weights)


def mixture_params() -> dict[str, Any]:
    return {"gate": weight(8, 4), "experts": weight(4, 8, 6, seed=1)}


def cached_step(cache: Any, row: Any, place: Any) -> Any:
    """A decoder's step: the row is written into the cache, and the rows so far are added up."""
    cache = lax.dynamic_update_slice(cache, row[None], (place, 0))
    so_far = jnp.arange(cache.shape[0]) <= place
    return cache, jnp.where(so_far[:, None], cache, 0).sum(0)


def newton(x: Any) -> Any:
    """Square roots by Newton's steps, until they stand."""

    def going(state: Any) -> Any:
        guess, step = state
        return jnp.any(jnp.abs(guess * guess - x) > 1e-4 * x) & (step < 50)

    def better(state: Any) -> Any:
        guess, step = state
        return 0.5 * (guess + x / guess), step + 1

    root, steps = lax.while_loop(going, better, (jnp.ones_like(x), jnp.int32(0)))
    return {"root": root, "steps": steps}


def spectrum(x: Any) -> Any:
    return jnp.abs(jnp.fft.rfft(x, axis=-1))


# ---------------------------------------------------------------- flax.linen


class LinenConv(linen.Module):
    """Convolutions with pools whose arguments go by their places."""

    @linen.compact
    def __call__(self, x: Any, train: bool = False) -> Any:
        x = linen.Conv(8, (3, 3))(x)
        x = linen.BatchNorm(use_running_average=not train)(x)
        x = linen.max_pool(linen.relu(x), (2, 2), (2, 2), "VALID")
        x = linen.Conv(8, (3, 3), strides=2, feature_group_count=8)(x)
        x = linen.avg_pool(linen.gelu(x), (2, 2), (1, 1), "SAME")
        x = linen.Dropout(0.5, deterministic=not train)(x)
        return linen.Dense(4)(x.reshape(x.shape[0], -1))


class Bottleneck(linen.Module):
    """A block of a residual network."""

    width: int
    stride: int = 1

    @linen.compact
    def __call__(self, x: Any) -> Any:
        norm = functools.partial(linen.BatchNorm, use_running_average=True)
        y = linen.relu(norm()(linen.Conv(self.width, (1, 1), use_bias=False)(x)))
        y = linen.Conv(self.width, (3, 3), self.stride, padding=[(1, 1), (1, 1)], use_bias=False)(y)
        y = norm()(linen.Conv(2 * self.width, (1, 1), use_bias=False)(linen.relu(norm()(y))))
        if self.stride > 1 or x.shape[-1] != y.shape[-1]:
            x = norm()(linen.Conv(2 * self.width, (1, 1), self.stride, use_bias=False)(x))
        return linen.relu(x + y)


class ResNet(linen.Module):
    @linen.compact
    def __call__(self, x: Any) -> Any:
        x = linen.Conv(8, (7, 7), (2, 2), padding=[(3, 3), (3, 3)], use_bias=False)(x)
        x = linen.max_pool(linen.relu(x), (3, 3), (2, 2), [(1, 1), (1, 1)])
        x = Bottleneck(8, 2)(Bottleneck(8)(x))
        return linen.Dense(5)(x.mean((1, 2)))


class VisionTransformer(linen.Module):
    """Patches, a class token, learned positions, two layers."""

    @linen.compact
    def __call__(self, x: Any) -> Any:
        x = linen.Conv(16, (4, 4), (4, 4), padding="VALID")(x)
        x = x.reshape(x.shape[0], -1, 16)
        token = self.param("token", linen.initializers.normal(1.0), (1, 1, 16))
        x = jnp.concatenate([jnp.broadcast_to(token, (x.shape[0], 1, 16)), x], axis=1)
        x = x + self.param("positions", linen.initializers.normal(0.02), (1, x.shape[1], 16))
        for _ in range(2):
            x = x + linen.SelfAttention(4)(linen.LayerNorm()(x))
            y = linen.Dense(32)(linen.LayerNorm()(x))
            x = x + linen.Dense(16)(linen.gelu(y))
        return linen.Dense(5)(linen.LayerNorm()(x)[:, 0])


class Recurrent(linen.Module):
    """Embedded words through an LSTM, backward and forward."""

    @linen.compact
    def __call__(self, words: Any) -> Any:
        x = linen.Embed(11, 6)(words)
        forward = linen.RNN(linen.LSTMCell(5))
        backward = linen.RNN(linen.LSTMCell(5))
        return linen.Dense(3)(linen.Bidirectional(forward, backward)(x))


def bound(module: linen.Module, *inputs: Any) -> Any:
    """With weights of our own, which takes less time than the module's initializers."""
    return module.bind(variables_of(module, *inputs))


def variables_of(module: linen.Module, *inputs: Any) -> Any:
    return filled(jax.eval_shape(module.init, jax.random.key(0), *inputs))


def filled(tree: Any) -> Any:
    """Numbers for arrays that are only described; initializers would have to be compiled first."""
    generator = np.random.default_rng(5)

    def fill(leaf: Any) -> Any:
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return jax.random.key(0)
        if leaf.dtype != np.float32:
            return jnp.zeros(leaf.shape, leaf.dtype)
        if len(leaf.shape) < 2:  # variances and scales among them
            return jnp.asarray(generator.uniform(0.5, 1.5, leaf.shape).astype(np.float32))
        fan_in = math.prod(leaf.shape[:-1])
        return jnp.asarray(generator.normal(0, fan_in**-0.5, leaf.shape).astype(np.float32))

    return jax.tree.map(fill, tree)


# ---------------------------------------------------------------- flax.nnx


class NnxMlp(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.Linear(8, 16, rngs=rngs)
        self.norm = nnx.BatchNorm(16, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.last = nnx.Linear(16, 4, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.last(self.dropout(nnx.relu(self.norm(self.first(x)))))

    def encode(self, x: Any) -> Any:
        return jnp.tanh(self.first(x))


class NnxGru(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.rnn = nnx.RNN(nnx.GRUCell(5, 6, rngs=rngs), rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.rnn(x)


class NnxNorms(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.layer = nnx.LayerNorm(8, rngs=rngs)
        self.root = nnx.RMSNorm(8, rngs=rngs)
        self.group = nnx.GroupNorm(8, num_groups=4, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return {"layer": self.layer(x), "root": self.root(x), "group": self.group(x)}


class NnxGpt(nnx.Module):
    """Word and place embeddings, causal attention, tied output."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.words = nnx.Embed(31, 16, rngs=rngs)
        self.places = nnx.Embed(24, 16, rngs=rngs)
        self.attention = nnx.List(
            [nnx.MultiHeadAttention(4, 16, decode=False, rngs=rngs) for _ in range(2)]
        )
        self.norms = nnx.List([nnx.LayerNorm(16, rngs=rngs) for _ in range(4)])
        self.up = nnx.List([nnx.Linear(16, 32, rngs=rngs) for _ in range(2)])
        self.down = nnx.List([nnx.Linear(32, 16, rngs=rngs) for _ in range(2)])

    def __call__(self, ids: Any) -> Any:
        x = self.words(ids) + self.places(jnp.arange(ids.shape[1]))
        mask = nnx.make_causal_mask(ids)
        for index in range(2):
            x = x + self.attention[index](self.norms[2 * index](x), mask=mask)
            y = self.up[index](self.norms[2 * index + 1](x))
            x = x + self.down[index](nnx.gelu(y))
        return self.words.attend(x)


def nnx_model(kind: Any) -> Any:
    graph, state = nnx.split(nnx.eval_shape(lambda: kind(nnx.Rngs(0))))
    return nnx.merge(graph, filled(state))


# ---------------------------------------------------------------- equinox


class EqxConv(eqx.Module):
    """One image [channels, height, width] at a time, as equinox has it."""

    first: eqx.nn.Conv2d
    turned: eqx.nn.ConvTranspose2d
    pool: eqx.nn.MaxPool2d
    dropout: eqx.nn.Dropout
    last: eqx.nn.Linear

    def __init__(self, key: Any) -> None:
        keys = jax.random.split(key, 3)
        self.first = eqx.nn.Conv2d(3, 6, 3, padding=1, key=keys[0])
        self.turned = eqx.nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1, key=keys[1])
        self.pool = eqx.nn.MaxPool2d(2, 2)
        self.dropout = eqx.nn.Dropout(0.4)
        self.last = eqx.nn.Linear(4 * 7 * 7, 5, key=keys[2])

    def __call__(self, image: Any) -> Any:
        x = self.pool(self.turned(jax.nn.relu(self.first(image))))
        return self.last(self.dropout(x.reshape(-1)))


class EqxAttention(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    norm: eqx.nn.LayerNorm

    def __init__(self, key: Any) -> None:
        self.attention = eqx.nn.MultiheadAttention(4, 16, key=key)
        self.norm = eqx.nn.LayerNorm(16)

    def __call__(self, x: Any) -> Any:
        y = jax.vmap(self.norm)(x)
        return x + self.attention(y, y, y)


def eqx_model(make: Callable[[Any], Any]) -> Any:
    return filled(eqx.filter_eval_shape(make, jax.random.key(0)))
