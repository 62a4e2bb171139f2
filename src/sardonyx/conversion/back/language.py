"""What a framework is to the walk: its words, its types, and its operator table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import onnx_ir as ir

if TYPE_CHECKING:
    from sardonyx.conversion.back.step import Step

__all__ = ["Answer", "Entry", "Language"]

Answer: TypeAlias = "str | Sequence[str]"  # of all outputs together, or one expression an output
Entry: TypeAlias = "Callable[[Step], Answer]"


@dataclass(frozen=True)
class Language:
    """One framework.

    Attributes:
        name: as users say it.
        array: its module of tensors, as the source has it.
        header: the first lines of the source: imports.
        reserved: names that the source has for itself.
        phrases: templates: of operators that are one expression, by their ONNX name (`{0}` is the first input), and of
            what entries say (`reshape`, `concat`), in small letters.
        entries: operators that take more than a template.
        support: functions whose source goes with a model that needs them, by name.
        dtypes: element types.
        parameter, constant: how the source has a weight, and a tensor that is not trained; `{0}` is its name.
        size: a size as a tensor of integers; `{0}` the number, `{1}` any tensor that is there.
        integer: a tensor's one element as a Python integer; "" where a program is traced and cannot ask.
        dimension: `{0}`'s size along `{1}`.
        accepts: refuses element types that this process cannot have, with the reason; None where it can.
    """

    name: str
    array: str
    header: str
    reserved: frozenset[str]
    phrases: Mapping[str, str]
    entries: Mapping[str, Entry]
    support: Mapping[str, Callable[..., Any]]
    dtypes: Mapping[ir.DataType, str]
    parameter: str
    constant: str
    size: str
    integer: str = ""
    dimension: str = "{0}.shape[{1}]"
    accepts: Callable[[ir.DataType], str | None] = lambda dtype: None

    def knows(self, domain: str, operator: str, version: int = 0) -> bool:
        """Whether the table has an operator."""
        return domain in ("", "ai.onnx.ml") and (
            operator in self.entries or operator in self.phrases
        )

    def entry(self, operator: str) -> Entry:
        found = self.entries.get(operator)
        if found is not None:
            return found
        template = self.phrases[operator]
        return lambda step: step.fill(template)
