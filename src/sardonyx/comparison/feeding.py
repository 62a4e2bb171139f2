"""Which values an integer input may take: followed forward to the table that it looks up.

input_ids ─ Cast ─ Unsqueeze ─► Gather(table[30522, 768], ·)      0 … 30521
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

__all__ = ["integer_bound"]

# Operators that pass elements on unchanged, so that what holds of the result holds of the input.
_PASSING = frozenset(
    {
        "Cast",
        "Concat",
        "Expand",
        "Flatten",
        "Gather",
        "Identity",
        "Reshape",
        "Slice",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    }
)
_MOST_STEPS = 200


def integer_bound(value: ir.Value) -> int | None:
    """One more than the largest index that every lookup of this value accepts; None when none is known."""
    bounds: list[int] = []
    todo, seen = [value], {value}
    while todo and len(seen) < _MOST_STEPS:
        for user, index in todo.pop(0).uses():
            bounds.extend(_lookup_sizes(user, index))
            if user.op_type in _PASSING and (index == 0 or user.op_type == "Concat"):
                for output in user.outputs:
                    if output not in seen:
                        seen.add(output)
                        todo.append(output)
    return min(bounds, default=None)


def _lookup_sizes(node: ir.Node, index: int) -> Iterator[int]:
    """The size of the dimension that input `index` of `node` indexes into."""
    if node.op_type in ("Gather", "GatherElements") and index == 1:
        table = node.inputs[0]
        attribute = node.attributes.get("axis")
        axis = attribute.as_int() if attribute is not None and not attribute.is_ref() else 0
        if (
            table is not None
            and table.shape is not None
            and -len(table.shape) <= axis < len(table.shape)
        ):
            size = table.shape[axis]
            if isinstance(size, int) and size > 0:
                yield size
    if node.op_type == "OneHot" and index == 0 and len(node.inputs) > 1:
        depth = ir.convenience.get_const_tensor(node.inputs[1])  # type: ignore[arg-type]
        if depth is not None and depth.size == 1 and int(depth.numpy().reshape(-1)[0]) > 0:
            yield int(depth.numpy().reshape(-1)[0])
