"""Strings. Patterns are matched in time linear in the text, so none of them can hang a run."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from sardonyx.backends.reference.corrections.regex_syntax import (
    Assertion,
    Characters,
    Jump,
    Program,
    Split,
    parse_pattern,
)
from sardonyx.backends.reference.corrections.table import corrects
from sardonyx.backends.reference.operator import Call
from sardonyx.backends.reference.values import Array
from sardonyx.errors import RunError


def string_array(items: list[str], shape: tuple[int, ...]) -> Array:
    array = np.empty(shape, dtype=object)
    array.reshape(-1)[:] = items
    return array


@corrects("RegexFullMatch", reason="RE2's syntax and its linear time, where re backtracks")
def regex_full_match(call: Call, x: Array) -> Array:
    program = parse_pattern(call.attr("pattern"))
    found = [matches(call, program, text) for text in x.reshape(-1)]
    return np.array(found, dtype=np.bool_).reshape(x.shape)


def matches(call: Call, program: Program, text: str) -> bool:
    """Whether the whole text matches: all threads of the program step at once."""
    threads = _closure(program, {0}, text, 0)
    for place, character in enumerate(text):
        call.check()
        stepped = set()
        for at in threads:
            instruction = program[at] if at < len(program) else None
            if isinstance(instruction, Characters) and instruction.test(character):
                stepped.add(at + 1)
        if not stepped:
            return False
        threads = _closure(program, stepped, text, place + 1)
    return len(program) in threads


def _closure(program: Program, start: set[int], text: str, place: int) -> set[int]:
    """Every instruction that can be reached without taking a character."""
    seen, open_ = set(start), list(start)
    while open_:
        at = open_.pop()
        if at >= len(program):
            continue
        instruction = program[at]
        if isinstance(instruction, Split):
            following = [at + instruction.first, at + instruction.second]
        elif isinstance(instruction, Jump):
            following = [at + instruction.to]
        elif isinstance(instruction, Assertion) and _holds(instruction.kind, text, place):
            following = [at + 1]
        else:
            continue
        for to in following:
            if to not in seen:
                seen.add(to)
                open_.append(to)
    return seen


def _holds(kind: str, text: str, place: int) -> bool:
    if kind in ("^", "A"):
        return place == 0
    if kind in ("$", "z"):
        return place == len(text)
    if kind == "m^":
        return place == 0 or text[place - 1] == "\n"
    if kind == "m$":
        return place == len(text) or text[place] == "\n"
    at_word = _is_word(text, place - 1) != _is_word(text, place)
    return at_word if kind == "b" else not at_word


def _is_word(text: str, place: int) -> bool:
    return (
        0 <= place < len(text)
        and text[place].isascii()
        and (text[place].isalnum() or text[place] == "_")
    )


@corrects("StringNormalizer", reason="drops whole elements, keeps accents, sets no process locale")
def string_normalizer(call: Call, x: Array) -> Array:
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
        raise RunError(f"the input has shape {list(x.shape)}, not [C] or [1, C]", value=x.shape)
    action = call.attr("case_change_action", "NONE")
    changes: dict[str, Callable[[str], str]] = {
        "NONE": str,
        "LOWER": str.lower,
        "UPPER": str.upper,
    }
    if action not in changes:
        raise RunError(f"case_change_action {action!r} is unknown", value=action)
    change = changes[action]
    exact = bool(call.attr("is_case_sensitive", 0))
    stops = {word if exact else word.lower() for word in call.attr("stopwords", ())}
    kept = [
        change(word)
        for word in x.reshape(-1)
        if not stops or (word if exact else word.lower()) not in stops
    ]
    if not kept:
        kept = [""]
    return string_array(kept, (len(kept),) if x.ndim == 1 else (1, len(kept)))


@corrects("StringConcat", reason="numpy would strip trailing NULs")
def string_concat(call: Call, x: Array, y: Array) -> Array:
    return np.add(x, y, dtype=object)


@corrects("StringSplit", reason="maxsplit and the default delimiter for every shape, also empty")
def string_split(call: Call, x: Array) -> tuple[Array, Array]:
    delimiter = call.attr("delimiter") or None
    most = int(call.attr("maxsplit", -1))
    parts = [text.split(delimiter, most) for text in x.reshape(-1)]
    counts = np.array([len(part) for part in parts], dtype=np.int64).reshape(x.shape)
    width = max((len(part) for part in parts), default=0)
    call.claim(len(parts) * width * 8)
    padded = [item for part in parts for item in (*part, *[""] * (width - len(part)))]
    return string_array(padded, (*x.shape, width)), counts


@corrects("TfIdfVectorizer", reason="the output's size is claimed first; weights go by n-gram")
def tf_idf_vectorizer(call: Call, x: Array) -> Array:
    if x.ndim > 2:
        raise RunError(f"the input has shape {list(x.shape)}, not [C] or [N, C]", value=x.shape)
    grams = _grams(call)
    indexes = call.attr("ngram_indexes")
    if not indexes or min(indexes) < 0:
        raise RunError("ngram_indexes must be 0 or more", value=list(indexes or ()))
    columns = max(indexes) + 1
    rows = x.reshape(-1, x.shape[-1]) if x.ndim else x.reshape(1, 1)
    call.claim(len(rows) * columns * 8)
    counts = np.zeros((len(rows), columns), dtype=np.float32)
    least, most = int(call.attr("min_gram_length")), int(call.attr("max_gram_length"))
    skips = int(call.attr("max_skip_count"))
    for number, row in enumerate(rows.tolist()):
        for size in range(max(least, 1), min(most, len(row)) + 1):
            # One item has no neighbours to skip; a gram ends within the row.
            widest = skips + 1 if size > 1 else 1
            for step in range(1, min(widest, len(row)) + 1):
                call.check()
                for start in range(len(row) - (size - 1) * step):
                    gram = grams.get(tuple(row[start : start + (size - 1) * step + 1 : step]))
                    if gram is not None:
                        counts[number, indexes[gram]] += 1
    result = _weighted(call, counts, indexes)
    return result if x.ndim == 2 else result.reshape(columns)


def _grams(call: Call) -> dict[tuple[object, ...], int]:
    """Each n-gram of the pool with its number; `ngram_counts[i]` is where those of i + 1 begin."""
    pool = call.attr("pool_int64s") or call.attr("pool_strings") or ()
    starts = [*call.attr("ngram_counts"), len(pool)]
    grams: dict[tuple[object, ...], int] = {}
    number = 0
    for size, (first, last) in enumerate(pairwise(starts), start=1):
        for at in range(first, last - size + 1, size):
            grams.setdefault(tuple(pool[at : at + size]), number)
            number += 1
    if number > len(call.attr("ngram_indexes")):
        raise RunError(f"{number} n-grams, but {len(call.attr('ngram_indexes'))} ngram_indexes")
    return grams


def _weighted(call: Call, counts: Array, indexes: tuple[int, ...]) -> Array:
    mode = call.attr("mode")
    if mode == "TF":
        return counts
    weight = np.ones(counts.shape[1], dtype=np.float32)
    given = call.attr("weights")
    if given:
        for gram, column in enumerate(indexes):
            weight[column] = given[gram]
    if mode not in ("IDF", "TFIDF"):
        raise RunError(f"mode {mode!r} is unknown", value=mode)
    return (counts > 0).astype(np.float32) * weight if mode == "IDF" else counts * weight
