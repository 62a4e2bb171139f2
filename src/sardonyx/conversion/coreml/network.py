"""Neural networks, layer by layer.

Arrays of one axis are channels and of three are (channels, height, width), as files before version 4 have them: inside they have an
axis of one image before. Where the file maps arrays exactly, they are as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.conversion.coreml.layers import TABLE
from sardonyx.conversion.stored.graph import Graph
from sardonyx.conversion.stored.layer import Layer
from sardonyx.errors import ConvertError
from sardonyx.sizes import Size

__all__ = ["NETWORKS", "check_network", "network_outputs", "probabilities_of", "write_network"]

_INT32 = 131104  # of ArrayFeatureType.ArrayDataType
NETWORKS = ("neuralNetwork", "neuralNetworkClassifier", "neuralNetworkRegressor")


def check_network(network: Any) -> None:
    """Refuse what cannot be read, before anything is written.

    Raises:
        ConvertError: it changes images before the first layer, or has layers without a translation.
    """
    if len(network.preprocessing):
        raise ConvertError("it scales or shifts images before the first layer.")
    TABLE.check_known({layer.WhichOneof("layer") or "nothing" for layer in network.layers})


def network_outputs(model: Any) -> list[str]:
    """The arrays that a network gives; of a classifier the probabilities, in the order of its labels."""
    if model.WhichOneof("Type") == "neuralNetworkClassifier":
        return [probabilities_of(model.neuralNetworkClassifier)]
    return [str(feature.name) for feature in model.description.output]


def probabilities_of(network: Any) -> str:
    """The name of a classifier's probabilities."""
    if network.labelProbabilityLayerName:
        return str(network.labelProbabilityLayerName)
    if not network.layers or not network.layers[-1].output:
        raise ConvertError("its last layer has no output.")
    return str(network.layers[-1].output[0])


def write_network(
    graph: Graph, model: Any, given: Mapping[str, ir.Value], outputs: Sequence[str]
) -> list[ir.Value]:
    """The network's answers to these arrays.

    Raises:
        ConvertError: a layer cannot be written, or reads what nothing writes.
    """
    network = getattr(model, model.WhichOneof("Type"))
    exact = bool(network.arrayInputShapeMapping)
    floats = {name: _as_floats(graph, value) for name, value in given.items()}
    blobs = {
        name: value if exact else _image(graph, value) for name, value in floats.items()
    }  # by name, as layers say it
    for stored in network.layers:
        missing = [name for name in stored.input if name not in blobs]
        if missing:
            raise ConvertError(
                f"it reads {missing[0]!r:.80}, which nothing writes.", where=stored.name
            )
        operands = [blobs[name] for name in stored.input]
        kind = stored.WhichOneof("layer")
        layer = Layer(graph, kind, stored.name, operands, _attributes(stored), len(stored.output))
        blobs.update(zip(stored.output, TABLE.write(layer), strict=False))
    missing = [name for name in outputs if name not in blobs]
    if missing:
        raise ConvertError(f"nothing writes the outputs {', '.join(missing)[:200]}.")
    ranks = {f.name: len(f.type.multiArrayType.shape) for f in model.description.output}
    results = [
        blobs[name] if exact else _declared(graph, blobs[name], ranks.get(name, 1))
        for name in outputs
    ]
    whole = {f.name for f in model.description.output if f.type.multiArrayType.dataType == _INT32}
    return [
        graph.cast(value, np.int32) if name in whole else value
        for name, value in zip(outputs, results, strict=True)
    ]


def _as_floats(graph: Graph, value: ir.Value) -> ir.Value:
    """Layers compute with floats, whatever enters them."""
    return value if graph.dtype(value).kind == "f" else graph.cast(value, np.float32)


def _attributes(stored: Any) -> Mapping[str, Any]:
    """The fields that are set; of an activation those of its kind."""
    params = getattr(stored, stored.WhichOneof("layer"))
    found: dict[str, Any] = {}
    if stored.WhichOneof("layer") == "activation":
        found["kind"] = params.WhichOneof("NonlinearityType")
        params = getattr(params, found["kind"]) if found["kind"] else params
    for field, value in params.ListFields():
        found[field.name] = [int(each) for each in value] if _is_integers(value) else value
    return found


def _is_integers(value: Any) -> bool:
    plain = isinstance(value, int | float | str | bytes) or hasattr(value, "ListFields")
    return not plain and all(isinstance(each, int) for each in value)


def _image(graph: Graph, value: ir.Value) -> ir.Value:
    shape = graph.shape(value)
    if len(shape) == 1:
        return graph.reshape(value, (1, *shape, 1, 1))
    if len(shape) == 3:
        return graph.reshape(value, (1, *shape))
    raise graph.refuse(f"an array of {len(shape)} axes is neither channels nor an image.")


def _declared(graph: Graph, value: ir.Value, rank: int) -> ir.Value:
    shape: tuple[Size, ...] = graph.shape(value)
    if rank == 3 or shape[2:] != (1, 1):
        return graph.reshape(value, shape[1:])
    return graph.reshape(value, shape[1:2])
