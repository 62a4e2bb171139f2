"""Which kernel of the backend computes a contraction: what a machine measured, else what a rule says.

A problem is a contraction's sizes and types as one line of text, the same wherever it occurs:

    convolution f32 1×64×56×56 → 64×56×56, kernel 3×3, strides 1×1, dilations 1×1, groups 1
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.plan.plan import Choice
from sardonyx.plan.target import Target

__all__ = ["choose"]


def choose(target: Target, problem: str | None, variants: Sequence[str]) -> Choice:
    """One of the variants, of which the rule likes the first best.

    Args:
        problem: None where a size is not known before the run, so that nothing could be measured.
    """
    if len(variants) == 1:
        return Choice(variants[0], "the only one")
    measured = () if problem is None else dict(target.timings).get(problem, ())
    seconds = {name: time for name, time in measured if name in variants}
    if len(seconds) < 2:
        return Choice(variants[0], "by rule")
    first, second = sorted(seconds, key=lambda name: (seconds[name], name))[:2]
    return Choice(
        first,
        f"measured: {seconds[first] * 1e3:.3g} ms, {second} {seconds[second] * 1e3:.3g} ms",
    )
