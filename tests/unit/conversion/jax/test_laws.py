"""Products and indices of any form, beside numpy."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

from sardonyx.backends.guard import Guard  # noqa: E402
from sardonyx.backends.reference import compile_model  # noqa: E402
from sardonyx.conversion.jax.assemble import assemble  # noqa: E402
from sardonyx.conversion.jax.table import jaxpr_of  # noqa: E402
from sardonyx.conversion.jax.trace import Traced  # noqa: E402


def ours(function: Any, *arrays: Any) -> Any:
    """Our answer, without compiling anything by JAX."""
    names = [f"x{index}" for index in range(len(arrays))]
    traced = Traced(jaxpr_of(function, *arrays), tuple(a.shape for a in arrays), {})
    model = assemble(traced, names, ["y"], {}, None)
    feeds = dict(zip(names, arrays, strict=True))
    return np.asarray(compile_model(model).run(feeds, ["y"], Guard())[0])


@st.composite
def products(draw: st.DrawFn) -> tuple[str, dict[str, int]]:
    """An einsum of two operands: letters that stay, that are summed, and that both keep, in any order."""
    letters = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True))
    left, right, out = [], [], []
    for letter in letters:
        role = draw(st.sampled_from(["left", "right", "both", "summed"]))
        left += [letter] * (role != "right")
        right += [letter] * (role != "left")
        out += [letter] * (role != "summed")
    texts = ["".join(draw(st.permutations(side))) for side in (left, right, out)]
    sizes = {letter: draw(st.integers(1, 3)) for letter in letters}
    return f"{texts[0]},{texts[1]}->{texts[2]}", sizes


@settings(max_examples=100, deadline=None, derandomize=True)
@given(products())
def test_any_product(case: tuple[str, dict[str, int]]) -> None:
    text, sizes = case
    sides = text.split("->")[0].split(",")
    arrays = [
        np.arange(np.prod([sizes[c] for c in side], dtype=int), dtype=np.float32).reshape(
            [sizes[c] for c in side]
        )
        for side in sides
    ]
    made = ours(lambda a, b: jnp.einsum(text, a, b), *arrays)
    assert np.array_equal(made, np.einsum(text, *arrays))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.integers(-9, 9), min_size=1, max_size=5),
    st.integers(0, 1),
    st.sampled_from(["clip", "wrap"]),
)
def test_any_index(places: list[int], axis: int, mode: Any) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    made = ours(lambda a, i: jnp.take(a, i, axis=axis, mode=mode), x, np.array(places, np.int32))
    assert np.array_equal(made, np.take(x, places, axis=axis, mode=mode))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.tuples(st.integers(-2, 3), st.integers(-2, 3), st.integers(0, 2)))
def test_any_padding(widths: tuple[int, int, int]) -> None:
    low, high, between = widths
    x = np.arange(1, 6, dtype=np.float32)
    spread = np.zeros(5 + 4 * between, np.float32)
    spread[:: between + 1] = x
    wide = np.pad(spread, (max(low, 0), max(high, 0)))
    wanted = wide[max(-low, 0) : len(wide) - max(-high, 0)]
    assert np.array_equal(ours(lambda a: lax.pad(a, np.float32(0), (widths,)), x), wanted)
