"""Damage, made from a seed: to the bytes of a model, or to the fields of its message."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import onnx
from google.protobuf.message import DecodeError, Message

_NUMBERS = (
    0,
    1,
    -1,
    2,
    7,
    8,
    16,
    64,
    255,
    999,
    1 << 31,
    -(1 << 31),
    (1 << 63) - 1,
    -(1 << 63),
    1 << 40,
)
_TEXTS = (
    "",
    "x",
    "y",
    "w",
    "a\0b",
    "ai.onnx",
    "own",
    "Identity",
    "If",
    "../x",
    "é",
    "n" * 70_000,
    "-1",
)
_FLOATS = (0.0, 1.0, -1.0, float("nan"), float("inf"), 3e38)


def damage_bytes(data: bytes, seed: int) -> bytes:
    """Flip, drop, repeat, overwrite and cut, a few times over."""
    random = Random(seed)
    out = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        at = random.randrange(len(out) + 1)
        size = random.choice((1, 1, 2, 4, 16, 64))
        kind = random.randrange(7)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            del out[at : at + size]
        elif kind == 2:
            out[at:at] = out[at : at + size]
        elif kind == 3:
            out[at : at + size] = random.randbytes(size)
        elif kind == 4:
            del out[at:]
        elif kind == 5:
            other = random.randrange(len(out) + 1)
            out[at : at + size] = out[other : other + size]
        elif at < len(out):
            out[at] = random.choice((0, 1, 0x7F, 0x80, 0xFF, 0x0A, 0x12, 0x3A))
    return bytes(out)


def damage_fields(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """Clear, repeat, swap, renumber and rename fields anywhere in the message."""
    random = Random(seed)
    damaged = onnx.ModelProto()
    damaged.CopyFrom(model)
    for _ in range(random.choice((1, 1, 2, 3, 6))):
        messages = list(_messages(damaged))
        holder = random.choice(messages)
        field = random.choice(holder.DESCRIPTOR.fields)
        kind = random.randrange(4)
        if kind == 0:
            holder.ClearField(field.name)
        elif field.type == field.TYPE_MESSAGE:
            _damage_message(holder, field, random.choice(messages), random)
        else:
            _damage_scalar(holder, field, random)
    return damaged


def _messages(root: Message) -> Iterator[Message]:
    todo = [root]
    while todo:
        message = todo.pop()
        yield message
        for field, content in message.ListFields():
            if field.type == field.TYPE_MESSAGE:
                todo.extend(content if field.is_repeated else [content])


def _damage_message(holder: Any, field: Any, other: Message, random: Random) -> None:
    """Put another message there: of the same type, or read as if it were."""
    target = getattr(holder, field.name)
    if field.is_repeated:
        if len(target) and random.random() < 0.4:
            del target[random.randrange(len(target))]
            return
        if len(target) and random.random() < 0.5:
            copy = type(target[0])()
            copy.CopyFrom(random.choice(target))
            target.insert(random.randrange(len(target) + 1), copy)
            return
        target = target.add()
    try:
        target.ParseFromString(other.SerializeToString()[:5000])
    except DecodeError:
        target.SetInParent()


def _damage_scalar(holder: Any, field: Any, random: Random) -> None:
    value: object
    if field.type == field.TYPE_STRING:
        value = random.choice(_TEXTS)
    elif field.type == field.TYPE_BYTES:
        value = random.choice((b"", b"\xff", b"\0" * 16, random.randbytes(7), b"abcd"))
    elif field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        value = random.choice(_FLOATS)
    elif field.type == field.TYPE_ENUM:
        value = random.choice(field.enum_type.values).number
    else:
        value = random.choice(_NUMBERS)
    try:
        if field.is_repeated:
            target = getattr(holder, field.name)
            if len(target) and random.random() < 0.5:
                target[random.randrange(len(target))] = value
            else:
                target.append(value)
        else:
            setattr(holder, field.name, value)
    except ValueError:  # a number that the field cannot hold
        holder.ClearField(field.name)
