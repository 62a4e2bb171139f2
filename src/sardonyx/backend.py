"""The `onnx.backend` interface: `sardonyx.backend.prepare(model).run(inputs)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnx.helper
import onnx_ir as ir
from onnx.backend.base import Backend, BackendRep, namedtupledict

from sardonyx.errors import InputError, UnsupportedError
from sardonyx.model.load import Source
from sardonyx.runtime.session import Session

__all__ = [
    "SardonyxBackend",
    "SardonyxBackendRep",
    "is_compatible",
    "prepare",
    "run",
    "run_model",
    "run_node",
    "supports_device",
]


class SardonyxBackendRep(BackendRep):  # type: ignore[misc]
    """A prepared model."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run on a list in the order of the model's inputs, a mapping by name, or a single array."""
        ports = self.session.inputs
        if isinstance(inputs, Mapping):
            feeds = dict(inputs)
        else:
            values = list(inputs) if isinstance(inputs, Sequence) else [inputs]
            if len(values) > len(ports):
                raise InputError(
                    f"{len(values)} inputs, where the model has {len(ports)}.",
                    value=len(values),
                    limit=len(ports),
                )
            feeds = {port.name: value for port, value in zip(ports, values, strict=False)}
        names = [p.name for p in self.session.outputs]
        return namedtupledict("Outputs", names)(*self.session.run(None, feeds, **kwargs))  # type: ignore[no-any-return]


class SardonyxBackend(Backend):  # type: ignore[misc]
    """What `onnx.backend.test` and other harnesses call."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: Source, device: str = "CPU", **kwargs: Any) -> SardonyxBackendRep:
        if not cls.supports_device(device):
            raise UnsupportedError(
                f"the device {device!r} is not one of ours; there is 'CPU'.", value=device
            )
        return SardonyxBackendRep(Session(model, **kwargs))

    @classmethod
    def run_model(
        cls, model: Source, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run a single node, at the newest opset unless `opset_version` says otherwise."""
        import numpy as np

        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        arrays = [np.asarray(x) for x in (inputs if isinstance(inputs, list | tuple) else [inputs])]
        names = [name for name in node.input if name]
        graph = onnx.helper.make_graph(
            [node],
            "node",
            [
                onnx.helper.make_tensor_value_info(
                    name, ir.DataType.from_numpy(a.dtype).value, a.shape
                )
                for name, a in zip(names, arrays, strict=True)
            ],
            [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name],
        )
        opsets = [onnx.helper.make_opsetid("", version)]
        model = onnx.helper.make_model(
            onnx.shape_inference.infer_shapes(
                onnx.helper.make_model(graph, opset_imports=opsets)
            ).graph,
            opset_imports=opsets,
        )
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.split(":")[0].upper() == "CPU"


is_compatible = SardonyxBackend.is_compatible
prepare = SardonyxBackend.prepare
run = SardonyxBackend.run_model
run_model = SardonyxBackend.run_model
run_node = SardonyxBackend.run_node
supports_device = SardonyxBackend.supports_device
