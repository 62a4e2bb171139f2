"""Products of one value with several constant matrices, as one product with the matrices side by side.

    q = MatMul(x, Wq) + bq
    k = MatMul(x, Wk) + bk              →   q, k, v = Split(MatMul(x, [Wq Wk Wv]) + [bq bk bv])
    v = MatMul(x, Wv) + bv

Every element is the same dot product; a runtime may add it up in another order. It is done where fewer nodes are left.
One product takes the place of one node after the other, so that a run that is stopped in between is a model too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from sardonyx.model.opset import normal_domain
from sardonyx.ops.facts import CONTINUOUS
from sardonyx.passes.rewriting.draft import Draft
from sardonyx.passes.rewriting.engine import Engine

__all__ = ["put_side_by_side"]

Array = npt.NDArray[Any]
_NAME = "side-by-side"
_ABOUT = "Products of one value with several constant matrices are one product, and a Split."
_PLAIN = {"alpha": 1.0, "beta": 1.0, "transA": 0}


@dataclass(frozen=True)
class Product:
    """One product: the node whose output it is in the end, its matrix, and what is added to each column."""

    last: ir.Node
    product: ir.Node
    weight: ir.TensorProtocol
    bias: Array | None

    @property
    def columns(self) -> int:
        return int(self.weight.shape.numpy()[0 if self.is_turned else 1])

    @property
    def is_turned(self) -> bool:
        found = self.product.attributes.get("transB")
        return found is not None and bool(found.as_int())

    @property
    def nodes(self) -> int:
        return 1 if self.last is self.product else 2


def put_side_by_side(engine: Engine) -> None:
    """Merge the products of each value, where that leaves fewer nodes."""
    for graph in engine.work.graphs():
        readers: dict[tuple[object, ...], list[Product]] = {}
        places = {node: number for number, node in enumerate(graph)}
        for node in graph:
            found = _product(node, Draft(engine.work))
            if found is None:
                continue
            rows = found.weight.shape.numpy()[1 if found.is_turned else 0]
            key = (id(node.inputs[0]), node.op_type, found.is_turned, found.weight.dtype, rows)
            readers.setdefault(key, []).append(found)
        for products in readers.values():
            # The one product stands before the first of the nodes whose places it takes: all that read them come later.
            _merge(sorted(products, key=lambda one: places[one.last]), engine)


def _product(node: ir.Node, draft: Draft) -> Product | None:
    """A MatMul or Gemm with a constant matrix that nothing else reads, and the Add of a bias after it."""
    if node.op_type not in ("MatMul", "Gemm") or normal_domain(node.domain):
        return None
    matrix = node.inputs[1]
    weight = None if matrix is None else draft.work.tensor_of(matrix)
    if matrix is None or weight is None or len(matrix.uses()) > 1 or weight.dtype not in CONTINUOUS:
        return None
    if len(weight.shape) != 2 or 0 in weight.shape.numpy() or (draft.rank(node.inputs[0]) or 0) < 2:
        return None
    columns = draft.shape(node.outputs[0])
    if columns is None or not isinstance(columns[-1], int):
        return None
    if node.op_type == "Gemm":
        return _gemm(node, weight, columns[-1], draft)
    if draft.is_only_use(node.outputs[0]):
        last = next(iter(node.outputs[0].uses())).node
        bias = _bias(last, node.outputs[0], columns[-1], draft)
        if bias is not None and last.graph is node.graph:
            return Product(last, node, weight, bias)
    return Product(node, node, weight, None)


def _gemm(node: ir.Node, weight: ir.TensorProtocol, columns: int, draft: Draft) -> Product | None:
    if any(draft.attribute(node, name, plain) != plain for name, plain in _PLAIN.items()):
        return None
    if len(node.inputs) < 3 or node.inputs[2] is None:
        return Product(node, node, weight, None)
    bias = draft.constant(node.inputs[2])
    if bias is None or any(size != 1 for size in bias.shape[:-1]):
        return None
    return Product(node, node, weight, np.broadcast_to(bias.reshape(-1), (columns,)))


def _bias(node: ir.Node, product: ir.Value, columns: int, draft: Draft) -> Array | None:
    """What a node adds to each column of a product."""
    if node.op_type != "Add" or normal_domain(node.domain) or draft.opset < 7:
        return None
    other = node.inputs[1 if node.inputs[0] is product else 0]
    constant, shape = draft.constant(other), draft.shape(product)
    if constant is None or constant.size == 0 or any(size != 1 for size in constant.shape[:-1]):
        return None
    if draft.shape(node.outputs[0]) != shape or len(constant.shape) > len(shape or ()):
        return None
    return np.broadcast_to(constant.reshape(-1), (columns,))


def _merge(products: Sequence[Product], engine: Engine) -> None:
    biased = any(one.bias is not None for one in products)
    separate = biased and products[0].product.op_type == "MatMul"
    if sum(one.nodes for one in products) <= 2 + int(separate):
        return
    draft = Draft(engine.work)
    first = products[0].product
    dtype, axis = products[0].weight.dtype, 0 if products[0].is_turned else 1
    weights = draft.initializer(_joined([one.weight for one in products], axis))
    # A product without a bias stays as it is, to the sign of a zero: -0 is added to it.
    none = [-np.zeros(one.columns) if one.bias is None else one.bias for one in products]
    bias = draft.tensor(np.concatenate(none).astype(dtype.numpy()), dtype) if biased else None
    if first.op_type == "Gemm":
        attributes = {"transB": int(products[0].is_turned)}
        whole = draft.calls(
            "Gemm", [first.inputs[0], weights, *([bias] if bias else [])], 1, attributes
        )[0]
    else:
        whole = draft.call("MatMul", first.inputs[0], weights)
        whole = whole if bias is None else draft.call("Add", whole, bias)
    parts = _split(whole, [one.columns for one in products], draft)
    for index, one in enumerate(products):
        if not engine.replace(_NAME, _ABOUT, one.last, [parts[index]], None if index else draft):
            return  # enough was done, or nothing reads the first one


def _split(whole: ir.Value, columns: list[int], draft: Draft) -> Sequence[ir.Value]:
    given: dict[str, Any] = {"axis": (draft.rank(whole) or 0) - 1}
    if draft.opset < 13:
        return draft.calls("Split", [whole], len(columns), {**given, "split": columns})
    return draft.calls("Split", [whole, draft.ints(columns)], len(columns), given)


def _joined(weights: Sequence[ir.TensorProtocol], axis: int) -> ir.TensorProtocol:
    """Matrices side by side; they are put together when somebody reads them."""
    shapes = [tuple(one.shape.numpy()) for one in weights]
    whole = list(shapes[0])
    whole[axis] = sum(shape[axis] for shape in shapes)
    dtype = weights[0].dtype

    def join() -> ir.TensorProtocol:
        arrays = [one.numpy().reshape(shape) for one, shape in zip(weights, shapes, strict=True)]
        return ir.Tensor(np.concatenate(arrays, axis=axis), dtype=dtype)

    return ir.LazyTensor(join, dtype=dtype, shape=ir.Shape(whole))
