"""`OrtValue` and `IOBinding`, with onnxruntime's names: inputs and outputs that stay with their owner."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.errors import InputError
from sardonyx.runtime.session import Session

__all__ = ["IOBinding", "OrtValue"]

Array = np.ndarray[Any, Any]


def _check_device(device: str) -> None:
    if device != "cpu":
        raise InputError(f"the device {device!r} is not one of ours; there is 'cpu'.", value=device)


class OrtValue:
    """A value that a session takes or gives: a tensor, a list of them, or nothing."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @staticmethod
    def ortvalue_from_numpy(array: Array, device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        _check_device(device_type)
        return OrtValue(np.asarray(array))

    @staticmethod
    def ortvalue_from_shape_and_type(
        shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0
    ) -> OrtValue:
        _check_device(device_type)
        return OrtValue(np.zeros(tuple(shape), _dtype(element_type)))

    def numpy(self) -> Any:
        return self._value

    def update_inplace(self, array: Array) -> None:
        self._value[...] = array

    def has_value(self) -> bool:
        return self._value is not None

    def is_tensor(self) -> bool:
        return isinstance(self._value, np.ndarray)

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list)

    def is_sparse_tensor(self) -> bool:
        return not isinstance(self._value, np.ndarray | list | dict) and self._value is not None

    def shape(self) -> list[int]:
        return list(self._value.shape)

    def data_type(self) -> str:
        if isinstance(self._value, list):
            return (
                f"seq({OrtValue(self._value[0]).data_type()})"
                if self._value
                else "seq(tensor(float))"
            )
        return f"tensor({ir.DataType(self.element_type()).name.lower()})"

    def element_type(self) -> int:
        dtype = self._value.dtype
        return (
            ir.DataType.STRING.value if dtype.kind == "O" else ir.DataType.from_numpy(dtype).value
        )

    def tensor_size_in_bytes(self) -> int:
        return int(self._value.nbytes)

    def data_ptr(self) -> int:
        return int(self._value.ctypes.data)

    def device_name(self) -> str:
        return "cpu"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._value, dtype=dtype, copy=copy)


class IOBinding:
    """Inputs and outputs bound once, used by `run_with_iobinding` as often as wanted."""

    def __init__(self, session: Any) -> None:
        self._session: Session = getattr(session, "session", session)  # an InferenceSession has one
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Array | None] = {}  # None: the session makes the array
        self._results: list[OrtValue] = []

    def bind_cpu_input(self, name: str, arr_on_cpu: Array) -> None:
        self._inputs[name] = arr_on_cpu

    def bind_input(
        self,
        name: str,
        device_type: str,
        device_id: int,
        element_type: Any,
        shape: Sequence[int],
        buffer_ptr: int,
    ) -> None:
        _check_device(device_type)
        self._inputs[name] = _at_address(buffer_ptr, shape, element_type)

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._inputs[name] = ortvalue.numpy()

    def bind_output(
        self,
        name: str,
        device_type: str = "cpu",
        device_id: int = 0,
        element_type: Any = None,
        shape: Sequence[int] | None = None,
        buffer_ptr: int | None = None,
    ) -> None:
        _check_device(device_type)
        if buffer_ptr is None:
            self._outputs[name] = None
        elif shape is None or element_type is None:
            raise InputError("a buffer needs its element_type and shape.", where=f"output {name!r}")
        else:
            self._outputs[name] = _at_address(buffer_ptr, shape, element_type)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._outputs[name] = ortvalue.numpy()

    def run(self, **options: Any) -> None:
        """Run the session on what is bound, and put the answers where they are wanted."""
        if not self._outputs:
            raise InputError(
                "no output is bound.",
                hint=f"Call bind_output for one of: {', '.join(p.name for p in self._session.outputs)}.",
            )
        answers = self._session.run(list(self._outputs), self._inputs, **options)
        results: list[OrtValue] = []
        for (name, target), answer in zip(self._outputs.items(), answers, strict=True):
            if target is None:
                results.append(OrtValue(answer))
                continue
            if not isinstance(answer, np.ndarray) or (target.shape, target.dtype) != (
                answer.shape,
                answer.dtype,
            ):
                got = (
                    f"{answer.dtype.name}{list(answer.shape)}"
                    if isinstance(answer, np.ndarray)
                    else type(answer)
                )
                raise InputError(
                    f"the bound buffer is {target.dtype.name}{list(target.shape)}, but the answer is {got}.",
                    where=f"output {name!r}",
                )
            target[...] = answer
            results.append(OrtValue(target))
        self._results = results

    def get_outputs(self) -> list[OrtValue]:
        return list(self._results)

    def copy_outputs_to_cpu(self) -> list[Any]:
        return [np.array(r.numpy()) if r.is_tensor() else r.numpy() for r in self._results]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results = []

    def synchronize_inputs(self) -> None:
        """Nothing to wait for: everything is on the CPU."""

    def synchronize_outputs(self) -> None:
        """Nothing to wait for: everything is on the CPU."""


def _dtype(element_type: Any) -> np.dtype[Any]:
    return np.dtype(
        ir.DataType(element_type).numpy() if isinstance(element_type, int) else element_type
    )


def _at_address(address: int, shape: Sequence[int], element_type: Any) -> Array:
    dtype = _dtype(element_type)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    buffer = memoryview((ctypes.c_byte * size).from_address(address)).cast("B")
    array: Array = np.frombuffer(buffer, dtype).reshape(tuple(shape))
    return array
