"""Functions inside of functions: they are written in place. Python that runs beside the computation is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
from jax.extend.core import ClosedJaxpr

from sardonyx.conversion.jax.table import Site, primitive, refused

__all__ = ["closed"]


def closed(jaxpr: Any) -> ClosedJaxpr:
    """A jaxpr with its constants; one that has none may come without."""
    return jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, ())


@primitive(
    "checkpoint",
    "closed_call",
    "core_call",
    "custom_jvp_call",
    "custom_vjp_call",
    "custom_vjp_call_jaxpr",
    "jit",
    "pjit",
    "remat",
    "remat2",
)
def call(site: Site, *operands: ir.Value) -> list[ir.Value]:
    """Gradients are of no concern: what is called is the function itself."""
    for name in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        if name in site.params:
            return site.inline(closed(site.params[name]), operands, site.used)
    raise site.refuse("the function that it calls is not there.")


@primitive("custom_linear_solve")
def solve(site: Site, *operands: ir.Value) -> list[ir.Value]:
    """By the solver that JAX has chosen."""
    counts = site.params["const_lengths"]
    before = counts.matvec + counts.vecmat
    own = operands[before : before + counts.solve]
    right = operands[sum(counts) :]
    return site.inline(closed(site.params["jaxprs"].solve), (*own, *right), site.used)


@primitive("platform_index")
def platform(site: Site) -> ir.Value:
    """Of the code for several devices, that for CPUs."""
    choices = site.params["platforms"]
    found = next(i for i, names in enumerate(choices) if names is None or "cpu" in names)
    return site.graph.constant(found, np.int32)


refused(
    "Python runs inside of the model, which no ONNX model can do.",
    "Write it with jax.numpy, or call it before or after the model.",
    "io_callback",
    "pure_callback",
)
refused(
    "it runs on several devices.",
    "Convert the function of one device.",
    "all_gather",
    "all_to_all",
    "axis_index",
    "pmax",
    "pmin",
    "ppermute",
    "psum",
    "psum_invariant",
    "shard_map",
    "xla_pmap",
)
refused(
    "a kernel of one device's own language has no counterpart in ONNX.",
    "Convert the function with the kernel's plain form.",
    "custom_call",
    "ffi_call",
    "pallas_call",
    "triton_call",
)
