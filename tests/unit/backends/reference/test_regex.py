"""The linear-time matcher agrees with `re` wherever RE2 and `re` mean the same."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.backends.reference.models import run_node

from sardonyx.errors import RunError

ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", "(a|bc)", "(?:b|)", "x"])
REPEATS = st.sampled_from(["", "*", "+", "?", "{2}", "{1,2}", "{1,}", "*?", "+?"])
PATTERNS = st.lists(st.tuples(ATOMS, REPEATS).map("".join), max_size=5).map("".join)


def matched(pattern: str, *texts: str) -> list[bool]:
    result: list[bool] = run_node(
        "RegexFullMatch", 20, np.array(texts, object), pattern=pattern
    ).tolist()
    return result


@settings(max_examples=150, deadline=None)
@given(PATTERNS, PATTERNS, st.lists(st.text("abcx1\n", max_size=6), min_size=1, max_size=6))
def test_agrees_with_re(left: str, right: str, texts: list[str]) -> None:
    pattern = f"{left}|({right})*"
    assert matched(pattern, *texts) == [re.fullmatch(pattern, text) is not None for text in texts]


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("(?i)straSSe", "STRASSE", True),
        ("(?i:a)b", "Ab", True),
        ("(?i:a)b", "AB", False),
        ("(?s)a.b", "a\nb", True),
        ("a.b", "a\nb", False),
        ("(?m)a$\n^b", "a\nb", True),
        ("a$", "a\n", False),
        (r"\bfoo\b", "foo", True),
        (r"a\Bb", "ab", True),
        (r"\Aa\z", "a", True),
        ("[[:alpha:]]+[[:^digit:]]", "ab!", True),
        (r"\pL+\p{Nd}", "éß7", True),
        (r"\PL", "é", False),
        (r"\Qa.b\E", "a.b", True),
        (r"\Qa.b\E", "axb", False),
        (r"\x41\x{1F600}\n", "A\U0001f600\n", True),
        ("[]a]+", "]a", True),
        (r"[\]\-a]+", "]-a", True),
        ("[a-]", "-", True),
        ("a{,2}", "a{,2}", True),  # RE2 reads a brace without a number as itself
        ("(?P<year>[0-9]{4})-(?P<month>[0-9]{2})", "2026-11", True),
        ("", "", True),
        ("|a", "", True),
        (".", "é", True),
    ],
)
def test_syntax_of_re2(pattern: str, text: str, expected: bool) -> None:
    assert matched(pattern, text) == [expected]


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "[a",
        "*a",
        "[b-a]",
        r"\1",
        "(?<=a)b",
        "(?!a)",
        "a{1001}",
        r"\pÄ",
        "(?x)a",
        "[[:nope:]]",
        "\\",
    ],
)
def test_what_re2_refuses_is_refused(pattern: str) -> None:
    with pytest.raises(RunError):
        matched(pattern, "a")
