"""Attention kernels of a plan as C: the template of `kernels.attention`, `half_attention` or `tile_attention`, behind the functions that it calls."""

from __future__ import annotations

from sardonyx.backends.c.contractions import extent, namer
from sardonyx.backends.c.kernels.attention import attention
from sardonyx.backends.c.kernels.elements import C_TYPE
from sardonyx.backends.c.kernels.half_attention import half_attention
from sardonyx.backends.c.kernels.isa import Isa
from sardonyx.backends.c.kernels.tile_attention import tile_attention
from sardonyx.backends.c.kernels.tiles import PAIRS
from sardonyx.backends.c.kernels.weighing import AttentionSpec
from sardonyx.backends.c.render import HEADERS, render_epilogue
from sardonyx.plan.kernels import AttentionKernel

__all__ = ["render_attention"]

_FUNCTIONS = ("read_query", "read_key", "read_value", "make_scores", "store_row")


def render_attention(kernel: AttentionKernel, name: str, isa: Isa) -> str:
    """The whole translation unit."""
    name_of = namer(kernel.symbols)
    spec = AttentionSpec(
        extent(kernel.batch, name_of),
        extent(kernel.rows, name_of),
        extent(kernel.keys, name_of),
        kernel.size,
        kernel.width,
        kernel.dtype,
        kernel.guarded,
        kernel.shared,
    )
    functions = "\n".join(
        render_epilogue(part, function, kernel.dtype)
        for part, function in zip(kernel.parts, _FUNCTIONS, strict=True)
    )
    packed, text = _template(kernel.variant, spec, isa)
    return f"""\
{HEADERS}
struct env {{ sx_run *run; void *const *p; const int64_t *n; }};

{functions}
{text}
int32_t {name}(sx_run *run, void *const *p, const int64_t *n) {{
    const struct env env = {{run, p, n}};
    attend(run, &env, ({packed} *)p[{kernel.packed_keys}], ({packed} *)p[{kernel.packed_values}], n);
    return __atomic_load_n(&run->error, __ATOMIC_ACQUIRE);
}}
"""


def _template(variant: str, spec: AttentionSpec, isa: Isa) -> tuple[str, str]:
    """The C type of packed keys and values, and the kernel."""
    if variant in PAIRS:
        return "uint16_t", tile_attention("attend", spec, variant)
    if variant == "f16":
        return "_Float16", half_attention("attend", spec)
    return C_TYPE[spec.dtype], attention("attend", spec, isa)
