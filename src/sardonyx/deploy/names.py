"""What a model's own names become in C: identifiers that are none of C's words, and texts that end no string early."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["c_comment", "c_identifier", "c_text", "distinct_identifiers"]

_PLAIN = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.,:;/()[]{}<>=+-*%#&|!~^@$'"
)
# Of C and of C++; a header is read by both.
_WORDS = frozenset(
    [
        "alignas",
        "alignof",
        "and",
        "asm",
        "auto",
        "bitand",
        "bitor",
        "bool",
        "break",
        "case",
        "catch",
        "char",
        "class",
        "compl",
        "concept",
        "const",
        "constexpr",
        "continue",
        "decltype",
        "default",
        "delete",
        "do",
        "double",
        "else",
        "enum",
        "explicit",
        "export",
        "extern",
        "false",
        "float",
        "for",
        "friend",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "main",
        "mutable",
        "namespace",
        "new",
        "noexcept",
        "not",
        "nullptr",
        "operator",
        "or",
        "private",
        "protected",
        "public",
        "register",
        "requires",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "template",
        "this",
        "throw",
        "true",
        "try",
        "typedef",
        "typeid",
        "typename",
        "typeof",
        "union",
        "unsigned",
        "using",
        "virtual",
        "void",
        "volatile",
        "while",
        "xor",
        "sardonyx",
        "sx",
    ]
)
_LONGEST = 40


def c_identifier(name: str, fallback: str = "model") -> str:
    """The nearest identifier: `my-net.v2` is `my_net_v2`, `3d` is `model_3d`."""
    found = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9]", "_", name)).strip("_")[:_LONGEST].rstrip("_")
    if not found or found[0].isdigit() or found.lower() in _WORDS:
        found = f"{fallback}_{found}".rstrip("_")
    return found


def distinct_identifiers(names: Iterable[str], fallback: str) -> list[str]:
    """Identifiers in upper case, each once: a name that is taken gets a number."""
    found: list[str] = []
    for name in names:
        one = c_identifier(name, fallback).upper()
        number = 2
        candidate = one
        while candidate in found:
            candidate = f"{one}_{number}"
            number += 1
        found.append(candidate)
    return found


def c_text(text: str) -> str:
    """A string literal. Bytes that are not plain are written in octal, three digits each."""
    return '"' + "".join(_escaped(byte) for byte in text.encode("utf-8", "replace")) + '"'


def c_comment(text: str) -> str:
    """Text that stays inside the comment it is written into."""
    plain = "".join(c if c in _PLAIN else "?" for c in text)
    return plain.replace("*/", "* /").replace("/*", "/ *")


def _escaped(byte: int) -> str:
    return chr(byte) if chr(byte) in _PLAIN else f"\\{byte:03o}"
