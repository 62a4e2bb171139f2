"""Loops whose number of turns is known."""

from __future__ import annotations

import pytest
from tests.unit.passes.rules.table import operators, optimized, refusals, same

HEAD = '<ir_version: 8, opset_import: ["" : {opset}]>\n'
NUMBERS = "int64 m0 = {0}, int64 m1 = {1}, int64 m3 = {3}, int64 m9 = {9}, int64 m900 = {900}, bool yes = {1}, bool no = {0}"
NUMBERS += ", float[2] two = {2.0, 3.0}"
STATE = "(int64 i, bool go, float[2] s) => (bool again, float[2] t)"
STACK = "(int64 i, bool go, float[2] s) => (bool again, float[2] t, float[2] row)"
FOREVER = "again = Identity (go)"


def written(
    given: str, body: str, after: str = "y = Relu (l)", results: str = "l", **more: str
) -> str:
    declared = "float[2] x, int64 m, bool c"
    outputs = more.get("outputs", "float[2] y")
    opset = more.get("opset", "17")
    call = f"{results} = Loop <body = b {body}> ({given})"
    return (
        HEAD.format(opset=opset) + f"g ({declared}) => ({outputs}) <{NUMBERS}> {{ {call} {after} }}"
    )


TIMES_X = f"{STATE} {{ {FOREVER} t = Mul (s, x) }}"
TABLE = {
    "no turn": ("m0, yes, x", TIMES_X, ["Relu"]),
    "no turn, whatever the condition": ("m0, c, x", TIMES_X, ["Relu"]),
    "the condition is false": ("m, no, x", TIMES_X, ["Relu"]),
    "one turn": ("m1, yes, x", TIMES_X, ["Mul", "Relu"]),
    "one turn without a condition": ("m1, , x", TIMES_X, ["Mul", "Relu"]),
    "stops after the first": (
        "m3, yes, x",
        f"{STATE} {{ again = Identity (no) t = Mul (s, x) }}",
        ["Mul", "Relu"],
    ),
    "three turns of constants": (
        "m3, , two",
        f"{STATE} {{ {FOREVER} f = Cast <to = 1> (i) t = Mul (s, f) }}",
        ["Identity"],
    ),
    "one node is left of each": (
        "m3, yes, x",
        f"{STATE} {{ {FOREVER} f = Cast <to = 1> (i) a = Add (f, two) b2 = Mul (a, a) t = Mul (s, b2) }}",
        ["Mul", "Relu"],
    ),
    "more nodes than before": ("m9, yes, x", TIMES_X, ["Loop", "Relu"]),
    "not known how many": ("m, yes, x", TIMES_X, ["Loop", "Relu"]),
    "not known whether": ("m1, c, x", TIMES_X, ["Loop", "Relu"]),
    "too many": (
        "m900, yes, x",
        f"{STATE} {{ {FOREVER} f = Cast <to = 1> (i) t = Add (s, f) }}",
        ["Loop", "Relu"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("opset", ["11", "17"])
def test_loops(name: str, opset: str) -> None:
    given, body, expected = TABLE[name]
    source = written(given, body, opset=opset)
    result = optimized(source)
    assert operators(result) == expected
    same(source, result, steps=8)


def test_reasons() -> None:
    def reason(name: str) -> str:
        given, body, _ = TABLE[name]
        return refusals(optimized(written(given, body)), "known-loop")[0]

    assert reason("more nodes than before") == "9 nodes would be left of its turns, instead of 3"
    assert reason("too many") == "900 turns of 3 nodes are more than 1,024 nodes"
    assert "not known before it runs" in reason("not known how many")


@pytest.mark.parametrize(
    ("given", "expected"),
    [("m0, yes, x", ["Identity", "Identity"]), ("m1, yes, x", ["Mul", "Unsqueeze"])],
)
def test_what_every_turn_gives_is_stacked(given: str, expected: list[str]) -> None:
    body = f"{STACK} {{ {FOREVER} t = Mul (s, x) row = Identity (t) }}"
    outputs = "float[2] l, float[N, 2] rows"
    source = written(given, body, "", "l, rows", outputs=outputs)
    result = optimized(source)
    assert operators(result) == expected
    same(source, result)


def test_branches_inside_are_taken_turn_by_turn() -> None:
    """A condition on the number of the turn is known once the turns are written out."""
    body = f"""{STATE} {{ {FOREVER} z = Sub (i, i) first = Equal (i, z)
        t = If (first) <then_branch = p () => (float[2] u) {{ u = Mul (s, x) }},
                        else_branch = q () => (float[2] w) {{ w = Add (s, x) }}> }}"""
    source = written("m1, yes, x", body)
    result = optimized(source)
    assert operators(result) == ["Mul", "Relu"]
    same(source, result)


def test_loops_inside_of_loops() -> None:
    inner = "(int64 j, bool g2, float[2] r) => (bool a2, float[2] q) { a2 = Identity (g2) q = Mul (r, s) }"
    body = f"{STATE} {{ {FOREVER} t = Loop <body = k {inner}> (m1, yes, x) }}"
    source = written("m1, yes, x", body)
    result = optimized(source)
    assert operators(result) == ["Mul", "Relu"]
    same(source, result)
