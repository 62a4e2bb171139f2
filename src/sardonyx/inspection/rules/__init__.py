"""The rules of `check`, in the order their findings are given. A rule is one small function."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sardonyx.inspection.findings import Finding
from sardonyx.inspection.rules import (
    checker,
    dimensions,
    graph,
    training,
    types,
    versions,
    weights,
)
from sardonyx.inspection.subject import Subject

__all__ = ["RULES", "Rule"]

Rule = Callable[[Subject], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    checker.onnx_checker,
    dimensions.inference_failure,
    dimensions.contradicted_shapes,
    weights.checksum_mismatches,
    weights.odd_values,
    versions.foreign_operators,
    versions.experimental_domains,
    versions.runtime_support,
    versions.old_opset,
    training.training_mode,
    training.random_without_seed,
    training.training_info,
    graph.unused_inputs,
    graph.unused_initializers,
    graph.unreachable_nodes,
    graph.overridable_initializers,
    dimensions.unnamed_input_dimensions,
    dimensions.unbound_output_dimensions,
    types.float64_constants,
    types.float64_regions,
    types.casts_there_and_back,
    types.mixed_float_types,
    types.large_int64_arithmetic,
    weights.duplicate_weights,
    weights.huge_constants,
    graph.unnamed_nodes,
)
