"""Operators on strings. Bytes of strings are in the data, so costs are not known."""

from __future__ import annotations

from sardonyx.ops.broadcast import broadcast_shapes
from sardonyx.ops.call import Call
from sardonyx.ops.entry import Operator
from sardonyx.ops.facts import Facts
from sardonyx.ops.plain import data_decides, same_shape

__all__ = ["OPERATORS"]


def concat(call: Call) -> list[Facts]:
    return [call.out(broadcast_shapes(call, [call.input(0).shape, call.input(1).shape]))]


def split(call: Call) -> list[Facts]:
    """The longest row decides the new last dimension; the second output counts each row."""
    shape = call.input(0).shape
    if shape is None:
        return [call.out(None), call.out(None, 1)]
    # No rows, no substrings: the new dimension of an empty tensor is 0.
    longest = 0 if 0 in shape else call.fresh(len(shape))
    return [call.out((*shape, longest)), call.out(shape, 1)]


def normalize(call: Call) -> list[Facts]:
    """Stop words go, so data decides how many remain; at least one always does."""
    shape = call.need_rank(0, 1, 2)
    if shape is None:
        return [call.out(None)]
    if len(shape) == 2:
        call.agree(shape[0], 1, "the first dimension of a matrix of strings and 1")
    if not call.attr("stopwords"):
        return [call.same()]
    rest = call.fresh(len(shape) - 1)
    return [call.out((rest,) if len(shape) == 1 else (1, rest))]


def tf_idf(call: Call) -> list[Facts]:
    shape, indexes = call.need_rank(0, 1, 2), call.ints_attr("ngram_indexes")
    if not indexes:
        call.fail("attribute ngram_indexes is missing or empty")
    width = max(indexes) + 1
    if shape is None:
        return [call.out(None)]
    return [call.out((*shape[:-1], width))]


OPERATORS = (
    Operator("StringConcat", "pointwise", concat, cost=data_decides),
    Operator("StringNormalizer", "opaque", normalize, cost=data_decides),
    Operator("StringSplit", "opaque", split, cost=data_decides),
    Operator("RegexFullMatch", "pointwise", same_shape, cost=data_decides),
    Operator("TfIdfVectorizer", "opaque", tf_idf, cost=data_decides),
)
