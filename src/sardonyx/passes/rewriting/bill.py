"""What nodes cost, as numbers that can be added up, and what these are in seconds on a machine.

C = C_compute + C_memory + C_transfer + C_launch
    FLOP / rate   bytes / rate   carried / rate   launches / rate
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

__all__ = ["DEFAULT_RATES", "NOTHING", "Bill", "Price", "Rates"]


@dataclass(frozen=True)
class Rates:
    """What a machine does in a second. They price an account; no rule decides by them.

    Attributes:
        flops: floating point operations.
        bytes: read from memory and written.
        carried: bytes read and written where elements only change places.
        launches: kernels that are started.
        origin: where the numbers come from, for a person.
    """

    flops: float
    bytes: float
    carried: float
    launches: float
    origin: str


# A small server of 2020: two cores with 128-bit vectors, and a runtime that takes a microsecond from node to node.
DEFAULT_RATES = Rates(80e9, 40e9, 10e9, 1e6, "assumed: nothing was measured here")


@dataclass(frozen=True)
class Price:
    """A bill in seconds, term by term."""

    compute: float
    memory: float
    transfer: float
    launch: float

    @property
    def total(self) -> float:
        return self.compute + self.memory + self.transfer + self.launch

    def to_json(self) -> dict[str, float]:
        return {**asdict(self), "total": self.total}


@dataclass(frozen=True)
class Bill:
    """What nodes cost.

    Attributes:
        nodes: how many there are.
        flops: floating point operations; a multiplication with its addition is two.
        bytes: read and written by nodes that compute.
        carried: read and written by nodes that only bring elements to other places, as Transpose and Concat.
        launches: kernels that a runtime would start; a view needs none.
    """

    nodes: int = 0
    flops: int = 0
    bytes: int = 0
    carried: int = 0
    launches: int = 0

    @property
    def moved(self) -> int:
        """All bytes that are read and written."""
        return self.bytes + self.carried

    def price(self, rates: Rates) -> Price:
        """The seconds that it takes where nothing is done at the same time as something else."""
        return Price(
            self.flops / rates.flops,
            self.bytes / rates.bytes,
            self.carried / rates.carried,
            self.launches / rates.launches,
        )

    def __add__(self, other: Bill) -> Bill:
        return Bill(
            self.nodes + other.nodes,
            self.flops + other.flops,
            self.bytes + other.bytes,
            self.carried + other.carried,
            self.launches + other.launches,
        )

    def __sub__(self, other: Bill) -> Bill:
        return Bill(
            self.nodes - other.nodes,
            self.flops - other.flops,
            self.bytes - other.bytes,
            self.carried - other.carried,
            self.launches - other.launches,
        )

    def to_json(self) -> dict[str, int]:
        return asdict(self)


NOTHING = Bill()
