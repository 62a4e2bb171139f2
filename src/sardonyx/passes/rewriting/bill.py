"""What nodes cost, as numbers that can be added up."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NOTHING", "Bill"]


@dataclass(frozen=True)
class Bill:
    """What nodes cost.

    Attributes:
        nodes: how many there are.
        flops: floating point operations; a multiplication with its addition is two.
        bytes: read and written.
        launches: kernels that a runtime would start; a view needs none.
    """

    nodes: int = 0
    flops: int = 0
    bytes: int = 0
    launches: int = 0

    def __add__(self, other: Bill) -> Bill:
        return Bill(
            self.nodes + other.nodes,
            self.flops + other.flops,
            self.bytes + other.bytes,
            self.launches + other.launches,
        )

    def __sub__(self, other: Bill) -> Bill:
        return Bill(
            self.nodes - other.nodes,
            self.flops - other.flops,
            self.bytes - other.bytes,
            self.launches - other.launches,
        )

    def to_json(self) -> dict[str, int]:
        return {
            "nodes": self.nodes,
            "flops": self.flops,
            "bytes": self.bytes,
            "launches": self.launches,
        }


NOTHING = Bill()
