"""Which device each node runs on (`device_configurations`, IR version 11).

`onnx_ir` reads them in time quadratic in the size of the graph: for each such node it copies every name in
scope. So they are taken out before it builds the model, and given to its nodes afterwards. A sharding names the
inputs and outputs of its own node, so that no other names are needed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import onnx
import onnx_ir as ir

from sardonyx.model.contents import Body, bodies_in, bodies_of

__all__ = ["assign", "has_devices", "hide"]

Devices = list[list[onnx.NodeDeviceConfigurationProto]]  # for each node of the model, in order


def has_devices(bodies: Iterable[Body]) -> bool:
    return any(node.device_configurations for body in bodies for node in body.node)


def hide(model: onnx.ModelProto) -> Devices:
    hidden: Devices = []
    for node in (node for body in bodies_of(model) for node in body.node):
        kept = onnx.NodeProto(device_configurations=node.device_configurations)
        hidden.append(list(kept.device_configurations))
        node.ClearField("device_configurations")
    return hidden


def assign(model: ir.Model, hidden: Devices) -> None:
    """Give the configurations to the nodes that were built."""
    known = {configuration.name: configuration for configuration in model.device_configurations}
    nodes = (node for body in bodies_in(model) for node in body)
    for node, stored in zip(nodes, hidden, strict=True):
        if not stored:
            continue
        values = {v.name: v for v in (*node.inputs, *node.outputs) if v is not None and v.name}
        found = [ir.serde.deserialize_node_device_configuration(s, values) for s in stored]
        node.device_configurations = tuple(
            dataclasses.replace(f, configuration=known[f.configuration.name])
            if f.configuration is not None and f.configuration.name in known
            else f
            for f in found
        )
