"""Whether the layers answer as the model does: they are read back, by a reader that knows nothing of the writer.

CoreML itself runs on Apple's machines alone. What is held to the model's answers here is what the specification says of
the layers that were written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.backends.reference import Value
from sardonyx.comparison.engines import open_engine
from sardonyx.comparison.tolerance import Tolerance
from sardonyx.conversion.candidate import Feeds
from sardonyx.conversion.coreml.frontend import routes
from sardonyx.conversion.request import Example, Request
from sardonyx.conversion.trials import make_trials
from sardonyx.conversion.verification import Verification, verify

__all__ = ["Port", "prove"]

CLOSE = Tolerance(rtol=1e-4, of_largest=1e-5)


@dataclass(frozen=True)
class Port:
    """An input or output in both worlds.

    Attributes:
        original: its name in the model.
        name: of the feature.
        dtype: in the model; features are of float32 or int32.
        axes: names of open axes.
    """

    original: str
    name: str
    dtype: np.dtype[Any]
    axes: Mapping[int, str]


def prove(
    model: ir.Model,
    specification: Any,
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    example: Mapping[str, Value],
    engine: str,
) -> Verification:
    """The model beside what its layers are read as, on the example and on others made from it.

    Raises:
        InputError: the model itself fails on the example.
        ConvertError: the layers cannot be read.
    """
    run = open_engine(engine, model)

    def answer(feeds: Feeds) -> list[Any]:
        given = {port.original: np.asarray(feeds[port.name]).astype(port.dtype) for port in inputs}
        found = run(given)
        return [as_feature(found[port.original]) for port in outputs]

    feeds = {port.name: as_feature(example[port.original]) for port in inputs}
    open_axes = {port.name: port.axes for port in inputs if port.axes}
    trials, _ = make_trials("model", answer, [feeds], open_axes)
    with tempfile.TemporaryDirectory(prefix="sardonyx-") as folder:
        path = Path(folder) / "written.mlmodel"
        path.write_bytes(specification.SerializeToString())
        request = Request(path, (Example(kwargs=feeds),), open_axes, options={"answers": answer})
        candidate = routes(request)[0].make()
    close = {port.name: CLOSE for port in outputs if port.dtype.kind == "f"}
    return verify(replace(candidate, trials=trials, tolerances=close), engine=engine)


def as_feature(value: Value) -> Any:
    """As CoreML has it: no scalars, and no other integers than of 32 bits."""
    array = np.asarray(value)
    array = array.reshape(array.shape or (1,))
    return array if array.dtype.kind == "f" else array.astype(np.int32)
