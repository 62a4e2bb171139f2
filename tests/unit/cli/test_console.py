from __future__ import annotations

import io

import pytest
from rich.console import Console

from sardonyx.cli.console import parse_bytes, parse_dims, plain, shorten, size_label
from sardonyx.cli.node_lines import print_nodes
from sardonyx.errors import InputError
from sardonyx.inspection.bill import NodeRow
from sardonyx.sizes import ceil_div, parse, symbol


def test_plain_text_has_no_control_codes() -> None:
    assert plain("a\nb\x1b[31mc\x00\u202e") == "a\\nb\\x1b[31mc\\x00\\u202e"
    assert plain("größe → 価格 [x]") == "größe → 価格 [x]"


def test_long_names_keep_their_ends() -> None:
    assert shorten("short", 10) == "short"
    assert shorten("/model/layers.0/attention/MatMul", 15) == "/model/…/MatMul"
    assert len(shorten("x" * 500, 40)) == 40


def test_sizes_over_symbols() -> None:
    batch, seq = symbol("batch"), symbol("seq")
    assert size_label(4_100_000_000, "MAC") == "4.10 GMAC"
    assert size_label(85_054_464 * batch * seq + 18_432 * batch * seq * seq, "MAC") == (
        "18.4k·batch·seq² + 85.1M·batch·seq MAC"
    )
    assert size_label(batch - 1) == "batch - 1"
    assert size_label(-2 * batch) == "-2·batch"
    assert size_label(3 * ceil_div(seq, 4)) == "3·((seq + 3)//4)"
    assert size_label(None) == "?"
    many = sum((symbol(f"s{i}") for i in range(10)), start=0 * batch)
    assert size_label(many).endswith(" + …")


def test_dimensions() -> None:
    assert parse_dims(["batch=1", "a=b=2"]) == {"batch": 1, "a=b": 2}
    assert parse_dims(None) == {}
    for wrong in ("batch", "=1", "batch=-1", "batch=1.5", "batch="):
        with pytest.raises(InputError, match="is not name=number"):
            parse_dims([wrong])


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1000", 1000),
        ("2k", 2048),
        ("512MiB", 512 << 20),
        ("1.5 GB", 3 << 29),
        ("0", 0),
        ("1TiB", 1 << 40),
    ],
)
def test_byte_counts(text: str, number: int) -> None:
    assert parse_bytes(text) == number


@pytest.mark.parametrize("text", ["", "lots", "-1", "1 GB more", "1XB"])
def test_what_is_no_byte_count(text: str) -> None:
    with pytest.raises(InputError):
        parse_bytes(text)


def test_an_expression_keeps_the_terms_that_fit() -> None:
    size = parse("1000000*batch*seq + 3000*batch + 7")
    assert size_label(size, "B") == "1.00M·batch·seq + 3.00k·batch + 7 B"
    assert size_label(size, "B", 24) == "1.00M·batch·seq + … B"
    assert size_label(size, "B", 10) == "1.00M·bat…"


@pytest.mark.parametrize("width", [40, 80, 120])
def test_nodes_fit_the_terminal(width: int) -> None:
    batch = parse("batch_size_of_the_caller")
    row = NodeRow(
        "a/very/long/name" * 5,
        "Conv",
        "C:\\models\\" * 9,
        None,
        ("float[batch, 3]" * 9,),
        *[batch] * 4,
    )
    console = Console(file=io.StringIO(), width=width)
    print_nodes("Nodes", [row], console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    lines = printed.splitlines()
    assert len(lines) == 5
    assert max(map(len, lines)) <= width
    assert "Conv" in lines[3]
    assert "float[" in lines[4]
