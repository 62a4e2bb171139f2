"""Graphs made from a seed: operators that the optimizer has rules for, in every neighbourhood.

model = random_model(7)          # the same for the same seed
feeds = random_feeds(7)          # with NaN, infinities and signed zeros among the numbers
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper
from tests.fuzzing import (
    control_steps,
    pattern_steps,
    plain_steps,
    product_steps,
    recurrent_steps,
    transformer_steps,
    view_steps,
)
from tests.fuzzing.maker import Maker, Step, of_rank

__all__ = ["random_feeds", "random_model"]

HOSTILE = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-42, 1e30, -1.0, 1.0)
STEPS: tuple[Step, ...] = (
    *plain_steps.STEPS,
    *product_steps.STEPS,
    *pattern_steps.STEPS,
    *transformer_steps.STEPS,
    *map(of_rank(4), transformer_steps.STEPS),
    *view_steps.STEPS,
    *control_steps.STEPS,
    *recurrent_steps.STEPS,
)


def random_model(seed: int) -> onnx.ModelProto:
    """A valid model of a few dozen nodes."""
    make = _with_inputs(seed)
    for _ in range(int(make.random.integers(2, 9))):
        found = make.any_value()
        if found is not None and np.prod(found[1]) < 4096:
            STEPS[int(make.random.integers(len(STEPS)))](make, *found)
    made = {name for node in make.nodes for name in node.output}
    last = [v for v in make.values if v[0] in made][-1:] or make.values[-1:]
    others = [v for v in make.values[:-1] if v[0] in made and make.chance(0.15)]
    outputs = list(dict.fromkeys([*others, *last]))
    if outputs[0][0] not in made:
        make.nodes.append(helper.make_node("Relu", [outputs[0][0]], ["only"]))
        outputs = [("only", outputs[0][1])]
    return make.model(outputs)


def _with_inputs(seed: int) -> Maker:
    """One input or two, of any rank; every other dimension or so is a symbol."""
    make = Maker(seed)
    for index in range(make.pick(1, 1, 2)):
        rank = make.pick(1, 2, 2, 3, 4, 4)
        sizes = tuple(int(make.pick(1, 2, 2, 3, 4, 5)) for _ in range(rank))
        named = tuple(
            f"d{index}_{axis}" if make.chance(0.4) else size for axis, size in enumerate(sizes)
        )
        make.inputs.append((f"x{index}", sizes, named))
        make.values.append((f"x{index}", sizes))
    return make


def random_feeds(seed: int) -> dict[str, np.ndarray[Any, Any]]:
    """Inputs for `random_model(seed)`; in every third some numbers are hostile."""
    random = np.random.default_rng(seed + 1)
    feeds = {}
    for name, shape, _ in _with_inputs(seed).inputs:
        array = random.normal(size=shape).astype(np.float32) * random.choice([0.1, 1, 10])
        if seed % 3 == 0:
            where = random.random(shape) < 0.2
            array = np.where(where, random.choice(HOSTILE, size=shape), array)
        feeds[name] = array.astype(np.float32)
    return feeds
