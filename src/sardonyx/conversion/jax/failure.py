"""What JAX says of code that it cannot trace, and what to do about it."""

from __future__ import annotations

import re

from sardonyx.errors import ConvertError

__all__ = ["explain", "reads_numbers"]

_READS = (
    "ConcretizationTypeError",
    "NonConcreteBooleanIndexError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
)


def reads_numbers(error: Exception) -> bool:
    """Whether Python asked for numbers that only a run would know."""
    return type(error).__name__ in _READS


def explain(error: Exception) -> ConvertError:
    """The reason, in the words of JAX as far as they help."""
    text = " ".join(str(error).split())
    short = re.split(r"(?<=\.) |See https|The error occurred", text)[0][:300]
    if type(error).__name__ == "InconclusiveDimensionOperation":
        return ConvertError(
            f"the function asks for something that is not so for every size of an open axis: {text[:240]}",
            hint='Say more of it with options={"constraints": ["time >= 4"]}, or leave the axis fixed.',
        )
    if reads_numbers(error):
        return ConvertError(
            f"Python looks at the numbers of an array, which are not known before a run: {short}",
            hint="Use jnp.where, jax.lax.cond, while_loop or fori_loop, which jax.jit asks for too.",
        )
    return ConvertError(f"the function cannot be traced: {type(error).__name__}: {short}")
