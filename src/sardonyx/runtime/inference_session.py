"""A drop-in for onnxruntime's `InferenceSession`: the same calls, the same shapes of answers.

import sardonyx as ort
session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
(y,) = session.run(None, {session.get_inputs()[0].name: x})
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from sardonyx.backends.reference import Value
from sardonyx.errors import UnsupportedError
from sardonyx.model.load import Source
from sardonyx.runtime.io_binding import IOBinding, OrtValue
from sardonyx.runtime.ports import Port
from sardonyx.runtime.session import Session

__all__ = [
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "get_available_providers",
    "get_device",
]

_CPU = "CPUExecutionProvider"


class GraphOptimizationLevel(IntEnum):
    """onnxruntime's levels; they change no answer."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """onnxruntime's modes; they change no answer."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


def get_available_providers() -> list[str]:
    return [_CPU]


def get_device() -> str:
    return "CPU"


@dataclass(slots=True)
class SessionOptions:
    """onnxruntime's options. Those that tune its own engine are taken and change no answer.

    Honoured: `add_free_dimension_override_by_name`, and the config entry "sardonyx.byte_budget".
    """

    intra_op_num_threads: int = 0
    inter_op_num_threads: int = 0
    graph_optimization_level: Any = GraphOptimizationLevel.ORT_ENABLE_ALL
    execution_mode: Any = ExecutionMode.ORT_SEQUENTIAL
    execution_order: Any = 0
    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_profiling: bool = False
    log_severity_level: int = 2
    log_verbosity_level: int = 0
    logid: str = ""
    optimized_model_filepath: str = ""
    profile_file_prefix: str = "onnxruntime_profile_"
    use_deterministic_compute: bool = False
    _entries: dict[str, str] = field(default_factory=dict)
    _dims: dict[str, int] = field(default_factory=dict)

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        if key not in self._entries:
            raise KeyError(f"no session config entry {key!r}")
        return self._entries[key]

    def has_session_config_entry(self, key: str) -> bool:
        return key in self._entries

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        self._dims[name] = value

    def register_custom_ops_library(self, path: str) -> None:
        raise UnsupportedError(
            "libraries of custom operators are not loaded.", where=f"file {path!r}", value=path
        )


@dataclass(slots=True)
class RunOptions:
    """Options of one call. `terminate` may be set from another thread; `timeout` is in seconds."""

    terminate: bool = False
    timeout: float | None = None
    log_severity_level: int = 2
    log_verbosity_level: int = 0
    logid: str = ""
    only_execute_path_to_fetches: bool = False
    _entries: dict[str, str] = field(default_factory=dict)

    def is_set(self) -> bool:
        return self.terminate

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        if key not in self._entries:
            raise KeyError(f"no run config entry {key!r}")
        return self._entries[key]


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output: name, type as `tensor(float)`, shape as ints, names and None."""

    name: str
    type: str
    shape: list[int | str | None]


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]


class InferenceSession:
    """The face of onnxruntime on a `sardonyx.Session` (which is `.session`)."""

    def __init__(
        self,
        path_or_bytes: Source,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        self._options = sess_options if sess_options is not None else SessionOptions()
        self.set_providers(providers, provider_options)
        budget = self._options._entries.get("sardonyx.byte_budget")
        self.session = Session(
            path_or_bytes,
            byte_budget=int(budget) if budget is not None else None,
            fixed_dims=self._options._dims,
        )

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Value]:
        if isinstance(input_feed, Mapping):
            input_feed = {
                name: v.numpy() if isinstance(v, OrtValue) else v for name, v in input_feed.items()
            }
        return self.session.run(output_names, input_feed, **_bounds(run_options))

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Value], Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run in a thread of its own, then call `callback(results, user_data, error)`; error is "" on success."""

        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as failure:  # whatever it is, the callback must hear of it
                results, error = [], str(failure) or type(failure).__name__
            callback(results, user_data, error)

        threading.Thread(target=work, name="sardonyx-run-async", daemon=True).start()

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        return [OrtValue(v) for v in self.run(output_names, input_dict_ort_values, run_options)]

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        iobinding.run(**_bounds(run_options))

    def get_inputs(self) -> list[NodeArg]:
        return [_argument(p) for p in self.session.inputs]

    def get_outputs(self) -> list[NodeArg]:
        return [_argument(p) for p in self.session.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        return [_argument(p) for p in self.session.defaults]

    def get_modelmeta(self) -> ModelMetadata:
        model = self.session.model
        return ModelMetadata(
            producer_name=model.producer_name or "",
            graph_name=model.graph.name or "",
            domain=model.domain or "",
            description=model.doc_string or "",
            graph_description=model.graph.doc_string or "",
            version=model.model_version or 0,
            custom_metadata_map=dict(model.metadata_props),
        )

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_providers(self) -> list[str]:
        return [_CPU]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {_CPU: {}}

    def set_providers(
        self,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        names = [p if isinstance(p, str) else p[0] for p in providers or [_CPU]]
        if _CPU not in names:
            warnings.warn(
                f"{', '.join(names)} is not available; the model runs on the CPU.",
                UserWarning,
                stacklevel=3,
            )


def _bounds(options: RunOptions | None) -> dict[str, Any]:
    return {} if options is None else {"timeout": options.timeout, "cancel": options}


def _argument(port: Port) -> NodeArg:
    return NodeArg(port.name, port.type, list(port.shape or ()))
