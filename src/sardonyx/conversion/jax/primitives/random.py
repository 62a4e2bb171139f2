"""Random numbers of JAX are functions of their key: threefry, in integers, bit for bit.

A key is its two words, uint32[…, 2].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import onnx_ir as ir
from jax.core import ShapedArray
from jax.extend.random import threefry_prng_impl

from sardonyx.conversion.jax.table import Site, jaxpr_of, lowered, primitive, refused
from sardonyx.errors import ConvertError

__all__: list[str] = []

_TURNS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


@lowered("threefry2x32")
def threefry(k1: Any, k2: Any, x1: Any, x2: Any) -> Any:
    """Twenty rounds of add, rotate and xor, with a word of the key after every four."""
    keys = (k1, k2, k1 ^ k2 ^ jnp.uint32(_PARITY))
    x1, x2 = x1 + k1, x2 + k2
    for block in range(5):
        for turn in _TURNS[block % 2]:
            x1 = x1 + x2
            x2 = x1 ^ ((x2 << turn) | (x2 >> (32 - turn)))
        x1 = x1 + keys[(block + 1) % 3]
        x2 = x2 + keys[(block + 2) % 3] + jnp.uint32(block + 1)
    return x1, x2


@lowered("iota_2x32_shape")
def counted(*, shape: Any) -> Any:
    """0, 1, 2, … in 64 bits, the high word and the low one."""
    count = math.prod(shape)
    if count > 1 << 32:
        raise ConvertError(f"{count:,} random numbers at once are more than 2^32.")
    return jnp.zeros(shape, jnp.uint32), jnp.arange(count, dtype=jnp.uint32).reshape(shape)


def _inline(site: Site, function: Callable[..., Any], *operands: ir.Value) -> list[ir.Value]:
    """A function of one key, mapped over all of them."""
    keys = site.ins[0]
    if "fry" not in str(keys.dtype):
        raise site.refuse(
            f"keys of {keys.dtype} are not of threefry, JAX's own default.",
            "Make them by jax.random.key(seed, impl='threefry2x32').",
        )
    for _ in keys.shape:
        function = jax.vmap(function)
    words = ShapedArray((*keys.shape, 2), jnp.uint32)
    return site.inline(jaxpr_of(function, words, *site.ins[1:]), operands)


@primitive("random_bits")
def bits(site: Site, key: ir.Value) -> list[ir.Value]:
    width, shape = site.params["bit_width"], site.params["shape"]
    return _inline(site, lambda k: threefry_prng_impl.random_bits(k, width, shape), key)


@primitive("random_split")
def split(site: Site, key: ir.Value) -> list[ir.Value]:
    return _inline(site, lambda k: threefry_prng_impl.split(k, site.params["shape"]), key)


@primitive("random_fold_in")
def fold_in(site: Site, key: ir.Value, number: ir.Value) -> list[ir.Value]:
    return _inline(site, threefry_prng_impl.fold_in, key, number)


@primitive("random_seed")
def seed(site: Site, number: ir.Value) -> list[ir.Value]:
    if site.ins[0].shape:
        raise site.refuse("several seeds at once are not written.", "Give keys as an input.")
    return site.inline(jaxpr_of(threefry_prng_impl.seed, site.ins[0]), [number])


@primitive("random_wrap", "random_unwrap")
def same(site: Site, key: ir.Value) -> ir.Value:
    return key


refused(
    "its numbers are the device's own, and no answer can be proved equal.",
    "Use jax.random with a key, or give the random numbers as an input.",
    "rng_bit_generator",
    "rng_uniform",
    "random_gamma",
)
