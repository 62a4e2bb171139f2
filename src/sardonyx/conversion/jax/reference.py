"""The answers of JAX itself, which a conversion is held to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from sardonyx.conversion.candidate import Feeds
from sardonyx.conversion.jax.structure import Layout, answers_of, is_key, to_numpy

__all__ = ["Reference"]


class Reference:
    """The user's function between arrays alone, compiled once for every shape.

    Args:
        function: as the user would call it.
        layout: of its calls.
        names: of its inputs, as the converted model has them.
    """

    def __init__(
        self, function: Callable[..., Any], layout: Layout, names: tuple[str, ...]
    ) -> None:
        self.layout = layout
        self.names = names
        self._function = function
        self._outputs: tuple[str, ...] = ()
        # Answers, not speed: compiling for each shape is what takes time here.
        self._compiled = jax.jit(
            self.flat,
            compiler_options={
                "xla_backend_optimization_level": 0,
                "xla_llvm_disable_expensive_passes": True,
            },
        )

    def flat(self, *arrays: Any) -> tuple[Any, ...]:
        """From arrays to arrays; keys of random numbers go in and out as their words, complex numbers as pairs."""
        kinds = zip(arrays, self.layout.keys, self.layout.pairs, strict=True)
        args, kwargs = self.layout.call([_own(*each) for each in kinds])
        self._outputs, found = answers_of(self._function(*args, **kwargs))
        return tuple(map(_plain, found))

    def outputs(self, feeds: Feeds) -> tuple[str, ...]:
        """Names of what it returns."""
        jax.eval_shape(self.flat, *self._given(feeds))
        return self._outputs

    def answer(self, feeds: Feeds) -> Sequence[Any]:
        return [to_numpy(array) for array in self._compiled(*self._given(feeds))]

    def _given(self, feeds: Feeds) -> list[Any]:
        return [feeds[name] for name in self.names]


def _own(array: Any, key: bool, pair: bool) -> Any:
    if key:
        return jax.random.wrap_key_data(array)
    return lax.complex(array[..., 0], array[..., 1]) if pair else array


def _plain(array: Any) -> Any:
    if is_key(array):
        return jax.random.key_data(array)
    return jnp.stack([array.real, array.imag], -1) if jnp.iscomplexobj(array) else array
