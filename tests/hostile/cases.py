"""A bad model, and exactly what must be said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import onnx
import pytest
from tests.hostile.build import model

import sardonyx as sx
from sardonyx.errors import SardonyxError


@dataclass(frozen=True)
class Case:
    """The error's class, a part of its message, its place, and its value where it has one."""

    proto: onnx.ModelProto
    kind: type[SardonyxError]
    says: str
    where: str
    value: object = None

    def check(self) -> None:
        """As bytes and as a message, the model is refused in the same words."""
        said = []
        for source in (self.proto.SerializeToString(), self.proto):
            with pytest.raises(SardonyxError) as caught:
                sx.load(source)
            error = caught.value
            assert type(error) is self.kind
            assert self.says in error.message
            assert error.where == self.where
            assert error.value == self.value or self.value is None
            assert error.stage == "load"
            said.append(str(error))
        assert said[0] == said[1]


def after(
    change: Callable[[onnx.ModelProto], object], proto: onnx.ModelProto | None = None
) -> onnx.ModelProto:
    """A model after one change."""
    made = proto or model()
    change(made)
    return made
