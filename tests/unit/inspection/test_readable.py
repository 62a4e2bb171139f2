from __future__ import annotations

import pytest

from sardonyx.inspection.readable import bytes_text, count_text, size_text
from sardonyx.sizes import symbol


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.00 k"),
        (12_345, "12.3 k"),
        (999_499, "999 k"),
        (999_960, "1.00 M"),
        (25_557_032, "25.6 M"),
        (4_100_000_000, "4.10 G"),
        (7 * 10**21, "7,000 E"),
    ],
)
def test_counts(number: int, shown: str) -> None:
    assert count_text(number) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (102_236_160, "97.5 MiB"),
        (1 << 40, "1.00 TiB"),
    ],
)
def test_bytes(number: int, shown: str) -> None:
    assert bytes_text(number) == shown


def test_sizes_with_units() -> None:
    assert size_text(4_111_514_624, "MAC") == "4.11 GMAC"
    assert size_text(12, "MAC") == "12 MAC"
    assert size_text(2048, "B") == "2.00 KiB"
    assert size_text(None) == "?"
    assert size_text(symbol("n") * 3, "MAC") == "3*n MAC"
