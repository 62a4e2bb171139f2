"""Words and their counts, with standard operators alone.

    "Don't stop, now!"
      StringNormalizer   don't stop, now!              in the locale C.UTF-8: its default is on few machines
      StringSplit        don't | stop, | now!          at blanks
      StringSplit        don | t | stop | now          at every other sign, and the holes closed
      RegexFullMatch     don | stop | now              what the token pattern takes
      TfIdfVectorizer    counts of words and n-grams

ONNX splits at given texts, not at patterns. A pattern that takes runs of letters, digits and underscores is therefore
written as a split at every sign of ASCII and at the common ones of Unicode. A text with any other sign (an emoji, say)
cannot be cut right: its counts are NaN, which tells it from a right answer.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from sklearn.feature_extraction import text

from sardonyx.conversion.sklearn.graph import ML, TEXT, Tensor, concat
from sardonyx.conversion.sklearn.table import Table, table_of
from sardonyx.conversion.sklearn.writers import refuse, transform, writes

__all__: list[str] = []

# Patterns that take runs of word characters, by the least length of a run.
_RUNS = {r"(?u)\b\w\w+\b": 2, r"\b\w\w+\b": 2, r"(?u)\b\w+\b": 1, r"\b\w+\b": 1, r"(?u)\w+": 1,
         r"\w+": 1, r"\w{2,}": 2, r"(?u)\b\w{2,}\b": 2, r"\w\w+": 2, r"(?u)\b\w\w\w+\b": 3,
         r"\b\w\w\w+\b": 3, r"\w{3,}": 3, r"(?u)\b\w{3,}\b": 3, r"\b\w{3,}\b": 3}  # fmt: skip
_BLANKS = (r"\S+", r"(?u)\S+", r"[^ ]+", r"[^\s]+")


# Signs that are split at: those of ASCII, and the others that texts are full of.
_ASCII = [chr(code) for code in range(0x21, 0x7F) if not re.match(r"\w", chr(code))]
_OTHERS = list("«»¡¿–—‘’“”„…•·°§©®™€£×±′″‐‑")
_SIGNS = _ASCII + _OTHERS


@writes("transform", text.CountVectorizer)
def count_words(model: Any, table: Table) -> Tensor:
    counts = _counted(model, _documents(model, table))
    return counts.minimum(1.0) if model.binary else counts


@writes("transform", text.TfidfVectorizer)
def weigh_words(model: Any, table: Table) -> Table:
    return transform(model._tfidf, table_of(count_words(model, table)))


@writes("transform", text.TfidfTransformer)
def weigh(model: Any, table: Table) -> Tensor:
    x = table.matrix
    if model.sublinear_tf:
        used = x > 0.0
        x = used.where(used.where(x, 1.0).log() + 1.0, x)
    if model.use_idf:
        x = x * np.asarray(model.idf_)
    if model.norm is None:
        return x
    length = x.abs().sum(1, keep=True) if model.norm == "l1" else (x * x).sum(1, keep=True).sqrt()
    return x / length.equals(0.0).where(1.0, length)


def _documents(model: Any, table: Table) -> Tensor:
    """[batch] texts."""
    column = table.parts[0].tensor
    if len(table.parts) > 1 or (len(column.shape) == 2 and column.width != 1):
        raise refuse(model, "it takes one column of texts", "Name the column, not a list of it.")
    if column.dtype != TEXT:
        raise refuse(model, "it takes texts, and the example has numbers")
    if model.input != "content":
        raise refuse(model, f"it reads its texts from a {model.input}", "Use input='content'.")
    if model.preprocessor is not None or model.tokenizer not in (None, str.split):
        raise refuse(
            model,
            "its preprocessor or tokenizer is Python code",
            "Use token_pattern, or run that code before the model.",
        )
    if model.strip_accents:
        raise refuse(model, "ONNX cannot strip accents", "Strip them before the model.")
    if model.analyzer != "word":
        raise refuse(model, f"ONNX has no {model.analyzer} n-grams", "Use analyzer='word'.")
    flat = column.reshape(None) if len(column.shape) == 2 else column
    if not model.lowercase:
        return flat
    return flat.graph.op(
        "StringNormalizer",
        flat,
        dtype=TEXT,
        shape=(None,),
        case_change_action="LOWER",
        is_case_sensitive=1,
        locale="C.UTF-8",
    )


def _counted(model: Any, documents: Tensor) -> Tensor:
    graph = documents.graph
    words = _split(documents)
    unsure = None
    pattern = model.token_pattern
    if model.tokenizer is None and pattern not in _BLANKS:
        if pattern not in _RUNS:
            raise refuse(
                model,
                f"its token_pattern {pattern!r} is none that can be written by splitting",
                r"Use (?u)\b\w\w+\b, \w+ or \S+.",
            )
        for at, sign in enumerate(_SIGNS, start=1):
            words = _split_again(words, sign)
            # Every piece of a word widens the table; the rare signs seldom do.
            if (at % 4 == 0 and at <= len(_ASCII)) or at in (len(_ASCII), len(_SIGNS)):
                words = _close_holes(words, None)
        unsure = ~_full_match(documents, _SURE).expand(1)
        least = _RUNS[pattern]
        if least > 1:
            words = _close_holes(words, _full_match(words, f"(?s).{{{least},}}"))
    stops = model.get_stop_words()
    if stops:
        words = _close_holes(words, ~_one_of(words, sorted(stops)))
    counts = _tf(model, words).cast(graph.number)
    return counts if unsure is None else unsure.where(np.nan, counts)


# What can be cut right: letters, digits and marks of every script, blanks, and the signs above.
_SURE = r"(?s)[\p{L}\p{N}_\s" + "".join(re.escape(sign) for sign in _SIGNS) + "]*"


def _split(documents: Tensor) -> Tensor:
    """[batch] → [batch, words] at blanks, filled up with empty texts."""
    names = documents.graph.node("StringSplit", [documents], outputs=2)
    return Tensor(documents.graph, names[0], TEXT, (None, None))


def _split_again(words: Tensor, sign: str) -> Tensor:
    """[batch, words] → [batch, words · most pieces of one], with holes."""
    graph = words.graph
    names = graph.node("StringSplit", [words], outputs=2, delimiter=sign)
    pieces = Tensor(graph, names[0], TEXT, (None, None, None))
    counts = Tensor(graph, names[1], np.dtype(np.int64), (None, None))
    sizes = graph.op("Shape", words, dtype=np.int64, shape=(2,))
    most = counts.reshape(None).max(0, keep=True)
    wanted = sizes * concat([graph.constant([1], np.int64), most], axis=0)
    return graph.op("Reshape", pieces, wanted, dtype=TEXT, shape=(None, None))


def _close_holes(words: Tensor, keep: Tensor | None) -> Tensor:
    """Words that are not kept, or empty, go; the others stand side by side again, in their order."""
    graph = words.graph
    present = ~words.equals(graph.constant("", TEXT))
    if keep is not None:
        present = present & keep
    bits = present.cast(np.int64)
    axis = graph.constant(1, np.int64)
    place = graph.op("CumSum", bits, axis, dtype=np.int64, shape=(None, None))
    # The longest row decides how many places there are: one at least.
    most = bits.sum(1).max(0).maximum(1).reshape(1)
    # Where each kept word goes; all others go behind the end, which is cut off.
    target = present.where(place - 1, most)
    width = graph.op("Add", most, graph.constant([1], np.int64), dtype=np.int64, shape=(1,))
    count = graph.op("Shape", words, dtype=np.int64, shape=(1,), start=0, end=1)
    sizes = concat([count, width], axis=0)
    blank = graph.op("Expand", graph.constant([[""]], TEXT), sizes, dtype=TEXT, shape=(None, None))
    placed = graph.op(
        "ScatterElements", blank, target, words, dtype=TEXT, shape=(None, None), axis=1
    )
    start, step = graph.constant([0], np.int64), graph.constant([1], np.int64)
    return graph.op("Slice", placed, start, most, step, dtype=TEXT, shape=(None, None))


def _full_match(texts: Tensor, pattern: str) -> Tensor:
    return texts.graph.op(
        "RegexFullMatch", texts, dtype=np.bool_, shape=texts.shape, pattern=pattern
    )


def _one_of(words: Tensor, known: list[str]) -> Tensor:
    found = words.graph.op(
        "LabelEncoder",
        words,
        dtype=np.int64,
        shape=words.shape,
        domain=ML,
        keys_strings=known,
        values_int64s=[1] * len(known),
        default_int64=0,
    )
    return found.equals(1)


def _tf(model: Any, words: Tensor) -> Tensor:
    """Counts of the vocabulary's words and n-grams, each in its column."""
    vocabulary = model.vocabulary_
    by_length: dict[int, list[tuple[list[str], int]]] = {}
    for term, column in vocabulary.items():
        parts = term.split(" ")
        by_length.setdefault(len(parts), []).append((parts, int(column)))
    pool: list[str] = []
    starts: list[int] = []
    places: list[int] = []
    low, high = model.ngram_range
    for length in range(1, high + 1):
        starts.append(len(pool))
        for parts, column in sorted(by_length.get(length, [])):
            pool += parts
            places.append(column)
    if any(length > high or length < low for length in by_length):
        raise refuse(model, "its vocabulary has terms that its n-grams cannot make")
    return words.graph.op(
        "TfIdfVectorizer",
        words,
        dtype=np.float32,
        shape=(None, len(vocabulary)),
        mode="TF",
        min_gram_length=low,
        max_gram_length=high,
        max_skip_count=0,
        ngram_counts=starts,
        ngram_indexes=places,
        pool_strings=pool,
    )
