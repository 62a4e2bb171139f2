"""What a processor offers to a contraction: vector width, registers, and the tile that fits them.

A tile of C is held in registers while K runs by: `rows` rows of A times `columns` columns of B.

    rows × columns   accumulators + B vectors + A
    neon      5 × 16     20 + 4 + 5   A is loaded four k at a time and used by lane
    avx2      6 × 16     12 + 2 + 1   A is broadcast from memory, one value at a time
    avx512   12 × 32     24 + 2 + 1   the same
    portable  4 × 8       8 + 2 + 1   sixteen registers of four lanes: SSE2, wasm
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from sardonyx.backends.c.cpu import Cpu
from sardonyx.backends.c.kernels.elements import BYTES


@dataclass(frozen=True)
class Tile:
    """MR × NR elements of C, of the type that the products are summed in."""

    rows: int
    columns: int


@dataclass(frozen=True)
class Isa:
    """One family of processors.

    Attributes:
        lanes: float32 values in a vector register.
        registers: how many vector registers there are.
        fma: whether a multiplication and an addition are one instruction with one rounding.
        by_lane: whether a multiplication may take one lane of a register for its operand.
        unsigned_bytes: whether products of bytes take the first factor without a sign (VNNI).
        half_arithmetic: whether vectors of float16 are multiplied as they are, and `half_tile` is written for them.
    """

    name: str
    lanes: int
    registers: int
    fma: bool
    by_lane: bool = False
    unsigned_bytes: bool = False
    half_arithmetic: bool = False

    @property
    def byte_pairs(self) -> bool:
        """Whether sums of two products of bytes may saturate, and nothing multiplies four exactly (`support/split.h`)."""
        return self.name in ("avx2", "avx512") and not self.unsigned_bytes

    @property
    def finishes_floats(self) -> bool:
        """Whether epilogues of floats had better take sums out of registers: where measured (Cascade Lake)."""
        return self.name == "avx512"

    def lanes_of(self, dtype: str) -> int:
        """Values of `dtype` in a vector register."""
        return self.lanes * BYTES["f32"] // BYTES[dtype]


NEON = Isa("neon", lanes=4, registers=32, fma=True, by_lane=True)
AVX2 = Isa("avx2", lanes=8, registers=16, fma=True)
AVX512 = Isa("avx512", lanes=16, registers=32, fma=True)
PORTABLE = Isa("portable", lanes=4, registers=16, fma=False)


def isa_of(cpu: Cpu) -> Isa:
    """The widest family that a CPU has."""
    if "neon" in cpu.features:
        return replace(NEON, half_arithmetic="fp16" in cpu.features)
    vnni = not cpu.features.isdisjoint({"avx512_vnni", "avx_vnni"})
    if "avx512f" in cpu.features:
        return replace(AVX512, unsigned_bytes=vnni)
    found = AVX2 if cpu.features.issuperset({"avx2", "fma"}) else PORTABLE
    return replace(found, unsigned_bytes=vnni)


# Bytes after which addresses fall into the same sets of the first-level cache, and how many rows a set has room for beside
# everything else.
_SETS = {"avx2": (4096, 6), "avx512": (4096, 8)}


def rows_collide(isa: Isa, tile: Tile, by_row: int) -> bool:
    """Whether rows of A that lie `by_row` bytes apart push each other out of the cache: they are copied then."""
    apart, room = _SETS.get(isa.name, (1, tile.rows))
    places = apart // gcd(by_row, apart)
    return tile.rows > places * room


_SHAPES = {"neon": (5, 4), "avx2": (6, 2), "avx512": (12, 2), "portable": (4, 2)}


def tile_of(isa: Isa, dtype: str = "f32") -> Tile:
    """The tile for sums of type `dtype` ("f32", "f64", or "i32" of bytes)."""
    rows, vectors = _SHAPES[isa.name]
    return Tile(rows, vectors * isa.lanes_of(dtype))
