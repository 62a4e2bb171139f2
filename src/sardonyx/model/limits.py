"""What a model may cost before it is refused. One frozen object; widen it with `replace`.

sx.load("big.onnx", limits=sx.Limits(nodes=5_000_000))
"""

from __future__ import annotations

from dataclasses import dataclass

from sardonyx.errors import LimitError

__all__ = ["DEFAULT_LIMITS", "Limits"]

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class Limits:
    """Limits of guarded loading; every refusal names the field here that refused."""

    file_bytes: int = 2 * GIB  # one protobuf message; protobuf itself ends here
    text_bytes: int = (
        128 * MIB
    )  # names, doc strings, metadata and strings in all; or a model as text
    name_bytes: int = 64 * KIB  # one name of a value, node, attribute or function
    attribute_bytes: int = 256 * MIB  # numbers and strings in attributes, in all: a forest has many
    unknown_bytes: int = 1 * MIB  # fields that the ONNX schema does not have, in all
    fields: int = (
        5_000_000  # protobuf fields in all; 100,000 nodes with stack traces have about 3 million
    )
    nodes: int = 1_000_000  # nodes in all graphs and functions as written
    expanded_nodes: int = 1_000_000  # nodes after every function call is inlined
    graph_depth: int = 32  # subgraphs inside subgraphs, types inside types
    function_depth: int = 32  # functions calling functions
    rank: int = 64  # dimensions of one tensor; numpy ends here
    tensor_elements: int = 1 << 40  # elements of one tensor
    dense_bytes: int = 2 * GIB  # a sparse tensor, once its zeros are written out
    symlinks: bool = False  # follow symbolic links to external data (Hugging Face's cache has them)
    hardlinks: bool = False  # accept external data files with more than one name

    def __post_init__(self) -> None:
        if self.rank > 64 or self.tensor_elements > 1 << 58:
            raise ValueError("numpy holds at most 64 dimensions, and 2**58 elements")

    def check(self, name: str, value: int, what: str, where: str) -> None:
        """Refuse `value` when it passes the limit of that name: `check("rank", 70, "dimensions", …)`."""
        limit = getattr(self, name)
        if value > limit:
            honest = name != "rank" and value <= 16 * limit  # else no widening would help
            raise LimitError(
                f"{value:,} {what}; the limit is {limit:,} (Limits.{name}).",
                where=where,
                value=value,
                limit=limit,
                hint=f"If you trust the model, load it with limits=Limits({name}={value})."
                if honest
                else None,
            )


DEFAULT_LIMITS = Limits()
