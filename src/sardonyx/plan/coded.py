"""Products with weights that the file has as integers, by a kernel that reads them as they are.

    y[m, n] = sum over k of x[m, k] · (q[k, n] - zero) · scale[k / block, n]

Where few rows are multiplied, reading the weights is all that takes time: bytes are a quarter of float32, and halves of a
byte an eighth. The kernel cuts every block of a row of x into digits of 8 bits with a common exponent, and multiplies
integers (`backends.c.kernels.digits`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.loops.index import unflatten
from sardonyx.model.opset import normal_domain
from sardonyx.ops.lowering import Product
from sardonyx.plan.contract import INNER, as_one_matrix, complete, matrix_of, row_epilogue
from sardonyx.plan.group import Group
from sardonyx.plan.kernels import BATCH, COLUMN, ROW, Choice, CodedWeights, ProductKernel
from sardonyx.plan.origins import Packing
from sardonyx.plan.target import Target
from sardonyx.plan.write import PackedConstant, Writer, Written
from sardonyx.sizes import Size, ceil_div, min_of, product, symbol

__all__ = ["CODED_PANEL", "FEW_ROWS", "coded_bytes", "write_coded_product"]

Array = npt.NDArray[Any]

CODED_PANEL = 16
FEW_ROWS = 8  # more are multiplied in float32
_DIGITS = {"float32": 4, "fast": 3, "bfloat16": 2}  # by precision
_BITS = {
    ir.DataType.INT8: 8,
    ir.DataType.UINT8: 8,
    ir.DataType.INT4: 4,
    ir.DataType.UINT4: 4,
}
_LEAST_DEPTH, _LEAST_COLUMNS = 32, 16
_SHORT, _LONG = 16, 128  # blocks that digits may share an exponent in
_USUAL = 64  # where the weights of a column have one scale


@dataclass(frozen=True)
class _Codes:
    """Dequantized weights.

    Attributes:
        values, scales: constants; values [K, N], or [N, K] where `turned`.
        zero: what all zero points are; None where they differ.
        block: values of K that share a scale.
    """

    values: ir.Value
    scales: ir.Value
    zeros: ir.Value | None
    zero: int | None
    bits: int
    block: int
    turned: bool


def write_coded_product(writer: Writer, group: Group, target: Target) -> Written | None:
    """The product by the kernel for such weights; None where they are others, or another kernel is better."""
    codes = _codes(writer, group)
    lowering = group.root.lowering
    if codes is None or target.precision not in _DIGITS:
        return None
    assert isinstance(lowering, Product)
    contraction = lowering.describe(writer.site(group))
    inner, columns = contraction.inner, contraction.columns
    if not isinstance(inner, int) or not isinstance(columns, int) or contraction.dtype != "f32":
        return None
    batch = product(contraction.batch)
    writer.b.ranges.update({BATCH: batch, ROW: contraction.rows, INNER: inner, COLUMN: columns})
    at = unflatten(symbol(BATCH), contraction.batch, writer.b.ranges)
    a = matrix_of(writer, group, 0, contraction.a(at, symbol(ROW), symbol(INNER)), ROW, INNER)
    if a is None or a.dtype != "f32" or a.by_column != 1:
        return None
    rows = batch * contraction.rows
    a = as_one_matrix(a, contraction.rows, batch)
    if a is None or not _pays(writer, group, rows, inner, columns):
        return None
    block = codes.block if codes.block <= _LONG else _USUAL
    blocks = -(-inner // block)
    strides = (1, inner) if codes.turned else (columns, 1)
    shift = _shift(writer, codes, target)
    packing = Packing("codes", (0, *strides, inner, columns, CODED_PANEL, codes.bits, block, shift))
    packed = writer.extra(PackedConstant(codes.values, packing), "u8", "in")
    shape = (int(codes.turned), -(-inner // codes.block), columns, CODED_PANEL)
    scales = writer.extra(PackedConstant(codes.scales, Packing("code-scales", shape)), "f32", "in")
    zeros = None
    if codes.zeros is not None and codes.zero is None:
        wanted = PackedConstant(codes.zeros, Packing("code-zeros", (*shape, shift)))
        zeros = writer.b.number_of(writer.extra(wanted, "i16", "in"))
    digits = _DIGITS[target.precision]
    scratch = writer.scratch(
        "i32", min_of(rows, FEW_ROWS) * blocks * (1 + digits + digits * block // 4)
    )
    writer.b.reset()
    coded = CodedWeights(
        codes.bits,
        block,
        codes.block // block if codes.block > block else 1,
        (codes.zero or 0) + shift,
        digits,
        writer.b.number_of(scales),
        zeros,
        writer.b.number_of(scratch),
    )
    name = f"digits {codes.bits}"
    kernel = ProductKernel(
        1,
        rows,
        columns,
        inner,
        a,
        None,
        writer.b.number_of(packed),
        CODED_PANEL,
        Choice(name, "by rule: weights are read as they are stored", None, (name,)),
        "f32",
        row_epilogue(writer, group, contraction, merged=True),
        coded=coded,
    )
    source = group.root.node.inputs[1]
    if source in writer.graph.producer:
        writer.pull.works.add(writer.graph.producer[source])
    return writer.done(complete(kernel, (rows, a.offset, a.by_row)))


def coded_bytes(kernel: ProductKernel) -> Size:
    """Bytes of the packed weights, without their scales."""
    assert kernel.coded is not None
    depth = ceil_div(kernel.inner, kernel.coded.block) * kernel.coded.block
    return ceil_div(kernel.columns, CODED_PANEL) * CODED_PANEL * depth * kernel.coded.bits // 8


def _pays(writer: Writer, group: Group, rows: Size, inner: int, columns: int) -> bool:
    """Whether few rows may come, or the weights as float32 are too many to be kept."""
    if inner < _LEAST_DEPTH or columns < _LEAST_COLUMNS:
        return False
    few = not isinstance(rows, int) or rows <= FEW_ROWS
    weights = group.root.node.inputs[1]
    return few or weights not in writer.graph.constants


def _codes(writer: Writer, group: Group) -> _Codes | None:
    """The weights of a product where the file has them as integers."""
    node = group.root.node
    if node.op_type not in ("MatMul", "Gemm") or normal_domain(node.domain):
        return None
    weights = node.inputs[1]
    source = None if weights is None else weights.producer()
    if source is None or source.op_type != "DequantizeLinear" or normal_domain(source.domain):
        return None
    graph = writer.graph
    values, scales = source.inputs[:2]
    zeros = source.inputs[2] if len(source.inputs) > 2 else None
    if values is None or scales is None:
        return None
    wanted = [value for value in (values, scales, zeros) if value is not None]
    if any(value not in graph.constants for value in wanted) or graph.dtype(scales) != "f32":
        return None
    bits = _BITS.get(graph.facts(values).dtype or ir.DataType.UNDEFINED)
    held, scale = graph.constants[values], graph.constants[scales]
    if bits is None or held.ndim != 2 or not np.isfinite(scale).all():
        return None
    turned = node.op_type == "Gemm" and _number(node, "transB", 0) == 1
    if node.op_type == "Gemm" and _number(node, "transA", 0):
        return None
    block = _block(source, held, scale, 1 if turned else 0)
    if block is None:
        return None
    known = None if zeros is None else graph.constants[zeros]
    zero: int | None = 0
    if known is not None and known.size:
        first = int(known.flat[0])
        zero = first if (known == known.flat[0]).all() else None
    return _Codes(values, scales, zeros, zero, bits, block, turned)


def _block(source: ir.Node, held: Array, scale: Array, axis: int) -> int | None:
    """How many values along `axis` share a scale; None where the kernel cannot have it so."""
    depth = held.shape[axis]
    asked = _number(source, "block_size", 0)
    given = _number(source, "axis", 1) % 2
    if not asked:
        per_column = scale.ndim == 1 and scale.size == held.shape[1 - axis] and given != axis
        whole = -(-depth // _USUAL) * _USUAL
        return whole if scale.size == 1 or per_column else None
    if given != axis or scale.ndim != 2:
        return None
    fits = asked % _SHORT == 0 if asked <= _LONG else asked % _USUAL == 0
    return asked if fits else None


def _shift(writer: Writer, codes: _Codes, target: Target) -> int:
    """What is added to the integers so that the processor multiplies them."""
    dtype = writer.graph.dtype(codes.values)
    if codes.bits == 4:
        return 8 if dtype == "i4" else 0
    if dtype == "i8":
        return 128 if target.unsigned_bytes else 0
    return 0 if target.unsigned_bytes else -128


def _number(node: ir.Node, name: str, default: int) -> int:
    found = node.attributes.get(name)
    return default if found is None or found.is_ref() else found.as_int()
