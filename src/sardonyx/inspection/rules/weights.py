"""The weights themselves: NaN, Inf and denormals, the same bytes twice, and files that do not match.

Weights are read where they lie, block by block; nothing here copies a whole one.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from sardonyx.inspection.findings import Finding
from sardonyx.inspection.readable import bytes_text, count_text
from sardonyx.inspection.subject import StoredTensor, Subject
from sardonyx.model.carried.sparse import SparseTensor
from sardonyx.model.external_data import MappedTensor
from sardonyx.model.source import source_line

__all__ = ["checksum_mismatches", "duplicate_weights", "huge_constants", "odd_values"]

_D = ir.DataType
_BLOCK = 1 << 20  # elements looked at together
_SMALLEST_DUPLICATE = 1024  # bytes
_HUGE_CONSTANT = 1 << 20  # bytes
_TREES = "ai.onnx.ml"  # its ensembles end a set of members with NaN, and split on Inf
_MANY_DENORMALS = 1000  # one in so many is worth a warning


@dataclass(frozen=True)
class _Layout:
    """Where the exponent and the mantissa of a float type lie."""

    word: type[np.unsignedinteger[Any]]
    exponent: int
    mantissa: int
    smallest: str  # the smallest normal number


_LAYOUTS = {
    _D.FLOAT16: _Layout(np.uint16, 0x7C00, 0x03FF, "6.1e-05"),
    _D.BFLOAT16: _Layout(np.uint16, 0x7F80, 0x007F, "1.2e-38"),
    _D.FLOAT: _Layout(np.uint32, 0x7F800000, 0x007FFFFF, "1.2e-38"),
    _D.DOUBLE: _Layout(np.uint64, 0x7FF0000000000000, 0x000FFFFFFFFFFFFF, "2.2e-308"),
}
_FLOAT8 = frozenset({_D.FLOAT8E4M3FN, _D.FLOAT8E4M3FNUZ, _D.FLOAT8E5M2, _D.FLOAT8E5M2FNUZ})


@dataclass
class _Counts:
    total: int = 0
    nan: int = 0
    infinite: int = 0
    positive_infinite: int = 0
    denormal: int = 0


def odd_values(subject: Subject) -> Iterator[Finding]:
    """NaN, Inf and denormal numbers among the weights."""
    for stored in subject.tensors:
        if stored.node is not None and stored.node.domain == _TREES:
            continue
        counts = _count(stored.tensor)
        if counts is None:
            continue
        where = stored.where
        source = source_line(stored.node) if stored.node is not None else None
        share = f"of {count_text(counts.total)} values"
        if counts.nan:
            yield Finding(
                "error",
                "nan-weight",
                f"{count_text(counts.nan)} {share} are NaN; whatever reads them answers NaN.",
                where,
                source,
                "The training diverged or the export failed: check the checkpoint.",
            )
        masks = counts.positive_infinite == 0
        # A lone -Inf is what Where puts into a mask.
        if counts.infinite and not (masks and counts.total == 1):
            yield Finding(
                "info" if masks else "warning",
                "infinite-weight",
                f"{count_text(counts.infinite)} {share} are {'-Inf' if masks else 'infinite'}.",
                where,
                source,
                "Usual in an attention mask; a row of nothing else gives NaN after Softmax."
                if masks
                else "Check the checkpoint.",
            )
        # The subnormals of float16 are part of its useful range; they cost nothing.
        if counts.denormal and stored.tensor.dtype != _D.FLOAT16:
            many = counts.denormal >= 10 and counts.denormal * _MANY_DENORMALS > counts.total
            yield Finding(
                "warning" if many else "info",
                "denormal-weight",
                f"{count_text(counts.denormal)} {share} are denormal (below "
                f"{_LAYOUTS[stored.tensor.dtype].smallest}): slow on some CPUs, zero on others.",
                where,
                source,
                "Set them to zero before exporting.",
            )


def _count(tensor: ir.TensorProtocol) -> _Counts | None:
    layout = _LAYOUTS.get(tensor.dtype)
    if layout is None and tensor.dtype not in _FLOAT8:
        return None
    counts = _Counts()
    for block in _blocks(tensor):
        counts.total += block.size
        if layout is None:
            counts.nan += int(np.count_nonzero(np.isnan(block)))
            continue
        bits = block.view(layout.word)
        exponents = bits & layout.word(layout.exponent)
        special = exponents == layout.exponent
        if special.any():
            chosen = bits[special]
            infinite = (chosen & layout.word(layout.mantissa)) == 0
            positive = chosen == layout.exponent  # neither sign nor mantissa
            counts.infinite += int(np.count_nonzero(infinite))
            counts.positive_infinite += int(np.count_nonzero(positive))
            counts.nan += int(np.count_nonzero(~infinite))
        tiny = exponents == 0
        if tiny.any():
            counts.denormal += int(np.count_nonzero(bits[tiny] & layout.word(layout.mantissa)))
    return counts


def _blocks(tensor: ir.TensorProtocol) -> Iterator[np.ndarray[Any, Any]]:
    if isinstance(tensor, SparseTensor):
        tensor = tensor.values
    array = np.asarray(tensor.numpy())
    flat = array.reshape(-1) if array.flags.c_contiguous else array.ravel()
    native = flat.dtype.newbyteorder("=")
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        yield block if block.dtype.isnative else block.astype(native)


def duplicate_weights(subject: Subject) -> Iterator[Finding]:
    """Weights with the same bytes: tied in training, stored twice in the file."""
    alike: dict[tuple[int, tuple[int, ...]], list[StoredTensor]] = defaultdict(list)
    for stored in subject.tensors:
        tensor = stored.tensor
        if tensor.dtype == _D.STRING or isinstance(tensor, SparseTensor):
            continue
        if tensor.nbytes >= _SMALLEST_DUPLICATE:
            alike[tensor.dtype.value, tuple(tensor.shape.numpy())].append(stored)
    for group in alike.values():
        if len(group) < 2:
            continue
        same: dict[bytes, list[StoredTensor]] = defaultdict(list)
        places: set[tuple[object, ...]] = set()
        for stored in group:
            place = _place(stored.tensor)
            if place not in places:  # one place under two names is stored once already
                same[_digest(stored.tensor)].append(stored)
            places.add(place)
        for twins in same.values():
            if len(twins) > 1:
                wasted = (len(twins) - 1) * twins[0].tensor.nbytes
                others = ", ".join(twin.where for twin in twins[1:4])
                yield Finding(
                    "info",
                    "duplicate-weight",
                    f"the same bytes as {others}{', …' if len(twins) > 4 else ''}: "
                    f"{bytes_text(wasted)} stored again.",
                    twins[0].where,
                    hint="Store it once and let every node read that one.",
                )


def _place(tensor: ir.TensorProtocol) -> tuple[object, ...]:
    if isinstance(tensor, ir.ExternalTensor):
        return (str(tensor.location), tensor.offset)
    return (id(tensor),)


def _digest(tensor: ir.TensorProtocol) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    if tensor.dtype.bitwidth < 8:
        digest.update(tensor.tobytes())  # packed: the file's own bytes are the values
    else:
        for block in _blocks(tensor):
            digest.update(block.view(np.uint8).data)
    return digest.digest()


def huge_constants(subject: Subject) -> Iterator[Finding]:
    """Large tensors inside nodes: they cannot be external data, and many tools copy them."""
    for stored in subject.tensors:
        if stored.node is None or stored.tensor.dtype == _D.STRING:
            continue
        if stored.tensor.nbytes >= _HUGE_CONSTANT:
            yield Finding(
                "warning",
                "huge-constant",
                f"{bytes_text(stored.tensor.nbytes)} inside a node, where it is parsed with the graph.",
                stored.where,
                source_line(stored.node),
                "Make it an initializer.",
            )


def checksum_mismatches(subject: Subject) -> Iterator[Finding]:
    """Data files whose SHA-1 is not what the model says."""
    files = {
        str(stored.tensor.location): stored.tensor.file
        for stored in subject.tensors
        if isinstance(stored.tensor, MappedTensor)
    }
    for location, expected in sorted({(c.location, c.sha1) for c in subject.checksums}):
        file = files.get(location)
        if file is None:
            continue
        file.verify()
        found = hashlib.sha1(file.data, usedforsecurity=False).hexdigest()
        if found != expected.strip().lower():
            yield Finding(
                "error",
                "checksum-mismatch",
                f"its SHA-1 is {found}, but the model says {expected[:64]!r}.",
                f"file {location!r}",
                hint="The data file belongs to another version of the model, or is damaged.",
            )
