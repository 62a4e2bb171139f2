"""A model on its way into an artifact: loaded, its dimensions fixed or bounded, then planned for a CPU.

draft = Draft("mlp.onnx", {"batch": (1, 8)}, "float32", limits)
blueprint = draft.draw(cpu, "mlp")
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import onnx_ir as ir

from sardonyx.backends.c.contractions import target_of
from sardonyx.backends.c.cpu import Cpu
from sardonyx.backends.c.kernels.isa import isa_of
from sardonyx.backends.c.plain import PLAIN
from sardonyx.deploy.blueprint import Blueprint, draw
from sardonyx.deploy.levels import AMX
from sardonyx.deploy.memory import Range
from sardonyx.errors import BuildError
from sardonyx.model.limits import Limits
from sardonyx.model.load import Source
from sardonyx.ops.lowering import NotNative
from sardonyx.plan.make import make_plan
from sardonyx.runtime.chosen import Precision
from sardonyx.runtime.folding import fold_node
from sardonyx.runtime.loaded import Loaded

__all__ = ["Draft"]


class Draft:
    """A model that was loaded once, to be planned for one CPU or several.

    Args:
        dims: for dynamic dimensions a size, or the smallest and the largest.
        plain: its C has no extensions.
    """

    def __init__(
        self,
        source: Source,
        dims: Mapping[str, int | Range],
        precision: Precision,
        limits: Limits,
        *,
        plain: bool = False,
    ) -> None:
        self._loaded = Loaded(source, limits, None)
        # In plain C there are the kernels alone that compute as it stands in the standard.
        self.precision: Precision = "strict" if plain else precision
        self._plain = plain
        self._ranges = _fix_dims(self._loaded.model, dims)
        self._loaded.check("refuse")

    @property
    def model(self) -> ir.Model:
        return self._loaded.model

    def draw(self, cpu: Cpu, name: str) -> Blueprint:
        """The plan for this CPU, with names for callers."""
        loaded = self._loaded
        model = loaded.planned.model
        isa = PLAIN if self._plain else isa_of(cpu)
        # A process must ask for tiles, which the code of levels does and no other.
        wanted = replace(target_of(isa), precision=self.precision, amx=cpu.name == AMX)
        fold = partial(fold_node, model)
        try:
            planned = make_plan(model, loaded.planned.shapes, fold, wanted, loaded.planned.border)
        except NotNative as refusal:
            raise BuildError(f"the model has no native code: {refusal}") from refusal
        ports, defaults, outputs = loaded.ports()
        inputs = [port for port in ports if port.name not in defaults]
        blueprint = draw(planned, isa, inputs, outputs, name)
        return replace(blueprint, ranges=self._ranges, plain=self._plain)


def _fix_dims(model: ir.Model, dims: Mapping[str, int | Range]) -> dict[str, Range]:
    """Write the sizes into the model; the ranges are left."""
    fixed = {name: size for name, size in dims.items() if isinstance(size, int)}
    known: set[str] = set()
    for value in model.graph.inputs:
        if value.shape is None:
            continue
        sizes: list[int | str | None] = []
        for dim in value.shape:
            symbol = None if isinstance(dim, int) else dim.value
            known.update([symbol] if symbol else [])
            sizes.append(dim if isinstance(dim, int) else fixed.get(symbol or "", symbol))
        value.shape = ir.Shape(sizes)
    for name in dims:
        if name not in known:
            raise BuildError(
                f"no input has the dimension {name[:120]!r}",
                value=name,
                hint=f"The dimensions are: {', '.join(sorted(known)) or 'all fixed'}.",
            )
    ranges = {name: size for name, size in dims.items() if not isinstance(size, int)}
    for name, (least, most) in ranges.items():
        if not 0 <= least <= most:
            raise BuildError(
                f"the dimension {name!r} cannot be from {least} to {most}",
                value=(least, most),
                hint="Give the smallest size and the largest, as in --dim batch=1..8.",
            )
    return ranges
