"""Functions that go with programs over torch, where a framework has its own way."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  (everybody's name for it)

from sardonyx.conversion.back.support.control_flow import seen_by_windows

__all__ = [
    "average_pool",
    "compress",
    "conv_transpose",
    "counted_loop",
    "device_of",
    "flip",
    "fourier",
    "gru",
    "loop",
    "lstm",
    "max_pool",
    "non_max_suppression",
    "overlaps",
    "pick",
    "places",
    "product_of",
    "rnn",
    "scan",
    "scatter_elements",
    "scatter_nd",
    "sigmoid",
    "take",
    "top_k",
    "unique",
    "weights_like",
    "whole",
]


def device_of(x: Any) -> Any:
    return None if x is None else x.device


def take(x: Any, indices: Any, axis: int) -> Any:
    """Rows of an axis."""
    return x[(slice(None),) * axis + (indices.to(torch.int64),)]


def pick(x: Any, places: Any) -> Any:
    """Of every row the elements at its own places."""
    return torch.gather(x, 1, places.to(torch.int64))


def flip(x: Any, axis: int) -> Any:
    return torch.flip(x, (axis,))


def sigmoid(x: Any) -> Any:
    return torch.sigmoid(x)


def places(count: int, like: Any) -> Any:
    """0, 1, 2, …"""
    return torch.arange(count, dtype=torch.float32, device=like.device)


def weights_like(weights: Any, x: Any) -> Any:
    return weights.to(x.dtype)


def whole(x: Any) -> Any:
    return x.to(torch.int64)


def product_of(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, axis, keep)
    return x


def top_k(x: Any, count: int, axis: int, largest: bool) -> Any:
    """The largest or smallest elements with their places; of equal ones the first."""
    if (
        torch.compiler.is_exporting()
    ):  # exporters have no stable sort; what they write keeps the order
        return torch.topk(x, count, axis, largest)
    values, indices = torch.sort(x, dim=axis, descending=largest, stable=True)
    return values.narrow(axis, 0, count), indices.narrow(axis, 0, count)


def max_pool(x: Any, kernel: Any, strides: Any, dilations: Any) -> Any:
    """Over windows that fit."""
    pool = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}[len(kernel)]
    return pool(x, kernel, stride=strides, dilation=dilations)


def average_pool(x: Any, kernel: Any, strides: Any, dilations: Any) -> Any:
    """Over windows that fit."""
    if set(dilations) == {1}:
        pool = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}[len(kernel)]
        return pool(x, kernel, stride=strides)
    seen = list(seen_by_windows(x, kernel, strides, dilations))
    return sum(seen) / len(seen)


def compress(x: Any, condition: Any, axis: Any) -> Any:
    """Rows where the condition holds; elements where there is no axis."""
    kept = torch.nonzero(condition)[:, 0]
    return x.reshape(-1)[kept] if axis is None else take(x, kept, axis)


def unique(x: Any, axis: Any, ascending: bool) -> Any:
    """Rows or elements without repetition, where they are first, where each one went, and how many there were."""
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True, dim=axis)
    inverse = inverse.reshape(-1)
    each = torch.arange(len(inverse), device=x.device)
    first = torch.full_like(counts, len(inverse)).scatter_reduce(0, inverse, each, "amin")
    if not ascending:
        order = torch.argsort(first)
        values, first, counts = take(values, order, axis or 0), first[order], counts[order]
        inverse = torch.argsort(order)[inverse]
    return values, first, inverse, counts


def overlaps(box: Any, others: Any) -> Any:
    """What a box and others have in common, by what they cover together."""
    low, high = torch.maximum(box[:2], others[:, :2]), torch.minimum(box[2:], others[:, 2:])
    common = torch.clamp(high - low, min=0).prod(1)
    area, areas = (box[2:] - box[:2]).prod(), (others[:, 2:] - others[:, :2]).prod(1)
    total = area + areas - common
    return torch.where(total > 0, common / total, 0)


def non_max_suppression(
    boxes: Any, scores: Any, most: int, overlap: float, least: Any, centred: bool
) -> Any:
    """[batch, class, box] of the best boxes, without those that lie over better ones."""
    if centred:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        corners = torch.cat([middle - half, middle + half], -1)
    else:
        one, other = boxes[..., :2], boxes[..., 2:]
        corners = torch.cat([torch.minimum(one, other), torch.maximum(one, other)], -1)
    found = []
    for batch in range(scores.shape[0]):
        for kind in range(scores.shape[1]):
            score = scores[batch, kind]
            left = torch.argsort(score, descending=True, stable=True)
            left = left if least is None else left[score[left] > least]
            count = 0
            while len(left) and count < most:
                best, left = left[0], left[1:]
                found.append([batch, kind, int(best)])
                left = left[overlaps(corners[batch, best], corners[batch, left]) <= overlap]
                count += 1
    return torch.tensor(found, dtype=torch.int64, device=boxes.device).reshape(-1, 3)


def fourier(x: Any, length: Any, axis: int, inverse: bool, half: bool) -> Any:
    """Of numbers whose last axis is their real and imaginary part, or their real part alone."""
    z = torch.view_as_complex(x.contiguous()) if x.shape[-1] == 2 else x[..., 0]
    if half and inverse:
        return torch.fft.irfft(z, length, axis)[..., None]
    if half:
        return torch.view_as_real(torch.fft.rfft(x[..., 0], length, axis))
    transform = torch.fft.ifft if inverse else torch.fft.fft
    return torch.view_as_real(transform(z, length, axis))


def conv_transpose(
    x: Any, w: Any, b: Any, stride: Any, pads: Any, extra: Any, dilation: Any, groups: int
) -> Any:
    """Whole, then cut: so that what is cut off may differ from side to side."""
    spread = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}[len(stride)]
    if all(before == after for before, after in pads) and all(
        more < max(s, d) for more, s, d in zip(extra, stride, dilation, strict=True)
    ):
        padding = tuple(before for before, _ in pads)
        return spread(x, w, b, stride, padding, extra, groups, dilation)
    y = spread(x, w, None, stride, 0, 0, groups, dilation)
    around = [
        side
        for (before, after), more in zip(pads, extra, strict=True)
        for side in (more - after, -before)
    ]
    y = F.pad(y, tuple(reversed(around)))
    return y if b is None else y + b.reshape((-1,) + (1,) * len(stride))


def scatter_elements(x: Any, indices: Any, updates: Any, axis: int, how: str) -> Any:
    """A copy of `x` with elements along an axis replaced, or combined with others."""
    indices = indices.to(torch.int64)
    if how == "none":
        return torch.scatter(x, axis, indices, updates)
    reduce = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}[how]
    return torch.scatter_reduce(x, axis, indices, updates, reduce)


def scatter_nd(x: Any, indices: Any, updates: Any, how: str) -> Any:
    """A copy of `x` with slices replaced, or combined with others."""
    count = indices.shape[-1]
    if how in ("none", "add"):
        where = tuple(indices[..., axis].to(torch.int64) for axis in range(count))
        return x.index_put(where, updates, accumulate=how == "add")
    flat: Any = 0
    for axis in range(count):
        place = indices[..., axis].to(torch.int64)
        flat = flat * x.shape[axis] + torch.where(place < 0, place + x.shape[axis], place)
    rest = tuple(x.shape[count:])
    rows = x.reshape(-1, *rest)
    flat = flat.reshape(-1, *(1 for _ in rest)).expand(-1, *rest)
    return scatter_elements(rows, flat, updates.reshape(-1, *rest), 0, how).reshape(x.shape)


def scan(turn: Any, state: Any, sequence: Any) -> Any:
    """A state through a sequence: the last one, and all that came out on the way."""
    several = isinstance(sequence, tuple)
    outputs = []
    for index in range(sequence[0].shape[0] if several else sequence.shape[0]):
        part = tuple(one[index] for one in sequence) if several else sequence[index]
        state, out = turn(state, part)
        outputs.append(out)
    if outputs and isinstance(outputs[0], tuple):
        return state, tuple(torch.stack(column) for column in zip(*outputs, strict=True))
    return state, torch.stack(outputs)


def loop(body: Any, trips: Any, condition: Any, states: Any) -> Any:
    """As often as `trips` and the condition allow; what each turn gives besides states is stacked."""
    count, outputs, index = len(states), [], 0
    while (trips is None or index < trips) and condition:
        found = body(torch.tensor(index), torch.as_tensor(condition), *states)
        found = found if isinstance(found, tuple) else (found,)
        condition, states = found[0], found[1 : 1 + count]
        outputs.append(found[1 + count :])
        index += 1
    found = (*states, *(torch.stack(column) for column in zip(*outputs, strict=True)))
    return found[0] if len(found) == 1 else found


def counted_loop(body: Any, trips: Any, condition: Any, states: Any) -> Any:
    return loop(body, trips, condition, states)


def _torch_weights(w: Any, r: Any, b: Any, gates: Any) -> Any:
    """ONNX's order of gates in torch's."""
    hidden = r.shape[-1]
    half = b.shape[-1] // 2

    def ordered(one: Any) -> Any:
        return torch.cat([one[gate * hidden : (gate + 1) * hidden] for gate in gates])

    return [
        ordered(one) for d in range(w.shape[0]) for one in (w[d], r[d], b[d, :half], b[d, half:])
    ]


def _as_onnx(y: Any, directions: int) -> Any:
    return y.reshape(y.shape[0], y.shape[1], directions, -1).permute(0, 2, 1, 3)


def _recurrent(layer: Any, x: Any, state: Any, weights: Any, backward: Any) -> Any:
    if backward == (True,):
        y, *states = layer(x.flip(0), state, weights, True, 1, 0.0, False, False, False)
        return (_as_onnx(y.flip(0), 1), *states)
    both = len(backward) == 2
    y, *states = layer(x, state, weights, True, 1, 0.0, False, both, False)
    return (_as_onnx(y, len(backward)), *states)


def lstm(x: Any, w: Any, r: Any, b: Any, h: Any, c: Any, backward: Any) -> Any:
    return _recurrent(torch.lstm, x, (h, c), _torch_weights(w, r, b, (0, 2, 3, 1)), backward)


def gru(x: Any, w: Any, r: Any, b: Any, h: Any, backward: Any) -> Any:
    return _recurrent(torch.gru, x, h, _torch_weights(w, r, b, (1, 0, 2)), backward)


def rnn(x: Any, w: Any, r: Any, b: Any, h: Any, relu: bool, backward: Any) -> Any:
    layer = torch.rnn_relu if relu else torch.rnn_tanh
    return _recurrent(layer, x, h, _torch_weights(w, r, b, (0,)), backward)
